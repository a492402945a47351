// What Python hands over for one column chunk: its rules, its values and levels, or the arrays that they are in.
#pragma once
#include "arrow/import.hpp"
#include "encode/flat_columns.hpp"
#include "values/checks.hpp"

#include <nanobind/stl/pair.h>

namespace pyparq {

// What a chunk is made from, with the buffers that it looks into.
struct GivenChunk {
    nb::object column_object, seal_object;
    const ColumnRules* column = nullptr;
    ChunkSeal seal;
    LeafValues leaf;
    Offsets offsets;
    RawIn data, entries;
    Array<uint8_t, false, true> defs, reps;
    In<int32_t> indices;
    std::vector<uint64_t> aligned;
    In<int32_t> places;
    FlatDictionary dictionary;  // of a column that comes as codes
    bool flat = false;          // a column as it lies in Arrow's buffers:
    std::vector<FlatPart> parts;
    std::vector<RawIn> buffers;  // that they look into
    std::vector<Owner> arrays;

    // (column, offsets or None, data, defs, reps, rows, slots, dictionary, choice, seal), or
    // (column, [(form, length, offset, validity or None, values or offsets, bytes or None) or
    //  (form, ImportedArray), ...], rows, codes, choice, seal); codes: (entries in PLAIN, how many, where each code's
    // entry is or None), or None
    explicit GivenChunk(const nb::tuple& given) {
        const size_t size = nb::len(given);
        if (size != 10 && size != 6) fail("a chunk is made from ten things, or from six");
        column_object = given[0], seal_object = given[size - 1];
        load_seal();
        column = nb::cast<const ColumnRules*>(column_object);
        load_choice(given[size - 2]);
        if (size == 6) {
            load_parts(given);
            if (!given[3].is_none()) load_codes(nb::cast<nb::tuple>(given[3]));
            return;
        }
        if (!data.load(nb::object(given[2]).ptr())) fail("values must be contiguous");
        if (!defs.load(nb::object(given[3]).ptr()) || !reps.load(nb::object(given[4]).ptr())) fail("levels must be uint8");
        leaf.rows = checked_count(nb::cast<int64_t>(given[5]), "rows"), leaf.slots = checked_count(nb::cast<int64_t>(given[6]), "slots");
        if (leaf.rows < 1) fail("a chunk has one row at least");
        load_values(given[1]);
        load_levels();
        if (!given[7].is_none()) load_dictionary(nb::cast<nb::tuple>(given[7]));
    }

    // See flatten() of parts, which this is for a column that is a leaf itself.
    bool flatten(FlatMemory& memory) {
        if (dictionary.plain != nullptr) return flatten_codes(*column, parts, dictionary, memory, leaf);
        return pyparq::flatten(*column, parts, memory, leaf);
    }

  private:
    void load_seal() {
        if (seal_object.is_none()) return;
        if (nb::isinstance<NativeSealer>(seal_object)) seal.native = nb::cast<const NativeSealer*>(seal_object);
        seal.otherwise = seal.native != nullptr ? seal.native->otherwise().ptr() : seal_object.ptr();
    }
    void load_choice(const nb::object& given) {
        if (given.is_none()) return;
        const auto choice = nb::cast<std::pair<int, double>>(given);
        leaf.chosen = true, leaf.choice.encoding = choice.first, leaf.choice.sizes = {choice};
    }
    void load_parts(const nb::tuple& given) {
        flat = true;
        leaf.rows = checked_count(nb::cast<int64_t>(given[2]), "rows");
        if (leaf.rows < 1) fail("a chunk has one row at least");
        for (const nb::handle one : nb::cast<nb::list>(given[1])) {
            const auto part = nb::cast<nb::tuple>(one);
            if (nb::len(part) != 6 && nb::len(part) != 2) fail("an array is given as six things, or as two");
            FlatPart& made = parts.emplace_back();
            made.form = nb::cast<int>(part[0]);
            if (nb::len(part) == 2) {
                const ImportedArray& array = nb::cast<const ImportedArray&>(part[1]);
                made.length = checked_count(array.length, "length"), made.offset = checked_count(array.offset, "offset");
                if (array.nulls != 0 && array.validity.data != nullptr) made.validity = array.validity.data, made.validity_size = array.validity.size;
                made.first = array.first.data, made.first_size = array.first.size;
                made.second = array.second.data, made.second_size = array.second.size;
                arrays.push_back(array.owner);
                continue;
            }
            made.length = checked_count(nb::cast<int64_t>(part[1]), "length");
            made.offset = checked_count(nb::cast<int64_t>(part[2]), "offset");
            load_buffer(part[3], made.validity, made.validity_size);
            load_buffer(part[4], made.first, made.first_size);
            load_buffer(part[5], made.second, made.second_size);
        }
    }
    void load_codes(const nb::tuple& given) {
        if (nb::len(given) != 3 || !entries.load(nb::object(given[0]).ptr())) fail("what codes stand for is (entries, count, places)");
        dictionary.plain = entries.data, dictionary.size = entries.size;
        dictionary.codes = dictionary.count = checked_count(nb::cast<int64_t>(given[1]), "count");
        if (dictionary.count > entries.size) fail("the dictionary has fewer bytes than entries");
        const nb::object where = given[2];
        if (where.is_none()) return;
        if (!places.load(where.ptr())) fail("places must be int32");
        check_indices(places.data, places.size, dictionary.count);
        dictionary.places = places.data, dictionary.codes = places.size;
    }
    void load_buffer(const nb::object& given, const uint8_t*& data, size_t& size) {
        if (given.is_none()) return;
        RawIn buffer;
        if (!buffer.load(given.ptr())) fail("buffers must be contiguous");
        data = buffer.data, size = buffer.size;
        buffers.push_back(std::move(buffer));
    }
    void load_values(const nb::object& given) {
        if (column->width == 0) {
            if (!offsets.load(given.ptr())) fail("offsets must be int32 or int64");
            leaf.values = byte_arrays(offsets, data);
            return;
        }
        Values& v = leaf.values;
        v.width = column->width, v.count = checked_items(data.size, v.width, "values");
        v.data = data.data, v.size = data.size;
        if (v.width <= 8 && std::has_single_bit(v.width) && reinterpret_cast<uintptr_t>(v.data) % v.width != 0) {
            aligned.resize(v.size / 8 + 1);
            std::memcpy(aligned.data(), v.data, v.size);
            v.data = reinterpret_cast<const uint8_t*>(aligned.data());
        }
    }
    void load_levels() {
        leaf.defs = defs.data, leaf.reps = reps.data;
        if ((!defs.none() && defs.size != leaf.slots) || (!reps.none() && reps.size != leaf.slots)) fail("there are not as many levels as slots");
        if (reps.none() && (leaf.slots != leaf.rows || column->max_rep > 0)) fail("a leaf that is not repeated has a slot per row");
        for (size_t i = 0; i < leaf.slots; ++i) {
            if (!defs.none() && defs.data[i] > column->max_def) fail("a definition level is too high");
            if (!reps.none() && reps.data[i] > column->max_rep) fail("a repetition level is too high");
        }
        const size_t present = defs.none() ? leaf.slots : count_equal(defs.data, leaf.slots, static_cast<uint8_t>(column->max_def));
        if (present != leaf.values.count) fail(str(present) + " slots are present but there are " + str(leaf.values.count) + " values");
        if (!reps.none() && (leaf.slots == 0 || reps.data[0] != 0)) fail("the first slot begins no row");
    }
    void load_dictionary(const nb::tuple& given) {
        if (nb::len(given) != 4 || !entries.load(nb::object(given[0]).ptr()) || !indices.load(nb::object(given[2]).ptr()))
            fail("a dictionary is (entries, count, indices, distinct)");
        leaf.given = true;
        leaf.entries = entries.data, leaf.entries_size = entries.size, leaf.num_entries = checked_count(nb::cast<int64_t>(given[1]), "count");
        leaf.indices = indices.data, leaf.distinct = nb::cast<int64_t>(given[3]);
        if (indices.size != leaf.values.count) fail("there are not as many indices as values");
        check_indices(indices.data, indices.size, leaf.num_entries);
    }
};

}  // namespace pyparq
