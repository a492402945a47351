// Copies of what stands before, as the LZ77 codecs need them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pyparq {

constexpr size_t kSlack = 64;  // bytes behind what they are asked for that the wide copies may overwrite

template <size_t N>
inline void copy_block(uint8_t* to, const uint8_t* from) {
    uint8_t block[N];
    std::memcpy(block, from, N);
    std::memcpy(to, block, N);
}

// Copies `n` bytes from `offset` before `to`, the first of which may be the result of this copy; writes up to 16 more.
inline void copy_back(uint8_t* to, size_t offset, size_t n) {
    uint8_t* const end = to + n;
    const uint8_t* from = to - offset;
    if (offset < 16) {
        // A multiple of the offset looks back to the same bytes, once these are there: widen it to 16 and more.
        static constexpr uint8_t kWide[] = {0, 16, 16, 18, 16, 20, 18, 21, 16, 18, 20, 22, 24, 26, 28, 30};
        const size_t wide = kWide[offset];
        uint8_t pattern[32];
        for (size_t i = 0; i < offset; ++i) pattern[i] = from[i];
        for (size_t i = offset; i < 32; ++i) pattern[i] = pattern[i - offset];
        std::memcpy(to, pattern, 16);
        if (n <= 16) return;
        std::memcpy(to + 16, pattern + 16, 16);
        to += 32, from = to - wide;
    }
    while (to < end) {
        copy_block<16>(to, from);
        to += 16, from += 16;
    }
}

// The same, and not a byte more.
inline void copy_back_exactly(uint8_t* to, size_t offset, size_t n) {
    if (offset >= n) {
        std::memcpy(to, to - offset, n);
    } else {
        for (size_t i = 0; i < n; ++i) to[i] = to[i - offset];
    }
}

}  // namespace pyparq
