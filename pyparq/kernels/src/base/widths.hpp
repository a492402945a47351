// Values of fixed width as types, so that a copy of one compiles to a move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pyparq {

struct Wide12 {
    uint32_t v[3];
};
struct Wide16 {
    uint64_t v[2];
};

// Calls f with a value of the type that has this width, or with nullptr for widths without one.
template <class F>
inline void by_width(size_t width, F&& f) {
    switch (width) {
        case 1: return f(uint8_t{});
        case 2: return f(uint16_t{});
        case 4: return f(uint32_t{});
        case 8: return f(uint64_t{});
        case 12: return f(Wide12{});
        case 16: return f(Wide16{});
        default: return f(nullptr);
    }
}

template <class T>
constexpr bool is_odd = std::is_same_v<T, std::nullptr_t>;

}  // namespace pyparq
