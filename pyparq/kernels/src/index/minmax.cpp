// One literal against every value, in the orders of byte strings.
#include "index/calls.hpp"
#include "index/ranges.hpp"

namespace pyparq {
namespace {

template <class Get, class Order>
nb::object compare_all(size_t n, Get&& get, Order&& order) {
    Fresh<int8_t> out(n);
    NoGil nogil(n * 8);
    for (size_t i = 0; i < n; ++i) out.data[i] = static_cast<int8_t>(order(get(i)));
    return std::move(out.object);
}

}  // namespace

nb::object compare_binary(const Offsets& offsets, const RawIn& data, const RawIn& literal) {
    return offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        const uint8_t *end = data.data + data.size, *l_end = literal.data + literal.size;
        const uint64_t wanted = order_prefix(literal.data, literal.size, l_end);
        return compare_all(
            offsets.size - 1,
            [&](size_t i) { return Bytes{data.data + o[i], static_cast<size_t>(o[i + 1] - o[i])}; },
            [&](const Bytes& v) {
            const uint64_t x = order_prefix(v.data, v.size, end);
            if (x != wanted) return x < wanted ? -1 : 1;
            return compare_bytes(v.data, v.size, literal.data, literal.size);
        });
    });
}

nb::object compare_binary_decimal(const Offsets& offsets, const RawIn& data, const RawIn& literal) {
    return offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        return compare_all(
            offsets.size - 1,
            [&](size_t i) { return Bytes{data.data + o[i], static_cast<size_t>(o[i + 1] - o[i])}; },
            [&](const Bytes& v) { return compare_signed(v, Bytes{literal.data, literal.size}); });
    });
}

nb::object compare_flba(const RawIn& data, int64_t width_, bool signed_be, const RawIn& literal) {
    const size_t width = checked_value_width(width_), n = checked_items(data.size, width, "data");
    const auto get = [&](size_t i) { return Bytes{data.data + i * width, width}; };
    const Bytes wanted{literal.data, literal.size};
    if (signed_be) return compare_all(n, get, [&](const Bytes& v) { return compare_signed(v, wanted); });
    return compare_all(n, get, [&](const Bytes& v) { return compare_bytes(v.data, v.size, wanted.data, wanted.size); });
}

}  // namespace pyparq
