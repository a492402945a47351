// Many files in one call: their ends and their Bloom filters are read, and their footers asked, without the interpreter
// and without an object for each. A file is opened, looked at, read and closed again: few are open at any time.
#include "thrift_wire.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <unordered_map>

#if defined(__unix__) || defined(__APPLE__)
#define PYPARQ_PREAD 1
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace pyparq {
namespace {

// The bytes objects of a Python list, looked at without the GIL while the list is held.
struct BytesList {
    std::vector<std::string_view> items;
    explicit BytesList(const nb::list& list) {
        items.reserve(nb::len(list));
        for (nb::handle item : list) {
            if (!PyBytes_Check(item.ptr())) fail("a list of bytes was expected");
            char* data;
            Py_ssize_t size;
            if (PyBytes_AsStringAndSize(item.ptr(), &data, &size) != 0) throw nb::python_error();
            items.emplace_back(data, static_cast<size_t>(size));
        }
    }
};

#ifdef PYPARQ_PREAD

constexpr uint32_t kPlain = 0x31524150, kEncrypted = 0x45524150;  // PAR1, PARE
constexpr size_t kTrailer = 8;

struct End {
    int64_t size = -1, mtime_ns = 0, inode = 0, requests = 0, bytes = 0;
    bool encrypted = false, good = false;
    std::string footer;
};

// Closes on every way out.
struct Descriptor {
    int number;
    explicit Descriptor(const char* path) {
        do {
            number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        } while (number < 0 && errno == EINTR);
    }
    ~Descriptor() {
        if (number >= 0) close(number);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
};

bool read_exactly(int fd, char* out, size_t size, int64_t at) {
    while (size > 0) {
        const ssize_t got = pread(fd, out, size, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        out += got, size -= static_cast<size_t>(got), at += got;
    }
    return true;
}

// What an open file is now; false for one that is no plain file.
bool look(int fd, End& out) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    out.size = status.st_size, out.inode = static_cast<int64_t>(status.st_ino);
#ifdef __APPLE__
    out.mtime_ns = int64_t{status.st_mtimespec.tv_sec} * 1000000000 + status.st_mtimespec.tv_nsec;
#else
    out.mtime_ns = int64_t{status.st_mtim.tv_sec} * 1000000000 + status.st_mtim.tv_nsec;
#endif
    return true;
}

void read_end(const char* path, size_t tail, size_t most, std::string& room, End& out) {
    const Descriptor file(path);
    if (file.number < 0 || !look(file.number, out)) return;
    const auto size = static_cast<size_t>(out.size);
    if (size < 12) return;
    size_t have = std::min(tail, size);
    if (!read_exactly(file.number, room.data(), have, out.size - static_cast<int64_t>(have))) return;
    out.requests = 1, out.bytes = static_cast<int64_t>(have);
    const auto magic = load<uint32_t>(room.data() + have - 4);
    const size_t footer = load<uint32_t>(room.data() + have - 8);
    if ((magic != kPlain && magic != kEncrypted) || footer == 0 || footer > size - 12 || footer > most) return;
    out.encrypted = magic == kEncrypted;
    if (footer + kTrailer <= have) {
        out.footer.assign(room, have - kTrailer - footer, footer);
    } else {
        out.footer.resize(footer);
        if (!read_exactly(file.number, out.footer.data(), footer, out.size - static_cast<int64_t>(footer + kTrailer)))
            return;
        out.requests = 2, out.bytes += static_cast<int64_t>(footer + kTrailer);
    }
    out.good = true;
}

nb::list read_footers(const nb::list& paths, size_t tail, size_t most) {
    if (tail < kTrailer || tail > size_t{1} << 30) fail("a tail of " + str(uint64_t{tail}) + " bytes");
    const BytesList given(paths);
    std::vector<End> ends(given.items.size());
    {
        NoGil nogil(size_t{1} << 20);
        std::string room(tail, '\0');
        for (size_t k = 0; k < ends.size(); ++k) {
            // Bytes objects end in a NUL of their own; a path with one inside is nobody's.
            if (given.items[k].find('\0') == std::string_view::npos)
                read_end(given.items[k].data(), tail, most, room, ends[k]);
        }
    }
    nb::list found;
    for (const End& end : ends) {
        if (!end.good) {
            found.append(nb::none());
            continue;
        }
        found.append(nb::make_tuple(end.size, end.mtime_ns, end.inode, end.encrypted,
                                    nb::bytes(end.footer.data(), end.footer.size()), end.requests, end.bytes));
    }
    return found;
}

#endif

// ---- what footers have in common ------------------------------------------------------------------------

constexpr int32_t kNumRows = 3, kRowGroups = 4, kEncryption = 8, kGroupRows = 3, kGroupColumns = 1;

// A FileMetaData without what differs from file to file of a dataset: its rows and its row groups.
struct Frame {
    size_t cut[2][2] = {{0, 0}, {0, 0}};  // [start, end) of num_rows and of the list of row groups, in order
    size_t end = 0;
    int64_t stated = 0, rows = 0;  // in all, and summed over the row groups
    bool good = false;
};

// The rows of a row group; -1 where there is more to say than a number.
int64_t group_rows(Cursor& c) {
    int64_t rows = -1;
    int counted = 0, columns = 0;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id == kGroupRows && type == kI64) {
            ++counted, rows = c.number(64);
        } else if (id == kGroupColumns && type == kList) {
            uint8_t element;
            const size_t count = c.list(element);
            if (count > 0 && element != kStruct) return -1;
            ++columns;
            for (size_t n = count; n > 0; --n) skip_struct(c, 3);
        } else {
            skip_field(c, type, 2);
        }
    }
    return counted == 1 && columns == 1 && rows > 0 ? rows : -1;
}

Frame frame_of(std::string_view footer) {
    const auto* data = reinterpret_cast<const uint8_t*>(footer.data());
    Cursor c{data, data, data + footer.size()};
    Frame out;
    int found = 0, lists = 0;
    bool usual = true;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        const auto start = static_cast<size_t>(c.at());
        if (id == kNumRows && type == kI64) {
            out.stated = c.number(64);
        } else if (id == kRowGroups && type == kList) {
            uint8_t element;
            ++lists;
            const size_t count = c.list(element);
            if (count > 0 && element != kStruct) return out;
            for (size_t n = count; n > 0; --n) {
                const int64_t rows = group_rows(c);
                if (rows < 0 || rows > std::numeric_limits<int64_t>::max() - out.rows) return out;
                out.rows += rows;
            }
        } else {
            usual &= id != kEncryption;
            skip_field(c, type, 1);
            continue;
        }
        if (found == 2) return out;
        out.cut[found][0] = start, out.cut[found][1] = static_cast<size_t>(c.at()), ++found;
    }
    out.end = static_cast<size_t>(c.at());
    out.good = usual && found == 2 && lists == 1 && out.stated == out.rows;
    return out;
}

std::string kept(std::string_view footer, const Frame& frame) {
    const size_t sizes[2] = {frame.cut[0][0], frame.cut[1][0] - frame.cut[0][1]};
    std::string text(reinterpret_cast<const char*>(sizes), sizeof sizes);
    text += footer.substr(0, sizes[0]);
    text += footer.substr(frame.cut[0][1], sizes[1]);
    text += footer.substr(frame.cut[1][1], frame.end - frame.cut[1][1]);
    return text;
}

// Whether two footers are the same in all but rows and row groups, told without copies.
bool alike(std::string_view a, const Frame& x, std::string_view b, const Frame& y) {
    if (x.cut[0][0] != y.cut[0][0] || x.cut[1][0] - x.cut[0][1] != y.cut[1][0] - y.cut[0][1] ||
        x.end - x.cut[1][1] != y.end - y.cut[1][1])
        return false;
    const auto same = [&](size_t p, size_t q, size_t n) { return std::memcmp(a.data() + p, b.data() + q, n) == 0; };
    return same(0, 0, x.cut[0][0]) && same(x.cut[0][1], y.cut[0][1], x.cut[1][0] - x.cut[0][1]) &&
           same(x.cut[1][1], y.cut[1][1], x.end - x.cut[1][1]);
}

nb::tuple footer_frames(const nb::list& footers) {
    const BytesList given(footers);
    const size_t n = given.items.size();
    Fresh<int64_t> frames(n), rows(n);
    {
        NoGil nogil(n << 10);
        std::vector<Frame> found(n);
        std::unordered_map<std::string, size_t> known;
        size_t last = n;
        for (size_t k = 0; k < n; ++k) {
            frames.data[k] = rows.data[k] = -1;
            try {
                found[k] = frame_of(given.items[k]);
            } catch (const KernelError&) {
                continue;  // whoever decodes it says what is wrong
            }
            if (!found[k].good) continue;
            rows.data[k] = found[k].rows;
            if (last == n || !alike(given.items[last], found[last], given.items[k], found[k]))
                last = known.try_emplace(kept(given.items[k], found[k]), k).first->second;
            frames.data[k] = static_cast<int64_t>(last);
        }
    }
    return nb::make_tuple(frames.object, rows.object);
}

// ---- one leaf's column chunks in many footers ------------------------------------------------------------

enum ChunkField : int32_t { kFilePath = 1, kMetaData = 3, kCrypto = 8, kSealedMetaData = 9 };
enum MetaField : int32_t {
    kType = 1, kPath = 3, kNumValues = 5, kSize = 7, kDataPage = 9, kDictionaryPage = 11, kStatistics = 12,
    kFilterOffset = 14, kFilterLength = 15,
};
enum StatisticsField : int32_t { kMax = 1, kMin = 2, kNullCount = 3, kMaxValue = 5, kMinValue = 6, kNanCount = 9 };

struct Text {
    const uint8_t* data = nullptr;  // null: not there
    size_t size = 0;
};

struct LeafChunk {
    int64_t rows = -1, values = -1, nulls = -1, nans = -1, filter = 0, filter_length = 0;
    int64_t size = -1, data_page = 0, dictionary_page = 0, type = -1;
    Text low, high, old_low, old_high;
    bool good = true;
};

struct Leaf {
    size_t column;
    int64_t type;
    std::vector<std::string_view> path;
};

Text text(Cursor& c) {
    const size_t size = c.varint(32);
    c.advance(size);
    return {c.p - size, size};
}

// What a reader that knows each field once, of its own type, would take for damage is left to that reader.
struct Once {
    uint32_t seen = 0;
    bool fresh(int32_t id) {
        if (id > 31) return true;
        const bool again = (seen >> id & 1) != 0;
        seen |= 1u << id;
        return !again;
    }
};

void read_statistics(Cursor& c, LeafChunk& out) {
    int32_t id = 0;
    uint8_t type;
    Once once;
    while (c.field(type, id)) {
        out.good &= once.fresh(id);
        Text* place = nullptr;
        int64_t* count = nullptr;
        switch (id) {
            case kMax: place = &out.old_high; break;
            case kMin: place = &out.old_low; break;
            case kMaxValue: place = &out.high; break;
            case kMinValue: place = &out.low; break;
            case kNullCount: count = &out.nulls; break;
            case kNanCount: count = &out.nans; break;
            default: break;
        }
        if (place != nullptr && type == kBinary) *place = text(c);
        else if (count != nullptr && type == kI64) *count = c.number(64);
        else {
            out.good &= place == nullptr && count == nullptr;
            skip_field(c, type, 4);
        }
    }
}

bool same_path(Cursor& c, const Leaf& leaf) {
    uint8_t element;
    size_t count = c.list(element);
    bool same = count == leaf.path.size() && (count == 0 || element == kBinary);
    for (size_t k = 0; k < count; ++k) {
        if (element != kBinary) {
            skip_value(c, element, 4);
            continue;
        }
        const Text part = text(c);
        same = same && leaf.path[k] == std::string_view(reinterpret_cast<const char*>(part.data), part.size);
    }
    return same;
}

void read_meta(Cursor& c, const Leaf& leaf, LeafChunk& out) {
    int32_t id = 0;
    uint8_t type;
    bool path = false;
    Once once;
    while (c.field(type, id)) {
        out.good &= once.fresh(id);
        int64_t* place = nullptr;
        uint8_t due = kI64;
        switch (id) {
            case kType: place = &out.type, due = kI32; break;
            case kNumValues: place = &out.values; break;
            case kSize: place = &out.size; break;
            case kDataPage: place = &out.data_page; break;
            case kDictionaryPage: place = &out.dictionary_page; break;
            case kFilterOffset: place = &out.filter; break;
            case kFilterLength: place = &out.filter_length, due = kI32; break;
            default: break;
        }
        if (place != nullptr && type == due) *place = c.number(due == kI32 ? 32 : 64);
        else if (id == kPath && type == kList) path = same_path(c, leaf);
        else if (id == kStatistics && type == kStruct) read_statistics(c, out);
        else {
            out.good &= place == nullptr && id != kPath && id != kStatistics;
            skip_field(c, type, 3);
        }
    }
    out.good &= path && out.type == leaf.type;
}

void read_chunk(Cursor& c, const Leaf& leaf, LeafChunk& out) {
    int32_t id = 0;
    uint8_t type;
    bool found = false;
    while (c.field(type, id)) {
        if (id == kMetaData && type == kStruct && !found) {
            found = true;
            read_meta(c, leaf, out);
            continue;
        }
        out.good &= id != kMetaData && id != kFilePath && id != kCrypto && id != kSealedMetaData;
        skip_field(c, type, 3);
    }
    out.good &= found;
}

LeafChunk read_group(Cursor& c, const Leaf& leaf) {
    LeafChunk out;
    int32_t id = 0;
    uint8_t type;
    int columns = 0, counted = 0;
    while (c.field(type, id)) {
        if (id == kGroupRows && type == kI64) {
            ++counted, out.rows = c.number(64);
        } else if (id == kGroupColumns && type == kList) {
            uint8_t element;
            const size_t count = c.list(element);
            if (count > 0 && element != kStruct) c.fail("RowGroup.columns is not a list of structs");
            ++columns;
            out.good &= leaf.column < count;
            for (size_t k = 0; k < count; ++k) {
                if (k == leaf.column) read_chunk(c, leaf, out);
                else skip_struct(c, 3);
            }
        } else {
            skip_field(c, type, 2);
        }
    }
    out.good &= columns == 1 && counted == 1;
    return out;
}

// Whether the pages lie within a file of that size, as the reader of one file wants it.
bool lies_within(const LeafChunk& chunk, int64_t file_size) {
    if (chunk.rows < 0 || chunk.values < 0 || chunk.size < 0) return false;
    int64_t start = chunk.data_page > 0 ? chunk.data_page : 0;
    if (chunk.dictionary_page > 0 && (start == 0 || chunk.dictionary_page < start)) start = chunk.dictionary_page;
    if (start == 0) return chunk.values == 0;
    return start >= 4 && start < file_size - 8 && chunk.size <= file_size - 8 - start && (chunk.size > 0 || chunk.values == 0);
}

std::vector<LeafChunk> leaf_of(std::string_view footer, const Leaf& leaf, int64_t file_size) {
    const auto* data = reinterpret_cast<const uint8_t*>(footer.data());
    Cursor c{data, data, data + footer.size()};
    std::vector<LeafChunk> found;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id != kRowGroups || type != kList) {
            skip_field(c, type, 1);
            continue;
        }
        uint8_t element;
        const size_t count = c.list(element);
        if (count > 0 && element != kStruct) c.fail("FileMetaData.row_groups is not a list of structs");
        for (size_t n = count; n > 0; --n) {
            found.push_back(read_group(c, leaf));
            found.back().good &= lies_within(found.back(), file_size);
        }
    }
    return found;
}

nb::object bytes_or_none(const Text& text) {
    if (text.data == nullptr) return nb::none();
    return nb::bytes(text.data, text.size);
}

// `modern`: min_value and max_value may be believed; `old`: where neither is there, min and max.
nb::tuple leaf_chunks(const nb::list& footers, const In<int64_t>& sizes, size_t column, const nb::list& path, int64_t type,
                      bool modern, bool old) {
    const BytesList given(footers), names(path);
    const size_t n = given.items.size();
    if (sizes.size != n) fail("footers and sizes differ in number");
    const Leaf leaf{column, type, names.items};
    Fresh<int64_t> first(n + 1);
    std::vector<LeafChunk> chunks;
    {
        NoGil nogil(n << 10);
        for (size_t k = 0; k < n; ++k) {
            first.data[k] = static_cast<int64_t>(chunks.size());
            try {
                const std::vector<LeafChunk> found = leaf_of(given.items[k], leaf, sizes.data[k]);
                chunks.insert(chunks.end(), found.begin(), found.end());
            } catch (const KernelError&) {  // whoever decodes it says what is wrong
                chunks.emplace_back().good = false;
            }
        }
        first.data[n] = static_cast<int64_t>(chunks.size());
    }
    const size_t count = chunks.size();
    Fresh<int64_t> numbers(6 * count);
    Fresh<bool> good(count);
    nb::list mins, maxs;
    for (size_t k = 0; k < count; ++k) {
        const LeafChunk& chunk = chunks[k];
        const int64_t row[6] = {chunk.rows, chunk.values, chunk.nulls, chunk.nans, chunk.filter, chunk.filter_length};
        for (size_t i = 0; i < 6; ++i) numbers.data[i * count + k] = row[i];
        good.data[k] = chunk.good;
        const bool now = modern && (chunk.low.data != nullptr || chunk.high.data != nullptr);
        mins.append(now ? bytes_or_none(chunk.low) : old ? bytes_or_none(chunk.old_low) : nb::none());
        maxs.append(now ? bytes_or_none(chunk.high) : old ? bytes_or_none(chunk.old_high) : nb::none());
    }
    return nb::make_tuple(first.object, numbers.object, good.object, mins, maxs);
}

#ifdef PYPARQ_PREAD

// ---- Bloom filters of many files -------------------------------------------------------------------------

constexpr uint32_t kSalt[8] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                               0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
constexpr size_t kBlock = 32, kHead = 64, kWholeFrom = 64;

bool has(const char* block, uint32_t x) {
    uint32_t missing = 0;
    for (size_t i = 0; i < 8; ++i) missing |= (1u << (x * kSalt[i] >> 27)) & ~load<uint32_t>(block + 4 * i);
    return missing == 0;
}

// A union whose first member, an empty struct, is set, and no other.
bool is_first(Cursor& c) {
    int32_t id = 0;
    uint8_t type;
    bool first = false;
    while (c.field(type, id)) {
        if (id != 1 || type != kStruct || first) return false;
        first = true;
        skip_struct(c, 3);
    }
    return first;
}

// Bytes of the bitset and of the header that `head` starts with; false for anything but the one kind in use.
bool filter_header(const char* head, size_t size, int64_t& bitset, int64_t& header) {
    const auto* data = reinterpret_cast<const uint8_t*>(head);
    Cursor c{data, data, data + size};
    int32_t id = 0;
    uint8_t type;
    int seen = 0;
    bitset = 0;
    try {
        while (c.field(type, id)) {
            if (id == 1 && type == kI32 && bitset == 0) bitset = c.number(32);
            else if (id >= 2 && id <= 4 && type == kStruct && is_first(c)) ++seen;
            else return false;
        }
    } catch (const KernelError&) {
        return false;
    }
    header = c.at();
    return seen == 3 && bitset > 0 && bitset % static_cast<int64_t>(kBlock) == 0;
}

struct Filter {
    int64_t offset, length;
};

enum Answer : uint8_t { kAbsent = 0, kPerhaps = 1, kUnusable = 2 };

uint8_t ask(int fd, int64_t file_size, const Filter& filter, const In<uint64_t>& hashes, int64_t most, std::string& room) {
    const int64_t left = file_size - 8 - filter.offset;
    if (filter.offset <= 0 || left <= 0 || filter.length < 0 || filter.length > left) return kUnusable;
    const auto count = static_cast<int64_t>(hashes.size);
    int64_t have = std::min<int64_t>(filter.length > 0 ? filter.length : left, kHead);
    // One that is going to be wanted whole is read whole at once.
    const auto blocks = static_cast<int64_t>(kBlock);
    const bool whole = filter.length > 0 && filter.length <= most &&
                       (count >= static_cast<int64_t>(kWholeFrom) || count * blocks * 4 >= filter.length);
    if (whole) have = filter.length;
    if (room.size() < static_cast<size_t>(have)) room.resize(static_cast<size_t>(have));
    if (!read_exactly(fd, room.data(), static_cast<size_t>(have), filter.offset)) return kUnusable;
    int64_t bitset, header;
    if (!filter_header(room.data(), static_cast<size_t>(std::min<int64_t>(have, kHead)), bitset, header)) return kUnusable;
    if (bitset > most || bitset > left - header || (filter.length > 0 && bitset + header != filter.length)) return kUnusable;
    const auto number = static_cast<uint64_t>(bitset) / kBlock;
    const auto place = [number](uint64_t hash) { return static_cast<int64_t>((hash >> 32) * number >> 32) * 32; };
    if (!whole && count * blocks * 4 >= bitset) {
        room.resize(std::max(room.size(), static_cast<size_t>(header + bitset)));
        if (!read_exactly(fd, room.data(), static_cast<size_t>(header + bitset), filter.offset)) return kUnusable;
        have = header + bitset;
    }
    for (size_t k = 0; k < hashes.size; ++k) {
        const int64_t at = header + place(hashes.data[k]);
        char block[kBlock];
        const char* found = room.data() + at;
        if (at + blocks > have) {
            if (!read_exactly(fd, block, kBlock, filter.offset + at)) return kUnusable;
            found = block;
        }
        if (has(found, static_cast<uint32_t>(hashes.data[k]))) return kPerhaps;
    }
    return kAbsent;
}

nb::object probe_filters(const nb::list& paths, const In<int64_t>& statuses, const In<int64_t>& files,
                         const In<int64_t>& offsets, const In<int64_t>& lengths, const In<uint64_t>& hashes, int64_t most) {
    const BytesList given(paths);
    const size_t n = given.items.size(), count = files.size;
    if (statuses.size != 3 * n || offsets.size != count || lengths.size != count) fail("arrays that do not fit together");
    for (size_t k = 0; k < count; ++k) {
        if (files.data[k] < 0 || static_cast<uint64_t>(files.data[k]) >= n || (k > 0 && files.data[k] < files.data[k - 1]))
            fail("the files of the filters are not in order");
    }
    Fresh<uint8_t> out(count);
    {
        NoGil nogil(size_t{1} << 20);
        std::string room(size_t{1} << 14, '\0');
        for (size_t k = 0; k < count;) {
            const auto file = static_cast<size_t>(files.data[k]);
            const bool named = given.items[file].find('\0') == std::string_view::npos;
            const Descriptor opened(named ? given.items[file].data() : "");
            End now;
            const bool usable = opened.number >= 0 && look(opened.number, now) && now.size == statuses.data[3 * file] &&
                                now.mtime_ns == statuses.data[3 * file + 1] && now.inode == statuses.data[3 * file + 2];
            for (; k < count && static_cast<size_t>(files.data[k]) == file; ++k) {
                const Filter filter{offsets.data[k], lengths.data[k]};
                out.data[k] = usable ? ask(opened.number, now.size, filter, hashes, most, room) : uint8_t{kUnusable};
            }
        }
    }
    return std::move(out.object);
}

#endif

}  // namespace
}  // namespace pyparq

void bind_many_files(nb::module_& m) {
    using namespace nb::literals;
#ifdef PYPARQ_PREAD
    m.def("read_footers", &pyparq::read_footers, "paths"_a, "tail"_a, "most"_a);
    m.def("probe_filters", &pyparq::probe_filters, "paths"_a, "statuses"_a, "files"_a, "offsets"_a, "lengths"_a,
          "hashes"_a, "most"_a);
#else
    m.attr("read_footers") = m.attr("probe_filters") = nb::none();
#endif
    m.def("footer_frames", &pyparq::footer_frames, "footers"_a);
    m.def("leaf_chunks", &pyparq::leaf_chunks, "footers"_a, "sizes"_a, "column"_a, "path"_a, "type"_a, "modern"_a,
          "old"_a);
}
