// Local files that are open for as long as one call looks at them, and the Python lists that name them.
#pragma once

#include "io/calls.hpp"

#include <string_view>
#include <vector>

#ifdef PYPARQ_PREAD
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace pyparq {

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

// What tells whether a file has changed.
struct FileStatus {
    int64_t size = -1, mtime_ns = 0, inode = 0;
    int64_t ctime_ns = 0;  // no program can set it: it tells of writes that have left size and mtime as they were

    bool is(const int64_t* numbers) const {
        return size == numbers[0] && mtime_ns == numbers[1] && inode == numbers[2] && ctime_ns == numbers[3];
    }
};

constexpr size_t kStatusNumbers = 4;

// Closes on every way out.
struct Descriptor {
    int number = -1;
    explicit Descriptor(std::string_view path) {
        if (path.find('\0') != std::string_view::npos) return;  // no file can have this path
        do {                                                    // a bytes object ends in a NUL of its own
            number = open(path.data(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        } while (number < 0 && errno == EINTR);
    }
    ~Descriptor() {
        if (number >= 0) close(number);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
};

inline bool read_exactly(int fd, char* out, size_t size, int64_t at) {
    while (size > 0) {
        const ssize_t got = pread(fd, out, size, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        out += got, size -= static_cast<size_t>(got), at += got;
    }
    return true;
}

// What an open file is now; false for one that is no plain file.
inline bool look(int fd, FileStatus& out) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    out.size = status.st_size, out.inode = static_cast<int64_t>(status.st_ino);
#ifdef __APPLE__
    out.mtime_ns = int64_t{status.st_mtimespec.tv_sec} * 1000000000 + status.st_mtimespec.tv_nsec;
    out.ctime_ns = int64_t{status.st_ctimespec.tv_sec} * 1000000000 + status.st_ctimespec.tv_nsec;
#else
    out.mtime_ns = int64_t{status.st_mtim.tv_sec} * 1000000000 + status.st_mtim.tv_nsec;
    out.ctime_ns = int64_t{status.st_ctim.tv_sec} * 1000000000 + status.st_ctim.tv_nsec;
#endif
    return true;
}

#endif

}  // namespace pyparq
