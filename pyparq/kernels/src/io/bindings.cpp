// Where Python meets `io/`: names, types and docstrings.
#include "io/calls.hpp"
#include "io/held_file.hpp"

#include <nanobind/stl/string.h>

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_many_footers(nb::module_& m) {
#ifdef PYPARQ_PREAD
    m.def("read_footers", &read_footers, "paths"_a, "tail"_a, "most"_a,
          nb::sig("def read_footers(paths: list[bytes], tail: int, most: int) -> list[tuple[int, int, int, int, bool, bytes, "
                  "int, int] | None]"),
          R"(The footers of local files, each opened, read and closed; `tail` bytes are read at first, a
footer of more than `most` bytes is not read. Of each file its size, mtime in nanoseconds, inode and ctime, whether
the footer is encrypted, the footer as stored, and how many reads of how many bytes it took; None where anything is
unusual (reading that file by itself tells what). None where the system has no positioned reads.)");
    m.def("footer_kinds", &footer_kinds, "paths"_a, "statuses"_a, "tail"_a, "most"_a,
          nb::sig("def footer_kinds(paths: list[bytes], statuses: Buffer, tail: int, most: int) -> tuple[NDArray[np.int64], "
                  "list[tuple[int, int, int, int, bool, bytes, int, int]], NDArray[np.int64]]"),
          R"(The places of the first local file of each kind, where footers that are the same in
all but rows and row groups are of one kind, then these files' footers as `read_footers` gives them, then the places of
files whose kind cannot be told: something about them is unusual, they are encrypted, or no longer what `statuses` says
(size, mtime, inode and ctime of each, int64). None where the system has no positioned reads.)");
#else
    m.attr("read_footers") = nb::none();
    m.attr("footer_kinds") = nb::none();
#endif
    m.def("footer_frames", &footer_frames, "footers"_a,
          nb::sig("def footer_frames(footers: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]"),
          R"(Of each serialized FileMetaData: the place in the list of the first that is the same in all but its rows and row
groups, and its rows. -1 and -1 where that cannot be told: it is damaged, says that the file is encrypted, has row
groups without rows, or states rows that are not their sum.)");
}

void bind_many_ranges(nb::module_& m) {
#ifdef PYPARQ_PREAD
    m.def("read_many_ranges", &read_many_ranges, "paths"_a, "statuses"_a, "files"_a, "offsets"_a, "lengths"_a,
          "out"_a,
          nb::sig("def read_many_ranges(paths: list[bytes], statuses: Buffer, files: Buffer, offsets: Buffer, lengths: Buffer, "
                  "out: Buffer) -> int"),
          R"(Read ranges of files one after another into `out`; returns how
many were read before one could not be: its file is not there, has changed, or ends too early. `statuses`: size,
mtime, inode and ctime of each file, which must be what they were; `files`: of each range the place of its file in
`paths`, rising. None where the system has no positioned reads.)");
#else
    m.attr("read_many_ranges") = nb::none();
#endif
}

void bind_pread(nb::module_& m) {
    nb::class_<HeldFile>(m, "HeldFile", "The descriptor of an open file, closed with the last reference to this.")
        .def(nb::init<int>(), nb::arg("number"))
        .def_ro("number", &HeldFile::number);
#ifdef PYPARQ_PREAD
    m.def("pread_ranges", &pread_ranges, "fd"_a, "offsets"_a, "lengths"_a, "out"_a, "threads"_a = 1,
          nb::sig("def pread_ranges(fd: int, offsets: Buffer, lengths: Buffer, out: Buffer, threads: int = 1) -> int"),
          R"(Read ranges (int64) of an open file one after another into `out`. Returns
the bytes that came before its end, raises OSError as the system does. None where the system has no positioned reads.)");
#else
    m.attr("pread_ranges") = nb::none();
#endif
}

void bind_writeback(nb::module_& m) {
#ifdef __linux__
    m.def("begin_writeback", &begin_writeback, "fd"_a, "offset"_a, "size"_a,
          R"(Have the kernel begin to store these bytes of an open file, and do not wait for it. Errors are
those of later calls. None where the system cannot do that.)");
#else
    m.attr("begin_writeback") = nb::none();
#endif
}

}  // namespace

void bind_io(nb::module_& m) {
    bind_many_footers(m);
    bind_many_ranges(m);
    bind_pread(m);
    bind_writeback(m);
}

}  // namespace pyparq
