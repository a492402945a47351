// Where Python meets `select/`: names, types and docstrings.
#include "select/calls.hpp"
#include "select/number_set.hpp"
#include "select/text_test.hpp"

#include <nanobind/stl/string.h>

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_codes(nb::module_& m) {
    m.def("tally_codes", &tally_codes, "codes"_a, "edges"_a, "num_entries"_a, "weights"_a.none(),
          nb::sig("def tally_codes(codes: Buffer, edges: Buffer, num_entries: int, weights: Buffer | None)"
                  " -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]"),
          R"(Of dictionary codes (int32) page by page, page k from `edges[k]` to `edges[k + 1]` (int64): the codes that each
page uses, each once, one page after another; where each page's begin, and the end; the sum of the `weights` (int32,
one for each of the entries; None: all 0) of its codes.)");
}

void bind_mask_bits(nb::module_& m) {
    m.def("mask_count", &mask_count, "words"_a,
          "How many bits are set.");
    m.def("mask_ranks", &mask_ranks, "words"_a, "places"_a,
          nb::sig("def mask_ranks(words: Buffer, places: Buffer) -> NDArray[np.int64]"),
          "How many bits are set before each of `places` (int64, ascending).");
    m.def("mask_runs", &mask_runs, "words"_a,
          "How many runs of set bits there are.");
    m.def("mask_to_ranges", &mask_to_ranges, "words"_a, "num_rows"_a, "join"_a = 0,
          nb::sig("def mask_to_ranges(words: Buffer, num_rows: int, join: int = 0) -> tuple[NDArray[np.int64], "
                  "NDArray[np.int64]]"),
          "Where the runs of set bits start and end; runs at most `join` rows apart are one.");
    m.def("mask_from_ranges", &mask_from_ranges, "starts"_a, "ends"_a, "num_rows"_a,
          nb::sig("def mask_from_ranges(starts: Buffer, ends: Buffer, num_rows: int) -> NDArray[np.uint64]"),
          "The reverse, of int64 ranges that ascend and are disjoint.");
    m.def("mask_rows", &mask_rows, "words"_a,
          nb::sig("def mask_rows(words: Buffer) -> NDArray[np.int64]"),
          "The numbers of the bits that are set.");
    m.def("mask_head", &mask_head, "words"_a, "count"_a,
          nb::sig("def mask_head(words: Buffer, count: int) -> NDArray[np.uint64]"),
          "The first `count` of the set bits.");
    m.def("mask_within", &mask_within, "words"_a, "num_rows"_a, "starts"_a, "ends"_a,
          nb::sig("def mask_within(words: Buffer, num_rows: int, starts: Buffer, ends: Buffer) -> NDArray[np.uint64]"),
          "The bits that lie in some ranges (int64, ascending and disjoint), side by side.");
    m.def("mask_spread", &mask_spread, "words"_a, "starts"_a, "ends"_a, "num_rows"_a,
          nb::sig("def mask_spread(words: Buffer, starts: Buffer, ends: Buffer, num_rows: int) -> NDArray[np.uint64]"),
          "Each bit at the next row of the ranges; the other rows of `num_rows` are not set.");
    m.def("mask_of_bits", &mask_of_bits, "bitmap"_a, "offset"_a, "length"_a,
          nb::sig("def mask_of_bits(bitmap: Buffer, offset: int, length: int) -> NDArray[np.uint64]"),
          "`length` bits of any bitmap from bit `offset` on.");
}

void bind_mask_keep(nb::module_& m) {
    m.def("keep_fixed", &keep_fixed, "words"_a, "values"_a, "width"_a, "out"_a,
          "The values of `width` bytes whose bits are set, into the bytes `out`, which they fill.");
    m.def("keep_bits", &keep_bits, "words"_a, "bitmap"_a, "offset"_a, "length"_a,
          nb::sig("def keep_bits(words: Buffer, bitmap: Buffer, offset: int, length: int) -> NDArray[np.uint64]"),
          R"(Of the `length` bits of a bitmap from bit `offset` on those whose bits in `words` are set, side by side.)");
    m.def("kept_bytes", &kept_bytes, "words"_a, "offsets"_a,
          "Bytes of the strings whose bits are set.");
    m.def("keep_binary", &keep_binary, "words"_a, "offsets"_a, "data"_a, "out_offsets"_a, "out_data"_a,
          "The strings whose bits are set: offsets of the same width from 0 on, and their `kept_bytes`.");
    m.def("mask_entries", &mask_entries, "words"_a, "num_rows"_a, "rep_levels"_a,
          nb::sig("def mask_entries(words: Buffer, num_rows: int, rep_levels: Buffer) -> NDArray[np.uint64]"),
          "For each of the uint8 repetition levels, whether the row that it belongs to is set.");
    m.def("mask_slots", &mask_slots, "words"_a, "def_levels"_a, "level"_a,
          nb::sig("def mask_slots(words: Buffer, def_levels: Buffer, level: int) -> NDArray[np.uint64]"),
          "The bits of those entries whose uint8 definition level comes to `level`, side by side.");
}

void bind_match(nb::module_& m) {
    m.def("match_numbers", &match_numbers, "values"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none(),
          nb::sig("def match_numbers(values: Buffer, op: str, literal: Buffer, within: Buffer | None = None)"
                  " -> NDArray[np.uint64]"),
          R"(Numbers (float16 too) against a literal of their type: == != < <= > >=, is_nan, is_not_nan. NaN is above every
number, and no literal; the zeros are equal.)");
    m.def("match_limbs", &match_limbs, "data"_a, "width"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none(),
          nb::sig("def match_limbs(data: Buffer, width: int, op: str, literal: Buffer, within: Buffer | None = None)"
                  " -> NDArray[np.uint64]"),
          "Little-endian two's complement of `width` bytes, a multiple of 8.");
    m.def("match_binary", &match_binary, "offsets"_a, "data"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none(),
          nb::sig("def match_binary(offsets: Buffer, data: Buffer, op: str, literal: Buffer, within: Buffer | None = None)"
                  " -> NDArray[np.uint64]"),
          "Byte strings in unsigned lexicographic order: == != < <= > >=, starts_with, not starts_with.");
    m.def("match_boxes", &match_boxes, "offsets"_a, "data"_a, "box"_a, "round"_a, "wanted"_a, "within"_a.none() = nb::none(),
          nb::sig("def match_boxes(offsets: Buffer, data: Buffer, box: Buffer, round: bool, wanted: bool, within: Buffer | None = None)"
                  " -> NDArray[np.uint64]"),
          R"(Whether the box around each WKB value intersects a box: xmin, ymin, xmax, ymax.

Where xmin is above xmax, that crosses the antimeridian; of `round` values the box around them may as well.)");
    m.def("match_fixed", &match_fixed, "data"_a, "width"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none(),
          nb::sig("def match_fixed(data: Buffer, width: int, op: str, literal: Buffer, within: Buffer | None = None)"
                  " -> NDArray[np.uint64]"),
          "The same for byte strings of one length.");
    m.def("match_codes", &match_codes, "codes"_a, "table"_a, "entries"_a, "within"_a.none() = nb::none(),
          nb::sig("def match_codes(codes: Buffer, table: Buffer, entries: int, within: Buffer | None = None)"
                  " -> NDArray[np.uint64]"),
          R"(For each index the bit of `table`, which has so many `entries`; none for an index that is not below that.)");
    nb::class_<NumberSet>(m, "NumberSet", R"(Numbers (float16 too) to look others of their type up in. NaN is never found; the zeros are equal.)")
        .def(nb::init<const AnyArray<false>&>(), "values"_a)
        .def("test", &NumberSet::test, "values"_a, "within"_a.none() = nb::none(),
             nb::sig("def test(self, values: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]"));
}

void bind_computed(nb::module_& m) {
    nb::class_<TextTest>(m, "TextTest", R"(A test of texts: starts_with, ends_with, contains, like, ilike or matches.

`pattern`: bytes for the first three. For like and ilike a list of texts, in which None stands for any characters
and an empty one for a single one. For matches a text in the dialect of `re`, or bytes if `is_text` is false. `ask`
gets a value, as str or bytes, and returns None if it does not pass. It decides where rules of Unicode do, and for
what is no regular language.)")
        .def(nb::init<const std::string&, const nb::object&, bool, nb::object>(), "kind"_a, "pattern"_a, "is_text"_a, "ask"_a.none(),
             nb::sig("def __init__(self, kind: str, pattern: Any, is_text: bool, ask: Callable[[Any], object] | None) -> None"))
        .def("test", &TextTest::test, "offsets"_a, "data"_a, "within"_a.none() = nb::none(),
             nb::sig("def test(self, offsets: Buffer, data: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]"));
    m.def("compare_texts", &compare_texts, "offsets"_a, "data"_a, "codes"_a.none(), "other_offsets"_a, "other_data"_a,
          "other_codes"_a.none(),
          nb::sig("def compare_texts(offsets: Buffer, data: Buffer, codes: Buffer | None, other_offsets: Buffer, other_data: Buffer,"
                  " other_codes: Buffer | None) -> NDArray[np.int8]"),
          R"(-1, 0 or 1 for each row: which byte string comes first. Codes (int64) choose among them. A single one without codes
stands beside all rows of the other side.)");
    m.def("count_characters", &count_characters, "offsets"_a, "data"_a,
          nb::sig("def count_characters(offsets: Buffer, data: Buffer) -> NDArray[np.int64]"),
          "Characters of each text. A byte that is no UTF-8 counts as one.");
    m.def("change_case", &change_case, "offsets"_a, "data"_a, "upper"_a,
          nb::sig("def change_case(offsets: Buffer, data: Buffer, upper: bool) -> tuple[NDArray[np.int64], NDArray[np.uint8]]"),
          "The texts in lower or upper case, as Python's str has it: offsets and bytes.");
    m.def("compare_computed", &compare_computed, "steps"_a, "op"_a, "count"_a, "within"_a.none() = nb::none(),
          nb::sig("def compare_computed(steps: list[tuple[Any, ...]], op: str, count: int, within: Buffer | None = None)"
                  " -> NDArray[np.uint64] | None"),
          R"(Two computed numbers of each row against each other: == != < <= > >=. NaN equals itself and is above every
number, and no null passes. None where numbers need more than 128 bits, and for a few that would have to be rounded.

The steps make the first number and then the second, operands before what is made of them. Each is one of

- `("column", den, floats, numbers, codes)`: doubles, or whole numbers of 1 / den. Numbers and codes are
  `(values, length, validity, offset)`, with the bit of the first value in the validity (None: there are no nulls).
  Codes (None: there are none) choose among the numbers;
- `("literal", number, den)`: a float, or a whole number of 1 / den;
- `("part", name)`: of points in time, as part_of_dates has it;
- `(op, floats)`: + - * / %, and rem, whose result has the sign of the dividend. Where floats is true, in doubles. A
  division by zero is null.)");
    m.def("part_of_dates", &part_of_dates, "ticks"_a, "per_day"_a, "name"_a,
          nb::sig("def part_of_dates(ticks: Buffer, per_day: int, name: str) -> NDArray[np.int64]"),
          R"(The year, quarter, month, day, hour, minute or second of points in time: ticks (int64) since 1970, of which a day
has `per_day`.)");
}

}  // namespace

void bind_select(nb::module_& m) {
    bind_codes(m);
    bind_mask_bits(m);
    bind_mask_keep(m);
    bind_match(m);
    bind_computed(m);
}

}  // namespace pyparq
