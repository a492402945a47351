#include "snappy.hpp"

#include "common.hpp"
#include "overlap.hpp"

namespace pyparq {
namespace {

// The size that a block states, -1 where it states none below 2^32.
int64_t stated_size(const uint8_t*& at, const uint8_t* end) {
    uint64_t size = 0;
    for (unsigned shift = 0; shift <= 28; shift += 7) {
        if (at == end) return -1;
        const uint8_t byte = *at++;
        size |= uint64_t{byte & 127u} << shift;
        if (byte < 128) return size >> 32 == 0 ? static_cast<int64_t>(size) : -1;
    }
    return -1;
}

}  // namespace

int64_t snappy_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted) {
    const uint8_t* const in_end = in + n;
    const int64_t size = stated_size(in, in_end);
    if (size < 0 || static_cast<uint64_t>(size) > room) return -1;
    uint8_t* at = out;
    uint8_t *const end = out + size, *const stop = wanted < static_cast<size_t>(size) ? out + wanted : end;
    while (in < in_end) {
        if (at >= stop && stop < end) return at - out;
        const size_t tag = *in++, left = static_cast<size_t>(in_end - in);
        const size_t free = static_cast<size_t>(end - at);
        size_t length = (tag >> 2) + 1, offset;
        if ((tag & 3) == 0) {
            if (length <= 16 && left >= 16 && free >= 16) {
                copy_block<16>(at, in);
            } else {
                if (length > 60) {
                    const size_t bytes = length - 60;
                    if (left < bytes) return -1;
                    uint32_t stated = 0;
                    std::memcpy(&stated, in, bytes);
                    length = size_t{stated} + 1, in += bytes;
                }
                if (length > static_cast<size_t>(in_end - in) || length > free) return -1;
                std::memcpy(at, in, length);
            }
            if (length > static_cast<size_t>(in_end - in) || length > free) return -1;
            in += length, at += length;
            continue;
        }
        const size_t bytes = (tag & 3) == 3 ? 4 : tag & 3;
        if (left < bytes) return -1;
        if (bytes == 1) {
            length = 4 + (tag >> 2 & 7), offset = tag >> 5 << 8 | *in;
        } else {
            offset = bytes == 2 ? load<uint16_t>(in) : load<uint32_t>(in);
        }
        in += bytes;
        if (offset - 1 >= static_cast<size_t>(at - out) || length > free) return -1;
        if (free >= length + kSlack) {
            copy_back(at, offset, length);
        } else {
            copy_back_exactly(at, offset, length);
        }
        at += length;
    }
    return at == end ? size : -1;
}

}  // namespace pyparq
