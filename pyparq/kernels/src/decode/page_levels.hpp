// The levels of a page.
#pragma once
#include "base/common.hpp"

namespace pyparq {

struct Levels {
    nb::object levels;  // an array of bytes, None where all are the maximum and need not be spelled out
    size_t most;        // how many are the maximum
};

// `count` levels of 0..`maximum` in the RLE / bit-packed hybrid. `always`: spell them out whatever they are.
Levels read_levels(const uint8_t* data, size_t size, int64_t count, int64_t maximum, bool always);

}  // namespace pyparq
