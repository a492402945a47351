// The numbers of many ColumnChunks that pruning, planning and reading need, in one call. An unusual chunk is only marked:
// code that looks at a single chunk then handles it, or raises the error.
#pragma once

#include "io/files.hpp"
#include "thrift/chunk_numbers.hpp"
#include "thrift/wire.hpp"

#include <array>

namespace pyparq {

using ChunkRow = std::array<int64_t, kChunkNumbers>;

inline ChunkRow no_chunk() {
    ChunkRow row{};
    for (const size_t k : {kType, kCodec, kNullCount, kNanCount, kDataPages, kMin, kMax, kOldMin, kOldMax}) row[k] = -1;
    return row;
}

// The bytes of a path_in_schema as a list, to compare with what a chunk states.
inline bool same_bytes(const uint8_t* start, const uint8_t* end, std::string_view expected) {
    const auto size = static_cast<size_t>(end - start);
    return size == expected.size() && std::memcmp(start, expected.data(), size) == 0;
}

// Reads what the rules have checked: every field has been there once at most, and is complete.
class ChunkReader {
  public:
    ChunkReader(Cursor& cursor, std::string_view path, ChunkRow& row) : c_(cursor), path_(path), row_(row) {}

    void read() {
        bool found = false;
        fields([&](int32_t id, uint8_t type) {
            switch (id) {
                case 1:
                    if (type != kBinary) return false;
                    if (text().second > 0) odd();  // file_path
                    return true;
                case 3:
                    if (type != kStruct) return false;
                    found = true;
                    meta_data();
                    return true;
                case 4: return number(kOffsetIndex, type, kI64);
                case 5: return number(kOffsetIndexLength, type, kI32);
                case 6: return number(kColumnIndex, type, kI64);
                case 7: return number(kColumnIndexLength, type, kI32);
                case 8:
                case 9: odd(); return false;  // crypto_metadata, encrypted_column_metadata
                default: return false;
            }
        });
        if (!found) odd();
    }

    void odd() { row_[kFlags] |= kOdd; }

  private:
    template <class Take>
    void fields(Take&& take) {
        int32_t id = 0;
        uint8_t type;
        while (c_.field(type, id)) {
            if (!take(id, type)) skip_field(c_, type, 4);
        }
    }

    bool number(ChunkNumber place, uint8_t type, uint8_t due) {
        if (type != due) return false;
        row_[place] = c_.number(due == kI32 ? 32 : 64);
        return true;
    }

    std::pair<int64_t, size_t> text() {  // where it starts, and its size
        const size_t size = c_.varint(32);
        const int64_t at = c_.at();
        c_.advance(size);
        return {at, size};
    }

    bool bound(ChunkNumber place, uint8_t type) {
        if (type != kBinary) return false;
        const auto [at, size] = text();
        row_[place] = at, row_[place + 1] = static_cast<int64_t>(size);
        return true;
    }

    void meta_data() {
        bool path = false, stats = false;
        uint64_t encodings = 0;
        fields([&](int32_t id, uint8_t type) {
            switch (id) {
                case 1: return number(kType, type, kI32);
                case 2: return type == kList && list_of_encodings(encodings);
                case 3: {
                    if (type != kList) return false;
                    const uint8_t* start = c_.p;
                    skip_field(c_, type, 4);
                    path = same_bytes(start, c_.p, path_);
                    return true;
                }
                case 4: return number(kCodec, type, kI32);
                case 5: return number(kNumValues, type, kI64);
                case 6: return number(kUncompressedSize, type, kI64);
                case 7: return number(kCompressedSize, type, kI64);
                case 9: return number(kDataPage, type, kI64);
                case 11: return number(kDictionaryPage, type, kI64);
                case 12:
                    if (type != kStruct) return false;
                    statistics();
                    return true;
                case 13:
                    if (type != kList) return false;
                    stats = encoding_stats();
                    return true;
                case 14: return number(kFilterOffset, type, kI64);
                case 15: return number(kFilterLength, type, kI32);
                default: return false;
            }
        });
        if (!path) odd();
        // A chunk that lists RLE_DICTIONARY may list PLAIN for its dictionary page or for data pages alike.
        constexpr uint64_t kPlainDictionary = 1u << 2, kLevels = 1u << 3 | 1u << 4;
        if (!stats && (encodings & kPlainDictionary) != 0 && (encodings & ~(kPlainDictionary | kLevels)) == 0)
            row_[kFlags] |= kAllDictionary;
    }

    bool list_of_encodings(uint64_t& found) {
        uint8_t element;
        for (size_t n = c_.list(element); n > 0; --n) found |= bit_of(c_.number(32));
        row_[kEncodings] = static_cast<int64_t>(found);
        return true;
    }

    // Of a set of small numbers. All that are not small share the last bit but one, so that no set is negative.
    static uint64_t bit_of(int64_t number) { return uint64_t{1} << (number >= 0 && number < 62 ? number : 62); }

    void statistics() {
        row_[kFlags] |= kHasStatistics;
        fields([&](int32_t id, uint8_t type) {
            switch (id) {
                case 1: return bound(kOldMax, type);
                case 2: return bound(kOldMin, type);
                case 3: return number(kNullCount, type, kI64);
                case 5: return bound(kMax, type);
                case 6: return bound(kMin, type);
                case 9: return number(kNanCount, type, kI64);
                default: return false;
            }
        });
    }

    // Whether there are any; they tell how many data pages there are, and whether all are in a dictionary encoding.
    bool encoding_stats() {
        uint8_t element;
        const size_t count = c_.list(element);
        int64_t pages = 0;
        bool any = false, all = true;
        for (size_t n = count; n > 0; --n) {
            int64_t values[3] = {-1, -1, 0};  // page_type, encoding, count
            fields([&](int32_t id, uint8_t type) {
                if (id > 3 || type != kI32) return false;
                values[id - 1] = c_.number(32);
                return true;
            });
            row_[kPageTypes] |= static_cast<int64_t>(bit_of(values[0]));
            if (values[0] != 0 && values[0] != 3) continue;
            pages += values[2];
            if (values[2] == 0) continue;
            any = true, all &= values[1] == 2 || values[1] == 8;
        }
        if (count == 0) return false;
        row_[kDataPages] = pages;
        if (any && all) row_[kFlags] |= kAllDictionary;
        return true;
    }

    Cursor& c_;
    std::string_view path_;
    ChunkRow& row_;
};

// A chunk that fails its check is marked as odd. Its other numbers must not be used then.
template <class Rules>
ChunkRow read_chunk(const Rules& rules, size_t kind, Cursor c, std::string_view path) {
    ChunkRow row = no_chunk();
    try {
        Cursor checked = c;
        rules.check(checked, kind);
        ChunkReader(c, path, row).read();
    } catch (const KernelError&) {
        row = no_chunk(), row[kFlags] = kOdd;
    }
    return row;
}

struct ChunkTable {
    Fresh<int64_t> numbers;
    size_t count;
    explicit ChunkTable(size_t chunks) : numbers(checked_mul(chunks, kChunkNumbers)), count(chunks) {}
    void put(size_t k, const ChunkRow& row) {
        for (size_t i = 0; i < kChunkNumbers; ++i) numbers.data[i * count + k] = row[i];
    }
};

// `starts`: of ColumnChunks in `data`; -1: there is none. `paths`: in turn, what their paths should be.
template <class Rules>
nb::object chunk_numbers(const Rules& rules, const RawIn& data, const In<int64_t>& starts, size_t kind,
                         const nb::list& paths) {
    const BytesList names(paths);
    if (names.items.empty() && starts.size > 0) fail("no paths");
    ChunkTable table(starts.size);
    {
        NoGil nogil(checked_mul(starts.size, 200));
        for (size_t k = 0; k < starts.size; ++k) {
            const int64_t at = starts.data[k];
            if (at >= 0) {
                table.put(k, read_chunk(rules, kind, cursor(data, at), names.items[k % names.items.size()]));
            } else {
                ChunkRow row = no_chunk();
                row[kFlags] = kOdd;
                table.put(k, row);
            }
        }
    }
    return std::move(table.numbers.object);
}

// ---- the same for some columns of many footers ----------------------------------------------------------

struct ManyChunks {
    std::vector<int64_t> first{0};  // row groups before each footer; then their number
    std::vector<int64_t> rows;      // of each row group
    std::vector<ChunkRow> chunks;   // of each row group those of the columns asked for
};

template <class Rules>
void read_row_group(const Rules& rules, size_t kind, Cursor& c, const In<int64_t>& columns, const BytesList& paths,
                    size_t leaves, ManyChunks& out) {
    const size_t before = out.chunks.size();
    ChunkRow none = no_chunk();
    none[kFlags] = kOdd;
    out.chunks.resize(before + columns.size, none);
    int64_t rows = -1;
    int32_t id = 0;
    uint8_t type;
    int lists = 0, counted = 0;
    while (c.field(type, id)) {
        if (id == 3 && type == kI64) {
            ++counted, rows = c.number(64);
        } else if (id == 1 && type == kList) {
            uint8_t element;
            const size_t count = c.list(element);
            if (count > 0 && element != kStruct) c.fail("RowGroup.columns is not a list of structs");
            ++lists;
            size_t next = 0;
            for (size_t k = 0; k < count; ++k) {
                const Cursor start = c;
                skip_struct(c, 3);
                if (next == columns.size || static_cast<size_t>(columns.data[next]) != k || count != leaves) continue;
                out.chunks[before + next] = read_chunk(rules, kind, start, paths.items[next]);
                ++next;
            }
        } else {
            skip_field(c, type, 2);
        }
    }
    out.rows.push_back(counted == 1 && lists == 1 ? rows : -1);
}

template <class Rules>
void read_footer_chunks(const Rules& rules, size_t kind, std::string_view footer, const In<int64_t>& columns,
                        const BytesList& paths, size_t leaves, ManyChunks& out) {
    const auto* data = reinterpret_cast<const uint8_t*>(footer.data());
    Cursor c{data, data, data + footer.size()};
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id != 4 || type != kList) {
            skip_field(c, type, 1);
            continue;
        }
        uint8_t element;
        const size_t count = c.list(element);
        if (count > 0 && element != kStruct) c.fail("FileMetaData.row_groups is not a list of structs");
        for (size_t n = count; n > 0; --n) read_row_group(rules, kind, c, columns, paths, leaves, out);
    }
}

// `columns` ascend; `leaves`: columns that each row group should have. A row group that is not as it should be has
// -1 rows, or odd chunks; so has a footer that cannot be read, as one row group.
template <class Rules>
nb::tuple chunks_of_footers(const Rules& rules, const nb::list& footers, const In<int64_t>& columns, size_t kind,
                            const nb::list& paths, size_t leaves) {
    const BytesList given(footers), names(paths);
    if (names.items.size() != columns.size) fail("columns and paths differ in number");
    for (size_t k = 0; k < columns.size; ++k) {
        if (columns.data[k] < 0 || (k > 0 && columns.data[k] <= columns.data[k - 1])) fail("the columns do not ascend");
    }
    ManyChunks found;
    {
        NoGil nogil(checked_mul(given.items.size(), size_t{1} << 10));
        for (const std::string_view footer : given.items) {
            const size_t rows = found.rows.size(), chunks = found.chunks.size();
            try {
                read_footer_chunks(rules, kind, footer, columns, names, leaves, found);
            } catch (const KernelError&) {  // decoding it raises the error
                ChunkRow none = no_chunk();
                none[kFlags] = kOdd;
                found.rows.resize(rows), found.chunks.resize(chunks);
                found.rows.push_back(-1), found.chunks.resize(chunks + columns.size, none);
            }
            found.first.push_back(static_cast<int64_t>(found.rows.size()));
        }
    }
    ChunkTable table(found.chunks.size());
    for (size_t k = 0; k < found.chunks.size(); ++k) table.put(k, found.chunks[k]);
    return nb::make_tuple(int64_array(found.first), int64_array(found.rows), table.numbers.object);
}

// The bytes at some places of some buffers, None where a start is below 0.
inline nb::list bytes_at(const nb::list& buffers, const In<int64_t>& of, const In<int64_t>& starts,
                         const In<int64_t>& sizes) {
    const size_t n = starts.size;
    if (sizes.size != n || of.size != n) fail("starts and sizes differ in number");
    std::vector<RawIn> given(nb::len(buffers));
    size_t at = 0;
    for (nb::handle item : buffers) {
        if (!given[at++].load(item.ptr())) fail("a list of buffers was expected");
    }
    nb::list found = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(n)));
    if (!found.is_valid()) throw nb::python_error();
    for (size_t k = 0; k < n; ++k) {
        PyObject* item = nullptr;
        if (starts.data[k] < 0) {
            item = Py_None, Py_INCREF(item);
        } else {
            const auto file = static_cast<uint64_t>(of.data[k]);
            if (file >= given.size()) fail("a buffer that is not there");
            const auto start = static_cast<uint64_t>(starts.data[k]), size = static_cast<uint64_t>(sizes.data[k]);
            if (start > given[file].size || size > given[file].size - start) fail("bytes outside of their buffer");
            item = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(given[file].data) + start,
                                             static_cast<Py_ssize_t>(size));
            if (item == nullptr) throw nb::python_error();
        }
        PyList_SetItem(found.ptr(), static_cast<Py_ssize_t>(k), item);
    }
    return found;
}

}  // namespace pyparq
