// Where Python meets `thrift/`: names, types and docstrings.
#include "thrift/calls.hpp"
#include "thrift/rules.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_thrift_footer(nb::module_& m) {
    m.def("thrift_index_footer", &index_footer_py, nb::arg("data"),
          nb::sig("def thrift_index_footer(data: Buffer) -> tuple[int, tuple[int, int], tuple[int, int], NDArray[np.int64], "
                  "NDArray[np.int64], NDArray[np.int64]]"),
          R"(Where things lie in a serialized FileMetaData.

Its end; the schema list; the row group list; per row group start, end, start and end of its column
list, and num_rows; where each row group's chunks begin in the last array; starts of the chunks and, per row
group, the end of the last one.)");
}

void bind_page_index(nb::module_& m) {
    m.def("check_page_locations", &check_page_locations, nb::arg("pages"), nb::arg("num_rows"), nb::arg("start"),
          nb::arg("end"),
          R"(What is wrong with the places of a chunk's pages: int64 offsets, then sizes, then first rows.

0: nothing. 1: the first rows do not rise from 0 to below `num_rows`. 2: a page is empty or begins outside of
[start, end). 3: pages overlap, are out of order, or go beyond `end`.)");
}

void bind_column_index(nb::module_& m) {
    const auto list = [](const char* text) { return nb::for_getter(nb::sig(text)); };
    nb::class_<ColumnIndexArrays>(m, "ColumnIndexArrays", R"(The fields of a ColumnIndex; None for absent lists.

Bounds are lists of bytes, or (64-bit numbers, where they can be used) as `number_bounds` has them.)")
        .def_ro("null_pages", &ColumnIndexArrays::null_pages, list("def null_pages(self) -> NDArray[np.bool_]"))
        .def_ro("lower", &ColumnIndexArrays::lower, list("def lower(self) -> Any"))
        .def_ro("upper", &ColumnIndexArrays::upper, list("def upper(self) -> Any"))
        .def_ro("order", &ColumnIndexArrays::order)
        .def_ro("null_counts", &ColumnIndexArrays::null_counts, list("def null_counts(self) -> NDArray[np.int64] | None"))
        .def_ro("repetition_histograms", &ColumnIndexArrays::repetition_histograms,
                list("def repetition_histograms(self) -> NDArray[np.int64] | None"))
        .def_ro("definition_histograms", &ColumnIndexArrays::definition_histograms,
                list("def definition_histograms(self) -> NDArray[np.int64] | None"))
        .def_ro("nan_counts", &ColumnIndexArrays::nan_counts, list("def nan_counts(self) -> NDArray[np.int64] | None"));
}

void bind_thrift_rules(nb::module_& m) {
    nb::exception<ThriftTruncated>(m, "ThriftTruncated", nb::object(m.attr("KernelError")));
    nb::class_<Rules>(m, "ThriftRules", R"(The structs' fields, as `pyparq.format.generated.rules` tells them, to check bytes before decoding.)")
        .def(nb::init<const std::vector<StructRow>&>(), nb::arg("rows"),
             nb::sig("def __init__(self, rows: Sequence[Any]) -> None"))
        .def("check", &check_struct_python, nb::arg("data"), nb::arg("offset"), nb::arg("kind"),
             nb::sig("def check(self, data: Buffer, offset: int, kind: int) -> tuple[int, bool]"),
             "End of the struct of that kind at `offset`, and whether a text that may be raw is not UTF-8.")
        .def("lists", &lists_of_struct, nb::arg("data"), nb::arg("offset"), nb::arg("kind"),
             nb::sig("def lists(self, data: Buffer, offset: int, kind: int) -> tuple[int, list[NDArray[np.int64] | None]]"),
             R"(End of the struct of that kind at `offset`, and its lists by field (None for absent ones). For structs that
hold nothing but lists of integers or of structs of required integers; of such structs, all of their first
field come first, then all of the next.)")
        .def("column_index", &column_index<Rules>, nb::arg("data"), nb::arg("kind"), nb::arg("width"),
             nb::arg("number_kind"),
             nb::sig("def column_index(self, data: Buffer, kind: int, width: int, number_kind: int) -> ColumnIndexArrays"),
             "The ColumnIndex (the struct of that kind) at the start of `data`. `width`: 0 for bounds that are bytes.")
        .def("chunk_numbers", &chunk_numbers<Rules>, nb::arg("data"), nb::arg("starts"), nb::arg("kind"),
             nb::arg("paths"),
             nb::sig("def chunk_numbers(self, data: Buffer, starts: Buffer, kind: int, paths: list[bytes]) -> NDArray[np.int64]"),
             R"(The numbers of the ColumnChunks (the struct of that kind) that start at `starts` (int64; -1: there is none),
as `pyparq.format.chunk_numbers` names them: all of the first, then all of the second. `paths`: in turn, the
path_in_schema that the chunks should have, as it is stored.)")
        .def("chunks_of_footers", &chunks_of_footers<Rules>, nb::arg("footers"), nb::arg("columns"), nb::arg("kind"),
             nb::arg("paths"), nb::arg("leaves"),
             nb::sig("def chunks_of_footers(self, footers: list[bytes], columns: Buffer, kind: int, paths: list[bytes], "
                     "leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]"),
             R"(The same of some columns (int64, ascending) in all row groups of serialized FileMetaData. Row groups before
each footer, and of all; the rows of each row group, -1 where something is wrong with it; the numbers of their
chunks. `leaves`: column chunks that each row group should have.)");
    m.def("bytes_at", &bytes_at, nb::arg("buffers"), nb::arg("of"), nb::arg("starts"), nb::arg("sizes"),
          nb::sig("def bytes_at(buffers: list[Any], of: Buffer, starts: Buffer, sizes: Buffer) -> list[bytes | None]"),
          R"(Bytes of `buffers`: the place of the buffer in the list, start and size of each (int64); None where the start is
negative.)");
}

void bind_thrift_split(nb::module_& m) {
    m.def("thrift_split_struct", &split_struct_py, nb::arg("data"), nb::arg("offset"),
          nb::sig("def thrift_split_struct(data: Buffer, offset: int) -> tuple[int, NDArray[np.int64]]"),
          R"(The end of the struct that starts at ``offset``, and four numbers per field: its id, its type, where its header
starts and where its value does. A bool has no value beside its type.)");
    m.def("thrift_split_list", &split_list_py, nb::arg("data"), nb::arg("offset"),
          nb::sig("def thrift_split_list(data: Buffer, offset: int) -> tuple[int, NDArray[np.int64]]"),
          R"(The type of the elements of the list or set that starts at ``offset``, and where each of them starts, then the
end of the last.)");
    m.def("moved_offset_index", &moved_offset_index_py, nb::arg("data"), nb::arg("moved"),
          nb::sig("def moved_offset_index(data: Buffer, moved: Callable[[int], int]) -> bytes"),
          "A serialized OffsetIndex whose page offsets are what `moved` says of the old ones. All else stays.");
}

}  // namespace

void bind_thrift(nb::module_& m) {
    bind_thrift_footer(m);
    bind_page_index(m);
    bind_column_index(m);
    bind_thrift_rules(m);
    bind_thrift_split(m);
}

}  // namespace pyparq
