// Where Python meets `encode/`: names, types and docstrings.
#include "encode/calls.hpp"
#include "encode/encoded_chunks.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_write(nb::module_& m) {
    nb::class_<FileRules>(m, "FileRules", R"(What holds for all columns of a file that is written. Lengths to cut bounds to are below 0 for whole ones.)")
        .def("__init__", &init_file, "version"_a, "max_rows"_a, "page_size"_a, "dictionary_limit"_a, "statistics_truncate"_a, "index_truncate"_a, "longest_bound"_a, "page_index"_a, "size_statistics"_a, "min_values"_a, "settles"_a, "most_of_dictionary"_a, "record_key"_a, "crc"_a.none(), "threads"_a, nb::sig("def __init__(self, version: int, max_rows: int, page_size: int, dictionary_limit: int, "
                                                                                                                                                                                                                                                                                                                    "statistics_truncate: int, index_truncate: int, longest_bound: int, page_index: bool, size_statistics: bool, "
                                                                                                                                                                                                                                                                                                                    "min_values: int, settles: float, most_of_dictionary: float, record_key: str, crc: Crc32 | None, "
                                                                                                                                                                                                                                                                                                                    "threads: int) -> None"));
    nb::class_<ColumnRules>(m, "ColumnRules", R"(How a leaf is written. `encoding` below 0: chosen from the data among PLAIN and the `candidates`, pairs of an
encoding and the share of the best before it that it may take; `level`: of the native
codec, or compression.NOT_NATIVE to use `compress` alone; `text`: values must be UTF-8; `precision`: digits of a
decimal; `geo`: 1 for the WKB of a geometry, 2 for that of a geography; `key_values` are serialized KeyValue
structs.)")
        .def("__init__", &init_column, "file"_a, "order"_a, "physical"_a, "width"_a, "max_def"_a, "max_rep"_a, "codec"_a, "compress"_a.none(), "level"_a, "dictionary"_a, "keep_dictionary"_a, "encoding"_a, "candidates"_a, "statistics"_a, "text"_a, "precision"_a, "geo"_a, "path"_a, "key_values"_a,
             nb::sig("def __init__(self, file: FileRules, order: LeafOrder, physical: int, width: int, max_def: int, "
                     "max_rep: int, codec: int, compress: Callable[[Any], Any] | None, level: int, dictionary: bool, "
                     "keep_dictionary: bool, encoding: int, candidates: Sequence[tuple[int, float]], statistics: bool, "
                     "text: bool, precision: int, geo: int, path: Sequence[str], key_values: Sequence[bytes]) -> None"));
    nb::class_<EncodedChunks>(m, "EncodedChunks", R"(Column chunks of one row group, one after another, and what the footer and the indexes say about them.)")
        .def(nb::init<>())
        .def("encode", &EncodedChunks::encode, "jobs"_a, "check"_a,
             nb::sig("def encode(self, jobs: list[tuple[Any, ...]], check: Callable[[], object]) -> tuple[int, int, int, "
                     "int] | None"),
             R"(Encode a chunk from each (ColumnRules, offsets or None, data, definition levels or None, repetition levels or
None, rows, slots, dictionary, choice, seal), without the GIL; or, where the column is a leaf itself, from
(ColumnRules, arrays, rows, codes, choice, seal). An array is (form, length, offset, validity bits or None,
values or offsets, bytes or None), or (form, ImportedArray); pyparq.write.encode.flat_columns has the forms.
With `codes` the arrays are int32 codes of a dictionary: (entries in PLAIN, how many, where the entry of each
code is among them, or None where the codes say that).

A dictionary that is known is (entries in PLAIN, how many, int32 indices, how many differ); a choice made
before is (encoding, stored bytes per value); `seal(module, parts, page)` encrypts; each may be None. `check()`
is called every 50 ms. Returns None, or why a chunk cannot be written: (code, page, row, size).)")
        .def_prop_ro("count", &EncodedChunks::count,
                     "Chunks that are encoded.")
        .def_prop_ro("at_fault", &EncodedChunks::at_fault,
                     "After a failure or refusal, the number of the chunk that it is about.")
        .def_prop_ro("size", &EncodedChunks::size,
                     "Stored bytes.")
        .def_prop_ro("uncompressed", &EncodedChunks::uncompressed,
                     "The same before compression; headers count as they are stored.")
        .def("take", &EncodedChunks::take,
             nb::sig("def take(self) -> list[NDArray[np.uint8]]"),
             R"(The bytes of the chunks that were not taken yet, in order. While a thread is in `encode`: those of them
that are finished.)")
        .def("place", &EncodedChunks::place, "base"_a,
             "Say where in the file the first chunk starts.")
        .def("column_index", &EncodedChunks::column_index, "chunk"_a,
             nb::sig("def column_index(self, chunk: int) -> bytes | None"),
             "The serialized ColumnIndex of a chunk, if it has one.")
        .def("offset_index", &EncodedChunks::offset_index, "chunk"_a)
        .def("set_column_index", &EncodedChunks::set_column_index, "chunk"_a, "stored"_a,
             "Store these bytes instead.")
        .def("set_offset_index", &EncodedChunks::set_offset_index, "chunk"_a, "stored"_a)
        .def("column_metadata", &EncodedChunks::column_metadata, "chunk"_a,
             "Its serialized ColumnMetaData.")
        .def("column_chunk", &EncodedChunks::column_chunk, "chunk"_a, "crypto"_a, "sealed"_a, "bare"_a,
             R"(Its serialized ColumnChunk. `crypto`: the serialized ColumnCryptoMetaData, or nothing. `sealed`: its metadata
as an encrypted module, which stands instead of them, or nothing; `bare`: beside those that a reader without the
key needs.)")
        .def("column_indexes", &EncodedChunks::column_indexes, "position"_a,
             "All ColumnIndexes, one after another, as they will be stored at `position`. They are not kept.")
        .def("offset_indexes", &EncodedChunks::offset_indexes, "position"_a)
        .def("column_chunks", &EncodedChunks::column_chunks,
             "All serialized ColumnChunks, one after another.")
        .def("set_bloom", &EncodedChunks::set_bloom, "chunk"_a, "position"_a, "size"_a,
             "Say where the Bloom filter of a chunk is.")
        .def("choice", &EncodedChunks::choice, "chunk"_a,
             nb::sig("def choice(self, chunk: int) -> tuple[int, float] | None"),
             R"(The encoding that was chosen for it, and the stored bytes per value; None where nothing was measured.)")
        .def("used_entries", &EncodedChunks::used_entries, "chunk"_a,
             nb::sig("def used_entries(self, chunk: int) -> NDArray[np.int64]"),
             "The entries of its dictionary that occur in it, ascending, where it came as codes.")
        .def("first_places", &EncodedChunks::first_places, "chunk"_a,
             nb::sig("def first_places(self, chunk: int) -> NDArray[np.int64] | None"),
             R"(The values at which the entries of its dictionary first occur; None without one that has all values.)");
}

}  // namespace

void bind_encode(nb::module_& m) {
    bind_write(m);
}

}  // namespace pyparq
