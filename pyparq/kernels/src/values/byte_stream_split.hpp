// BYTE_STREAM_SPLIT (Encodings.md): the k-th bytes of all values make the k-th stream. encode/encoders.hpp has the way there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyparq {

// The n values of `width` bytes whose streams lie one after another in n * width bytes.
void join_streams(const uint8_t* streams, size_t n, size_t width, uint8_t* out);

}  // namespace pyparq
