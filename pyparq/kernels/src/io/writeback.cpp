// Has the kernel begin to store what was written to a file.
#include "io/calls.hpp"

#ifdef __linux__
#include <fcntl.h>

namespace pyparq {

// A hint: errors come back from later calls that wait.
void begin_writeback(int fd, int64_t offset, int64_t size) {
    if (offset < 0 || size < 0) fail("a range that does not fit");
    const NoGil nogil;
    sync_file_range(fd, offset, size, SYNC_FILE_RANGE_WRITE);
}

}  // namespace pyparq
#endif
