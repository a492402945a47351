// Copies of what stands before, as the LZ77 codecs need them.
#pragma once
#include "base/common.hpp"

#include <algorithm>

#if defined(__GNUC__)
#define PYPARQ_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define PYPARQ_ALWAYS_INLINE inline
#endif

namespace pyparq {

constexpr size_t kSlack = 32;  // bytes that wide copies may overwrite behind their end

PYPARQ_ALWAYS_INLINE void copy_16(uint8_t* to, const uint8_t* from) {
    uint8_t block[16];
    std::memcpy(block, from, 16);
    std::memcpy(to, block, 16);
}

// All is read before anything is written.
PYPARQ_ALWAYS_INLINE void copy_32(uint8_t* to, const uint8_t* from) {
    uint8_t first[16], second[16];
    std::memcpy(first, from, 16);
    std::memcpy(second, from + 16, 16);
    std::memcpy(to, first, 16);
    std::memcpy(to + 16, second, 16);
}

// Copies `n` bytes and up to 15 more, from at least 16 before `to` or from elsewhere.
PYPARQ_ALWAYS_INLINE void copy_wide(uint8_t* to, const uint8_t* from, size_t n) {
    uint8_t* const end = to + n;
    do {
        copy_16(to, from);
        to += 16, from += 16;
    } while (to < end);
}

// Copies `n` bytes from `distance` before `to`, less than 16, and up to 15 more. What stands up to 15 bytes behind `to` is
// read, to no effect.
PYPARQ_ALWAYS_INLINE void repeat(uint8_t* to, size_t distance, size_t n) {
    uint8_t* const end = to + n;
    if (distance >= 8) {
        uint8_t last[16];  // each time the first `distance` of these are right, and the next write sets the others right
        std::memcpy(last, to - distance, 16);
        for (; to < end; to += distance) std::memcpy(to, last, 16);
        return;
    }
    // Side by side in a number, as often as they fit; and the most bytes after which that is the same again.
    constexpr uint64_t kTimes[] = {0, 0x0101010101010101, 0x0001000100010001, 0x0001000001000001, 0x0000000100000001,
                                   0x0000010000000001, 0x0001000000000001, 0x0100000000000001};
    constexpr uint8_t kStep[] = {0, 8, 8, 6, 8, 5, 6, 7};
    const uint64_t last = load<uint64_t>(to - distance) & ((uint64_t{1} << 8 * distance) - 1), all = last * kTimes[distance];
    for (size_t step = kStep[distance]; to < end; to += step) store(to, all);
}

// As `repeat`, of any distance and of many bytes.
PYPARQ_ALWAYS_INLINE void copy_back(uint8_t* to, size_t distance, size_t n) {
    if (distance < 16) {
        // A multiple of the distance looks back to the same.
        constexpr uint8_t kMultiple[] = {0, 16, 16, 18, 16, 20, 18, 21, 16, 18, 20, 22, 24, 26, 28, 30};
        repeat(to, distance, std::min<size_t>(n, 32));
        if (n <= 32) return;
        to += 32, n -= 32, distance = kMultiple[distance];
    }
    copy_wide(to, to - distance, n);
}

// The same, and not a byte more than `n`, nor one read beyond.
inline void copy_back_exactly(uint8_t* to, size_t distance, size_t n) {
    if (n > 2 * kSlack) {
        const size_t most = n - kSlack;
        copy_back(to, distance, most);
        to += most, n -= most;
    }
    const uint8_t* const from = to - distance;
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
}

}  // namespace pyparq
