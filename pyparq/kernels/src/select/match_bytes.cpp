// Byte strings, and numbers of more than 8 bytes, against a literal.
#include "select/calls.hpp"
#include "values/checks.hpp"

namespace pyparq {
namespace {

bool passes(Op op, int sign) {
    switch (op) {
        case Op::Equal: return sign == 0;
        case Op::NotEqual: return sign != 0;
        case Op::Less: return sign < 0;
        case Op::LessEqual: return sign <= 0;
        case Op::Greater: return sign > 0;
        case Op::GreaterEqual: return sign >= 0;
        default: fail("this test is not one of these values");
    }
}

void check_order(Op op) { passes(op, 0); }

// Values of 16 bytes, as match_limbs takes them: no branch on what they hold.
void compare_pairs(const uint8_t* values, size_t n, Op op, const uint8_t* literal, const Within& within, uint64_t* out) {
    const auto low = load<uint64_t>(literal);
    const auto high = load<int64_t>(literal + 8);
    const auto is_less = [=](size_t i) {
        const auto x = load<uint64_t>(values + 16 * i);
        const auto y = load<int64_t>(values + 16 * i + 8);
        return static_cast<int>(y < high) | (static_cast<int>(y == high) & static_cast<int>(x < low));
    };
    const auto is_more = [=](size_t i) {
        const auto x = load<uint64_t>(values + 16 * i);
        const auto y = load<int64_t>(values + 16 * i + 8);
        return static_cast<int>(y > high) | (static_cast<int>(y == high) & static_cast<int>(x > low));
    };
    const auto is_equal = [=](size_t i) {
        return static_cast<int>(load<uint64_t>(values + 16 * i) == low) & static_cast<int>(load<int64_t>(values + 16 * i + 8) == high);
    };
    switch (op) {
        case Op::Equal: return fill(n, within, out, [=](size_t i) { return is_equal(i) != 0; });
        case Op::NotEqual: return fill(n, within, out, [=](size_t i) { return is_equal(i) == 0; });
        case Op::Less: return fill(n, within, out, [=](size_t i) { return is_less(i) != 0; });
        case Op::LessEqual: return fill(n, within, out, [=](size_t i) { return is_more(i) == 0; });
        case Op::Greater: return fill(n, within, out, [=](size_t i) { return is_more(i) != 0; });
        default: return fill(n, within, out, [=](size_t i) { return is_less(i) == 0; });
    }
}

// Values that begin with the literal, or that are it. `wanted`: the answer for those.
template <bool Longer, class Get>
void test_begins(size_t n, const RawIn& literal, bool wanted, const uint8_t* end, const Within& within, uint64_t* out,
                 Get&& get) {
    const uint8_t* const x = literal.data;
    const size_t len = literal.size;
    const auto fits = [len](size_t size) { return Longer ? size >= len : size == len; };
    const uint64_t mask = low_bits(8 * len), first = byteswap(order_prefix(x, len, x + len));
    fill_one_by_one(n, within, out, [&](size_t i) {  // no branch on what the value holds, but for long literals
        const auto [p, size] = get(i);
        uint64_t have = 0;
        if (end - p >= 8) have = load<uint64_t>(p);
        else if (size > 0) std::memcpy(&have, p, size < 8 ? size : 8);
        const bool begins = fits(size) & ((have & mask) == first);
        return (begins && (len <= 8 || equal_bytes(p, x, len))) == wanted;
    });
}

template <class Get>
void test_bytes(size_t n, Op op, const RawIn& literal, const uint8_t* end, const Within& within, uint64_t* out,
                Get&& get) {
    const uint8_t* const x = literal.data;
    const size_t len = literal.size;
    if (op == Op::StartsWith || op == Op::NotStartsWith)
        return test_begins<true>(n, literal, op == Op::StartsWith, end, within, out, get);
    check_order(op);
    if (op == Op::Equal || op == Op::NotEqual)
        return test_begins<false>(n, literal, op == Op::Equal, end, within, out, get);
    const uint64_t prefix = order_prefix(x, len, x + len);
    fill_one_by_one(n, within, out, [&](size_t i) {
        const auto [p, size] = get(i);
        const uint64_t have = order_prefix(p, size, end);
        return passes(op, have != prefix ? (have < prefix ? -1 : 1) : compare_bytes(p, size, x, len));
    });
}

}  // namespace

// Little-endian two's complement of whole words, the last of them signed.
nb::object match_limbs(const RawIn& data, int64_t width_, const std::string& name, const RawIn& literal,
                       const Within& within) {
    const Op op = op_named(name);
    check_order(op);
    const size_t width = checked_value_width(width_), n = checked_items(data.size, width, "data");
    if (width % 8 != 0) fail("values of " + str(width) + " bytes are not whole words");
    if (literal.size != width) fail("the literal has " + str(literal.size) + " bytes, the values " + str(width));
    check_within(within, n);
    const size_t top = width / 8 - 1;
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(data.size);
    if (width == 16) {
        compare_pairs(data.data, n, op, literal.data, within, out.data);
        return std::move(out.object);
    }
    fill_one_by_one(n, within, out.data, [&](size_t i) {
        const uint8_t* v = data.data + i * width;
        const int64_t a = load<int64_t>(v + 8 * top), b = load<int64_t>(literal.data + 8 * top);
        int sign = a < b ? -1 : a > b ? 1
                                      : 0;
        for (size_t k = top; sign == 0 && k-- > 0;) {
            const uint64_t x = load<uint64_t>(v + 8 * k), y = load<uint64_t>(literal.data + 8 * k);
            sign = x < y ? -1 : x > y ? 1
                                      : 0;
        }
        return passes(op, sign);
    });
    return std::move(out.object);
}

nb::object match_binary(const Offsets& offsets, const RawIn& data, const std::string& name, const RawIn& literal,
                        const Within& within) {
    const Op op = op_named(name);
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    const size_t n = offsets.size - 1;
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n * 8);
    offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        test_bytes(n, op, literal, data.data + data.size, within, out.data, [&](size_t i) {
            return std::pair(data.data + o[i], static_cast<size_t>(o[i + 1] - o[i]));
        });
    });
    return std::move(out.object);
}

// Values of one length, in unsigned byte order.
nb::object match_fixed(const RawIn& data, int64_t width_, const std::string& name, const RawIn& literal,
                       const Within& within) {
    const Op op = op_named(name);
    const size_t width = checked_value_width(width_), n = checked_items(data.size, width, "data");
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(data.size);
    test_bytes(n, op, literal, data.data + data.size, within, out.data,
               [&](size_t i) { return std::pair(data.data + i * width, width); });
    return std::move(out.object);
}

}  // namespace pyparq
