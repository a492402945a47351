// Where Python meets `arrow/`: names, types and docstrings.
#include "arrow/calls.hpp"

#include <nanobind/stl/string.h>

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_arrow_export(nb::module_& m) {
    begin_export();
    nb::class_<ArrowField>(m, "ArrowField", R"(A field (`pyparq.format.types.Field`) and all below it, as a schema that can be given away many times.)")
        .def(nb::init<const nb::object&>(), "field"_a,
             nb::sig("def __init__(self, field: Any) -> None"))
        .def("capsule", &ArrowField::capsule,
             nb::sig("def capsule(self) -> Any"),
             "An `arrow_schema` capsule.");
    m.def("arrow_array", &arrow_array, "array"_a,
          nb::sig("def arrow_array(array: Any) -> Any"),
          R"(An `arrow_array` capsule over the buffers of a column, or of (columns, number of rows): a record batch.)");
    m.def("arrow_arrays", &arrow_arrays, "field"_a, "arrays"_a,
          nb::sig("def arrow_arrays(field: ArrowField, arrays: Any) -> Any"),
          "An `arrow_array_stream` capsule of such arrays.");
}

void bind_arrow_import(nb::module_& m) {
    bind_imported_buffer(m);
    nb::class_<ImportedArray>(m, "ImportedArray", R"(An array of fixed width, or of byte arrays, as another library made it. Its buffers have the buffer protocol.)")
        .def_ro("length", &ImportedArray::length)
        .def_ro("offset", &ImportedArray::offset)
        .def_ro("null_count", &ImportedArray::nulls)
        .def_prop_ro("num_bytes", &ImportedArray::num_bytes,
                     "Bytes of its elements, which of byte arrays are four for each and their own.")
        .def_prop_ro("validity", &ImportedArray::python_validity,
                     nb::sig("def validity(self) -> Any | None"))
        .def_prop_ro("buffers", &ImportedArray::python_buffers,
                     nb::sig("def buffers(self) -> tuple[Any, ...]"),
                     "Values, or offsets and bytes.");
    nb::class_<ArrowImport>(m, "ArrowImport", R"(Takes over what capsules hold: `arrow_schema` and `arrow_array`, or None and `arrow_array_stream`.)")
        .def(nb::init<const nb::object&, const nb::object&>(), "schema"_a.none(), "arrays"_a,
             nb::sig("def __init__(self, schema: Any | None, arrays: Any) -> None"))
        .def("schema", &ArrowImport::schema,
             nb::sig("def schema(self) -> tuple[Any, ...] | None"),
             R"((format, name, metadata or None, flags, children, dictionary or None), these two the same again. None where
a type is not known: the capsules hold what they held.)")
        .def("next", &ArrowImport::next,
             nb::sig("def next(self) -> ImportedArray | tuple[Any, ...] | None"),
             R"(The next array; what is nested, a dictionary or views is (length, offset, null count, validity or None,
buffers, children, dictionary or None). None at the end.)");
}

void bind_arrow_schema(nb::module_& m) {
    m.def("arrow_schema_field", &arrow_schema_field, nb::arg("data"), nb::arg("offset"), nb::arg("index"),
          nb::sig("def arrow_schema_field(data: Buffer, offset: int, index: int) -> tuple[str, str] | None"),
          R"(Name and C data interface format of the field at `index` of the FlatBuffers vector of an Arrow schema's fields
that starts at `offset`. None where it has more than these (children, metadata, a dictionary), or is damaged.)");
}

void bind_arrow_stream(nb::module_& m) {
    m.def("arrow_stream", &arrow_stream, nb::arg("producer"),
          nb::sig("def arrow_stream(producer: Any) -> Any"),
          R"(An `arrow_array_stream` capsule whose callbacks ask `producer`, from whatever thread they are called.

`get_schema()` gives an `arrow_schema` capsule, `get_next()` an `arrow_array` capsule or None at the end; both are
emptied. `close()` is called when the stream is let go of, read to its end or not. An exception becomes an errno
and the text "Type: message", and the stream then fails in the same way for good; KeyboardInterrupt is raised again
where Python runs next. Once the interpreter shuts down the producer is called no more.)");
    begin_streams();
}

void bind_view_layout(nb::module_& m) {
    m.def("lay_out_views", &lay_out_views, "views"_a, "valid"_a.none(), "buffers"_a,
          nb::sig("def lay_out_views(views: Buffer, valid: NDArray[np.uint8] | None, "
                  "buffers: list[NDArray[np.uint8]] | list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]"),
          R"(Offsets and bytes of string views, which are 16 bytes each; nulls (0 in `valid`) have none. Fails for views that
point outside of the `buffers`.)");
}

void bind_views(nb::module_& m) {
    m.def("string_views", &string_views, "offsets"_a, "data"_a, "validity"_a.none(), "first_bit"_a, "most"_a,
          "out"_a,
          nb::sig("def string_views(offsets: Buffer, data: Buffer, validity: Buffer | None, first_bit: int, most: int, "
                  "out: Buffer) -> list[int]"),
          R"(Arrow's string views of byte arrays, 16 bytes each, into `out`; null ones are zero.

`validity` is a packed bitmap, value 0 at `first_bit`. Returns where in `data` the buffers start that the views
point into, each of at most `most` bytes; none where all values stand in their views.)");
}

}  // namespace

void bind_arrow(nb::module_& m) {
    bind_arrow_export(m);
    bind_arrow_import(m);
    bind_arrow_schema(m);
    bind_arrow_stream(m);
    bind_view_layout(m);
    bind_views(m);
}

}  // namespace pyparq
