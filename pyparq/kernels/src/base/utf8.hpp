// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include "base/common.hpp"

namespace pyparq {

// Length of the valid sequence at p, 0 if there is none (Unicode 15, table 3-7).
inline size_t utf8_sequence(const uint8_t* p, size_t left) {
    const uint8_t a = p[0];
    const auto tail = [&](size_t i) { return i < left && (p[i] & 0xc0) == 0x80; };
    if (a < 0x80) return 1;
    if (a < 0xc2) return 0;
    if (a < 0xe0) return tail(1) ? 2 : 0;
    if (a < 0xf0) {
        if (!tail(1) || !tail(2) || (a == 0xe0 && p[1] < 0xa0) || (a == 0xed && p[1] > 0x9f)) return 0;
        return 3;
    }
    if (a > 0xf4 || !tail(1) || !tail(2) || !tail(3)) return 0;
    if ((a == 0xf0 && p[1] < 0x90) || (a == 0xf4 && p[1] > 0x8f)) return 0;
    return 4;
}

inline bool is_ascii(const uint8_t* p, size_t n) {
    uint8_t any = 0;
    for (size_t i = 0; i < n; ++i) any |= p[i];
    return any < 0x80;
}

inline bool utf8_valid(const uint8_t* p, size_t n) {
    size_t i = 0;
    while (i < n) {
        if (i + 8 <= n && (load<uint64_t>(p + i) & 0x8080808080808080ull) == 0) {
            i += 8;
            continue;
        }
        const size_t step = utf8_sequence(p + i, n - i);
        if (step == 0) return false;
        i += step;
    }
    return true;
}

}  // namespace pyparq
