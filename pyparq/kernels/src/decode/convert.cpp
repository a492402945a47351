// Stored values of fixed width become those of the output: narrower integers, and decimals of 16 or 32 bytes.
#include "decode/values.hpp"

#include <array>
#include <limits>

namespace pyparq {
namespace {

template <class To>
bool narrow(const uint8_t* in, size_t n, uint8_t* out) {
    // Counted from the least number of the type, all that fit have only its bits.
    constexpr auto kLeast = static_cast<uint32_t>(-int32_t{std::numeric_limits<To>::min()});
    uint32_t seen = 0;
    for (size_t i = 0; i < n; ++i) {
        const auto v = load<uint32_t>(in + i * sizeof(uint32_t));
        seen |= v + kLeast;
        store(out + i * sizeof(To), static_cast<To>(v));
    }
    return seen >> 8 * sizeof(To) == 0;
}

// The largest number of so many digits, as limbs of 64 bits, lowest first.
std::array<uint64_t, 4> most_of(int digits) {
    std::array<uint64_t, 4> limbs{};
    for (int d = 0; d < digits; ++d) {  // times 10 plus 9
        uint64_t carry = 9;
        for (uint64_t& limb : limbs) {
            const auto wide = static_cast<unsigned __int128>(limb) * 10 + carry;
            limb = static_cast<uint64_t>(wide);
            carry = static_cast<uint64_t>(wide >> 64);
        }
    }
    return limbs;
}

// Collects whether any number lies outside of -most to most: there a sum or a difference is negative. Without digits none
// does.
class Digits64 {
  public:
    explicit Digits64(int digits) : checks_(digits > 0 && digits < 19), most_(checks_ ? most_of(digits)[0] : 0) {}
    void see(int64_t value) {
        const auto v = static_cast<uint64_t>(value);
        seen_ |= (most_ + v) | (most_ - v);
    }
    bool all_within() const { return !checks_ || seen_ >> 63 == 0; }

  private:
    bool checks_;
    uint64_t most_;
    uint64_t seen_ = 0;
};

class Digits128 {
  public:
    using Wide = unsigned __int128;
    explicit Digits128(int digits) : checks_(digits > 0 && digits < 39) {
        const auto limbs = most_of(checks_ ? digits : 0);
        most_ = static_cast<Wide>(limbs[1]) << 64 | limbs[0];
    }
    void see(uint64_t low, int64_t high) {
        const Wide value = static_cast<Wide>(static_cast<uint64_t>(high)) << 64 | low;
        beyond_ |= value + most_ > 2 * most_;
    }
    bool all_within() const { return !checks_ || !beyond_; }

  private:
    bool checks_;
    Wide most_;
    bool beyond_ = false;
};

// One decimal of `width` bytes.
bool is_beyond(const uint8_t* value, size_t width, const std::array<uint64_t, 4>& most) {
    std::array<uint64_t, 4> limbs{};
    const size_t count = width / 8;
    for (size_t k = 0; k < count; ++k) limbs[k] = load<uint64_t>(value + 8 * k);
    if (limbs[count - 1] >> 63) {  // its negation
        uint64_t carry = 1;
        for (size_t k = 0; k < count; ++k) {
            limbs[k] = ~limbs[k] + carry;
            carry = carry != 0 && limbs[k] == 0;
        }
    }
    for (size_t k = 4; k-- > 0;)
        if (limbs[k] != most[k]) return limbs[k] > most[k];
    return false;
}

template <class From, size_t kWidth>
bool widen(const uint8_t* in, size_t n, int digits, uint8_t* out) {
    Digits64 range(digits);
    for (size_t i = 0; i < n; ++i) {
        const int64_t v = load<From>(in + i * sizeof(From));
        range.see(v);
        store(out + i * kWidth, v);
        for (size_t at = 8; at < kWidth; at += 8) store(out + i * kWidth + at, v >> 63);
    }
    return range.all_within();
}

// Big-endian two's complement of up to 8 bytes, one after another, to 16 bytes.
bool turn_short(const uint8_t* in, size_t n, size_t stored, int digits, uint8_t* out) {
    Digits64 range(digits);
    const auto put = [&](uint64_t leading) {
        const int64_t v = static_cast<int64_t>(byteswap(leading)) >> (64 - 8 * stored);
        range.see(v);
        store(out, v);
        store(out + 8, v >> 63);
        out += 16;
    };
    const uint8_t* const end = in + n * stored;
    for (; end - in >= 8; in += stored) put(load<uint64_t>(in));
    for (; in < end; in += stored) {
        uint64_t leading = 0;
        std::memcpy(&leading, in, stored);
        put(leading);
    }
    return range.all_within();
}

// Of 9 to 16 bytes.
bool turn_long(const uint8_t* in, size_t n, size_t stored, int digits, uint8_t* out) {
    Digits128 range(digits);
    for (size_t i = 0; i < n; ++i, in += stored, out += 16) {
        const uint64_t low = byteswap(load<uint64_t>(in + stored - 8));
        const int64_t high = static_cast<int64_t>(byteswap(load<uint64_t>(in))) >> (128 - 8 * stored);
        range.see(low, high);
        store(out, low);
        store(out + 8, high);
    }
    return range.all_within();
}

// Do the leading bytes of a big-endian number only repeat the sign of the last `width`?
bool repeats_sign(const uint8_t* value, size_t stored, size_t width) {
    const uint8_t sign = value[stored - width] >> 7 ? 0xff : 0;
    for (size_t k = 0; k < stored - width; ++k)
        if (value[k] != sign) return false;
    return true;
}

// Big-endian two's complement of `stored` bytes to little-endian of `width`. What is too long becomes the largest number,
// which has too many digits for any decimal.
bool turn(const uint8_t* in, size_t n, size_t stored, size_t width, int digits, uint8_t* out) {
    if (width == 16 && stored >= 1 && stored <= 8) return turn_short(in, n, stored, digits, out);
    if (width == 16 && stored > 8 && stored <= 16) return turn_long(in, n, stored, digits, out);
    const auto most = most_of(std::max(digits, 0));
    bool within = true;
    for (size_t i = 0; i < n; ++i, in += stored, out += width) {
        const size_t skipped = stored > width ? stored - width : 0;
        if (skipped > 0 && !repeats_sign(in, stored, width)) {
            std::memset(out, 0xff, width);
            out[width - 1] = 0x7f;
        } else {
            const uint8_t* const from = in + skipped;
            const size_t left = stored - skipped;
            const uint8_t sign = left > 0 && from[0] >> 7 ? 0xff : 0;
            for (size_t k = 0; k < left; ++k) out[k] = from[left - 1 - k];
            std::memset(out + left, sign, width - left);
        }
        within = within && (digits <= 0 || !is_beyond(out, width, most));
    }
    return within;
}

}  // namespace

bool convert(const LeafSpec& leaf, const uint8_t* in, size_t n, uint8_t* out) {
    const size_t width = leaf.out_width();
    switch (leaf.convert) {
        case Convert::kInt8: return narrow<int8_t>(in, n, out);
        case Convert::kInt16: return narrow<int16_t>(in, n, out);
        case Convert::kUint8: return narrow<uint8_t>(in, n, out);
        case Convert::kUint16: return narrow<uint16_t>(in, n, out);
        case Convert::kDecimal16:
            return leaf.width == 4 ? widen<int32_t, 16>(in, n, leaf.digits, out)
                                   : widen<int64_t, 16>(in, n, leaf.digits, out);
        case Convert::kDecimal32:
            return leaf.width == 4 ? widen<int32_t, 32>(in, n, leaf.digits, out)
                                   : widen<int64_t, 32>(in, n, leaf.digits, out);
        case Convert::kBytesDecimal16:
        case Convert::kBytesDecimal32:
            return turn(in, n, leaf.width, width, leaf.digits, out);
        case Convert::kNone: std::memcpy(out, in, n * width); return true;
    }
    return true;
}

std::vector<uint8_t> misfits(const LeafSpec& leaf, const uint8_t* in, size_t n) {
    std::vector<uint8_t> found(n);
    std::array<uint8_t, 32> out;
    for (size_t i = 0; i < n; ++i) found[i] = convert(leaf, in + i * leaf.width, 1, out.data()) ? 0 : 1;
    return found;
}

void does_not_fit(const LeafSpec& leaf) {
    switch (leaf.convert) {
        case Convert::kInt8: throw PageRefusal{"integer_bits", 8, 1};
        case Convert::kInt16: throw PageRefusal{"integer_bits", 16, 1};
        case Convert::kUint8: throw PageRefusal{"integer_bits", 8, 0};
        case Convert::kUint16: throw PageRefusal{"integer_bits", 16, 0};
        default: throw PageRefusal{"decimal_digits", leaf.digits};
    }
}

}  // namespace pyparq
