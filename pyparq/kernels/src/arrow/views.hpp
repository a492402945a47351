// Arrow's string views: 16 bytes for each value, its length and the bytes themselves up to twelve, otherwise the first
// four, the number of a buffer and an offset in it.
#pragma once
#include "values/checks.hpp"

namespace pyparq::view {

constexpr uint64_t kInline = 12;

constexpr size_t kRead = 16;  // bytes read for each value

// What stays of the first bytes of a value, by its length; of one that is not inline, behind the last length, the prefix.
struct Masks {
    alignas(16) uint8_t bytes[kInline + 2][kRead] = {};
    constexpr Masks() {
        for (size_t length = 0; length <= kInline; ++length)
            for (size_t k = 0; k < length; ++k) bytes[length][k] = 0xff;
        for (size_t k = 0; k < 4; ++k) bytes[kInline + 1][k] = 0xff;
    }
};
inline constexpr Masks kMasks;

// One view of a value whose bytes (or all of them, and anything) lie at p. No branch on the length: short and long values
// follow each other in no order.
inline void put(uint8_t* w, const uint8_t* p, uint64_t length, uint64_t buffer, uint64_t offset) {
    const uint64_t outside = length > kInline ? ~uint64_t{0} : 0;
    const uint8_t* const mask = kMasks.bytes[length > kInline ? kInline + 1 : length];
    const uint64_t place = (buffer | offset << 32) & outside;
#ifdef PYPARQ_SSE2
    const __m128i kept = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)),
                                       _mm_load_si128(reinterpret_cast<const __m128i*>(mask)));
    const __m128i numbers = _mm_unpacklo_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(length)),
                                               _mm_cvtsi64_si128(static_cast<int64_t>(place)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(w), _mm_or_si128(_mm_slli_si128(kept, 4), numbers));
#else
    const uint64_t low = load<uint64_t>(p) & load<uint64_t>(mask), high = load<uint64_t>(p + 8) & load<uint64_t>(mask + 8);
    store<uint64_t>(w, length | low << 32);
    store<uint64_t>(w + 8, (low >> 32 | high << 32) | place);
#endif
}

// The same where no more than the value's bytes may be there to be read, `left` bytes from p on.
inline void put_within(uint8_t* w, const uint8_t* p, size_t left, uint64_t length, uint64_t buffer, uint64_t offset) {
    if (left >= kRead) [[likely]]
        return put(w, p, length, buffer, offset);
    uint8_t copy[kRead] = {};
    if (length > 0) std::memcpy(copy, p, std::min<size_t>(length, kRead));
    put(w, copy, length, buffer, offset);
}

}  // namespace pyparq::view
