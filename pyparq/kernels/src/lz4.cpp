#include "lz4.hpp"

#include "common.hpp"
#include "overlap.hpp"

namespace pyparq {
namespace {

// What the format says of a block's end, by which writers and readers keep clear of it: the last bytes are literals, and
// the last match begins before them.
constexpr size_t kLastLiterals = 5, kLastMatch = 12, kShortestMatch = 4;

// Adds to `length` what stands behind a nibble of 15; false where the input ends, or the length is beyond all reason.
inline bool more_length(const uint8_t*& in, const uint8_t* end, size_t& length) {
    uint8_t byte;
    do {
        if (in == end) return false;
        byte = *in++;
        length += byte;
    } while (byte == 255);
    return true;
}

}  // namespace

int64_t lz4_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted) {
    const uint8_t* const in_end = in + n;
    uint8_t* at = out;
    uint8_t *const end = out + room, *const stop = out + std::min(room, wanted);
    for (;;) {
        if (in == in_end) return -1;
        const size_t token = *in++;
        size_t literals = token >> 4, length = (token & 15) + kShortestMatch;
        if (literals == 15 && !more_length(in, in_end, literals)) return -1;
        const size_t left = static_cast<size_t>(in_end - in), free = static_cast<size_t>(end - at);
        if (literals <= 16 && left >= 32 && free >= 32) {
            copy_block<16>(at, in);
        } else {
            if (literals > left || literals > free) return -1;
            if (literals > 0) std::memcpy(at, in, literals);
            if (literals == left) return at + literals - out;
            if (left - literals < 3 + kLastLiterals || free - literals < kLastMatch) return -1;
        }
        in += literals, at += literals;
        if (at >= stop && stop < end) return at - out;
        const size_t offset = load<uint16_t>(in);
        in += 2;
        if (length == 15 + kShortestMatch && !more_length(in, in_end, length)) return -1;
        const size_t rest = static_cast<size_t>(end - at);
        if (offset - 1 >= static_cast<size_t>(at - out) || length > rest || rest - length < kLastLiterals) return -1;
        if (rest >= length + kSlack) {
            copy_back(at, offset, length);
        } else {
            copy_back_exactly(at, offset, length);
        }
        at += length;
        if (at >= stop && stop < end) return at - out;
    }
}

namespace {

// A big-endian number of four bytes; of fewer where the input ends.
uint32_t frame_number(const uint8_t* in, size_t n, size_t& at) {
    uint32_t number = 0;
    for (size_t i = 0; i < 4 && at < n; ++i) number = number << 8 | in[at++];
    return number;
}

// Frames of the size that they inflate to and, until that many bytes are there, blocks each behind the size that they are
// stored in: Hadoop cuts what does not fit its buffer, so a large page has several blocks in one frame.
int64_t hadoop_frames(const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    size_t at = 0, written = 0;
    while (at < n) {
        const size_t frame = frame_number(in, n, at);
        if (frame > room - written) return -1;
        const size_t frame_end = written + frame;
        while (written < frame_end) {
            const size_t stored = frame_number(in, n, at);
            if (stored == 0 || stored > n - at) return -1;
            const int64_t found = lz4_inflate(in + at, stored, out + written, frame_end - written, SIZE_MAX);
            if (found < 0) return -1;
            written += static_cast<size_t>(found), at += stored;
        }
    }
    return static_cast<int64_t>(written);
}

}  // namespace

int64_t lz4_hadoop_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    const int64_t found = hadoop_frames(in, n, out, room);
    return found == static_cast<int64_t>(room) ? found : lz4_inflate(in, n, out, room, SIZE_MAX);
}

}  // namespace pyparq
