// Arrays of numbers of any type, halves included.
#pragma once
#include "base/common.hpp"

namespace pyparq {

// Half-precision floats as integers that sort like them: both zeros 0, NaN above all.
inline int16_t order_of_half(uint16_t bits) {
    const int16_t magnitude = static_cast<int16_t>(bits & 0x7fff);
    if (magnitude > 0x7c00) return 0x7fff;
    return bits & 0x8000 ? static_cast<int16_t>(-magnitude) : magnitude;
}

// Calls f with a typed pointer; halves come as Half.
struct Half {
    uint16_t bits;
};

template <class F>
decltype(auto) visit_numbers(const AnyArray<false>& values, F&& f) {
    const void* const p = values.data;
    switch (values.kind) {
        case Kind::SignedInt:
            switch (values.itemsize) {
                case 1: return f(static_cast<const int8_t*>(p));
                case 2: return f(static_cast<const int16_t*>(p));
                case 4: return f(static_cast<const int32_t*>(p));
                case 8: return f(static_cast<const int64_t*>(p));
            }
            break;
        case Kind::UnsignedInt:
            switch (values.itemsize) {
                case 1: return f(static_cast<const uint8_t*>(p));
                case 2: return f(static_cast<const uint16_t*>(p));
                case 4: return f(static_cast<const uint32_t*>(p));
                case 8: return f(static_cast<const uint64_t*>(p));
            }
            break;
        case Kind::Float:
            switch (values.itemsize) {
                case 2: return f(static_cast<const Half*>(p));
                case 4: return f(static_cast<const float*>(p));
                case 8: return f(static_cast<const double*>(p));
            }
            break;
        default: break;
    }
    fail("values of " + str(values.itemsize) + " bytes are not numbers this kernel knows");
}

}  // namespace pyparq
