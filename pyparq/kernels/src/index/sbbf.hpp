// A split block Bloom filter (BloomFilter.md): where a hash has its block, and its bits within the block.
#pragma once

#include "base/common.hpp"

namespace pyparq {

constexpr uint32_t kSalt[8] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                               0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
constexpr size_t kBlock = 32;

inline size_t block_at(uint64_t hash, uint64_t blocks) {
    return static_cast<size_t>((hash >> 32) * blocks >> 32) * kBlock;
}

inline bool check_one(const uint8_t* block, uint32_t x) {
    uint32_t missing = 0;
    for (size_t i = 0; i < 8; ++i) missing |= (1u << (x * kSalt[i] >> 27)) & ~load<uint32_t>(block + 4 * i);
    return missing == 0;
}

}  // namespace pyparq
