// Where Python meets `objects/`: names, types and docstrings.
#include "objects/calls.hpp"

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_in(nb::module_& m) {
    m.def("column_of_objects", &column_of_objects, "values"_a, "precision"_a = 0, "scale"_a = 0,
          nb::sig("def column_of_objects(values: list[Any], precision: int = 0, scale: int = 0) -> tuple[str, int, NDArray[np.uint8] | None, int, "
                  "tuple[NDArray[Any], ...]] | None"),
          R"(A list of values of one type, and None, as a column: bools, ints of 64 bits, floats, strings, bytes, datetimes,
dates, times, timedeltas, UUIDs, or decimals, which may have ints among them. `precision`, `scale`: of the decimals
that are wanted; 0: those that the values need, and ints alone stay ints.

(Arrow's format, length, validity or None, nulls, buffers). None for values of several types, of subclasses or of
others, for strings with lone surrogates, for 2 GiB of bytes or more, for decimals of more than 38 digits or that do
not fit what is wanted, for datetimes of which some have a zone, or that leave the years 1 to 9999 in UTC, and for
times with a zone.)");
    m.def("first_other", &first_other, "values"_a, "type"_a,
          nb::sig("def first_other(values: list[Any], type: type) -> int | None"),
          R"(The place of the first value that is not exactly of this type; None if all are.)");
    m.def("split_dicts", &split_dicts, "rows"_a,
          nb::sig("def split_dicts(rows: list[Any]) -> tuple[list[str], list[list[Any]], NDArray[np.bool_] | None] | None"),
          R"(The keys of all dicts, for each key the list of its values (None where a dict lacks it), and which rows are not
None (None: no row is). None unless each row is a dict, and no subclass, with strings as keys, or None.)");
    m.def("gather_rows", &gather_rows, "source"_a, "rows"_a, "size"_a, "most_rows"_a, "most_bytes"_a, "plain"_a,
          nb::sig("def gather_rows(source: Any, rows: list[Any], size: int, most_rows: int, most_bytes: int, "
                  "plain: tuple[type, ...]) -> tuple[int, list[Any], bool]"),
          R"(Append dicts of the iterator to `rows` until there are `most_rows`, or about `most_bytes` bytes of values beside
the `size` that are there. `plain`: types of small values, beside Python's own of numbers, text and bytes.

(Size, another item in a list or nothing, whether the iterator has ended). Another item: no dict, or one with values
of other types.)");
    m.def("join_lists", &join_lists, "values"_a,
          nb::sig("def join_lists(values: list[Any]) -> "
                  "tuple[list[Any], NDArray[np.int64], NDArray[np.bool_] | None] | None"),
          R"(The items of all lists and tuples, where those of each begin, and which values are not None (None: no value is).
None for a value that is something else, or a subclass.)");
}

void bind_out(nb::module_& m) {
    m.def("objects_of_numbers", &objects_of_numbers, "values"_a, "flags"_a, "valid"_a.none(),
          nb::sig("def objects_of_numbers(values: Buffer, flags: bool, valid: Buffer | None) -> list[Any]"),
          R"(Numbers, or flags of a byte each, as Python's objects; None where `valid` is 0.)");
    m.def("objects_of_bytes", &objects_of_bytes, "offsets"_a, "data"_a, "valid"_a.none(), "text"_a,
          nb::sig("def objects_of_bytes(offsets: Buffer, data: Buffer, valid: Buffer | None, text: bool)"
                  " -> list[Any] | None"),
          R"(Byte arrays as bytes or, with `text`, strings. None where one of them is not UTF-8.)");
    m.def("objects_at", &objects_at, "entries"_a, "places"_a, "valid"_a.none(),
          nb::sig("def objects_at(entries: list[Any], places: Buffer, valid: Buffer | None) -> list[Any]"),
          R"(The entries at int64 places; None where `valid` is 0.)");
    m.def("cut_list", &cut_list, "items"_a, "offsets"_a, "valid"_a.none(),
          nb::sig("def cut_list(items: list[Any], offsets: Buffer, valid: Buffer | None) -> list[Any]"),
          R"(A list for each two neighbouring offsets; None where `valid` is 0.)");
    m.def("dicts_of_lists", &dicts_of_lists, "names"_a, "lists"_a, "count"_a, "valid"_a.none(),
          nb::sig("def dicts_of_lists(names: list[str], lists: list[list[Any]], count: int, valid: Buffer | None)"
                  " -> list[Any]"),
          R"(`count` dicts, each with one item of every list; None where `valid` is 0.)");
}

}  // namespace

void bind_objects(nb::module_& m) {
    bind_in(m);
    bind_out(m);
}

}  // namespace pyparq
