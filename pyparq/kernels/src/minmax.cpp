// Smallest and largest value per page segment, in every order the format defines.
#include "ranges.hpp"

namespace pyparq {
namespace {

size_t checked_segments(const In<int64_t>& bounds, size_t n) {
    check_offsets(bounds.data, bounds.size, n, "bounds");
    return bounds.size - 1;
}

template <class T>
nb::object minmax_typed(const T* values, const In<int64_t>& bounds, size_t n) {
    const size_t p = checked_segments(bounds, n);
    Fresh<T> lo(p), hi(p);
    Fresh<int64_t> nans(std::is_floating_point_v<T> ? p : 0);
    {
        NoGil nogil(n * sizeof(T));
        for (size_t k = 0; k < p; ++k) {
            const T* v = values + bounds.data[k];
            const size_t m = static_cast<size_t>(bounds.data[k + 1] - bounds.data[k]);
            if constexpr (std::is_floating_point_v<T>) {
                if (have_avx2()) float_range_avx2(v, m, lo.data[k], hi.data[k], nans.data[k]);
                else float_range(v, m, lo.data[k], hi.data[k], nans.data[k]);
            } else if (m == 0) {
                lo.data[k] = hi.data[k] = 0;
            } else {
                if (have_avx2()) int_range_avx2(v, m, lo.data[k], hi.data[k]);
                else int_range(v, m, lo.data[k], hi.data[k]);
            }
        }
    }
    if constexpr (std::is_floating_point_v<T>) return nb::make_tuple(lo.object, hi.object, nans.object);
    else return nb::make_tuple(lo.object, hi.object, nb::none());
}

// IEEE half floats as integers that sort like them; NaNs are told apart before.
nb::object minmax_half(const uint16_t* v, const In<int64_t>& bounds, size_t n) {
    const size_t p = checked_segments(bounds, n);
    Fresh<uint16_t> lo(p), hi(p);
    Fresh<int64_t> nans(p);
    {
        NoGil nogil(n * 2);
        const auto key = [](uint16_t h) { return static_cast<int>(h & 0x8000 ? -(h & 0x7fff) : h); };
        for (size_t k = 0; k < p; ++k) {
            uint16_t a = 0x7e00, b = 0x7e00;  // NaN until a number is seen
            int least = 0x10000, most = -0x10000;
            nans.data[k] = 0;
            for (int64_t i = bounds.data[k]; i < bounds.data[k + 1]; ++i) {
                if ((v[i] & 0x7fff) > 0x7c00) {
                    ++nans.data[k];
                    continue;
                }
                const int x = key(v[i]);
                if (x < least) least = x, a = v[i];
                if (x > most) most = x, b = v[i];
            }
            lo.data[k] = a;
            hi.data[k] = b;
        }
    }
    nb::str half("float16");
    return nb::make_tuple(lo.object.attr("view")(half), hi.object.attr("view")(half), nans.object);
}

nb::object minmax_numeric(const AnyArray<false>& values, const In<int64_t>& bounds) {
    const auto run = [&](auto tag) {
        return minmax_typed(static_cast<const decltype(tag)*>(values.data), bounds, values.size);
    };
    switch (values.kind) {
        case Kind::SignedInt:
            if (values.itemsize == 1) return run(int8_t{});
            if (values.itemsize == 2) return run(int16_t{});
            if (values.itemsize == 4) return run(int32_t{});
            if (values.itemsize == 8) return run(int64_t{});
            break;
        case Kind::UnsignedInt:
            if (values.itemsize == 1) return run(uint8_t{});
            if (values.itemsize == 2) return run(uint16_t{});
            if (values.itemsize == 4) return run(uint32_t{});
            if (values.itemsize == 8) return run(uint64_t{});
            break;
        case Kind::Float:
            if (values.itemsize == 2)
                return minmax_half(static_cast<const uint16_t*>(values.data), bounds, values.size);
            if (values.itemsize == 4) return run(float{});
            if (values.itemsize == 8) return run(double{});
            break;
        default: break;
    }
    fail("values of " + str(values.itemsize) + " bytes are not numbers this kernel knows");
}

// ---- bytes ----------------------------------------------------------------------------------------------

struct Best {
    uint64_t prefix;
    Bytes value;
    int64_t row;
};

// First row of the smallest and of the largest value per segment, -1 for an empty one. `order` compares two
// values fully; `prefix` gives a number that orders most pairs without touching the bytes.
template <class Get, class Prefix, class Order>
nb::object argminmax(const In<int64_t>& bounds, size_t n, Get&& get, Prefix&& prefix, Order&& order) {
    const size_t p = checked_segments(bounds, n);
    Fresh<int64_t> lo(p), hi(p);
    {
        NoGil nogil(n * 8);
        for (size_t k = 0; k < p; ++k) {
            const int64_t from = bounds.data[k], to = bounds.data[k + 1];
            if (from == to) {
                lo.data[k] = hi.data[k] = -1;
                continue;
            }
            const Bytes v0 = get(static_cast<size_t>(from));
            Best a{prefix(v0), v0, from}, b = a;
            for (int64_t i = from + 1; i < to; ++i) {
                const Bytes v = get(static_cast<size_t>(i));
                const uint64_t x = prefix(v);
                if (x < a.prefix || (x == a.prefix && order(v, a.value) < 0)) a = {x, v, i};
                if (x > b.prefix || (x == b.prefix && order(v, b.value) > 0)) b = {x, v, i};
            }
            lo.data[k] = a.row;
            hi.data[k] = b.row;
        }
    }
    return nb::make_tuple(lo.object, hi.object);
}

nb::object minmax_binary(const Offsets& offsets, const RawIn& data, const In<int64_t>& bounds) {
    return offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        const uint8_t* end = data.data + data.size;
        return argminmax(
            bounds, offsets.size - 1,
            [&](size_t i) { return Bytes{data.data + o[i], static_cast<size_t>(o[i + 1] - o[i])}; },
            [&](const Bytes& v) { return order_prefix(v.data, v.size, end); },
            [](const Bytes& a, const Bytes& b) { return compare_bytes(a.data, a.size, b.data, b.size); });
    });
}

nb::object minmax_binary_decimal(const Offsets& offsets, const RawIn& data, const In<int64_t>& bounds) {
    return offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        return argminmax(
            bounds, offsets.size - 1,
            [&](size_t i) { return Bytes{data.data + o[i], static_cast<size_t>(o[i + 1] - o[i])}; },
            [](const Bytes&) { return uint64_t{0}; }, compare_signed);
    });
}

nb::object minmax_flba(const RawIn& data, int64_t width_, bool signed_be, const In<int64_t>& bounds) {
    const size_t width = checked_value_width(width_), n = checked_items(data.size, width, "data");
    const uint8_t* end = data.data + data.size;
    const uint64_t flip = signed_be ? uint64_t{1} << 63 : 0;
    return argminmax(
        bounds, n, [&](size_t i) { return Bytes{data.data + i * width, width}; },
        [&](const Bytes& v) { return order_prefix(v.data, v.size, end) ^ flip; },
        // Equal prefixes have equal signs: the rest compares as unsigned bytes.
        [](const Bytes& a, const Bytes& b) { return compare_bytes(a.data, a.size, b.data, b.size); });
}

// ---- one literal against every value --------------------------------------------------------------------

template <class Get, class Order>
nb::object compare_all(size_t n, Get&& get, Order&& order) {
    Fresh<int8_t> out(n);
    NoGil nogil(n * 8);
    for (size_t i = 0; i < n; ++i) out.data[i] = static_cast<int8_t>(order(get(i)));
    return std::move(out.object);
}

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

nb::object starts_with_binary(const Offsets& offsets, const RawIn& data, const RawIn& prefix) {
    return offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        const size_t n = offsets.size - 1;
        Fresh<bool> out(n);
        NoGil nogil(n * 8);
        for (size_t i = 0; i < n; ++i)
            out.data[i] = static_cast<size_t>(o[i + 1] - o[i]) >= prefix.size &&
                          equal_bytes(data.data + o[i], prefix.data, prefix.size);
        return std::move(out.object);
    });
}

}  // namespace
}  // namespace pyparq

void bind_minmax(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("minmax_numeric", &minmax_numeric, "values"_a, "bounds"_a);
    m.def("minmax_binary", &minmax_binary, "offsets"_a, "data"_a, "bounds"_a);
    m.def("minmax_binary_decimal", &minmax_binary_decimal, "offsets"_a, "data"_a, "bounds"_a);
    m.def("minmax_flba", &minmax_flba, "data"_a, "width"_a, "signed_be"_a, "bounds"_a);
    m.def("compare_binary", &compare_binary, "offsets"_a, "data"_a, "literal"_a);
    m.def("compare_binary_decimal", &compare_binary_decimal, "offsets"_a, "data"_a, "literal"_a);
    m.def("compare_flba", &compare_flba, "data"_a, "width"_a, "signed_be"_a, "literal"_a);
    m.def("starts_with_binary", &starts_with_binary, "offsets"_a, "data"_a, "prefix"_a);
}
