// Where Python meets `index/`: names, types and docstrings.
#include "index/calls.hpp"
#include "io/calls.hpp"

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_bounds(nb::module_& m) {
    nb::class_<LeafOrder>(m, "LeafOrder", "How the values of a leaf compare (`pyparq.format.order.native_order`).")
        .def(nb::init<int64_t, int64_t, bool, bool, bool>(), "domain"_a, "width"_a, "total"_a, "cut"_a, "text"_a);
    m.def("segment_bounds_fixed", &segments_fixed, "order"_a, "values"_a, "edges"_a,
          nb::sig("def segment_bounds_fixed(order: LeafOrder, values: Buffer, edges: Buffer) -> _Bounds"),
          R"(Smallest and largest value of each segment [edges[k], edges[k + 1]) in PLAIN, int64 edges, and how many NaNs are
in it (None but for floats). None where no value could be a bound.)");
    m.def("segment_bounds_binary", &segments_binary, "order"_a, "offsets"_a, "data"_a, "edges"_a,
          nb::sig("def segment_bounds_binary(order: LeafOrder, offsets: Buffer, data: Buffer, edges: Buffer) -> _Bounds"),
          "The same of byte arrays.");
    m.def("shorter_min", &shorter_min_python, "order"_a, "value"_a, "length"_a,
          nb::sig("def shorter_min(order: LeafOrder, value: bytes, length: int) -> bytes"),
          "A lower bound of at most `length` bytes (below 0: whole) where the type allows that.");
    m.def("shorter_max", &shorter_max_python, "order"_a, "value"_a, "length"_a,
          nb::sig("def shorter_max(order: LeafOrder, value: bytes, length: int) -> bytes"),
          "The same for an upper bound; the whole value where there is no shorter one.");
    nb::borrow<nb::module_>(m.attr("probes")).def("statistics", &statistics, "order"_a, "mins"_a, "maxs"_a, "null_count"_a, "nan_count"_a, "distinct_count"_a, "truncate"_a, nb::sig("def statistics(order: LeafOrder, mins: Sequence[bytes | None], maxs: Sequence[bytes | None], "
                                                                                                                                                                                     "null_count: int, nan_count: int, distinct_count: int, truncate: int) -> bytes"),
                                                  R"(The serialized Statistics of a chunk from the whole bounds of its pages. A `distinct_count` below 0: unknown.)");
    m.def("column_index", &index_of_pages, "order"_a, "mins"_a, "maxs"_a, "null_counts"_a, "value_counts"_a, "nan_counts"_a, "definition"_a,
          "repetition"_a, "truncate"_a, "longest"_a,
          nb::sig("def column_index(order: LeafOrder, mins: Sequence[bytes | None], maxs: Sequence[bytes | None], "
                  "null_counts: Sequence[int], value_counts: Sequence[int], nan_counts: Sequence[int], "
                  "definition: Sequence[int], repetition: Sequence[int], truncate: int, longest: int) -> bytes | None"),
          R"(The serialized ColumnIndex of pages; None where the format allows none, or a bound is longer than `longest`.)");
}

void bind_chunk_bounds(nb::module_& m) {
    m.def("check_chunks", &check_chunks, "stack"_a, "types"_a, "repeated"_a, "num_rows"_a, "file_sizes"_a,
          nb::sig("def check_chunks(stack: Buffer, types: Buffer, repeated: Buffer, num_rows: Buffer, file_sizes: Buffer)"
                  " -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]"),
          R"(Start and size of column chunks, and whether anything about them is unusual. `stack`: their numbers by kind, row
group and column; `types` (int64) and `repeated` (uint8) of the columns; rows of each row group; the size of its
file, one for all or one for each.)");
    m.def("number_bounds", &number_bounds, "buffers"_a, "of"_a, "shift"_a, "stack"_a, "modern"_a, "old"_a, "width"_a,
          "kind"_a,
          nb::sig("def number_bounds(buffers: list[Any], of: Buffer, shift: int, stack: Buffer, modern: bool, old: bool, "
                  "width: int, kind: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]"),
          R"(Lower and upper bounds of the chunks of one leaf of numbers, 64 bits each, and where they can be used. `stack`:
their numbers by kind; `kind`: 0 signed, 1 unsigned, 2 floating (the bits of a double), 3 boolean, stored in `width`
bytes. `modern`: min_value and max_value count, `old`: min and max where neither is there. Places are in one buffer,
or in the one whose number `of` has, or that stands above `shift` bits of the place.)");
    m.def("chunk_counts", &chunk_counts, "stack"_a, "has_nan"_a,
          nb::sig("def chunk_counts(stack: Buffer, has_nan: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], "
                  "NDArray[np.int64], NDArray[np.bool_]]"),
          "Nulls, NaNs and slots of chunks, -1 where they are not known, and whether all are null.");
}

void bind_hash(nb::module_& m) {
    m.def("xxh64_fixed", &xxh64_fixed, "values"_a, "width"_a,
          nb::sig("def xxh64_fixed(values: Buffer, width: int) -> NDArray[np.uint64]"),
          "XXH64, seed 0, of each value's bytes.");
    m.def("xxh64_binary", &xxh64_binary, "offsets"_a, "data"_a,
          nb::sig("def xxh64_binary(offsets: Buffer, data: Buffer) -> NDArray[np.uint64]"),
          "XXH64, seed 0, of each value's bytes (no length prefix).");
    m.def("sbbf_insert", &sbbf_insert, "bitset"_a, "hashes"_a,
          "Insert uint64 hashes into a split block filter; the bitset is a positive multiple of 32 bytes.");
    m.def("sbbf_check", &sbbf_check, "bitset"_a, "hashes"_a,
          nb::sig("def sbbf_check(bitset: Buffer, hashes: Buffer) -> NDArray[np.bool_]"),
          "Whether each hash may be in the filter. A single 32-byte block is a filter of one block.");
}

void bind_many_filters(nb::module_& m) {
#ifdef PYPARQ_PREAD
    m.def("probe_filters", &probe_filters, "paths"_a, "statuses"_a, "files"_a, "offsets"_a, "lengths"_a,
          "hashes"_a, "most"_a,
          nb::sig("def probe_filters(paths: list[bytes], statuses: Buffer, files: Buffer, offsets: Buffer, lengths: Buffer, "
                  "hashes: Buffer, most: int) -> tuple[NDArray[np.uint8], int, int]"),
          R"(Whether Bloom filters hold any of the hashes (uint64): 0
certainly not, 1 perhaps, 2 where the filter cannot be used. And the requests and bytes that this took. `statuses`:
size, mtime, inode and ctime of each file, which must be what they were; `files`: of each filter the place of its file
in `paths`, rising. A filter of more than `most` bytes is not used. None where the system has no positioned reads.)");
    m.def("probe_open_filters", &probe_open_filters, "fd"_a, "size"_a, "tail"_a, "offsets"_a, "lengths"_a,
          "hashes"_a, "most"_a,
          nb::sig("def probe_open_filters(fd: int, size: int, tail: Buffer, offsets: Buffer, lengths: Buffer, hashes: Buffer, "
                  "most: int) -> tuple[NDArray[np.uint8], int, int]"),
          R"(The same of filters of one open file of `size` bytes, whose last
bytes are `tail`; with the number of requests that this took, and their bytes. None where the system has no positioned
reads.)");
#else
    m.attr("probe_filters") = nb::none();
    m.attr("probe_open_filters") = nb::none();
#endif
}

void bind_minmax(nb::module_& m) {
    m.def("compare_binary", &compare_binary, "offsets"_a, "data"_a, "literal"_a,
          nb::sig("def compare_binary(offsets: Buffer, data: Buffer, literal: Buffer) -> NDArray[np.int8]"),
          "-1, 0, 1: each value against the literal, unsigned bytes.");
    m.def("compare_binary_decimal", &compare_binary_decimal, "offsets"_a, "data"_a, "literal"_a,
          nb::sig("def compare_binary_decimal(offsets: Buffer, data: Buffer, literal: Buffer) -> NDArray[np.int8]"),
          "-1, 0, 1: each value against the literal, big-endian two's complement of any length.");
    m.def("compare_flba", &compare_flba, "data"_a, "width"_a, "signed_be"_a, "literal"_a,
          nb::sig("def compare_flba(data: Buffer, width: int, signed_be: bool, literal: Buffer) -> NDArray[np.int8]"),
          "-1, 0, 1 for fixed width; a signed literal may have another length.");
}

}  // namespace

void bind_index(nb::module_& m) {
    bind_bounds(m);
    bind_chunk_bounds(m);
    bind_hash(m);
    bind_many_filters(m);
    bind_minmax(m);
}

}  // namespace pyparq
