// Where Python meets `variant/`: names, types and docstrings.
#include "variant/calls.hpp"

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_columns(nb::module_& m) {
    m.def("variant_unshred", &variant::variant_unshred, "metadata"_a, "tree"_a, "rows"_a.none(), "slots"_a,
          nb::sig("def variant_unshred(metadata: tuple[Any, Any], tree: tuple[Any, Any], rows: Buffer | None, slots: int)"
                  " -> tuple[NDArray[np.int64], NDArray[np.uint8]]"),
          R"(The unshredded values of ``slots`` Variants, as offsets and data (VariantShredding.md).

``metadata``: the offsets and data of the metadata. ``rows``: one byte per Variant, 0 where it is null. ``tree``:
the column ``value`` and the column ``typed_value``, each ``None`` where the schema has none. A column ``value`` is
``(offsets, data, mask)``. A column ``typed_value`` is ``(kind, scale, mask, ...)``. The kind is the number of a
primitive type in VariantEncoding.md, followed by the values, or by offsets and data; 100 for an object, followed by
the names of its fields and a tree for each; 101 for an array, followed by its offsets and the tree of its elements.

Raises :class:`KernelError`, which names the row, for what is no valid Variant.)");
    m.def("variant_shred", &variant::variant_shred, "metadata_offsets"_a, "metadata"_a, "value_offsets"_a, "value"_a,
          "rows"_a.none(), "slots"_a, "schema"_a.none(),
          nb::sig("def variant_shred(metadata_offsets: Buffer, metadata: Buffer, value_offsets: Buffer, value: Buffer, "
                  "rows: Buffer | None, slots: int, schema: Any) -> tuple[Any, Any, Any, Any]"),
          R"(The columns that ``slots`` Variants are shredded to (VariantShredding.md).

``rows``: one byte per Variant, 0 where it is null. ``schema``: ``(kind, digits, scale)`` of a primitive type, by
the kinds of ``variant_unshred``; ``(100, names, schemas)`` of an object; ``(101, schema)`` of an array; ``None``
without a column ``typed_value``. Numbers go to a column of another kind of exact number where it holds their
value.

Returns, nested as the schema, the offsets, data and mask of ``value``, and what is ``typed_value`` or ``None``:
(mask, values), (mask, offsets, data), (mask, columns), or (mask, offsets, columns). The values are as Arrow has
them, except that each bool is a byte.

Raises :class:`KernelError`, which names the row, for what is no valid Variant.)");
}

void bind_values(nb::module_& m) {
    m.def("variant_to_object", &variant::variant_to_object, "metadata"_a, "value"_a, "other"_a,
          nb::sig("def variant_to_object(metadata: Buffer, value: Buffer, other: Callable[[int, bytes], Any]) -> Any"),
          R"(A Variant as a Python object: None, a bool, int, float, string, bytes, list or dict.

``other(kind, data)`` makes the object of any other primitive type: its number in VariantEncoding.md, and the bytes
that follow its header, as many as the type has.

Raises :class:`KernelError` for what is no valid Variant, for items that overlap, and beyond 200 levels of objects
and arrays.)");
    m.def("variant_types", &variant::variant_types, "metadata"_a, "value"_a,
          nb::sig("def variant_types(metadata: Buffer, value: Buffer) -> Any"),
          R"(The types in a Variant: the number of a primitive type in VariantEncoding.md, ``(number, digits, scale)`` of a
decimal, a list for an array, a dict for an object. Raises what ``variant_to_object`` raises.)");
    m.def("variant_of_object", &variant::variant_of_object, "value"_a.none(), "other"_a,
          nb::sig("def variant_of_object(value: Any, other: Callable[[Any], Any]) -> tuple[bytes, bytes]"),
          R"(The metadata and the value of a Python object: what ``variant_to_object`` makes by itself, and tuples. Integers
take the fewest bytes.

``other(value)`` is asked about any other class, and about integers beyond 64 bits. It returns one of those objects,
or ``(kind, data)`` for a value of a primitive type.

Raises :class:`KernelError` for what a Variant cannot hold.)");
}

}  // namespace

void bind_variant(nb::module_& m) {
    bind_columns(m);
    bind_values(m);
}

}  // namespace pyparq
