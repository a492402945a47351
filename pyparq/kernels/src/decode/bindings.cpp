// Where Python meets `decode/`: names, types and docstrings.
#include "decode/calls.hpp"
#include "decode/decoded_column.hpp"
#include "decode/page_reader.hpp"

#include <nanobind/stl/string.h>

namespace pyparq {
namespace {

using namespace nb::literals;

nb::object bytes_or_none(const SharedBytes& bytes) { return bytes ? bytes.array<uint8_t>() : nb::none(); }

void bind_decoded_column(nb::module_& m) {
    nb::class_<DecodedColumn>(m, "DecodedColumn", R"(A decoded column of fixed width or of byte arrays, in memory that arrays of numpy and of Arrow share.

Each attribute that is an array is made anew when it is asked for. `values` are bytes; those of byte arrays have
`offsets`, int32 or int64 (`has_wide_offsets`).)")
        .def_ro("length", &DecodedColumn::length)
        .def_ro("null_count", &DecodedColumn::nulls)
        .def_ro("is_binary", &DecodedColumn::is_binary)
        .def_ro("has_wide_offsets", &DecodedColumn::wide)
        .def_prop_ro("size", &DecodedColumn::size,
                     "Bytes, those of levels included.")
        .def_prop_ro("buffer_size", &DecodedColumn::buffer_size,
                     "Bytes of validity, offsets and values.")
        .def_prop_ro("validity", [](const DecodedColumn& self) { return bytes_or_none(self.validity); },
                     nb::sig("def validity(self) -> NDArray[np.uint8] | None"))
        .def_prop_ro("values", [](const DecodedColumn& self) { return self.values.array<uint8_t>(); },
                     nb::sig("def values(self) -> NDArray[np.uint8]"))
        .def_prop_ro("offsets", &DecodedColumn::python_offsets,
                     nb::sig("def offsets(self) -> NDArray[Any]"))
        .def_prop_ro("definition_levels", [](const DecodedColumn& self) { return bytes_or_none(self.def); },
                     nb::sig("def definition_levels(self) -> NDArray[np.uint8] | None"))
        .def_prop_ro("repetition_levels", [](const DecodedColumn& self) { return bytes_or_none(self.rep); },
                     nb::sig("def repetition_levels(self) -> NDArray[np.uint8] | None"));
}

void bind_arguments(nb::module_& m) {
    nb::class_<LeafSpec>(m, "LeafSpec", R"(A leaf, and what its values become.

`physical`: number of Type in parquet.thrift; `width`: bytes of a stored value, 0 for BYTE_ARRAY. A
definition level of `slot_level` or more is a slot. `form`: "values", "codes" (of the dictionary) or
"views"; with `codes_or_values`, values where a page has no codes. `convert`: number of Convert in
kernels/src/decode/column_output.hpp. `digits`: most that a decimal may have, 0 for any. Text must be UTF-8.)")
        .def("__init__", &init_leaf, "physical"_a, "width"_a, "max_def"_a, "max_rep"_a, "slot_level"_a = 0,
             "keeps_levels"_a = false, "is_text"_a = false, "form"_a = "values", "convert"_a = 0, "large_offsets"_a = false,
             "codes_or_values"_a = false, "digits"_a = 0);
    nb::class_<PageLimits>(m, "PageLimits", R"(Limits of pyparq.limits, whether pages are held against their CRC, and the bytes of byte arrays above which
a column has offsets of 64 bits.)")
        .def("__init__", &init_limits, "max_page"_a, "max_expansion"_a, "expansion_floor"_a, "max_values_per_byte"_a,
             "max_column"_a, "check_crc"_a, "most_offset"_a);
    nb::class_<PageCipher>(m, "PageCipher", R"(Decrypts the pages of a chunk: by libcrypto, with `key` and the AADs of modules 2 to 5 up to the page
number; or by `decryption`, where `key` is None or a module is not as usual. With `ctr`, bodies are by
AES-CTR.)")
        .def(nb::init<nb::object, nb::object, const nb::handle&, bool>(), "decryption"_a, "key"_a.none(), "aads"_a, "ctr"_a,
             nb::sig("def __init__(self, decryption: Any, key: AesKey | None, aads: list[bytes], ctr: bool) -> None"));
    nb::class_<PieceSpec>(m, "PieceSpec", R"(The wanted part of one column chunk.

`data`: the bytes of the whole chunk; or, with int64 arrays of a number for each data page (`ordinals`,
`first_rows`, `page_rows`), a list of pages, the dictionary page first if it is `dictionary_apart`. `rows`:
None for all; int64 (starts, ends) of ranges; or a bitmap with a bit for each row of the row group, in whole
words of 64. `dictionary`: where it is known, (entries, int64 offsets or None, bytes).)")
        .def("__init__", &init_piece, "codec"_a, "num_values"_a, "num_rows"_a, "first_is_dictionary"_a, "data"_a,
             "ordinals"_a = nb::none(), "first_rows"_a = nb::none(), "page_rows"_a = nb::none(), "dictionary_apart"_a = false,
             "rows"_a = nb::none(), "cipher"_a = nb::none(), "dictionary"_a = nb::none(),
             nb::sig("def __init__(self, codec: int, num_values: int, num_rows: int, first_is_dictionary: bool, data: Any, "
                     "ordinals: Buffer | None = None, first_rows: Buffer | None = None, page_rows: Buffer | None = None, "
                     "dictionary_apart: bool = False, rows: Any = None, cipher: PageCipher | None = None, "
                     "dictionary: tuple[int, Any, Any] | None = None) -> None"));
}

void bind_results(nb::module_& m) {
    nb::class_<DecodeRefusal>(m, "DecodeRefusal", R"(A fault in a file: a name with up to three numbers and a text, which pyparq/read/decode/decoder.py puts
into words; the column and piece of the call; and the ordinal of the data page, -2 for the dictionary page,
-1 for none.)")
        .def_ro("name", &DecodeRefusal::name)
        .def_ro("a", &DecodeRefusal::a)
        .def_ro("b", &DecodeRefusal::b)
        .def_ro("c", &DecodeRefusal::c)
        .def_ro("text", &DecodeRefusal::text)
        .def_ro("column", &DecodeRefusal::column)
        .def_ro("piece", &DecodeRefusal::piece)
        .def_ro("page", &DecodeRefusal::page)
        .def_prop_ro("error", [](const DecodeRefusal& self) { return self.error; },
                     nb::sig("def error(self) -> BaseException | None"), "An exception that a library or a key raised.");
    nb::class_<PieceFacts>(m, "PieceFacts", "What has been read of a piece: the end of its pages, in a whole chunk, and numbers of pages.")
        .def_ro("end", &PieceFacts::end)
        .def_ro("data_pages", &PieceFacts::data_pages)
        .def_ro("dictionary_pages", &PieceFacts::dictionary_pages);
    nb::class_<ChunkTotals>(m, "ChunkTotals", "What has been read of all chunks of a call.")
        .def_ro("data_pages", &ChunkTotals::data_pages)
        .def_ro("dictionary_pages", &ChunkTotals::dictionary_pages)
        .def_ro("num_bytes", &ChunkTotals::num_bytes, "Of the columns.")
        .def_ro("ended_early", &ChunkTotals::ended_early, "Chunks that have bytes behind their last page.");
}

void bind_engine(nb::module_& m) {
    m.def("set_libraries", &set_libraries, "crc32"_a, "decode"_a,
          nb::sig("def set_libraries(crc32: Callable[..., int], decode: Callable[[int, Any, Any], int]) -> None"),
          R"(What the decoder calls where the kernels have no library: `zlib.crc32(data, before)`, and `decode(codec, stored,
out)`, which gives the bytes written.)");
    m.def("decode_columns", &decode_columns, "jobs"_a, "limits"_a, "threads"_a, "room"_a,
          nb::sig("def decode_columns(jobs: list[tuple[LeafSpec, list[PieceSpec]]], limits: PageLimits, threads: int, room: int)"
                  " -> tuple[list[Any], list[PieceFacts], DecodeRefusal | None]"),
          R"(Decode columns, each of pieces of one leaf (see pyparq/read/decode/decoder.py), in at most `room` bytes.

(results, facts about all pieces, None), or (None, None, what is refused).)");
}

// A number of a v2 data page.
nb::object of_v2(const StoredPage& page, int64_t number) { return page.head.is_v2() ? nb::object(nb::int_(number)) : nb::none(); }

void bind_pages(nb::module_& m) {
    nb::class_<StoredPage>(m, "StoredPage", R"(The header of a page, and where the page lies in the file. Sizes are in bytes.)")
        .def_ro("offset", &StoredPage::offset, "Of its header, in the file.")
        .def_ro("size", &StoredPage::size, "As it is stored, with the header.")
        .def_prop_ro("stored", [](const StoredPage& self) { return self.head.stored; }, "As it is stored, without the header.")
        .def_prop_ro("uncompressed", [](const StoredPage& self) { return self.head.size; })
        .def_prop_ro("type", [](const StoredPage& self) { return self.head.type; }, "Number of PageType in parquet.thrift.")
        .def_prop_ro("version", [](const StoredPage& self) { return self.head.is_v2() ? 2 : 1; })
        .def_prop_ro("num_values", [](const StoredPage& self) { return self.head.count; }, "Nulls included; of a dictionary page, its entries.")
        .def_prop_ro("encoding", [](const StoredPage& self) { return self.head.encoding; })
        .def_prop_ro("num_nulls", [](const StoredPage& self) { return of_v2(self, self.head.nulls); },
                     nb::sig("def num_nulls(self) -> int | None"), "Of a data page of version 2.")
        .def_prop_ro("num_rows", [](const StoredPage& self) { return of_v2(self, self.head.rows); },
                     nb::sig("def num_rows(self) -> int | None"), "Of a data page of version 2.")
        .def_prop_ro("is_sorted", [](const StoredPage& self) { return self.head.is_sorted; }, "Of a dictionary page.")
        .def_prop_ro("has_crc", [](const StoredPage& self) { return self.head.has_crc; })
        .def_prop_ro("has_statistics", [](const StoredPage& self) { return self.head.has_statistics; });
    nb::class_<DecodedPages>(m, "DecodedPages", R"(What some data pages hold, one after another.)")
        .def_ro("count", &DecodedPages::count, "Pages.")
        .def_prop_ro("numbers", [](const DecodedPages& self) { return self.numbers; }, nb::sig("def numbers(self) -> NDArray[np.int64]"),
                     R"(Five of each page: values, those that are present, rows, where its repetition and its definition levels
begin (-1: all are the maximum, -2: all are 0).)")
        .def_prop_ro("repetition_levels", [](const DecodedPages& self) { return self.rep; },
                     nb::sig("def repetition_levels(self) -> NDArray[np.uint8]"))
        .def_prop_ro("definition_levels", [](const DecodedPages& self) { return self.def; },
                     nb::sig("def definition_levels(self) -> NDArray[np.uint8]"))
        .def_prop_ro("codes", [](const DecodedPages& self) { return self.codes; }, nb::sig("def codes(self) -> NDArray[np.int32]"),
                     "Of the pages that have codes.")
        .def_prop_ro("values", [](const DecodedPages& self) { return self.values; }, nb::sig("def values(self) -> Any"),
                     "The present values of the other pages: bytes, (int64 offsets, bytes), or None without such a page.");
}

void bind_page_reader(nb::module_& m) {
    nb::class_<PageReader>(m, "PageReader", R"(The pages of one column chunk (used by pyparq.read.decode.chunk_pages alone).

The piece is a whole column chunk, at `offset` in the file. Its data stay referenced. `beyond`: bytes that
`more` could give. For one thread at a time.)")
        .def(nb::init<const LeafSpec&, nb::object, const PageLimits&, int64_t>(), "leaf"_a, "piece"_a, "limits"_a, "offset"_a,
             nb::sig("def __init__(self, leaf: LeafSpec, piece: PieceSpec, limits: PageLimits, offset: int) -> None"))
        .def("list_pages", &PageReader::list, "to_the_end"_a, "more"_a, "beyond"_a,
             nb::sig("def list_pages(self, to_the_end: bool, more: _More, beyond: int) -> DecodeRefusal | None"),
             R"(Read headers until the pages hold the values of the piece, or to the end of its data. Returns a refusal. The
pages before the one that is refused are listed.)")
        .def("pages", &PageReader::pages,
             nb::sig("def pages(self) -> list[StoredPage]"),
             "The data pages.")
        .def("dictionary", &PageReader::dictionary,
             nb::sig("def dictionary(self) -> StoredPage | None"),
             "The dictionary page.")
        .def("entries", &PageReader::entries, "more"_a, "beyond"_a,
             nb::sig("def entries(self, more: _More, beyond: int) -> tuple[Any, DecodeRefusal | None]"),
             R"(((entries, int64 offsets or None, their bytes) or None, refusal) of the dictionary page, which is listed.
Booleans take a byte each.)")
        .def("decode", &PageReader::decode, "first"_a, "last"_a, "window"_a, "entries"_a, "with_values"_a,
             "more"_a, "beyond"_a,
             nb::sig("def decode(self, first: int, last: int, window: int, entries: int, with_values: bool, more: _More, "
                     "beyond: int) -> tuple[DecodedPages | None, DecodeRefusal | None]"),
             R"(Decode data pages from number `first` on, none behind number `last`, until they take `window` bytes; one at
least. `entries`: how many the dictionary has, below 0 without one. Levels alone unless `with_values`.

Returns (what they hold or None, refusal).)")
        .def_prop_ro("num_values", &PageReader::num_values,
                     "Of all pages that are listed, nulls included.")
        .def_prop_ro("end", &PageReader::end,
                     "Where the last of them ends in the data.")
        .def_prop_ro("uncompressed", &PageReader::uncompressed,
                     "Bytes of all of them before compression, headers as they are stored.");
}

void bind_engine_chunks(nb::module_& m) {
    m.def("decode_chunks", &decode_chunks, "leaves"_a, "runs"_a, "num_rows"_a, "codec"_a, "num_values"_a,
          "has_dictionary"_a, "start"_a, "size"_a, "read"_a, "limits"_a, "threads"_a, "room"_a,
          "wanted"_a = nb::list(),
          nb::sig("def decode_chunks(leaves: list[LeafSpec], runs: Buffer, num_rows: Buffer, codec: Buffer, "
                  "num_values: Buffer, has_dictionary: Buffer, start: Buffer, size: Buffer, read: list[tuple[int, Any]], "
                  "limits: PageLimits, threads: int, room: int, wanted: list[Buffer | None] = []) -> "
                  "tuple[list[Any], ChunkTotals, "
                  "DecodeRefusal | None]"),
          R"(Decode whole chunks. A number per chunk, row group by row group; `num_rows` per row group. `runs`: how many row
groups are joined, one run after another. `read`: (offset in the file, bytes) each. `wanted`: nothing where all
rows are; otherwise for each run None, or a bit for each of its rows in uint64 words. A row group without a wanted
row need not be in `read`.

(columns of one run after another, totals, None), or (None, None, what is refused). A leaf of codes is (column,
dictionaries of its row groups), and codes count through all of them; or None where a page has none.)");
}

}  // namespace

void bind_decode(nb::module_& m) {
    bind_decoded_column(m);
    bind_arguments(m);
    bind_results(m);
    bind_engine(m);
    bind_pages(m);
    bind_page_reader(m);
    bind_engine_chunks(m);
}

}  // namespace pyparq
