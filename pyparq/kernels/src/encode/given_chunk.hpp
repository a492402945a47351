// What Python hands over for one column chunk: its rules, its values and levels, or the arrays that they are in.
#pragma once
#include "arrow/import.hpp"
#include "encode/flat_columns.hpp"
#include "values/checks.hpp"

#include <nanobind/stl/pair.h>

namespace pyparq {

// One array of a column that is a leaf itself, in Arrow's buffers.
struct FlatArray {
    int form;
    int64_t length = 0, offset = 0;
    nb::object validity, first, second;  // bits or None; values, or offsets and bytes
    nb::object owner;                    // of `imported`
    const ImportedArray* imported = nullptr;

    FlatArray(int form, int64_t length, int64_t offset, nb::object validity, nb::object first, nb::object second)
        : form(form), length(length), offset(offset), validity(std::move(validity)), first(std::move(first)), second(std::move(second)) {}
    FlatArray(int form, nb::object array) : form(form), owner(std::move(array)), imported(nb::cast<const ImportedArray*>(owner)) {}
};

// The dictionary that values come from.
struct KnownDictionary {
    nb::object entries;  // in PLAIN
    int64_t count;
    nb::object indices;  // int32, of each value
    int64_t distinct;
};

// A chunk given by its values without nulls and its levels. Objects are None where there is none.
struct ValuesChunk {
    nb::object rules, offsets, values, def_levels, rep_levels;
    int64_t num_rows, num_slots;
    nb::object dictionary, choice, seal;
};

// A chunk given by arrays.
struct ArraysChunk {
    nb::object rules;
    nb::list arrays;
    int64_t num_rows;
    nb::object codes;  // what the arrays' codes stand for: (entries in PLAIN, how many, where each code's entry is or None); or None
    nb::object choice, seal;
};

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

    explicit GivenChunk(const nb::handle& given) {
        if (nb::isinstance<ArraysChunk>(given)) load(nb::cast<const ArraysChunk&>(given));
        else load(nb::cast<const ValuesChunk&>(given));
    }

    // See flatten() of parts, which this is for a column that is a leaf itself.
    bool flatten(FlatMemory& memory) {
        if (dictionary.plain != nullptr) return flatten_codes(*column, parts, dictionary, memory, leaf);
        return pyparq::flatten(*column, parts, memory, leaf);
    }

  private:
    // What all chunks have.
    template <class Given>
    void load_common(const Given& given) {
        column_object = given.rules, seal_object = given.seal;
        load_seal();
        column = nb::cast<const ColumnRules*>(column_object);
        load_choice(given.choice);
        leaf.rows = checked_count(given.num_rows, "rows");
        if (leaf.rows < 1) fail("a chunk has one row at least");
    }
    void load(const ArraysChunk& given) {
        load_common(given);
        flat = true;
        for (const nb::handle array : given.arrays) load_array(nb::cast<const FlatArray&>(array));
        if (!given.codes.is_none()) load_codes(nb::cast<nb::tuple>(given.codes));
    }
    void load(const ValuesChunk& given) {
        load_common(given);
        if (!data.load(given.values.ptr())) fail("values must be contiguous");
        if (!defs.load(given.def_levels.ptr()) || !reps.load(given.rep_levels.ptr())) fail("levels must be uint8");
        leaf.slots = checked_count(given.num_slots, "slots");
        load_values(given.offsets);
        load_levels();
        if (!given.dictionary.is_none()) load_dictionary(nb::cast<const KnownDictionary&>(given.dictionary));
    }
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
    void load_array(const FlatArray& given) {
        FlatPart& made = parts.emplace_back();
        made.form = given.form;
        if (given.imported != nullptr) return load_imported(*given.imported, made);
        made.length = checked_count(given.length, "length"), made.offset = checked_count(given.offset, "offset");
        load_buffer(given.validity, made.validity, made.validity_size);
        load_buffer(given.first, made.first, made.first_size);
        load_buffer(given.second, made.second, made.second_size);
    }
    void load_imported(const ImportedArray& array, FlatPart& made) {
        made.length = checked_count(array.length, "length"), made.offset = checked_count(array.offset, "offset");
        if (array.nulls != 0 && array.validity.data != nullptr) made.validity = array.validity.data, made.validity_size = array.validity.size;
        made.first = array.first.data, made.first_size = array.first.size;
        made.second = array.second.data, made.second_size = array.second.size;
        arrays.push_back(array.owner);
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
    void load_dictionary(const KnownDictionary& given) {
        if (!entries.load(given.entries.ptr()) || !indices.load(given.indices.ptr())) fail("a dictionary has entries in PLAIN and int32 indices");
        leaf.given = true;
        leaf.entries = entries.data, leaf.entries_size = entries.size, leaf.num_entries = checked_count(given.count, "count");
        leaf.indices = indices.data, leaf.distinct = given.distinct;
        if (indices.size != leaf.values.count) fail("there are not as many indices as values");
        check_indices(indices.data, indices.size, leaf.num_entries);
    }
};

}  // namespace pyparq
