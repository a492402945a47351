#include "variant/exact_number.hpp"

namespace pyparq::variant {
namespace {

constexpr int kMostDigits = 38;

// The magnitude of a number, in four digits of 32 bits, the lowest first: 10^38 has 127 bits.
struct Magnitude {
    uint32_t parts[4] = {};

    explicit Magnitude(const Wide& of) {
        const Wide value = of.negative() ? of.negated() : of;
        const auto high = static_cast<uint64_t>(value.high);
        parts[0] = static_cast<uint32_t>(value.low), parts[1] = static_cast<uint32_t>(value.low >> 32);
        parts[2] = static_cast<uint32_t>(high), parts[3] = static_cast<uint32_t>(high >> 32);
    }
    // False where it does not fit.
    bool times_ten() {
        uint64_t carry = 0;
        for (uint32_t& part : parts) {
            carry += uint64_t{part} * 10;
            part = static_cast<uint32_t>(carry);
            carry >>= 32;
        }
        return carry == 0;
    }
    // The rest of a division by ten, which is made.
    uint32_t over_ten() {
        uint64_t rest = 0;
        for (int k = 3; k >= 0; --k) {
            rest = rest << 32 | parts[k];
            parts[k] = static_cast<uint32_t>(rest / 10);
            rest %= 10;
        }
        return static_cast<uint32_t>(rest);
    }
    bool is_zero() const { return (parts[0] | parts[1] | parts[2] | parts[3]) == 0; }
    int digits() const {
        Magnitude left = *this;
        int count = 0;
        for (; !left.is_zero(); ++count) left.over_ten();
        return count;
    }
    Wide wide(bool negative) const {
        const uint64_t low = uint64_t{parts[1]} << 32 | parts[0], high = uint64_t{parts[3]} << 32 | parts[2];
        const Wide found{low, static_cast<int64_t>(high)};
        return negative ? found.negated() : found;
    }
};

}  // namespace

std::optional<ExactNumber> exact_number(const uint8_t* value) {
    switch (value[0] >> 2) {
        case kInt8: return ExactNumber{Wide::of(load<int8_t>(value + 1)), 0};
        case kInt16: return ExactNumber{Wide::of(load<int16_t>(value + 1)), 0};
        case kInt32: return ExactNumber{Wide::of(load<int32_t>(value + 1)), 0};
        case kInt64: return ExactNumber{Wide::of(load<int64_t>(value + 1)), 0};
        case kDecimal4: return ExactNumber{Wide::of(load<int32_t>(value + 2)), value[1]};
        case kDecimal8: return ExactNumber{Wide::of(load<int64_t>(value + 2)), value[1]};
        case kDecimal16: return ExactNumber{{load<uint64_t>(value + 2), load<int64_t>(value + 10)}, value[1]};
        default: return {};
    }
}

int digits_of(const Wide& number) { return Magnitude(number).digits(); }

std::optional<Wide> rescaled(const ExactNumber& number, int scale, int digits) {
    if (number.scale > kMostDigits) return {};
    Magnitude value(number.unscaled);
    for (int k = number.scale; k < scale && !value.is_zero(); ++k)
        if (!value.times_ten()) return {};
    for (int k = number.scale; k > scale; --k)
        if (value.over_ten() != 0) return {};
    if (value.digits() > digits) return {};
    return value.wide(number.unscaled.negative());
}

}  // namespace pyparq::variant
