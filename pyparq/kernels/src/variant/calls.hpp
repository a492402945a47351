// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "base/common.hpp"

namespace pyparq::variant {

nb::tuple variant_unshred(const nb::tuple& metadata_parts, const nb::tuple& tree, const Valid& rows, size_t slots);
nb::tuple variant_shred(const Offsets& metadata_offsets, const RawIn& metadata, const Offsets& value_offsets,
                        const RawIn& value, const Valid& rows, size_t slots, const nb::object& schema);

}  // namespace pyparq::variant
