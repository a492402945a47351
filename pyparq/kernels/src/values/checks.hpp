// Helpers that several kernels share: counting, checking, copying and comparing values.
#pragma once

#include "base/common.hpp"

#include <algorithm>

namespace pyparq {

// Eight bytes, 1 where the byte is not zero.
inline uint64_t ones_of_eight(uint64_t x) {
    x |= x >> 4 & 0x0f0f0f0f0f0f0f0full;
    x |= x >> 2 & 0x0303030303030303ull;
    x |= x >> 1 & 0x0101010101010101ull;
    return x & 0x0101010101010101ull;
}

size_t count_equal(const uint8_t* v, size_t n, uint8_t value);
size_t count_set(const uint8_t* valid, size_t n);
size_t spread_starts(const int32_t* starts, size_t readable, const uint8_t* valid, size_t n, int32_t* out, size_t& k);
size_t end_of_set(const uint8_t* valid, size_t n);
size_t checked_value_width(int64_t width);
size_t checked_items(size_t bytes, size_t width, const char* name);
void check_indices(const int32_t* indices, size_t n, size_t limit);

// out[i] = starts[values before slot i] for each of n slots, out[n] = starts[all values]; no branch on the data.
// `starts` may be read up to `readable` items.
template <class O>
inline void spread_over_slots(const O* starts, size_t readable, const uint8_t* valid, size_t n, O* out) {
    size_t k = 0, i = 0;
    if constexpr (sizeof(O) == 4) i = spread_starts(starts, readable, valid, n, out, k);
    for (; i < n; ++i) {
        out[i] = starts[k];
        k += valid[i] != 0;
    }
    out[n] = starts[k];
}

// Copies n bytes; short strings as one 32-byte move where both sides have the room, because a call to
// memcpy, or a branch on the exact length, costs more than the copy. May scribble up to 32 bytes from dst,
// never beyond dst_end.
inline void copy_short(uint8_t* dst, const uint8_t* dst_end, const uint8_t* src, const uint8_t* src_end, size_t n) {
    if (n <= 32 && dst_end - dst >= 32 && src_end - src >= 32) {
        std::memmove(dst, src, 32);  // two registers; what is scribbled may overlap the source
    } else if (n > 0) {
        std::memcpy(dst, src, n);
    }
}

inline uint64_t byteswap(uint64_t v) {
#if defined(__GNUC__)
    return __builtin_bswap64(v);
#else
    v = (v & 0x00ff00ff00ff00ffull) << 8 | (v >> 8 & 0x00ff00ff00ff00ffull);
    v = (v & 0x0000ffff0000ffffull) << 16 | (v >> 16 & 0x0000ffff0000ffffull);
    return v << 32 | v >> 32;
#endif
}

// The first eight bytes as a number that sorts like them, padded with zeros.
inline uint64_t order_prefix(const uint8_t* p, size_t n, const uint8_t* end) {
    if (n >= 8) return byteswap(load<uint64_t>(p));
    uint64_t v = 0;
    if (n > 0 && end - p >= 8) v = load<uint64_t>(p) & ((1ull << 8 * n) - 1);
    else if (n > 0) std::memcpy(&v, p, n);
    return byteswap(v);
}

// Compares in unsigned lexicographic order; a prefix comes first. Negative, zero or positive.
inline int compare_bytes(const uint8_t* a, size_t an, const uint8_t* b, size_t bn) {
    const size_t n = std::min(an, bn);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t x = load<uint64_t>(a + i), y = load<uint64_t>(b + i);
        if (x != y) return byteswap(x) < byteswap(y) ? -1 : 1;
    }
    for (; i < n; ++i)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return an < bn ? -1 : an > bn ? 1
                                  : 0;
}

inline bool equal_bytes(const uint8_t* a, const uint8_t* b, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        if (load<uint64_t>(a + i) != load<uint64_t>(b + i)) return false;
    if (i == n) return true;
    if (n >= 8) return load<uint64_t>(a + n - 8) == load<uint64_t>(b + n - 8);
    for (; i < n; ++i)
        if (a[i] != b[i]) return false;
    return true;
}

}  // namespace pyparq
