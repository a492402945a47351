// Whole numbers and decimals of Variants, which are one kind of number in several encodings: changed from one to another
// where the value stays the same.
#pragma once
#include <optional>

#include "variant/encoding.hpp"

namespace pyparq::variant {

// A two's complement of 128 bits: what decimals of up to 38 digits need. Compilers for Windows have no such type.
struct Wide {
    uint64_t low = 0;
    int64_t high = 0;

    static Wide of(int64_t value) { return {static_cast<uint64_t>(value), value < 0 ? -1 : 0}; }
    bool negative() const { return high < 0; }
    bool is_int64() const { return high == (static_cast<int64_t>(low) < 0 ? -1 : 0); }
    Wide negated() const {
        const uint64_t lower = ~low + 1;
        return {lower, static_cast<int64_t>(~static_cast<uint64_t>(high) + (lower == 0 ? 1 : 0))};
    }
};

struct ExactNumber {
    Wide unscaled;
    int scale = 0;
};

// The number that a primitive value holds; none where it holds something else. `value` has the size that its type needs.
std::optional<ExactNumber> exact_number(const uint8_t* value);

// Decimal digits of the number, 0 of zero.
int digits_of(const Wide& number);

// The same number with another scale; none where it would have more than `digits` digits, or be another.
std::optional<Wide> rescaled(const ExactNumber& number, int scale, int digits);

}  // namespace pyparq::variant
