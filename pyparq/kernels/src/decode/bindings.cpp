// Where Python meets `decode/`: names, types and docstrings.
#include "decode/calls.hpp"
#include "decode/decoded_column.hpp"
#include "decode/page_reader.hpp"

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

void bind_engine(nb::module_& m) {
    m.def("set_libraries", &set_libraries, "crc32"_a, "decode"_a,
          nb::sig("def set_libraries(crc32: Callable[..., int], decode: Callable[[int, Any, Any], int]) -> None"),
          R"(What the decoder calls where the kernels have no library: `zlib.crc32(data, before)`, and `decode(codec, stored,
out)`, which gives the bytes written.)");
    m.def("decode_columns", &decode_columns, "jobs"_a, "limits"_a, "threads"_a, "room"_a,
          nb::sig("def decode_columns(jobs: list[tuple[Any, ...]], limits: tuple[int, ...], threads: int, room: int)"
                  " -> tuple[list[Any], list[tuple[int, int, int]], tuple[Any, ...] | None]"),
          R"(Decode columns, each of pieces of one leaf (see pyparq/read/decode/decoder.py), in at most `room` bytes.

(results, what each piece has read, None), or (None, None, what is refused).)");
}

void bind_page_reader(nb::module_& m) {
    nb::class_<PageReader>(m, "PageReader", R"(The pages of one column chunk (used by pyparq.read.decode.chunk_pages alone).

`leaf`, `piece` and `limits` as for `decode_columns`; the piece is a whole column chunk. Its data stay referenced.
`beyond`: bytes that `more` could give. A refusal is what `decode_columns` gives, or None. For one thread at a time.)")
        .def(nb::init<const nb::tuple&, const nb::tuple&, const nb::tuple&>(), "leaf"_a, "piece"_a, "limits"_a,
             nb::sig("def __init__(self, leaf: tuple[int, ...], piece: tuple[Any, ...], limits: tuple[int, ...]) -> None"))
        .def("list_pages", &PageReader::list, "to_the_end"_a, "more"_a, "beyond"_a,
             nb::sig("def list_pages(self, to_the_end: bool, more: _More, beyond: int) -> tuple[Any, ...] | None"),
             R"(Read headers until the pages hold the values of the piece, or to the end of its data. Returns a refusal. The
pages before the one that is refused are listed.)")
        .def("pages", &PageReader::pages,
             nb::sig("def pages(self) -> list[tuple[int, int, int, int, int, int, int, int, int, int]]"),
             R"(Of each data page: start of its header, bytes with the header, stored bytes without it, uncompressed bytes,
PageType, values, encoding, nulls and rows (of version 2), flags: 1 for a CRC, 2 for statistics.)")
        .def("dictionary", &PageReader::dictionary,
             nb::sig("def dictionary(self) -> tuple[int, int, int, int, int, int, bool, bool] | None"),
             R"(Of the dictionary page the first four of these numbers, entries, encoding, whether it is sorted, and has a
CRC.)")
        .def("entries", &PageReader::entries, "more"_a, "beyond"_a,
             nb::sig("def entries(self, more: _More, beyond: int) -> tuple[Any, Any]"),
             R"(((entries, int64 offsets or None, their bytes) or None, refusal) of the dictionary page, which is listed.
Booleans take a byte each.)")
        .def("decode", &PageReader::decode, "first"_a, "last"_a, "window"_a, "entries"_a, "with_values"_a,
             "more"_a, "beyond"_a,
             nb::sig("def decode(self, first: int, last: int, window: int, entries: int, with_values: bool, more: _More, "
                     "beyond: int) -> tuple[Any, Any]"),
             R"(Decode data pages from number `first` on, none behind number `last`, until they take `window` bytes; one at
least. `entries`: how many the dictionary has, below 0 without one. Levels alone unless `with_values`.

Returns (found or None, refusal). What is found: how many pages; int64 numbers, five for each page: values,
those that are present, rows, where its repetition and its definition levels begin (-1: all are the maximum,
-2: all are 0); uint8 repetition levels; uint8 definition levels; int32 codes of the pages that have codes; the
present values of the others: bytes, (int64 offsets, bytes), or None without such a page.)")
        .def_prop_ro("num_values", &PageReader::num_values,
                     "Of all pages that are listed, nulls included.")
        .def_prop_ro("end", &PageReader::end,
                     "Where the last of them ends in the data.")
        .def_prop_ro("uncompressed", &PageReader::uncompressed,
                     "Bytes of all of them before compression, headers as they are stored.");
}

void bind_engine_chunks(nb::module_& m) {
    m.def("decode_chunks", &decode_chunks, "leaves"_a, "runs"_a, "num_rows"_a, "codec"_a, "num_values"_a,
          "has_dictionary"_a, "start"_a, "size"_a, "read"_a, "limits"_a, "threads"_a, "room"_a, "wanted"_a = nb::list(),
          nb::sig("def decode_chunks(leaves: list[tuple[int, ...]], runs: Buffer, num_rows: Buffer, codec: Buffer, "
                  "num_values: Buffer, has_dictionary: Buffer, start: Buffer, size: Buffer, read: list[tuple[int, Any]], "
                  "limits: tuple[int, ...], threads: int, room: int, wanted: list[Buffer | None] = []) -> "
                  "tuple[list[DecodedColumn], tuple[int, int, int, int], "
                  "tuple[Any, ...] | None]"),
          R"(Decode whole chunks. A number per chunk, row group by row group; `num_rows` per row group. `runs`: how many row
groups are joined, one run after another. `read`: (offset in the file, bytes) each. `wanted`: nothing where all
rows are; otherwise for each run None, or a bit for each of its rows in uint64 words. A row group without a wanted
row need not be in `read`.

(columns of one run after another, facts, None), or (None, None, what is refused). The facts: data pages, dictionary
pages, bytes of all columns, and chunks whose pages end before their bytes do.)");
}

}  // namespace

void bind_decode(nb::module_& m) {
    bind_decoded_column(m);
    bind_engine(m);
    bind_page_reader(m);
    bind_engine_chunks(m);
}

}  // namespace pyparq
