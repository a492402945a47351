// Where Python meets `values/`: names, types and docstrings.
#include "values/bytes_set.hpp"
#include "values/calls.hpp"

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_binary(nb::module_& m) {
    nb::module_ probes = nb::borrow<nb::module_>(m.attr("probes"));
    probes.def("plain_binary_decode", &plain_binary_decode, "data"_a, "count"_a, "out_offsets"_a, "out_data"_a,
               "base"_a = 0,
               R"(Decode `count` length-prefixed values; returns the bytes of `data` used.

Writes count + 1 offsets from `base` up (int32 or int64), and the bytes, used - 4 * count of them, to the
start of `out_data` (len(data) - 4 * count always suffices). What lies behind them in `out_data` may be
overwritten too.)");
    m.def("plain_binary_encode", &plain_binary_encode, "offsets"_a, "data"_a,
          nb::sig("def plain_binary_encode(offsets: Buffer, data: Buffer) -> NDArray[np.uint8]"),
          "The PLAIN bytes of every value: 4-byte length, then the value.");
    m.def("narrow_offsets", &narrow_offsets, "offsets"_a,
          nb::sig("def narrow_offsets(offsets: Buffer) -> NDArray[np.int32]"),
          "int64 offsets as int32, checked.");
    m.def("gather_binary_offsets", &gather_binary_offsets, "dict_offsets"_a, "indices"_a, "out_offsets"_a,
          "base"_a = 0,
          "Offsets of the values an int32 index array picks, from `base` up; returns the bytes they take.");
    m.def("gather_binary_bytes", &gather_binary_bytes, "dict_offsets"_a, "dict_data"_a, "indices"_a, "out_data"_a,
          "The picked values' bytes, one after the other; returns how many. May scribble behind them.");
    m.def("take_binary", &take_binary, "offsets"_a, "data"_a, "rows"_a,
          nb::sig("def take_binary(offsets: Buffer, data: Buffer, rows: Buffer) -> tuple[NDArray[np.int64], NDArray[np.uint8]]"),
          "The values at int64 `rows` (0 <= row < n, any order) as fresh offsets and data.");
    m.def("distinct_binary", &distinct_binary, "offsets"_a, "data"_a,
          nb::sig("def distinct_binary(offsets: Buffer, data: Buffer) -> tuple[NDArray[np.int64], NDArray[np.uint8]]"),
          "The values in unsigned lexicographic order, each once, as fresh offsets and data.");
    m.def("distinct_numbers", &distinct_numbers, "values"_a, nb::sig("def distinct_numbers(values: Buffer) -> NDArray[np.uint64]"),
          "The bits of int64, uint64 or float64 numbers, ascending, each once. -0.0 and 0.0 are two.");
    m.def("divide_fixed", &divide_fixed, "values"_a, "width"_a, "groups"_a, "counts"_a,
          nb::sig("def divide_fixed(values: Buffer, width: int, groups: Buffer, counts: Buffer) -> list[NDArray[np.uint8]]"),
          R"(The values of `width` bytes of each group, in their order. `groups`: int32, that of each row; `counts`: int64, the
rows of each.)");
    m.def("divide_binary", &divide_binary, "offsets"_a, "data"_a, "groups"_a, "counts"_a,
          nb::sig("def divide_binary(offsets: Buffer, data: Buffer, groups: Buffer, counts: Buffer) -> "
                  "list[tuple[NDArray[Any], NDArray[np.uint8]]]"),
          "As `divide_fixed` for byte arrays: offsets, which have the width of those given, and data of each group.");
    m.def("compact_binary", &compact_binary, "offsets"_a, "data"_a, "valid"_a.none(),
          nb::sig("def compact_binary(offsets: Buffer, data: Buffer, valid: Buffer | None) -> tuple[NDArray[np.int64], "
                  "NDArray[np.uint8]]"),
          "The values of the slots that are present; bytes under absent slots are dropped.");
    m.def("utf8_validate", &utf8_validate, "offsets"_a, "data"_a,
          "Index of the first value that is not UTF-8 on its own, or -1.");
}

void bind_alp(nb::module_& m) {
    nb::module_ probes = nb::borrow<nb::module_>(m.attr("probes"));
    probes.def("alp_decode", &alp_decode_page, "data"_a, "width"_a, "count"_a, "out"_a,
               "Decode the `count` floats (`width` 4) or doubles (8) of an ALP page into `out`.");
    probes.def("alp_encode", &alp_encode_page, "values"_a, "width"_a,
               nb::sig("def alp_encode(values: Buffer, width: int) -> bytes"), "An ALP page of floats or doubles.");
}

void bind_split(nb::module_& m) {
    nb::module_ probes = nb::borrow<nb::module_>(m.attr("probes"));
    probes.def("byte_stream_split_decode", &byte_stream_split_decode, "data"_a, "width"_a, "out"_a,
               "Join the streams of all of `data` to values of `width` bytes; `out` is as long as `data`.");
    probes.def("byte_stream_split_encode", &byte_stream_split_encode, "values"_a, "width"_a,
               nb::sig("def byte_stream_split_encode(values: Buffer, width: int) -> NDArray[np.uint8]"),
               "Split values of `width` bytes into streams.");
}

void bind_delta(nb::module_& m) {
    nb::module_ probes = nb::borrow<nb::module_>(m.attr("probes"));
    probes.def("delta_decode_i32", &delta_decode_i32, "data"_a, "out"_a, "count"_a,
               R"(Decode exactly `count` values into int32 `out[:count]`; returns the bytes used.

The data must claim that many; no bytes at all do for none. Arithmetic wraps.)");
    probes.def("delta_decode_i64", &delta_decode_i64, "data"_a, "out"_a, "count"_a,
               "As `delta_decode_i32`, for int64.");
    probes.def("delta_encode_i32", &delta_encode_i32, "values"_a,
               nb::sig("def delta_encode_i32(values: Buffer) -> bytes"),
               "Encode int32 values, blocks of 128 in 4 miniblocks.");
    probes.def("delta_encode_i64", &delta_encode_i64, "values"_a,
               nb::sig("def delta_encode_i64(values: Buffer) -> bytes"),
               "Encode int64 values, blocks of 128 in 4 miniblocks.");
    probes.def("delta_length_decode", &delta_length_decode, "data"_a, "count"_a, "out_offsets"_a, "out_data"_a,
               "base"_a = 0,
               R"(Decode DELTA_LENGTH_BYTE_ARRAY as `plain_binary_decode` does PLAIN; returns the bytes used.

`out_data` gets out_offsets[-1] - base bytes; len(data) always suffices.)");
    probes.def("delta_length_encode", &delta_length_encode, "offsets"_a, "data"_a,
               nb::sig("def delta_length_encode(offsets: Buffer, data: Buffer) -> bytes"),
               "Encode byte arrays as DELTA_LENGTH_BYTE_ARRAY.");
    probes.def("delta_byte_array_decode", &delta_byte_array_decode, "data"_a, "count"_a, "max_bytes"_a,
               nb::sig("def delta_byte_array_decode(data: Buffer, count: int, max_bytes: int) -> tuple[NDArray[np.int64], "
                       "NDArray[np.uint8], int]"),
               R"(Decode DELTA_BYTE_ARRAY: offsets from 0, bytes, and the bytes of `data` used.

Shared prefixes let few bytes grow into many: beyond `max_bytes` of output it is an error.)");
    probes.def("delta_byte_array_encode", &delta_byte_array_encode, "offsets"_a, "data"_a,
               nb::sig("def delta_byte_array_encode(offsets: Buffer, data: Buffer) -> bytes"),
               "Encode byte arrays as DELTA_BYTE_ARRAY.");
}

void bind_dictionary(nb::module_& m) {
    draw_seed();  // now: a process that is forked while a thread is about to draw it would wait for that thread for ever
    m.def("dict_encode_fixed", &dict_encode_fixed, "values"_a, "width"_a, "max_entries"_a,
          nb::sig("def dict_encode_fixed(values: Buffer, width: int, max_entries: int) -> tuple[NDArray[np.int32], "
                  "NDArray[np.int64]]"),
          R"(Number the distinct values (by bits) in order of appearance.

Returns the indices of the first m values and the position of each entry's first appearance. m == n if
everything fits; otherwise value m would be entry `max_entries` + 1.)");
    m.def("dict_encode_binary", &dict_encode_binary, "offsets"_a, "data"_a, "max_bytes"_a,
          nb::sig("def dict_encode_binary(offsets: Buffer, data: Buffer, max_bytes: int) -> tuple[NDArray[np.int32], "
                  "NDArray[np.int64]]"),
          "The same for byte arrays; stops where the dictionary's PLAIN size would pass `max_bytes`.");
    nb::class_<BytesSet>(m, "BytesSet", "Byte strings to look others up in, hashed once.")
        .def(nb::init<const Offsets&, const RawIn&>(), "offsets"_a, "data"_a,
             nb::sig("def __init__(self, offsets: Buffer, data: Buffer) -> None"))
        .def("test", &BytesSet::test, "offsets"_a, "data"_a, "within"_a.none() = nb::none(),
             nb::sig("def test(self, offsets: Buffer, data: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]"));
    m.def("count_distinct_u64", &count_distinct_u64, "hashes"_a,
          "How many different uint64 there are, exactly.");
    m.def("estimate_distinct_u64", &estimate_distinct_u64, "hashes"_a,
          R"(How many different uint64 there are, about: of a million, within 0.1 % nearly always. A tenth of the time.)");
}

void bind_fixed(nb::module_& m) {
    m.def("gather_fixed", &gather_fixed, "dictionary"_a, "width"_a, "indices"_a, "out"_a,
          R"(`out[i] = dictionary[indices[i]]` for checked int32 indices; `out` has len(indices) * width bytes.)");
    m.def("compact_fixed", &compact_fixed, "values"_a, "width"_a, "valid"_a.none(),
          nb::sig("def compact_fixed(values: Buffer, width: int, valid: Buffer | None) -> NDArray[np.uint8]"),
          "The reverse: the bytes of the slots that are present (also a row filter).");
}

void bind_levels(nb::module_& m) {
    m.def("list_slots", &list_slots, "def_levels"_a.none(), "rep_levels"_a.none(), "entries"_a, "slots"_a, "rep"_a,
          "item"_a, "item_rep"_a, "item_def"_a, "def_level"_a,
          nb::sig("def list_slots(def_levels: Buffer | None, rep_levels: Buffer | None, entries: int, slots: int, rep: int, "
                  "item: int, item_rep: int, item_def: int, def_level: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]"),
          R"(Offsets (slots + 1) and presence of the lists in a position.

`item_rep` and `item_def` are the levels of the list's items; the list is there from `def_level` on. The
levels must start exactly `slots` slots.)");
    m.def("slot_validity", &slot_validity, "def_levels"_a.none(), "rep_levels"_a.none(), "entries"_a, "slots"_a,
          "rep"_a, "item"_a, "def_level"_a,
          nb::sig("def slot_validity(def_levels: Buffer | None, rep_levels: Buffer | None, entries: int, slots: int, rep: int, "
                  "item: int, def_level: int) -> NDArray[np.bool_]"),
          "Whether each slot of a position is present: its definition level is at least `def_level`.");
    m.def("levels_agree", &levels_agree, "def_a"_a.none(), "rep_a"_a.none(), "entries_a"_a, "def_b"_a.none(),
          "rep_b"_a.none(), "entries_b"_a, "rep"_a, "def_level"_a,
          R"(Whether two leaves below a position have the same levels for it and for what encloses it.

Of the entries that do not go on with a list below the position (repetition at most `rep`), the repetition levels
must be equal, and the definition levels as far as `def_level`.)");
    m.def("expand_lists", &expand_lists, "slots"_a, "reps"_a.none(), "defs"_a.none(), "starts"_a, "lengths"_a,
          "num_items"_a, "item_rep"_a, "empty_def"_a,
          nb::sig("def expand_lists(slots: int, reps: Buffer | None, defs: Buffer | None, starts: Buffer, lengths: Buffer, "
                  "num_items: int, item_rep: int, empty_def: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None, int, "
                  "NDArray[np.int64] | None, int]"),
          R"(One level of nesting for writing: slots of lists become slots of their items.

The slots that are LIVE_SLOT in `defs` (None = all) hold a list, the k-th the items from starts[k] on, lengths[k]
of them (int64); the other slots have ended. An empty list ends with `empty_def`. Gives the new slots' repetition
levels, their definition levels (None if all are live), how many are live, and the item that each of these stands
for, or None and the first one where they follow each other.)");
    m.def("settle_slots", &settle_slots, "slots"_a, "defs"_a.none(), "present"_a.none(), "absent"_a, "there"_a,
          nb::sig("def settle_slots(slots: int, defs: Buffer | None, present: Buffer | None, absent: int, there: int)"
                  " -> NDArray[np.uint8]"),
          R"(`defs` with the k-th live slot (None = all are) at level `there` if present[k] (None = all), else `absent`.)");
    m.attr("LIVE_SLOT") = static_cast<int>(kLiveSlot);
}

void bind_number_text(nb::module_& m) {
    m.def("number_texts", &number_texts, nb::arg("values"),
          nb::sig("def number_texts(values: Buffer) -> tuple[NDArray[np.int64], NDArray[np.uint8]]"),
          R"(Decimal texts of integers or floats, as offsets and data: what ``str`` writes.

Empty for floats that Python may write with an exponent, that are not finite, or of two bytes; and for all floats
where the C++ library has no shortest texts.)");
}

void bind_rle(nb::module_& m) {
    nb::module_ probes = nb::borrow<nb::module_>(m.attr("probes"));
    probes.def("rle_decode_u8", &rle_decode_u8, "data"_a, "bit_width"_a, "count"_a, "out"_a, "max_value"_a = -1,
               R"(Decode exactly `count` values of 0..8 bits into uint8 `out[:count]`; returns the bytes used.

A value above `max_value` (if not negative) or wider than `bit_width` is an error. With bit width 0 every
value is 0 and no byte is read. A final bit-packed run may lack its padding but no wanted value.)");
    probes.def("rle_decode_i32", &rle_decode_i32, "data"_a, "bit_width"_a, "count"_a, "out"_a, "limit"_a,
               R"(As `rle_decode_u8`, 0..32 bits into int32 `out`; every value must be below `limit` (at most 2^31).)");
    probes.def("bit_packed_decode_u8", &bit_packed_decode_u8, "data"_a, "bit_width"_a, "count"_a, "out"_a,
               "Decode the deprecated BIT_PACKED levels (most significant bit first); returns bytes consumed.");
    probes.def("rle_encode_u8", &rle_encode_u8, "values"_a, "bit_width"_a,
               nb::sig("def rle_encode_u8(values: Buffer, bit_width: int) -> bytes"),
               "Encode uint8 values of 0..8 bits. A value that does not fit is an error.");
    probes.def("rle_encode_i32", &rle_encode_i32, "values"_a, "bit_width"_a,
               nb::sig("def rle_encode_i32(values: Buffer, bit_width: int) -> bytes"),
               "Encode int32 values, seen as unsigned, of 0..32 bits. A value that does not fit is an error.");
}

}  // namespace

void bind_values(nb::module_& m) {
    bind_binary(m);
    bind_alp(m);
    bind_split(m);
    bind_delta(m);
    bind_dictionary(m);
    bind_fixed(m);
    bind_levels(m);
    bind_number_text(m);
    bind_rle(m);
}

}  // namespace pyparq
