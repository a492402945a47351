// Byte ranges of many local files in one call, each file opened, compared with what it was, read and closed again.
#include "io/calls.hpp"
#include "io/files.hpp"

namespace pyparq {

#ifdef PYPARQ_PREAD

// Reads the ranges one after another into `out`; returns how many were read before one could not be.
size_t read_many_ranges(const nb::list& paths, const In<int64_t>& statuses, const In<int64_t>& files,
                        const In<int64_t>& offsets, const In<int64_t>& lengths, const RawOut& out) {
    const BytesList given(paths);
    const size_t n = given.items.size(), count = files.size;
    if (statuses.size != kStatusNumbers * n || offsets.size != count || lengths.size != count) fail("arrays that do not fit");
    size_t total = 0;
    for (size_t k = 0; k < count; ++k) {
        const int64_t file = files.data[k];
        if (file < (k > 0 ? files.data[k - 1] : 0) || static_cast<uint64_t>(file) >= n)
            fail("the files of the ranges are not in order");
        const size_t length = checked_count(lengths.data[k], "length");
        if (offsets.data[k] < 0 || length > out.size - total) fail("ranges that do not fit");
        total += length;
    }
    NoGil nogil(size_t{1} << 20);
    auto* place = reinterpret_cast<char*>(out.data);
    for (size_t k = 0; k < count;) {
        const auto file = static_cast<size_t>(files.data[k]);
        const Descriptor opened(given.items[file]);
        FileStatus now;
        if (opened.number < 0 || !look(opened.number, now) || !now.is(statuses.data + kStatusNumbers * file))
            return k;
        for (; k < count && static_cast<size_t>(files.data[k]) == file; ++k) {
            const auto length = static_cast<size_t>(lengths.data[k]);
            if (!read_exactly(opened.number, place, length, offsets.data[k])) return k;
            place += length;
        }
    }
    return count;
}

#endif

}  // namespace pyparq
