// The writer of column chunks as Python has it: rules of files and columns, and the chunks of some columns beside each other.
#include "arrow/import.hpp"
#include "encode/flat_columns.hpp"

#include "values/checks.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace pyparq {
namespace {

nb::bytes to_bytes(std::string_view v) { return nb::bytes(v.data(), v.size()); }

FileRules* new_file(int64_t version, int64_t max_rows, int64_t page_size, int64_t dictionary_limit, int64_t statistics_truncate,
                    int64_t index_truncate, int64_t longest_bound, bool page_index, bool size_statistics, int64_t min_values,
                    double settles, double most_of_dictionary, const std::string& record_key, nb::object crc, int64_t threads) {
    if (version != 1 && version != 2) fail("there is no data page version " + str(version));
    if (max_rows < 1 || page_size < 1 || dictionary_limit < 0) fail("a limit is too small");
    auto rules = std::make_unique<FileRules>();
    rules->version = version, rules->max_rows = max_rows, rules->page_size = page_size, rules->dictionary_limit = dictionary_limit;
    rules->statistics_truncate = statistics_truncate, rules->index_truncate = index_truncate, rules->longest_bound = longest_bound;
    rules->page_index = page_index, rules->size_statistics = size_statistics, rules->min_values = min_values;
    rules->settles = settles, rules->most_of_dictionary = most_of_dictionary, rules->record_key = record_key;
    if (!crc.is_none()) rules->crc = nb::cast<const Crc32*>(crc);
    rules->crc_object = std::move(crc), rules->threads = threads;
    return rules.release();
}

int checked_level(int64_t v) {
    if (v < 0 || v > 255) fail("level out of range: " + str(v));
    return static_cast<int>(v);
}

ColumnRules* new_column(nb::object file, nb::object order, int64_t physical, int64_t width, int64_t max_def, int64_t max_rep,
                        int64_t codec, nb::object compress, int64_t level, bool dictionary, bool keep_dictionary, int64_t encoding,
                        const std::vector<std::pair<int, double>>& candidates, bool statistics, bool text,
                        int64_t precision, std::vector<std::string> path, const nb::sequence& key_values) {
    auto rules = std::make_unique<ColumnRules>();
    rules->file = nb::cast<const FileRules*>(file);
    rules->order = nb::cast<const LeafOrder*>(order);
    rules->file_object = std::move(file), rules->order_object = std::move(order);
    rules->physical = static_cast<int>(physical), rules->width = checked_count(width, "width");
    rules->max_def = checked_level(max_def), rules->max_rep = checked_level(max_rep), rules->codec = static_cast<int>(codec);
    rules->compress = std::move(compress), rules->level = static_cast<int>(level);
    rules->dictionary = dictionary, rules->keep_dictionary = keep_dictionary, rules->encoding = static_cast<int>(encoding);
    for (const auto& [candidate, most] : candidates) rules->candidates.push_back({candidate, most});
    rules->statistics = statistics, rules->text = text, rules->precision = precision, rules->path = std::move(path);
    for (const nb::handle pair : key_values) {
        const auto bytes = nb::cast<nb::bytes>(pair);
        rules->key_values.emplace_back(bytes.c_str(), bytes.size());
    }
    return rules.release();
}

// What a chunk is made from, with the buffers that it looks into.
struct Job {
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
    explicit Job(const nb::tuple& given) {
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

// Chunks of one row group, one after another.
class EncodedChunks {
  public:
    // Encodes one more chunk for each job, without the GIL; `check()` raises where the work is not wanted any more. After an
    // exception, and after a refusal (code, page, row, size), `at_fault` is the number of the chunk that it is about.
    nb::object encode(const nb::list& given, const nb::object& check) {
        std::vector<std::unique_ptr<Job>> jobs;
        at_fault_ = chunks_.size();
        for (const nb::handle job : given) {
            jobs.push_back(std::make_unique<Job>(nb::cast<nb::tuple>(job)));
            ++at_fault_;
        }
        for (const auto& job : jobs) columns_.push_back(job->column_object);
        const Encoding encoding(*this);
        try {
            Unlocked unlocked(check);
            for (const auto& job : jobs) {
                at_fault_ = chunks_.size();
                unlocked.tick();
                FlatMemory memory;
                if (job->flat && !job->flatten(memory)) throw Refusal{Refusal::Misfit, 0, 0, 0};
                chunks_.push_back(encode_chunk(*job->column, job->leaf, job->seal, unlocked, bytes_));
            }
        } catch (const Refusal& r) {
            return nb::make_tuple(r.code, r.page, r.row, r.size);
        }
        return nb::none();
    }

    size_t count() const { return chunks_.size(); }
    size_t at_fault() const { return at_fault_; }
    size_t size() const { return bytes_.size(); }

    // The bytes that were not taken yet, in arrays. While another thread is in encode(), only finished areas are
    // returned.
    nb::list take() {
        nb::list found;
        for (const ChunkBytes::Part& part : bytes_.take(!encoding_))
            found.append(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(part.area.data, {part.size}, owner_of(part.area, part.size)));
        return found;
    }
    void place(int64_t base) { base_ = base; }
    int64_t uncompressed() const {
        int64_t total = 0;
        for (const ChunkFacts& chunk : chunks_) total += chunk.uncompressed;
        return total;
    }

    nb::object column_index(size_t k) const {
        const auto& found = at(k).column_index;
        return found ? nb::object(to_bytes(*found)) : nb::object(nb::none());
    }
    nb::bytes offset_index(size_t k) const { return to_bytes(offset_index_of(at(k), base_)); }
    nb::bytes column_metadata(size_t k) const { return to_bytes(column_metadata_of(at(k), base_)); }
    nb::bytes column_chunk(size_t k, const nb::bytes& crypto, const nb::bytes& sealed, bool bare) const {
        const StoredMetadata stored{{crypto.c_str(), crypto.size()}, {sealed.c_str(), sealed.size()}, bare};
        return to_bytes(column_chunk_of(at(k), base_, stored));
    }
    void set_column_index(size_t k, const nb::bytes& stored) { at(k).column_index = std::string(stored.c_str(), stored.size()); }
    void set_offset_index(size_t k, const nb::bytes& stored) { at(k).sealed_offset_index = std::string(stored.c_str(), stored.size()); }

    // All ColumnIndexes one after another, which will stand at `position`.
    nb::bytes column_indexes(int64_t position) {
        std::string all;
        for (ChunkFacts& chunk : chunks_) {
            if (!chunk.column_index) continue;
            chunk.column_index_at = position + static_cast<int64_t>(all.size());
            chunk.column_index_size = static_cast<int64_t>(chunk.column_index->size());
            all += *chunk.column_index;
            chunk.column_index.reset();
        }
        return to_bytes(all);
    }
    nb::bytes offset_indexes(int64_t position) {
        std::string all;
        for (ChunkFacts& chunk : chunks_) {
            const std::string one = chunk.sealed_offset_index ? *chunk.sealed_offset_index : offset_index_of(chunk, base_);
            chunk.sealed_offset_index.reset();
            chunk.offset_index_at = position + static_cast<int64_t>(all.size());
            chunk.offset_index_size = static_cast<int64_t>(one.size());
            all += one;
        }
        return to_bytes(all);
    }
    // All ColumnChunks one after another, as the footer has them.
    nb::bytes column_chunks() const {
        std::string all;
        for (const ChunkFacts& chunk : chunks_) all += column_chunk_of(chunk, base_);
        return to_bytes(all);
    }
    void set_bloom(size_t k, int64_t position, int64_t size) { at(k).bloom_at = position, at(k).bloom_size = size; }

    // (encoding, stored bytes per value) where the chunk chose and had enough to choose from.
    nb::object choice(size_t k) const {
        const ChunkFacts& chunk = at(k);
        if (!chunk.chose || chunk.choice.sizes.empty()) return nb::none();
        return nb::make_tuple(chunk.choice.encoding, chunk.choice.size());
    }
    // Where each entry of its dictionary first occurs; None without one that has all values.
    nb::object first_places(size_t k) {
        ChunkFacts& chunk = at(k);
        if (!chunk.complete) return nb::none();
        Fresh<int64_t> out(chunk.first.size());
        std::copy(chunk.first.begin(), chunk.first.end(), out.data);
        return std::move(out.object);
    }

    // The entries that occur in a chunk that came as codes.
    nb::object used_entries(size_t k) const {
        const std::vector<int64_t>& used = at(k).used;
        Fresh<int64_t> out(used.size());
        std::copy(used.begin(), used.end(), out.data);
        return std::move(out.object);
    }

  private:
    // For as long as a thread is in encode(); made and ended with the GIL.
    struct Encoding {
        explicit Encoding(EncodedChunks& chunks) : chunks(chunks) { chunks.encoding_ = true; }
        Encoding(const Encoding&) = delete;
        Encoding& operator=(const Encoding&) = delete;
        ~Encoding() { chunks.encoding_ = false; }
        EncodedChunks& chunks;
    };

    ChunkFacts& at(size_t k) {
        if (k >= chunks_.size()) throw nb::index_error();
        return chunks_[k];
    }
    const ChunkFacts& at(size_t k) const { return const_cast<EncodedChunks*>(this)->at(k); }

    std::vector<nb::object> columns_;
    std::vector<ChunkFacts> chunks_;
    ChunkBytes bytes_;
    bool encoding_ = false;  // read and set with the GIL
    size_t at_fault_ = 0;
    int64_t base_ = 0;
};

}  // namespace
}  // namespace pyparq

void bind_write(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    nb::class_<FileRules>(m, "FileRules").def(nb::new_(&new_file), "version"_a, "max_rows"_a, "page_size"_a, "dictionary_limit"_a, "statistics_truncate"_a, "index_truncate"_a, "longest_bound"_a, "page_index"_a, "size_statistics"_a, "min_values"_a, "settles"_a, "most_of_dictionary"_a, "record_key"_a, "crc"_a.none(), "threads"_a);
    nb::class_<ColumnRules>(m, "ColumnRules").def(nb::new_(&new_column), "file"_a, "order"_a, "physical"_a, "width"_a, "max_def"_a, "max_rep"_a, "codec"_a, "compress"_a.none(), "level"_a, "dictionary"_a, "keep_dictionary"_a, "encoding"_a, "candidates"_a, "statistics"_a, "text"_a, "precision"_a, "path"_a, "key_values"_a);
    nb::class_<EncodedChunks>(m, "EncodedChunks")
        .def(nb::init<>())
        .def("encode", &EncodedChunks::encode, "jobs"_a, "check"_a)
        .def_prop_ro("count", &EncodedChunks::count)
        .def_prop_ro("at_fault", &EncodedChunks::at_fault)
        .def_prop_ro("size", &EncodedChunks::size)
        .def_prop_ro("uncompressed", &EncodedChunks::uncompressed)
        .def("take", &EncodedChunks::take)
        .def("place", &EncodedChunks::place, "base"_a)
        .def("column_index", &EncodedChunks::column_index, "chunk"_a)
        .def("offset_index", &EncodedChunks::offset_index, "chunk"_a)
        .def("set_column_index", &EncodedChunks::set_column_index, "chunk"_a, "stored"_a)
        .def("set_offset_index", &EncodedChunks::set_offset_index, "chunk"_a, "stored"_a)
        .def("column_metadata", &EncodedChunks::column_metadata, "chunk"_a)
        .def("column_chunk", &EncodedChunks::column_chunk, "chunk"_a, "crypto"_a, "sealed"_a, "bare"_a)
        .def("column_indexes", &EncodedChunks::column_indexes, "position"_a)
        .def("offset_indexes", &EncodedChunks::offset_indexes, "position"_a)
        .def("column_chunks", &EncodedChunks::column_chunks)
        .def("set_bloom", &EncodedChunks::set_bloom, "chunk"_a, "position"_a, "size"_a)
        .def("choice", &EncodedChunks::choice, "chunk"_a)
        .def("used_entries", &EncodedChunks::used_entries, "chunk"_a)
        .def("first_places", &EncodedChunks::first_places, "chunk"_a);
}
