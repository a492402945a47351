// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "base/common.hpp"

namespace pyparq::variant {

nb::tuple variant_unshred(const nb::tuple& metadata_parts, const nb::tuple& tree, const Valid& rows, size_t slots);
nb::tuple variant_shred(const Offsets& metadata_offsets, const RawIn& metadata, const Offsets& value_offsets,
                        const RawIn& value, const Valid& rows, size_t slots, const nb::object& schema);
nb::object variant_to_object(const RawIn& metadata, const RawIn& value, const nb::object& other);
nb::object variant_types(const RawIn& metadata, const RawIn& value);
nb::tuple variant_of_object(const nb::object& value, const nb::object& other);

}  // namespace pyparq::variant
