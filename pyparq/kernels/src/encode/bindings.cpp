// Where Python meets `encode/`: names, types and docstrings.
#include "encode/calls.hpp"
#include "encode/encoded_chunks.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_rules(nb::module_& m) {
    nb::class_<FileRules>(m, "FileRules", R"(What holds for all columns of a file that is written. Lengths to cut bounds to are below 0 for whole ones.)")
        .def("__init__", &init_file, "version"_a, "max_rows"_a, "page_size"_a, "dictionary_limit"_a, "statistics_truncate"_a,
             "index_truncate"_a, "longest_bound"_a, "page_index"_a, "size_statistics"_a, "min_values"_a, "settles"_a,
             "most_of_dictionary"_a, "record_key"_a, "crc"_a.none(), "threads"_a,
             nb::sig("def __init__(self, version: int, max_rows: int, page_size: int, dictionary_limit: int, "
                     "statistics_truncate: int, index_truncate: int, longest_bound: int, page_index: bool, size_statistics: bool, "
                     "min_values: int, settles: float, most_of_dictionary: float, record_key: str, crc: Crc32 | None, "
                     "threads: int) -> None"));
    nb::class_<ColumnRules>(m, "ColumnRules", R"(How a leaf is written. `encoding` below 0: chosen from the data among PLAIN and the `candidates`, pairs of an
encoding and the share of the best before it that it may take; `level`: of the native
codec, or compression.NOT_NATIVE to use `compress` alone; `text`: values must be UTF-8; `precision`: digits of a
decimal; `geo`: 1 for the WKB of a geometry, 2 for that of a geography; `key_values` are serialized KeyValue
structs.)")
        .def("__init__", &init_column, "file"_a, "order"_a, "physical"_a, "width"_a, "max_def"_a, "max_rep"_a, "codec"_a,
             "compress"_a.none(), "level"_a, "dictionary"_a, "keep_dictionary"_a, "encoding"_a, "candidates"_a, "statistics"_a,
             "text"_a, "precision"_a, "geo"_a, "path"_a, "key_values"_a,
             nb::sig("def __init__(self, file: FileRules, order: LeafOrder, physical: int, width: int, max_def: int, "
                     "max_rep: int, codec: int, compress: Callable[[Any], Any] | None, level: int, dictionary: bool, "
                     "keep_dictionary: bool, encoding: int, candidates: Sequence[tuple[int, float]], statistics: bool, "
                     "text: bool, precision: int, geo: int, path: Sequence[str], key_values: Sequence[bytes]) -> None"));
}

void bind_given(nb::module_& m) {
    nb::class_<FlatArray>(m, "FlatArray", R"(One array of a column that is a leaf itself. pyparq.write.flat_columns has the forms.)")
        .def(nb::init<int, int64_t, int64_t, nb::object, nb::object, nb::object>(), "form"_a, "length"_a, "offset"_a, "validity"_a.none(),
             "values"_a.none(), "bytes"_a.none(),
             nb::sig("def __init__(self, form: int, length: int, offset: int, validity: Any, values: Any, bytes: Any) -> None"),
             "From buffers: validity bits or None; values, or offsets and bytes.")
        .def(nb::init<int, nb::object>(), "form"_a, "array"_a,
             nb::sig("def __init__(self, form: int, array: ImportedArray) -> None"));
    nb::class_<KnownDictionary>(m, "KnownDictionary", R"(The dictionary that values come from: entries in PLAIN and how many, the int32 index of each value, and how
many entries occur.)")
        .def("__init__", &init_dictionary, "entries"_a, "count"_a, "indices"_a, "distinct"_a);
    nb::class_<ValuesChunk>(m, "ValuesChunk", R"(A chunk to encode, from its values without nulls (byte arrays with `offsets`) and its levels.

`choice`: an encoding that was chosen before, and its stored bytes per value. `seal(module, parts, page)`
encrypts.)")
        .def("__init__", &init_values_chunk, "rules"_a, "offsets"_a.none(), "values"_a, "def_levels"_a.none(), "rep_levels"_a.none(),
             "num_rows"_a, "num_slots"_a, "dictionary"_a = nb::none(), "choice"_a = nb::none(), "seal"_a = nb::none(),
             nb::sig("def __init__(self, rules: ColumnRules, offsets: Any, values: Any, def_levels: Any, rep_levels: Any, "
                     "num_rows: int, num_slots: int, dictionary: KnownDictionary | None = None, "
                     "choice: tuple[int, float] | None = None, seal: Any = None) -> None"));
    nb::class_<ArraysChunk>(m, "ArraysChunk", R"(A chunk to encode, of a column that is a leaf itself.

With `codes` the arrays are int32 codes of a dictionary: (entries in PLAIN, how many, where the entry of
each code is among them, or None where the codes say that). `choice` and `seal` as for ValuesChunk.)")
        .def("__init__", &init_arrays_chunk, "rules"_a, "arrays"_a, "num_rows"_a, "codes"_a = nb::none(), "choice"_a = nb::none(), "seal"_a = nb::none(),
             nb::sig("def __init__(self, rules: ColumnRules, arrays: list[FlatArray], num_rows: int, "
                     "codes: tuple[Any, int, Any] | None = None, choice: tuple[int, float] | None = None, seal: Any = None) -> None"));
    nb::class_<Refusal>(m, "EncodeRefusal", R"(Why a chunk cannot be written: 1, a page is too large (`page` below 0: the dictionary's); 2, a row is; 3,
the arrays hold what the leaf may not; 4, a value is EWKB.)")
        .def_ro("code", &Refusal::code)
        .def_ro("page", &Refusal::page)
        .def_ro("row", &Refusal::row)
        .def_ro("size", &Refusal::size);
}

// What the footer and the indexes say about chunks.
void bind_chunk_facts(nb::class_<EncodedChunks>& chunks) {
    chunks
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

void bind_chunks(nb::module_& m) {
    nb::class_<EncodedChunks> chunks(m, "EncodedChunks", R"(Column chunks of one row group, one after another, and what the footer and the indexes say about them.)");
    chunks.def(nb::init<>())
        .def("encode", &EncodedChunks::encode, "jobs"_a, "check"_a,
             nb::sig("def encode(self, jobs: Sequence[ValuesChunk | ArraysChunk], check: Callable[[], object]) -> EncodeRefusal | None"),
             R"(Encode a chunk from each job, without the GIL. `check()` is called every 50 ms.)")
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
             "Say where in the file the first chunk starts.");
    bind_chunk_facts(chunks);
}

}  // namespace

void bind_encode(nb::module_& m) {
    bind_rules(m);
    bind_given(m);
    bind_chunks(m);
}

}  // namespace pyparq
