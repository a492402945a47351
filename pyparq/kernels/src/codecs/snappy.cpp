#include "codecs/snappy.hpp"

#include "codecs/overlap.hpp"

#include <array>

namespace pyparq {
namespace {

// What an element's tag says.
struct Tag {
    uint8_t length = 0;    // 1 to 64, or kBehind
    uint16_t distant = 0;  // added to the bytes behind the tag, it gives the offset
};

constexpr uint8_t kBehind = 255;  // the length of a literal stands behind the tag

constexpr auto kTags = [] {
    std::array<Tag, 256> tags{};
    for (size_t i = 0; i < 256; ++i) {
        const size_t kind = i & 3, upper = i >> 2;
        const size_t length = kind == 1 ? 4 + (upper & 7) : kind == 0 && upper >= 60 ? kBehind
                                                                                     : upper + 1;
        tags[i].length = static_cast<uint8_t>(length);
        tags[i].distant = static_cast<uint16_t>(kind == 1 ? upper >> 3 << 8 : 0);
    }
    return tags;
}();

struct Block16 {
    uint64_t v[2];
};

constexpr size_t kLongest = 64;  // bytes of an element that is not a literal

// Where a decoder stands in a block.
struct Place {
    const uint8_t* in;
    const uint8_t* const in_end;
    uint8_t* at;
    uint8_t *const begin, *const end;
};

// What a step through the elements of a block comes to.
enum class Step { kGoOn,
                  kStop,
                  kMalformed };

// A copy, and the literal of `lead` bytes before it, which is not written yet. The copy is read before the literal is written:
// then what it reads was written by one store as a rule, and the processor need not wait for its cache.
template <bool has_literal>
PYPARQ_ALWAYS_INLINE Step copy_element(const uint8_t* begin, const uint8_t*& in, uint8_t*& at, size_t& code,
                                       const Block16& literal, size_t lead) {
    const size_t kind = code & 3;
    // All waits for the next tag: it is loaded for both kinds, of which no processor foresees which it is.
    const size_t after_one = in[1], after_two = in[2];
    const Tag tag = kTags[code];
    const size_t length = tag.length;
    const size_t offset = (load<uint16_t>(in) & (0x0000ffff00ff0000 >> 16 * kind & 0xffff)) + tag.distant;
    const size_t there = static_cast<size_t>(at - begin) + lead;
    if (offset < length + lead || offset > there) [[unlikely]] {
        if (has_literal) store(at, literal);
        at += lead;
        if (kind == 3) return Step::kStop;
        if (offset - 1 >= there) return Step::kMalformed;
        if (offset < 16) repeat(at, offset, length);
        else copy_wide(at, at - offset, length);
    } else {
        const uint8_t* const from = at + lead - offset;
        const auto first = load<Block16>(from);
        if (has_literal) store(at, literal);
        at += lead;
        store(at, first);
        if (length > 16) [[unlikely]] {
            copy_16(at + 16, from + 16);
            if (length > 32) copy_32(at + 32, from + 32);
        }
    }
    at += length;
    in += kind + 1;
    code = kind == 1 ? after_one : after_two;
    return Step::kGoOn;
}

// Decodes elements as long as no wide copy can go wrong, and no further than `stop`; false where one is malformed.
bool decode_most(Place& place, const uint8_t* stop) {
    // A short literal, a copy, and the tag behind; a long literal is looked at apart.
    constexpr size_t kShort = 16, kInput = kShort + 8, kOutput = kShort + kLongest + 16;
    constexpr std::ptrdiff_t kMore = 3 * kLongest;
    const size_t left = static_cast<size_t>(place.in_end - place.in), room = static_cast<size_t>(place.end - place.at);
    if (left < kInput || room < kOutput) return true;
    const uint8_t* const in_last = place.in_end - kInput + 1;
    const uint8_t* const last = std::min<const uint8_t*>(stop, place.end - kOutput + 1);
    const uint8_t* in = place.in + 1;  // behind the tag
    uint8_t* at = place.at;
    size_t code = in[-1];
    Step step = Step::kGoOn;
    do {
        if ((code & 3) != 0) {
            step = copy_element<false>(place.begin, in, at, code, {}, 0);
            continue;
        }
        const size_t length = (code >> 2) + 1;
        const auto literal = load<Block16>(in);
        if (length > kShort) [[unlikely]] {
            if (length > kLongest - 4 || place.in_end - in < kMore || place.end - at < kMore) break;
            store(at, literal);
            copy_16(at + 16, in + 16);
            copy_32(at + 32, in + 32);
            code = in[length];
            in += length + 1;
            at += length;
            continue;
        }
        code = in[length];
        in += length + 1;
        if ((code & 3) == 0) [[unlikely]] {
            store(at, literal);
            at += length;
            continue;
        }
        step = copy_element<true>(place.begin, in, at, code, literal, length);
    } while (step == Step::kGoOn && in <= in_last && at < last);
    place.in = in - 1, place.at = at;
    return step != Step::kMalformed;
}

// Decodes one element; false where it is malformed, or does not fit.
bool decode_one(Place& place) {
    const Tag tag = kTags[*place.in];
    const size_t kind = *place.in & 3;
    size_t length = tag.length, left = static_cast<size_t>(place.in_end - place.in) - 1;
    const size_t bytes = length == kBehind ? (*place.in >> 2) - 59 : kind == 3 ? 4
                                                                               : kind;  // behind the tag
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
