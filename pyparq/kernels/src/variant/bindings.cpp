// Where Python meets `variant/`: names, types and docstrings.
#include "variant/calls.hpp"

namespace pyparq {

void bind_variant(nb::module_& m) {
    using namespace nb::literals;
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
}

}  // namespace pyparq
