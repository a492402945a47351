// The frames that Hadoop's codecs put around blocks of LZ4 and LZO.
#pragma once
#include "base/common.hpp"

namespace pyparq {

// A big-endian number of four bytes; of fewer where the input ends.
inline uint32_t frame_number(const uint8_t* in, size_t n, size_t& at) {
    uint32_t number = 0;
    for (size_t i = 0; i < 4 && at < n; ++i) number = number << 8 | in[at++];
    return number;
}

// Frames of the size that they inflate to and, until that many bytes are there, blocks each behind the size that they are
// stored in: Hadoop cuts what does not fit its buffer, so a large page has several blocks in one frame. `block(in, n, out, room)`
// inflates one of them, to as many bytes as it returns; -1 where it is malformed.
template <class Block>
int64_t hadoop_frames(const uint8_t* in, size_t n, uint8_t* out, size_t room, Block&& block) {
    size_t at = 0, written = 0;
    while (at < n) {
        const size_t frame = frame_number(in, n, at);
        if (frame > room - written) return -1;
        const size_t frame_end = written + frame;
        while (written < frame_end) {
            const size_t stored = frame_number(in, n, at);
            if (stored == 0 || stored > n - at) return -1;
            const int64_t found = block(in + at, stored, out + written, frame_end - written);
            if (found < 0) return -1;
            written += static_cast<size_t>(found), at += stored;
        }
    }
    return static_cast<int64_t>(written);
}

}  // namespace pyparq
