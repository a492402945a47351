// Bloom filters of many local files, or many of one file, asked in one call, with as few bytes as the answers need.
#include "index/calls.hpp"
#include "index/sbbf.hpp"
#include "io/files.hpp"
#include "thrift/wire.hpp"

#include <algorithm>
#include <limits>

namespace pyparq {

#ifdef PYPARQ_PREAD

namespace {

constexpr int64_t kHead = 64;  // bytes that hold any header; a standard one is under 32
constexpr int64_t kLeastHead = 8;

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

struct Question {
    const uint64_t* hashes;
    size_t count;
    int64_t most;  // bytes of a filter

    // A call costs about as much as reading this many bytes.
    bool wants_whole(int64_t bytes) const { return bytes <= most && bytes / 4096 <= static_cast<int64_t>(count); }
};

enum Answer : uint8_t { kAbsent = 0,
                        kPerhaps = 1,
                        kUnusable = 2 };

// A file that is open, and what of its end is known already.
struct OpenFilters {
    int fd;
    int64_t size;
    const char* tail = nullptr;
    int64_t tail_start = std::numeric_limits<int64_t>::max();
    int64_t requests = 0, bytes = 0;  // so far

    bool read(char* out, int64_t n, int64_t at) {
        if (at >= tail_start && n <= size - at) {
            std::memcpy(out, tail + (at - tail_start), static_cast<size_t>(n));
            return true;
        }
        ++requests, bytes += n;
        return read_exactly(fd, out, static_cast<size_t>(n), at);
    }
    bool read_start(const Filter& filter, int64_t n, std::string& room) {
        if (room.size() < static_cast<size_t>(n)) room.resize(static_cast<size_t>(n));
        return read(room.data(), n, filter.offset);
    }
};

uint8_t ask(OpenFilters& file, const Filter& filter, const Question& asked, std::string& room) {
    const int64_t left = file.size - 8 - filter.offset;
    if (filter.offset <= 0 || left <= 0 || filter.length < 0 || filter.length > left) return kUnusable;
    const bool known = filter.length > 0;
    int64_t have = known ? filter.length : left;
    if (!known || !asked.wants_whole(have)) {
        // A standard header is under 32 bytes, so the exact length tells where the bitset starts.
        const int64_t head = known ? filter.length % static_cast<int64_t>(kBlock) : 0;
        have = std::min(have, head >= kLeastHead ? head : kHead);
    }
    if (!file.read_start(filter, have, room)) return kUnusable;
    int64_t bitset, header;
    if (!filter_header(room.data(), static_cast<size_t>(std::min(have, kHead)), bitset, header)) return kUnusable;
    if (bitset > asked.most || bitset > left - header || (known && bitset + header != filter.length)) return kUnusable;
    if (!known && asked.wants_whole(bitset)) {
        have = header + bitset;
        if (!file.read_start(filter, have, room)) return kUnusable;
    }
    for (size_t k = 0; k < asked.count; ++k) {
        const size_t block = block_at(asked.hashes[k], static_cast<uint64_t>(bitset) / kBlock);
        const int64_t at = header + static_cast<int64_t>(block);
        char alone[kBlock];
        const char* found = room.data() + at;
        if (at + static_cast<int64_t>(kBlock) > have) {
            if (!file.read(alone, kBlock, filter.offset + at)) return kUnusable;
            found = alone;
        }
        if (check_one(reinterpret_cast<const uint8_t*>(found), static_cast<uint32_t>(asked.hashes[k]))) return kPerhaps;
    }
    return kAbsent;
}

}  // namespace

nb::tuple probe_filters(const nb::list& paths, const In<int64_t>& statuses, const In<int64_t>& files,
                        const In<int64_t>& offsets, const In<int64_t>& lengths, const In<uint64_t>& hashes,
                        int64_t most) {
    const BytesList given(paths);
    const size_t n = given.items.size(), count = files.size;
    if (statuses.size != kStatusNumbers * n || offsets.size != count || lengths.size != count) fail("arrays that do not fit");
    for (size_t k = 0; k < count; ++k) {
        const int64_t file = files.data[k];
        if (file < (k > 0 ? files.data[k - 1] : 0) || static_cast<uint64_t>(file) >= n)
            fail("the files of the filters are not in order");
    }
    const Question asked{hashes.data, hashes.size, most};
    Fresh<uint8_t> out(count);
    int64_t requests = 0, bytes = 0;
    {
        NoGil nogil(size_t{1} << 20);
        std::string room(size_t{1} << 14, '\0');
        for (size_t k = 0; k < count;) {
            const auto file = static_cast<size_t>(files.data[k]);
            const Descriptor opened(given.items[file]);
            FileStatus now;
            const bool usable = opened.number >= 0 && look(opened.number, now) &&
                                now.is(statuses.data + kStatusNumbers * file);
            OpenFilters asking{opened.number, now.size};
            for (; k < count && static_cast<size_t>(files.data[k]) == file; ++k) {
                const Filter filter{offsets.data[k], lengths.data[k]};
                out.data[k] = usable ? ask(asking, filter, asked, room) : uint8_t{kUnusable};
            }
            requests += asking.requests;
            bytes += asking.bytes;
        }
    }
    return nb::make_tuple(std::move(out.object), requests, bytes);
}

// Filters of one open file: their answers, and the requests and bytes that they took. `tail` is the end of the file.
nb::tuple probe_open_filters(int fd, int64_t file_size, const RawIn& tail, const In<int64_t>& offsets,
                             const In<int64_t>& lengths, const In<uint64_t>& hashes, int64_t most) {
    const size_t count = offsets.size;
    if (lengths.size != count || file_size < 0 || tail.size > static_cast<uint64_t>(file_size))
        fail("arrays that do not fit");
    const Question asked{hashes.data, hashes.size, most};
    OpenFilters file{fd, file_size};
    if (tail.size > 0) {
        file.tail = reinterpret_cast<const char*>(tail.data);
        file.tail_start = file_size - static_cast<int64_t>(tail.size);
    }
    Fresh<uint8_t> out(count);
    {
        NoGil nogil(size_t{1} << 20);
        std::string room;
        for (size_t k = 0; k < count; ++k) out.data[k] = ask(file, {offsets.data[k], lengths.data[k]}, asked, room);
    }
    return nb::make_tuple(std::move(out.object), file.requests, file.bytes);
}

#endif

}  // namespace pyparq
