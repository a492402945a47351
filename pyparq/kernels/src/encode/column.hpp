// How a leaf of a file is written, and the data of one of its column chunks.
#pragma once

#include "base/encodings.hpp"
#include "codecs/crc.hpp"
#include "crypto/seal.hpp"
#include "encode/room.hpp"
#include "index/bounds.hpp"

#include <array>
#include <optional>

namespace pyparq {

constexpr int kUncompressed = 0;

// What holds for all columns of a file: pyparq.WriteOptions, and the thresholds of pyparq.write.encoding_choice.
struct FileRules {
    int64_t version = 1, max_rows = 0, page_size = 0, dictionary_limit = 0, statistics_truncate = -1, index_truncate = -1,
            longest_bound = 0, min_values = 0, threads = 1;
    bool page_index = true, size_statistics = true;
    double settles = 0, most_of_dictionary = 0;
    std::string record_key;
    nb::object crc_object;
    const Crc32* crc = nullptr;  // null: pages have no checksum
};

struct Candidate {
    int encoding;
    double most;  // share of the best before it that it may take
};

constexpr int kNotNative = -1 << 30;

struct ColumnRules {
    nb::object file_object;
    const FileRules* file;
    nb::object order_object;
    const LeafOrder* order;
    int physical, max_def, max_rep, codec;
    size_t width;         // bytes of a value, 0: byte arrays
    nb::object compress;  // `compress(bytes)`, None where nothing is compressed
    int level;            // for the native codec; kNotNative: that is not to be used
    bool dictionary, keep_dictionary;
    int encoding;  // without a dictionary; below 0: chosen from the data
    std::vector<Candidate> candidates;
    bool statistics;
    bool text;                                  // values must be UTF-8
    int64_t precision;                          // digits of a decimal
    int geo;                                    // of WKB: see geospatial.hpp
    std::vector<std::string> path, key_values;  // these as serialized KeyValue structs

    bool boolean() const { return physical == 0; }
};

// An encoding that was chosen, and what it came from: stored bytes per value of the sample.
struct Choice {
    int encoding = kPlain;
    std::vector<std::pair<int, double>> sizes;
    double size() const {
        for (const auto& [e, s] : sizes)
            if (e == encoding) return s;
        return 0;
    }
};

// The values of a chunk, and how its dictionary or encoding was decided elsewhere.
struct LeafValues {
    Values values;
    const uint8_t *defs = nullptr, *reps = nullptr;  // null: all at the maximum; no repetition
    size_t rows = 0, slots = 0;
    bool given = false;  // a dictionary: its entries in PLAIN, how many, and the index of each value
    const uint8_t* entries = nullptr;
    size_t entries_size = 0, num_entries = 0;
    const int32_t* indices = nullptr;
    int64_t distinct = -1;
    bool coded = false;         // byte arrays that are there as entries and indices alone: `values` has only their number
    Values entry_values;        // of a coded leaf
    std::vector<int64_t> used;  // entries that occur, ascending, where the leaf came as codes
    bool chosen = false;
    Choice choice;
};

// A chunk that cannot be written; Python words it.
struct Refusal {
    enum Code : int { PageTooLarge = 1,
                      RowTooLarge = 2,
                      Misfit = 3,  // not what the leaf may hold
                      Ewkb = 4 };
    int code;
    int64_t page, row, size;  // page below 0: the dictionary's
};

// Thrown by threads that have no way to call Python, where that is needed.
struct NeedsPython {};

// Compresses what the pages of a column hold.
class Compressor {
  public:
    // Without `unlocked`, on a thread that cannot call Python.
    Compressor(const ColumnRules& column, Unlocked* unlocked) : column_(column), unlocked_(unlocked) {}
    // The stored form of the bytes, put at the end of `out`; returns its size.
    size_t run(const uint8_t* data, size_t size, Room& out);

  private:
    const ColumnRules& column_;
    Unlocked* unlocked_;
};

// ---- pages ------------------------------------------------------------------------------------------------------

// Boundaries of pages: rows, slots (values with nulls), and values without nulls.
struct Pages {
    std::vector<int64_t> rows{0}, slots{0}, values{0};
    size_t size() const { return rows.size() - 1; }
};

// Estimated bytes of encoded values: bits per value, and the bytes of byte arrays.
struct Cost {
    size_t bits;
    const Values* arrays;
    size_t of(size_t first, size_t count) const {
        return (count * bits + 7) / 8 + (arrays == nullptr ? 0 : arrays->bytes(first, first + count));
    }
};

// Cuts rows into pages of at most max_rows rows and about page_size bytes, one row at least.
class Cutter {
  public:
    Cutter(const ColumnRules& column, const LeafValues& leaf);
    // Adds pages up to row `last`.
    void cut(size_t last, const Cost& cost);
    // The last row boundary at or before value number `value`.
    size_t row_before_value(size_t value) const;
    Pages pages;

  private:
    size_t slot_of_row(size_t row) const { return starts_.empty() ? row : static_cast<size_t>(starts_[row]); }
    size_t values_in(size_t first, size_t last) const;
    size_t end_of_page(size_t row, size_t end, const Cost& cost) const;

    const ColumnRules& column_;
    const LeafValues& leaf_;
    size_t level_bits_;
    std::vector<int64_t> starts_;  // of rows, where the leaf is repeated
};

// ---- decisions ----------------------------------------------------------------------------------------------------

// What a data page holds, compressed: values without nulls, and in version 1 the levels before them.
struct StoredBody {
    int encoding = -1;
    size_t values = 0, size = 0;  // how many, and the bytes before compression
    Room stored;
};

// How the values of a chunk are written.
struct Decision {
    bool dictionary = false, complete = false;
    const int32_t* indices = nullptr;
    size_t covered = 0, num_entries = 0;  // values in the dictionary, and its entries
    const uint8_t* entries = nullptr;     // in PLAIN
    size_t entries_size = 0;
    int encoding = kPlain;  // of values outside the dictionary
    int64_t distinct = -1;
    bool chose = false;  // here, from the data
    Choice choice;
    StoredBody first_page;  // as it was made when the encoding was chosen, perhaps

    std::vector<int32_t> own_indices;
    std::vector<int64_t> first;
    Room own_entries;
    unsigned index_bits() const { return static_cast<unsigned>(std::bit_width(num_entries > 0 ? num_entries - 1 : 0)); }
};

Decision decide(const ColumnRules& column, const LeafValues& leaf, Compressor& compressor);

// Levels as a page of version 1 has them, behind their size; nothing where the maximum is 0. Null stands for all at the
// maximum.
void put_sized_levels(const uint8_t* levels, size_t count, int maximum, Room& out);
// The values first..last in an encoding that needs no dictionary, at the end of `out`.
void put_values(const ColumnRules& column, int encoding, const Values& values, Room& out);
// Dictionary indices behind their bit width.
void put_indices(const int32_t* indices, size_t count, unsigned bits, Room& out);

// ---- chunks -------------------------------------------------------------------------------------------------------

struct PagePlace {
    int64_t offset, size, first_row;  // offset counts from the start of the chunk
};

// What the footer and the indexes say about a chunk that has been encoded.
struct ChunkFacts {
    const ColumnRules* column = nullptr;
    int64_t start = 0, size = 0, uncompressed = 0, slots = 0;  // start counts from the first chunk of the call
    bool dictionary = false;
    std::vector<std::array<int, 3>> encoding_stats;  // page type, encoding, count
    std::string statistics, geospatial;              // serialized, or nothing
    std::optional<std::string> column_index, sealed_offset_index;
    std::vector<PagePlace> pages;
    std::vector<int64_t> unencoded;
    int64_t unencoded_total = -1;
    std::vector<int64_t> repetition, definition;  // histograms of the chunk
    bool chose = false, complete = false;
    Choice choice;
    std::vector<int64_t> first;  // where the entries of a complete dictionary first occur
    std::vector<int64_t> used;   // see LeafValues
    int64_t column_index_at = -1, column_index_size = 0, offset_index_at = -1, offset_index_size = 0, bloom_at = -1, bloom_size = 0;
};

// How a chunk is encrypted: natively, or by `otherwise(module, parts, page)`, which is null where nothing is.
struct ChunkSeal {
    const NativeSealer* native = nullptr;
    PyObject* otherwise = nullptr;
};

// Seals the pages of a chunk, some of them on other threads.
class PageSeal {
  public:
    explicit PageSeal(const ChunkSeal& seal) : seal_(seal) {}
    bool encrypts() const { return seal_.otherwise != nullptr; }
    bool native() const { return seal_.native != nullptr; }
    // Nonces for so many pages, for threads that cannot draw any.
    void draw(size_t pages, Unlocked& unlocked);
    // Puts the stored form of `parts` at the end of `out`; returns its size. Without `unlocked`, on a thread that cannot
    // call Python.
    size_t run(int module, const TextPart* parts, size_t count, int64_t page, AesContext& aes, Unlocked* unlocked, Room& out);

  private:
    ChunkSeal seal_;
    NonceBlock nonces_;
};

// Encodes a chunk at the end of `out`.
ChunkFacts encode_chunk(const ColumnRules& column, const LeafValues& leaf, const ChunkSeal& seal, Unlocked& unlocked, ChunkBytes& out);

// The metadata of an encrypted chunk in the footer: its serialized ColumnCryptoMetaData; the ColumnMetaData as a module
// of its own, or nothing; and whether metadata without secrets are stored in the clear as well.
struct StoredMetadata {
    std::string_view crypto, sealed;
    bool bare = false;
};

// The serialized OffsetIndex, ColumnMetaData and ColumnChunk of a chunk whose first neighbour starts at `base`.
std::string offset_index_of(const ChunkFacts& chunk, int64_t base);
std::string column_metadata_of(const ChunkFacts& chunk, int64_t base);
std::string column_chunk_of(const ChunkFacts& chunk, int64_t base, const StoredMetadata& stored = {});

}  // namespace pyparq
