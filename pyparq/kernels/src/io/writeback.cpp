// Has the kernel begin to store what was written to a file.
#include "base/common.hpp"

#ifdef __linux__
#include <fcntl.h>
#endif

void bind_writeback(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
#ifdef __linux__
    // A hint: errors come back from later calls that wait.
    m.def("begin_writeback", [](int fd, int64_t offset, int64_t size) {
        if (offset < 0 || size < 0) fail("a range that does not fit");
        const nb::gil_scoped_release nogil;
        sync_file_range(fd, offset, size, SYNC_FILE_RANGE_WRITE);
    }, "fd"_a, "offset"_a, "size"_a);
#else
    m.attr("begin_writeback") = nb::none();
#endif
}
