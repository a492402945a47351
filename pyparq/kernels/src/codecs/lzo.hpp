// LZO1X blocks, alone or in Hadoop's frames.
#pragma once
#include "base/common.hpp"

namespace pyparq {

// The bytes that `in` inflates to, at most `room` of them; -1 where it is malformed. Nothing beyond `room` is written.
int64_t lzo_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room);
int64_t lzo_hadoop_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room);

}  // namespace pyparq
