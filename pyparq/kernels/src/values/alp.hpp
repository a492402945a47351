// ALP (AlpEncoding.md): decimal numbers as integers, those of a vector above their smallest, in as few bits as they need.
// What is not such a number stands behind them, as it is.
#pragma once

#include "base/common.hpp"

namespace pyparq {

constexpr size_t kAlpHeader = 7;
constexpr unsigned kAlpLogVector = 10;  // as we write it
constexpr unsigned kAlpLeastLog = 3, kAlpMostLog = 15;

// An exponent, a factor, a count of exceptions, the smallest integer and a bit width.
template <class T>
constexpr size_t kAlpVectorHeader = 4 + sizeof(T) + 1;

template <class T>
struct Alp;

// The powers are literals: the format wants them rounded once.
template <>
struct Alp<double> {
    using Int = int64_t;
    using Bits = uint64_t;
    static constexpr unsigned kMostExponent = 18;
    static constexpr double kTens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
    static constexpr double kTenths[] = {1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9,
                                         1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18};
    static constexpr double kRounds = 0x1p52;  // added and taken away, it leaves a whole number
    static constexpr double kBeyond = 0x1p63;
};

template <>
struct Alp<float> {
    using Int = int32_t;
    using Bits = uint32_t;
    static constexpr unsigned kMostExponent = 10;
    static constexpr float kTens[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
    static constexpr float kTenths[] = {1e0f, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-7f, 1e-8f, 1e-9f, 1e-10f};
    static constexpr float kRounds = 0x1p23f;
    static constexpr float kBeyond = 0x1p31f;
};

// The integer of a value as the format's readers see it: two multiplications, in this order.
template <class T>
inline T alp_value(typename Alp<T>::Int integer, T ten, T tenth) {
    return static_cast<T>(integer) * ten * tenth;
}

// The `count` values of a page into their places in `out`; with `picks` (ascending) only the vectors that hold one of them.
void alp_decode(const uint8_t* data, size_t size, size_t width, size_t count, const uint32_t* picks, size_t picked, uint8_t* out);

size_t checked_alp_width(int64_t width);

}  // namespace pyparq
