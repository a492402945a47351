// Little-endian bit packing (Encodings.md, "RLE / bit-packing hybrid"): values of w bits, first value in
// the lowest bits. Every function stays inside the bytes it is given.
#pragma once

#include "base/common.hpp"

#ifdef PYPARQ_AVX2
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>

namespace pyparq {

inline uint64_t load_upto8(const uint8_t* p, size_t available) {
    if (available >= 8) return load<uint64_t>(p);
    uint64_t v = 0;
    std::memcpy(&v, p, available);
    return v;
}

// Eight w-bit values (w <= 8) in the low bits of x, spread to one byte each.
inline uint64_t spread8(uint64_t x, unsigned w) {
    const uint64_t m1 = (1ull << w) - 1, m2 = (1ull << 2 * w) - 1, m4 = (1ull << 4 * w) - 1;
    x = (x & m4) | ((x >> 4 * w & m4) << 32);
    x = (x & (m2 | m2 << 32)) | ((x & (m2 | m2 << 32) << 2 * w) << (16 - 2 * w));
    const uint64_t m1x4 = m1 * 0x0001000100010001ull;
    return (x & m1x4) | ((x & m1x4 << w) << (8 - w));
}

// The reverse: eight bytes below 2^w to 8 * w bits.
inline uint64_t squeeze8(uint64_t x, unsigned w) {
    const uint64_t m1x4 = 0x00ff00ff00ff00ffull;
    x = (x & m1x4) | ((x & ~m1x4) >> (8 - w));
    const uint64_t m2x2 = 0x0000ffff0000ffffull;
    x = (x & m2x2) | ((x & ~m2x2) >> (16 - 2 * w));
    return w == 8 ? x : (x & 0xffffffffull) | (x >> 32 << 4 * w);
}

// n values of w <= 8 bits. The caller has checked that bytes >= ceil(n * w / 8).
inline void unpack_u8(const uint8_t* src, size_t bytes, unsigned w, size_t n, uint8_t* out) {
    if (w == 8) {
        std::memcpy(out, src, n);
        return;
    }
    size_t i = 0;
    const uint8_t* end = src + bytes;
    for (; i + 8 <= n; i += 8, src += w)
        store(out + i, spread8(load_upto8(src, static_cast<size_t>(end - src)), w));
    if (i < n) {
        const uint64_t x = spread8(load_upto8(src, static_cast<size_t>(end - src)), w);
        std::memcpy(out + i, &x, n - i);
    }
}

// One value of w <= 32 bits at index i.
inline uint32_t unpack_one(const uint8_t* src, size_t bytes, unsigned w, size_t i) {
    const size_t bit = i * w;
    const uint64_t x = load_upto8(src + (bit >> 3), bytes - (bit >> 3));
    return static_cast<uint32_t>(x >> (bit & 7)) & static_cast<uint32_t>((1ull << w) - 1);
}

#if defined(PYPARQ_AVX2) || defined(PYPARQ_NEON)
// Where the eight values of a group lie: for each 32-bit lane the four bytes that hold its value, and how far
// down to shift them. The upper four lanes count from byte w / 2.
struct GroupLayout {
    alignas(32) uint8_t bytes[32];
    alignas(32) uint32_t shift[8];
};

constexpr std::array<GroupLayout, 26> group_layouts() {
    std::array<GroupLayout, 26> all{};
    for (unsigned w = 0; w < all.size(); ++w) {
        for (unsigned j = 0; j < 8; ++j) {
            const unsigned bit = (j & 3) * w + (j >= 4 ? (w & 1) * 4 : 0);
            all[w].shift[j] = bit & 7;
            for (unsigned k = 0; k < 4; ++k) all[w].bytes[4 * j + k] = static_cast<uint8_t>((bit >> 3) + k);
        }
    }
    return all;
}
inline constexpr std::array<GroupLayout, 26> kGroupLayouts = group_layouts();
#endif

// Groups of eight values of w <= 25 bits; each group reads 16 bytes at p and at p + w / 2. Returns how many
// groups it could do without reading beyond the end; `top` takes the maximum.
#if defined(PYPARQ_AVX2)
PYPARQ_TARGET_AVX2 inline size_t unpack_u32_avx2(const uint8_t* src, size_t bytes, unsigned w, size_t groups,
                                                 uint32_t* out, uint32_t& top) {
    const GroupLayout& layout = kGroupLayouts[w];
    const __m256i control = _mm256_load_si256(reinterpret_cast<const __m256i*>(layout.bytes));
    const __m256i shifts = _mm256_load_si256(reinterpret_cast<const __m256i*>(layout.shift));
    const __m256i mask = _mm256_set1_epi32(static_cast<int>((1u << w) - 1));
    __m256i most = _mm256_setzero_si256();
    const size_t reach = w / 2 + 16;
    size_t g = 0;
    for (; g < groups && g * w + reach <= bytes; ++g) {
        const uint8_t* p = src + g * w;
        __m256i x = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(p + w / 2),
                                        reinterpret_cast<const __m128i*>(p));
        x = _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(x, control), shifts), mask);
        most = _mm256_max_epu32(most, x);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8 * g), x);
    }
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    top = std::max(top, static_cast<uint32_t>(_mm_cvtsi128_si32(m)));
    return g;
}
#elif defined(PYPARQ_NEON)
inline size_t unpack_u32_neon(const uint8_t* src, size_t bytes, unsigned w, size_t groups, uint32_t* out, uint32_t& top) {
    const GroupLayout& layout = kGroupLayouts[w];
    const uint32x4_t mask = vdupq_n_u32((1u << w) - 1);
    uint8x16_t control[2];
    int32x4_t shifts[2];
    for (size_t k = 0; k < 2; ++k) {
        control[k] = vld1q_u8(layout.bytes + 16 * k);
        shifts[k] = vnegq_s32(vreinterpretq_s32_u32(vld1q_u32(layout.shift + 4 * k)));  // to the right
    }
    uint32x4_t most = vdupq_n_u32(0);
    const size_t reach = w / 2 + 16;
    size_t g = 0;
    for (; g < groups && g * w + reach <= bytes; ++g) {
        for (size_t k = 0; k < 2; ++k) {
            const uint8x16_t bits = vqtbl1q_u8(vld1q_u8(src + g * w + k * (w / 2)), control[k]);
            const uint32x4_t x = vandq_u32(vshlq_u32(vreinterpretq_u32_u8(bits), shifts[k]), mask);
            most = vmaxq_u32(most, x);
            vst1q_u32(out + 8 * g + 4 * k, x);
        }
    }
    top = std::max(top, vmaxvq_u32(most));
    return g;
}
#endif

// n values of w <= 32 bits; returns the largest. The caller has checked that bytes >= ceil(n * w / 8).
inline uint32_t unpack_u32(const uint8_t* src, size_t bytes, unsigned w, size_t n, uint32_t* out) {
    uint32_t top = 0;
    size_t i = 0;
#if defined(PYPARQ_AVX2)
    if (w <= 25 && have_avx2()) i = 8 * unpack_u32_avx2(src, bytes, w, n / 8, out, top);
#elif defined(PYPARQ_NEON)
    if (w <= 25) i = 8 * unpack_u32_neon(src, bytes, w, n / 8, out, top);
#endif
    const uint64_t mask = (1ull << w) - 1;
    for (; i + 8 <= n && ((i + 7) * w >> 3) + 8 <= bytes; i += 8) {
        const uint8_t* p = src + (i * w >> 3);
        for (unsigned j = 0; j < 8; ++j) {
            out[i + j] = static_cast<uint32_t>(load<uint64_t>(p + (j * w >> 3)) >> (j * w & 7) & mask);
            top = std::max(top, out[i + j]);
        }
    }
    for (; i < n; ++i) {
        out[i] = unpack_one(src, bytes, w, i);
        top = std::max(top, out[i]);
    }
    return top;
}

// Eight values of w bits to w bytes; reads exactly eight values, writes exactly w bytes.
template <class T>
inline void pack_group(const T* values, unsigned w, uint8_t* out) {
    if constexpr (sizeof(T) == 1) {
        const uint64_t x = squeeze8(load<uint64_t>(values), w);
        std::memcpy(out, &x, w);
    } else {
        uint64_t acc = 0;
        unsigned have = 0;
        for (unsigned j = 0; j < 8; ++j) {
            acc |= static_cast<uint64_t>(static_cast<uint32_t>(values[j])) << have;
            have += w;
            if (have >= 32) {
                store(out, static_cast<uint32_t>(acc));
                out += 4;
                acc >>= 32;
                have -= 32;
            }
        }
        std::memcpy(out, &acc, have / 8);  // 8 * w bits are whole bytes
    }
}

}  // namespace pyparq
