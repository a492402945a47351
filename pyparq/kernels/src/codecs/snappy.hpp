// Snappy blocks (format_description.txt of google/snappy).
#pragma once
#include <cstddef>
#include <cstdint>

namespace pyparq {

// As `inflate_native`.
int64_t snappy_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted);

// As `deflate_native`; `room` must be what `deflate_bound` says.
int64_t snappy_deflate(const uint8_t* in, size_t n, uint8_t* out, size_t room);

}  // namespace pyparq
