// Bitmaps in Arrow's order, least significant bit first, read and written 64 bits at a time.
#pragma once

#include "base/common.hpp"

#include <bit>
#include <vector>

namespace pyparq {

inline size_t words_for(size_t bits) { return bits / 64 + (bits % 64 != 0); }

// The lowest n bits set; n is 0 to 64.
inline uint64_t low_bits(size_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

// std::popcount is a call of a function where the processor is not known to have the instruction.
[[gnu::always_inline]] inline size_t count_each(const uint64_t* words, size_t n) {
    size_t set = 0;
    for (size_t i = 0; i < n; ++i) set += static_cast<size_t>(std::popcount(words[i]));
    return set;
}

#if PYPARQ_AVX2
PYPARQ_TARGET_AVX2 inline size_t count_bits_avx2(const uint64_t* words, size_t n) { return count_each(words, n); }
#endif

inline size_t count_bits(const uint64_t* words, size_t n) {
#if PYPARQ_AVX2
    if (have_avx2()) return count_bits_avx2(words, n);
#endif
    return count_each(words, n);
}

// A bitmap of n bits has exactly the words that these take, and zeros behind them.
inline void check_words(const In<uint64_t>& words, size_t n) {
    if (words.size != words_for(n))
        fail("a bitmap of " + str(n) + " bits has " + str(words.size) + " words of 64 instead of " + str(words_for(n)));
    if (n % 64 != 0 && (words.data[words.size - 1] & ~low_bits(n % 64)) != 0)
        fail("a bitmap of " + str(n) + " bits has bits set behind them");
}

// 64 bits of a bitmap of `size` bytes from bit `at` on; what lies behind its end reads as zeros.
inline uint64_t load_bits(const uint8_t* bytes, size_t size, size_t at) {
    const size_t first = at / 8, shift = at % 8;
    if (first + 9 <= size) {
        const uint64_t low = load<uint64_t>(bytes + first) >> shift;
        return shift == 0 ? low : low | static_cast<uint64_t>(bytes[first + 8]) << (64 - shift);
    }
    uint8_t part[9] = {};
    if (first < size) std::memcpy(part, bytes + first, size - first < 9 ? size - first : 9);
    const uint64_t low = load<uint64_t>(part) >> shift;
    return shift == 0 ? low : low | static_cast<uint64_t>(part[8]) << (64 - shift);
}

// Appends bits to words that begin as zeros.
class BitWriter {
  public:
    explicit BitWriter(uint64_t* out) : out_(out) {}
    // The lowest n bits (at most 64) of `bits`, in which no others are set.
    void append(uint64_t bits, size_t n) {
        held_ |= bits << used_;
        if (used_ + n >= 64) {
            *out_++ = held_;
            const size_t taken = 64 - used_;
            held_ = taken < 64 ? bits >> taken : 0;
            used_ = used_ + n - 64;
        } else {
            used_ += n;
        }
    }
    // `bits` from bit `at` on of a bitmap, n of them.
    void append_range(const uint8_t* bytes, size_t size, size_t at, size_t n) {
        for (; n >= 64; at += 64, n -= 64) append(load_bits(bytes, size, at), 64);
        if (n > 0) append(load_bits(bytes, size, at) & low_bits(n), n);
    }
    void append_zeros(size_t n) {
        for (; n >= 64; n -= 64) append(0, 64);
        append(0, n);
    }
    // Writes what is left of the last word.
    void finish() {
        if (used_ > 0) *out_ = held_;
    }

  private:
    uint64_t* out_;
    uint64_t held_ = 0;
    size_t used_ = 0;
};

// The bits of `x` where `mask` is set, moved together to the lowest places.
inline uint64_t extract_bits(uint64_t x, uint64_t mask) {
    uint64_t out = 0;
    for (size_t k = 0; mask != 0; ++k, mask &= mask - 1) out |= (x >> std::countr_zero(mask) & 1) << k;
    return out;
}

// Calls run(first, count) for each run of set bits, in order; a run may come in several pieces, one per word at least.
template <class Run>
inline void for_runs(const uint64_t* words, size_t n, Run&& run) {
    for (size_t i = 0; i < n; ++i) {
        uint64_t w = words[i];
        if (w == ~uint64_t{0}) {  // full words together
            size_t end = i + 1;
            while (end < n && words[end] == ~uint64_t{0}) ++end;
            run(i * 64, (end - i) * 64);
            i = end - 1;
            continue;
        }
        size_t base = i * 64;
        while (w != 0) {
            const size_t skip = static_cast<size_t>(std::countr_zero(w));
            w >>= skip;
            const size_t length = static_cast<size_t>(std::countr_one(w));
            run(base + skip, length);
            w >>= length;  // length < 64: the word is not full
            base += skip + length;
        }
    }
}

}  // namespace pyparq
