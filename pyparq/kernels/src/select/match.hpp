// What tests of values share: bitmaps of answers, 64 values at a time, so that nothing but the bitmap is written. `within`
// marks the values that matter. The bits of all others are not set, and words of 64 such values are skipped.
#pragma once
#include "base/bits.hpp"
#include "base/common.hpp"

#if PYPARQ_AVX2
#include <immintrin.h>
#endif

namespace pyparq {

using Within = Array<uint64_t, false, true>;

enum class Op { Equal,
                NotEqual,
                Less,
                LessEqual,
                Greater,
                GreaterEqual,
                IsNan,
                IsNotNan,
                StartsWith,
                NotStartsWith };

inline Op op_named(const std::string& name) {
    constexpr std::pair<const char*, Op> kOps[] = {
        {"==", Op::Equal}, {"!=", Op::NotEqual}, {"<", Op::Less}, {"<=", Op::LessEqual}, {">", Op::Greater}, {">=", Op::GreaterEqual}, {"is_nan", Op::IsNan}, {"is_not_nan", Op::IsNotNan}, {"starts_with", Op::StartsWith}, {"not starts_with", Op::NotStartsWith}};
    for (const auto& [known, op] : kOps)
        if (name == known) return op;
    fail("there is no test " + name);
}

inline void check_within(const Within& within, size_t n) {
    if (!within.none() && within.size != words_for(n))
        fail("a bitmap of " + str(n) + " bits has " + str(within.size) + " words of 64 instead of " + str(words_for(n)));
}

// 64 bytes, each 0 or 1, as bits.
inline uint64_t pack64(const uint8_t* ones) {
    uint64_t word = 0;
#if PYPARQ_SSE2
    for (int k = 0; k < 4; ++k) {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ones + 16 * k));
        word |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_slli_epi16(x, 7)))) << (16 * k);
    }
#else
    for (int k = 0; k < 8; ++k) word |= (load<uint64_t>(ones + 8 * k) * 0x0102040810204080ull >> 56) << (8 * k);
#endif
    return word;
}

template <class Test>
[[gnu::always_inline]] inline void fill_words(size_t n, const uint64_t* within, uint64_t* out, const Test& test) {
    uint8_t ones[64];
    size_t i = 0;
    for (; i < n / 64; ++i) {
        if (within != nullptr && within[i] == 0) {
            out[i] = 0;
            continue;
        }
        for (size_t k = 0; k < 64; ++k) ones[k] = test(i * 64 + k) ? 1 : 0;
        out[i] = pack64(ones) & (within != nullptr ? within[i] : ~uint64_t{0});
    }
    if (n % 64 != 0) {
        uint64_t word = 0;
        for (size_t k = 0; k < n % 64; ++k) word |= static_cast<uint64_t>(test(i * 64 + k) ? 1 : 0) << k;
        out[i] = word & (within != nullptr ? within[i] : ~uint64_t{0});
    }
}

#if PYPARQ_AVX2
template <class Test>
PYPARQ_TARGET_AVX2 void fill_words_avx2(size_t n, const uint64_t* within, uint64_t* out, const Test& test) {
    fill_words(n, within, out, test);
}
#endif

template <class Test>
void fill(size_t n, const uint64_t* within, uint64_t* out, const Test& test) {
#if PYPARQ_AVX2
    if (have_avx2()) return fill_words_avx2(n, within, out, test);
#endif
    fill_words(n, within, out, test);
}

template <class Test>
void fill(size_t n, const Within& within, uint64_t* out, const Test& test) {
    fill(n, within.data, out, test);
}

// f(i) for each row, and the bits that any of them returned. f comes by value: what lies in memory might change with a row.
template <class F>
[[gnu::always_inline]] inline uint64_t bits_of_rows(size_t n, F f) {
    uint64_t bits = 0;
    for (size_t i = 0; i < n; ++i) bits |= f(i);
    return bits;
}

template <class F>
[[gnu::always_inline]] inline void do_rows(size_t n, F f) {
    for (size_t i = 0; i < n; ++i) f(i);
}

#if PYPARQ_AVX2
template <class F>
PYPARQ_TARGET_AVX2 uint64_t bits_of_rows_avx2(size_t n, F f) { return bits_of_rows(n, f); }
template <class F>
PYPARQ_TARGET_AVX2 void do_rows_avx2(size_t n, F f) { do_rows(n, f); }
#endif

template <class F>
uint64_t any_bits(size_t n, F f) {
#if PYPARQ_AVX2
    if (have_avx2()) return bits_of_rows_avx2(n, f);
#endif
    return bits_of_rows(n, f);
}

template <class F>
void each_row(size_t n, F f) {
#if PYPARQ_AVX2
    if (have_avx2()) return do_rows_avx2(n, f);
#endif
    do_rows(n, f);
}

// As fill, for tests that cost more than a few cycles: where few of 64 are wanted, only these are looked at.
template <class Test>
void fill_one_by_one(size_t n, const Within& within, uint64_t* out, const Test& test) {
    const size_t count = words_for(n);
    for (size_t i = 0; i < count; ++i) {
        uint64_t todo = i + 1 == count && n % 64 != 0 ? low_bits(n % 64) : ~uint64_t{0};
        if (!within.none()) todo &= within.data[i];
        uint64_t word = 0;
        if (todo == ~uint64_t{0}) {
            for (size_t k = 0; k < 64; ++k) word |= static_cast<uint64_t>(test(i * 64 + k) ? 1 : 0) << k;
        } else {
            for (; todo != 0; todo &= todo - 1) {
                const size_t k = static_cast<size_t>(std::countr_zero(todo));
                word |= static_cast<uint64_t>(test(i * 64 + k) ? 1 : 0) << k;
            }
        }
        out[i] = word;
    }
}

}  // namespace pyparq
