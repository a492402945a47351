// What the decoder takes from libraries: inflation by codec and CRC-32, called without Python where they can be.
#pragma once
#include "base/common.hpp"

namespace pyparq {

// Bytes written to `out`: `size`, or at least `wanted` of them. Another number, or -1, where the stream is bad. Codecs that
// no native library has are read by Python's, for which it takes the GIL.
int64_t inflate_page(int codec, const uint8_t* in, size_t n, uint8_t* out, size_t size, size_t wanted);

uint32_t crc32_of(const uint8_t* data, size_t size);

}  // namespace pyparq
