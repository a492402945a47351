// The types of `typed_value` columns (VariantShredding.md), which shredding and its way back share.
#pragma once

#include <string_view>

#include "variant/encoding.hpp"

namespace pyparq::variant {

constexpr int kObjectKind = 100, kListKind = 101;  // beside the primitive types; the face in Python knows them

inline bool is_decimal(int kind) { return kind == kDecimal4 || kind == kDecimal8 || kind == kDecimal16; }
inline bool is_integer(int kind) { return kind >= kInt8 && kind <= kInt64; }

// Bytes of a primitive value as Arrow has it: 16 of a decimal, 1 of a bool, 0 of strings and binaries. Throws
// KernelError for a type that no column has.
size_t arrow_width(int kind);

// The UTF-8 of a Python string, for as long as that lives. Throws KernelError where it has none.
std::string_view text_of(const nb::handle& text);

}  // namespace pyparq::variant
