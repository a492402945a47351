// LZ4 blocks (lz4_Block_format.md of lz4/lz4), bare and in Hadoop's frames.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pyparq {

// As `inflate_native`.
int64_t lz4_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted);

// The codec LZ4 is deprecated and ambiguous: Hadoop's frames, or a bare block under the same number.
int64_t lz4_hadoop_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room);

}  // namespace pyparq
