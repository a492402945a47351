// Snappy blocks that hold their bytes as they are.
#pragma once
#include "base/common.hpp"

namespace pyparq {

// Moves `at` behind the preamble of `block`; false where that does not state `size` bytes.
inline bool pass_preamble(const RawIn& block, size_t size, size_t& at) {
    uint64_t stated = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (at >= block.size || shift > 28) return false;
        const uint8_t byte = block.data[at++];
        stated |= uint64_t{byte & 127u} << shift;
        if (byte < 128) return stated == size;
    }
}

// Where the `size` bytes of a block begin that holds nothing but them, as one literal; 0 of any other. Pages of up to 64 KiB
// that do not shrink are such blocks, and to open one by the library takes longer than its bytes are worth.
inline size_t one_literal(const RawIn& block, size_t size) {
    size_t at = 0;
    if (size == 0 || !pass_preamble(block, size, at) || at >= block.size || (block.data[at] & 3) != 0) return 0;
    const size_t code = block.data[at++] >> 2, bytes = code < 60 ? 0 : code - 59;  // of the length, where that is long
    if (bytes > block.size - at) return 0;
    uint64_t stated = 0;
    std::memcpy(&stated, block.data + at, bytes);
    at += bytes;
    return (bytes == 0 ? code : stated) + 1 == size && block.size - at == size ? at : 0;
}

}  // namespace pyparq
