#include "snappy.hpp"

#include "overlap.hpp"

#include <array>

namespace pyparq {
namespace {

// What an element's tag says.
struct Tag {
    uint8_t length = 0;    // 1 to 64, or kBehind
    uint16_t distant = 0;  // what is to be added to the bytes behind the tag for the offset
};

constexpr uint8_t kBehind = 255;    // the length of a literal stands behind the tag
constexpr uint16_t kNoOffset = 64;  // of literals: no other length is more

constexpr auto kTags = [] {
    std::array<Tag, 256> tags{};
    for (size_t i = 0; i < 256; ++i) {
        const size_t kind = i & 3, upper = i >> 2;
        const size_t length = kind == 1 ? 4 + (upper & 7) : kind == 0 && upper >= 60 ? kBehind : upper + 1;
        tags[i].length = static_cast<uint8_t>(length);
        tags[i].distant = kind == 0 ? kNoOffset : static_cast<uint16_t>(kind == 1 ? upper >> 3 << 8 : 0);
    }
    return tags;
}();

constexpr size_t kLongest = 64;  // bytes of an element that is not a literal

// Where a decoder stands in a block.
struct Place {
    const uint8_t* in;
    const uint8_t* const in_end;
    uint8_t* at;
    uint8_t *const begin, *const end;
};

// One of the two, without a branch.
PYPARQ_ALWAYS_INLINE size_t pick(size_t all_ones_or_none, size_t if_ones, size_t otherwise) {
    return otherwise ^ ((otherwise ^ if_ones) & all_ones_or_none);
}

// Decodes elements as long as no wide copy can go wrong, and no further than `stop`; false where one is malformed.
bool decode_most(Place& place, const uint8_t* stop) {
    constexpr size_t kInput = 2 + kLongest, kOutput = kLongest + kSlack;
    const size_t left = static_cast<size_t>(place.in_end - place.in), room = static_cast<size_t>(place.end - place.at);
    if (left < kInput || room < kOutput) return true;
    const uint8_t* const in_last = place.in_end - kInput + 1;
    const uint8_t* const last = std::min<const uint8_t*>(stop, place.end - kOutput + 1);
    const uint8_t* in = place.in + 1;  // behind the tag
    uint8_t* at = place.at;
    size_t code = in[-1];
    bool right = true;
    do {
        // Whether it is a literal or a copy is what no processor foresees: there is no branch for that. And the next tag is
        // what all waits for: it is loaded for both cases.
        const size_t kind = code & 3, upper = code >> 2, literal = size_t{0} - (kind == 0);
        const uint8_t* const now = in;
        const size_t after_copy = in[kind], after_literal = in[upper + 1];
        const Tag tag = kTags[code];
        const size_t length = tag.length;
        const size_t offset = (load<uint16_t>(now) & (0x0000ffff00ff0000 >> 16 * kind & 0xffff)) + tag.distant;
        const size_t before = static_cast<size_t>(at - place.begin);
        const auto here = reinterpret_cast<uintptr_t>(now), back = reinterpret_cast<uintptr_t>(at) - offset;
        const auto* const from = reinterpret_cast<const uint8_t*>(pick(literal, here, back));
        if (offset < length || offset > (before | literal)) [[unlikely]] {
            if (length == kBehind || kind == 3) break;
            if (offset - 1 >= before) {
                right = false;
                break;
            }
            if (offset < 16) {
                repeat(at, offset, length);
            } else {
                copy_wide(at, at - offset, length);
            }
        } else {
            copy_16(at, from);
            if (length > 16) [[unlikely]] {
                copy_16(at + 16, from + 16);
                if (length > 32) copy_32(at + 32, from + 32);
            }
        }
        at += length;
        in += kind == 0 ? upper + 2 : kind + 1;
        code = kind == 0 ? after_literal : after_copy;
    } while (in <= in_last && at < last);
    place.in = in - 1, place.at = at;
    return right;
}

// Decodes one element; false where it is malformed, or does not fit.
bool decode_one(Place& place) {
    const Tag tag = kTags[*place.in];
    const size_t kind = *place.in & 3;
    size_t length = tag.length, left = static_cast<size_t>(place.in_end - place.in) - 1;
    const size_t bytes = length == kBehind ? (*place.in >> 2) - 59 : kind == 3 ? 4 : kind;  // behind the tag
    if (bytes > left) return false;
    uint32_t behind = 0;
    std::memcpy(&behind, place.in + 1, bytes);
    place.in += 1 + bytes, left -= bytes;
    if (length == kBehind) length = size_t{behind} + 1;
    if (length > static_cast<size_t>(place.end - place.at)) return false;
    if (kind == 0) {
        if (length > left) return false;
        std::memcpy(place.at, place.in, length);
        place.in += length;
    } else {
        const size_t offset = size_t{behind} + tag.distant;
        if (offset - 1 >= static_cast<size_t>(place.at - place.begin)) return false;
        copy_back_exactly(place.at, offset, length);
    }
    place.at += length;
    return true;
}

// Decodes until there is enough, or the block ends; false where it is malformed.
bool decode(Place& place, const uint8_t* stop) {
    while (place.in < place.in_end && (place.at < stop || stop == place.end)) {
        if (!decode_most(place, stop)) return false;
        if (place.in < place.in_end && (place.at < stop || stop == place.end) && !decode_one(place)) return false;
    }
    return true;
}

// The size that a block states, -1 where it states none below 2^32.
int64_t stated_size(const uint8_t*& in, const uint8_t* end) {
    uint64_t size = 0;
    for (unsigned shift = 0; shift <= 28; shift += 7) {
        if (in == end) return -1;
        const uint8_t byte = *in++;
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
    const size_t enough = std::min(wanted, static_cast<size_t>(size));
    Place place{.in = in, .in_end = in_end, .at = out, .begin = out, .end = out + size};
    return decode(place, out + enough) && place.at >= out + enough ? place.at - out : -1;
}

}  // namespace pyparq
