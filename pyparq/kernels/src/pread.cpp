// Many ranges of an open file in one call: between two reads nothing waits for the interpreter.
#include "common.hpp"

#include <algorithm>
#include <cerrno>

#if defined(__unix__) || defined(__APPLE__)
#define PYPARQ_PREAD 1
#include <unistd.h>
#endif

namespace pyparq {
namespace {

#ifdef PYPARQ_PREAD

// Reads the ranges one after another into `out`; returns how many bytes came before the file's end.
size_t pread_ranges(int fd, const In<int64_t>& offsets, const In<int64_t>& lengths, const RawOut& out) {
    if (offsets.size != lengths.size) fail("offsets and lengths differ in number");
    size_t total = 0;
    for (size_t k = 0; k < lengths.size; ++k) {
        total += checked_count(lengths.data[k], "length");
        if (total > out.size || offsets.data[k] < 0) fail("ranges that do not fit");
    }
    size_t done = 0;
    int error = 0;
    {
        NoGil nogil(total);
        for (size_t k = 0; k < lengths.size && error == 0; ++k) {
            size_t left = static_cast<size_t>(lengths.data[k]);
            auto at = static_cast<off_t>(offsets.data[k]);
            while (left > 0) {
                const ssize_t got = pread(fd, out.data + done, std::min(left, size_t{1} << 30), at);
                if (got < 0 && errno == EINTR) continue;
                if (got <= 0) {
                    error = got < 0 ? errno : -1;  // or the end of the file
                    break;
                }
                done += static_cast<size_t>(got), left -= static_cast<size_t>(got), at += got;
            }
        }
    }
    if (error > 0) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
    return done;
}

#endif

}  // namespace
}  // namespace pyparq

void bind_pread(nb::module_& m) {
#ifdef PYPARQ_PREAD
    using namespace nb::literals;
    m.def("pread_ranges", &pyparq::pread_ranges, "fd"_a, "offsets"_a, "lengths"_a, "out"_a);
#else
    m.attr("pread_ranges") = nb::none();
#endif
}
