#include "codecs/lz4.hpp"

#include "codecs/hadoop_frames.hpp"
#include "codecs/overlap.hpp"

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

// Where a decoder stands in a block.
struct Place {
    const uint8_t* in;
    const uint8_t* const in_end;
    uint8_t* at;
    uint8_t *const begin, *const end;

    size_t left() const { return static_cast<size_t>(in_end - in); }
    size_t room() const { return static_cast<size_t>(end - at); }
};

// At most 32 bytes that stand `offset` bytes before; as many are written.
inline void copy_short_match(uint8_t* to, size_t offset, size_t length) {
    if (offset >= 16) [[likely]] {
        copy_16(to, to - offset);
        copy_16(to + 16, to + 16 - offset);
    } else {
        repeat(to, offset, length);
    }
}

inline void copy_long_match(uint8_t* to, size_t offset, size_t length) {
    if (offset < 32) return copy_back(to, offset, length);
    for (size_t done = 0; done < length; done += 32) copy_32(to + done, to + done - offset);
}

// Decodes sequences as long as no wide copy can go wrong, and no further than `stop`; false where one is malformed.
bool decode_most(Place& place, const uint8_t* stop) {
    // Of a sequence whose lengths stand in its token, and what others are made sure of that have longer ones.
    constexpr size_t kInput = 1 + 16 + 2 + kLastLiterals, kOutput = 15 + 32 + kLastMatch;
    if (place.left() < kInput || place.room() < kOutput) return true;
    const uint8_t* const in_last = place.in_end - kInput;
    const uint8_t* const last = std::min<const uint8_t*>(stop, place.end - kOutput + 1);
    const uint8_t* in = place.in;
    uint8_t* at = place.at;
    bool right = true;
    while (in <= in_last && at < last) {
        const size_t token = *in, literals = token >> 4;
        if (literals == 15) break;
        copy_16(at, in + 1);
        const uint8_t* behind = in + 1 + literals;
        uint8_t* to = at + literals;
        const size_t offset = load<uint16_t>(behind);
        behind += 2;
        if (offset - 1 >= static_cast<size_t>(to - place.begin)) [[unlikely]] {
            right = false;
            break;
        }
        size_t length = (token & 15) + kShortestMatch;
        if (length < 15 + kShortestMatch) {
            copy_short_match(to, offset, length);
        } else {
            if (!more_length(behind, place.in_end, length)) {
                right = false;
                break;
            }
            if (length + kSlack > static_cast<size_t>(place.end - to)) break;
            copy_long_match(to, offset, length);
        }
        in = behind, at = to + length;
    }
    place.in = in, place.at = at;
    return right;
}

enum class Step { More,
                  End,
                  Wrong };

// Decodes one sequence.
Step decode_one(Place& place) {
    if (place.left() == 0) return Step::Wrong;
    const size_t token = *place.in++;
    size_t literals = token >> 4, length = (token & 15) + kShortestMatch;
    if (literals == 15 && !more_length(place.in, place.in_end, literals)) return Step::Wrong;
    if (literals > place.left() || literals > place.room()) return Step::Wrong;
    if (literals > 0) std::memcpy(place.at, place.in, literals);
    place.in += literals, place.at += literals;
    if (place.left() == 0) return Step::End;
    if (place.left() < 3 + kLastLiterals || place.room() < kLastMatch) return Step::Wrong;
    const size_t offset = load<uint16_t>(place.in);
    place.in += 2;
    if (length == 15 + kShortestMatch && !more_length(place.in, place.in_end, length)) return Step::Wrong;
    if (offset - 1 >= static_cast<size_t>(place.at - place.begin)) return Step::Wrong;
    if (length > place.room() || place.room() - length < kLastLiterals) return Step::Wrong;
    copy_back_exactly(place.at, offset, length);
    place.at += length;
    return Step::More;
}

// Decodes until there is enough, or the block ends; false where it is malformed.
bool decode(Place& place, const uint8_t* stop) {
    while (place.at < stop || stop == place.end) {
        if (!decode_most(place, stop)) return false;
        if (place.at >= stop && stop < place.end) return true;
        const Step found = decode_one(place);
        if (found != Step::More) return found == Step::End;
    }
    return true;
}

}  // namespace

int64_t lz4_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted) {
    Place place{.in = in, .in_end = in + n, .at = out, .begin = out, .end = out + room};
    const uint8_t* const stop = out + std::min(wanted, room);
    const bool right = decode(place, stop);
    return right ? place.at - out : -1;
}

int64_t lz4_hadoop_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    const auto block = [](const uint8_t* from, size_t stored, uint8_t* to, size_t left) { return lz4_inflate(from, stored, to, left, SIZE_MAX); };
    const int64_t found = hadoop_frames(in, n, out, room, block);
    return found == static_cast<int64_t>(room) ? found : lz4_inflate(in, n, out, room, SIZE_MAX);
}

}  // namespace pyparq
