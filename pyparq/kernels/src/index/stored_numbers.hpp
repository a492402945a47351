// Numbers as bounds store them, made 64-bit numbers that compare alike.
#pragma once

#include "base/common.hpp"

#include <bit>
#include <cmath>

namespace pyparq {

enum NumberKind : int { kSigned = 0,
                        kUnsigned = 1,
                        kFloating = 2,
                        kBoolean = 3 };

// A stored number as 64 bits that compare like it; false for NaN, and for a boolean that is none.
inline bool widen(const uint8_t* p, size_t width, int kind, int64_t& out) {
    if (kind == kFloating) {
        const double value = width == 4 ? static_cast<double>(load<float>(p)) : load<double>(p);
        out = std::bit_cast<int64_t>(value);
        return !std::isnan(value);
    }
    switch (width) {
        case 1: out = p[0]; return p[0] <= 1;
        case 4: out = kind == kSigned ? int64_t{load<int32_t>(p)} : int64_t{load<uint32_t>(p)}; return true;
        default: out = load<int64_t>(p); return true;
    }
}

inline void check_stored_numbers(size_t width, int kind) {
    if (kind < kSigned || kind > kBoolean || (kind == kBoolean ? width != 1 : width != 4 && width != 8))
        fail("numbers of another width");
}

}  // namespace pyparq
