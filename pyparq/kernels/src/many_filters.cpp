// Bloom filters of many local files asked in one call, with as few bytes as the answers need.
#include "files.hpp"
#include "sbbf.hpp"
#include "thrift_wire.hpp"

#include <algorithm>

namespace pyparq {
namespace {

#ifdef PYPARQ_PREAD

constexpr int64_t kHead = 64;  // bytes that hold any header; a standard one is under 32

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

enum Answer : uint8_t { kAbsent = 0, kPerhaps = 1, kUnusable = 2 };

bool read_start(int fd, const Filter& filter, int64_t size, std::string& room) {
    if (room.size() < static_cast<size_t>(size)) room.resize(static_cast<size_t>(size));
    return read_exactly(fd, room.data(), static_cast<size_t>(size), filter.offset);
}

uint8_t ask(int fd, int64_t file_size, const Filter& filter, const Question& asked, std::string& room) {
    const int64_t left = file_size - 8 - filter.offset;
    if (filter.offset <= 0 || left <= 0 || filter.length < 0 || filter.length > left) return kUnusable;
    const bool known = filter.length > 0;
    int64_t have = known ? filter.length : left;
    if (!known || !asked.wants_whole(have)) have = std::min(have, kHead);
    if (!read_start(fd, filter, have, room)) return kUnusable;
    int64_t bitset, header;
    if (!filter_header(room.data(), static_cast<size_t>(std::min(have, kHead)), bitset, header)) return kUnusable;
    if (bitset > asked.most || bitset > left - header || (known && bitset + header != filter.length)) return kUnusable;
    if (!known && asked.wants_whole(bitset)) {
        have = header + bitset;
        if (!read_start(fd, filter, have, room)) return kUnusable;
    }
    for (size_t k = 0; k < asked.count; ++k) {
        const size_t block = block_at(asked.hashes[k], static_cast<uint64_t>(bitset) / kBlock);
        const int64_t at = header + static_cast<int64_t>(block);
        char alone[kBlock];
        const char* found = room.data() + at;
        if (at + static_cast<int64_t>(kBlock) > have) {
            if (!read_exactly(fd, alone, kBlock, filter.offset + at)) return kUnusable;
            found = alone;
        }
        if (check_one(reinterpret_cast<const uint8_t*>(found), static_cast<uint32_t>(asked.hashes[k]))) return kPerhaps;
    }
    return kAbsent;
}

nb::object probe_filters(const nb::list& paths, const In<int64_t>& statuses, const In<int64_t>& files,
                         const In<int64_t>& offsets, const In<int64_t>& lengths, const In<uint64_t>& hashes,
                         int64_t most) {
    const BytesList given(paths);
    const size_t n = given.items.size(), count = files.size;
    if (statuses.size != 3 * n || offsets.size != count || lengths.size != count) fail("arrays that do not fit");
    for (size_t k = 0; k < count; ++k) {
        const int64_t file = files.data[k];
        if (file < (k > 0 ? files.data[k - 1] : 0) || static_cast<uint64_t>(file) >= n)
            fail("the files of the filters are not in order");
    }
    const Question asked{hashes.data, hashes.size, most};
    Fresh<uint8_t> out(count);
    {
        NoGil nogil(size_t{1} << 20);
        std::string room(size_t{1} << 14, '\0');
        for (size_t k = 0; k < count;) {
            const auto file = static_cast<size_t>(files.data[k]);
            const Descriptor opened(given.items[file]);
            FileStatus now;
            const bool usable = opened.number >= 0 && look(opened.number, now) && now.size == statuses.data[3 * file] &&
                                now.mtime_ns == statuses.data[3 * file + 1] && now.inode == statuses.data[3 * file + 2];
            for (; k < count && static_cast<size_t>(files.data[k]) == file; ++k) {
                const Filter filter{offsets.data[k], lengths.data[k]};
                out.data[k] = usable ? ask(opened.number, now.size, filter, asked, room) : uint8_t{kUnusable};
            }
        }
    }
    return std::move(out.object);
}

#endif

}  // namespace
}  // namespace pyparq

void bind_many_filters(nb::module_& m) {
#ifdef PYPARQ_PREAD
    using namespace nb::literals;
    m.def("probe_filters", &pyparq::probe_filters, "paths"_a, "statuses"_a, "files"_a, "offsets"_a, "lengths"_a,
          "hashes"_a, "most"_a);
#else
    m.attr("probe_filters") = nb::none();
#endif
}
