// Smallest and largest of numbers, and of byte strings, as the format compares them.
#pragma once

#include "values/checks.hpp"

namespace pyparq {

template <class T>
[[gnu::always_inline]] inline void int_range(const T* v, size_t n, T& lo, T& hi) {
    T a = v[0], b = v[0];
    for (size_t i = 0; i < n; ++i) {
        a = v[i] < a ? v[i] : a;
        b = v[i] > b ? v[i] : b;
    }
    lo = a;
    hi = b;
}

// Separate lanes, because the compiler may not reorder floating-point comparisons itself. A NaN compares
// false and so never enters.
template <class T>
[[gnu::always_inline]] inline void float_range(const T* v, size_t n, T& lo, T& hi, int64_t& nans) {
    constexpr size_t kLanes = 64 / sizeof(T);
    constexpr T inf = std::numeric_limits<T>::infinity();
    using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    T a[kLanes], b[kLanes];
    for (size_t j = 0; j < kLanes; ++j) a[j] = inf, b[j] = -inf;
    size_t i = 0;
    nans = 0;
    while (i + kLanes <= n) {
        const size_t stop = std::min(n - kLanes, i + (size_t{1} << 20) * kLanes);  // lane counters stay small
        Int count[kLanes] = {};
        for (; i <= stop; i += kLanes) {
            for (size_t j = 0; j < kLanes; ++j) {
                const T x = v[i + j];
                a[j] = x < a[j] ? x : a[j];
                b[j] = x > b[j] ? x : b[j];
                count[j] += x != x;
            }
        }
        for (Int c : count) nans += c;
    }
    for (; i < n; ++i) {
        a[0] = v[i] < a[0] ? v[i] : a[0];
        b[0] = v[i] > b[0] ? v[i] : b[0];
        nans += v[i] != v[i];
    }
    for (size_t j = 1; j < kLanes; ++j) {
        a[0] = a[j] < a[0] ? a[j] : a[0];
        b[0] = b[j] > b[0] ? b[j] : b[0];
    }
    const bool any = static_cast<uint64_t>(nans) < n;
    lo = any ? a[0] : std::numeric_limits<T>::quiet_NaN();
    hi = any ? b[0] : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
PYPARQ_TARGET_AVX2 inline void int_range_avx2(const T* v, size_t n, T& lo, T& hi) {
    int_range(v, n, lo, hi);
}
template <class T>
PYPARQ_TARGET_AVX2 inline void float_range_avx2(const T* v, size_t n, T& lo, T& hi, int64_t& nans) {
    float_range(v, n, lo, hi, nans);
}

struct Bytes {
    const uint8_t* data;
    size_t size;
};

// Big-endian two's complement of any length, sign-extended; no bytes at all count as zero.
inline int compare_signed(const Bytes& a, const Bytes& b) {
    const auto strip = [](Bytes v, uint8_t fill) {
        while (v.size > 0 && v.data[0] == fill) ++v.data, --v.size;
        return v;
    };
    const bool a_negative = a.size > 0 && a.data[0] >= 0x80, b_negative = b.size > 0 && b.data[0] >= 0x80;
    if (a_negative != b_negative) return a_negative ? -1 : 1;
    const uint8_t fill = a_negative ? 0xff : 0;
    const Bytes x = strip(a, fill), y = strip(b, fill);
    if (x.size != y.size) return (x.size < y.size) == a_negative ? 1 : -1;
    return compare_bytes(x.data, x.size, y.data, y.size);
}

}  // namespace pyparq
