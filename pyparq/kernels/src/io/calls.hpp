// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "base/common.hpp"

// Whether the system has positioned reads.
#if defined(__unix__) || defined(__APPLE__)
#define PYPARQ_PREAD 1
#endif

namespace pyparq {

nb::list read_footers(const nb::list& paths, size_t tail, size_t most);
nb::tuple footer_kinds(const nb::list& paths, const In<int64_t>& statuses, size_t tail, size_t most);
nb::tuple footer_frames(const nb::list& footers);
size_t read_many_ranges(const nb::list& paths, const In<int64_t>& statuses, const In<int64_t>& files,
                        const In<int64_t>& offsets, const In<int64_t>& lengths, const RawOut& out);
size_t pread_ranges(int fd, const In<int64_t>& offsets, const In<int64_t>& lengths, const RawOut& out, size_t threads);

#ifdef __linux__
void begin_writeback(int fd, int64_t offset, int64_t size);
#endif

}  // namespace pyparq
