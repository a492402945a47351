// Numbers against a literal.
#include "select/calls.hpp"
#include "select/numbers.hpp"

namespace pyparq {
namespace {

// NaN stands above every number, so it passes the negations of < and <=; the literal is never NaN.
template <class T>
void compare_numbers(const T* v, size_t n, Op op, T x, const Within& within, uint64_t* out) {
    switch (op) {
        case Op::Equal: return fill(n, within, out, [=](size_t i) { return v[i] == x; });
        case Op::NotEqual: return fill(n, within, out, [=](size_t i) { return v[i] != x; });
        case Op::Less: return fill(n, within, out, [=](size_t i) { return v[i] < x; });
        case Op::LessEqual: return fill(n, within, out, [=](size_t i) { return v[i] <= x; });
        case Op::Greater: return fill(n, within, out, [=](size_t i) { return !(v[i] <= x); });
        case Op::GreaterEqual: return fill(n, within, out, [=](size_t i) { return !(v[i] < x); });
        case Op::IsNan: return fill(n, within, out, [=](size_t i) { return v[i] != v[i]; });
        case Op::IsNotNan: return fill(n, within, out, [=](size_t i) { return v[i] == v[i]; });
        default: fail("this test is not one of numbers");
    }
}

void compare_halves(const uint16_t* v, size_t n, Op op, uint16_t literal, const Within& within, uint64_t* out) {
    const int16_t x = order_of_half(literal);
    const auto run = [&](auto&& test) {
        fill(n, within, out, [&](size_t i) { return test(order_of_half(v[i])); });
    };
    switch (op) {
        case Op::Equal: return run([=](int16_t y) { return y == x; });
        case Op::NotEqual: return run([=](int16_t y) { return y != x; });
        case Op::Less: return run([=](int16_t y) { return y < x; });
        case Op::LessEqual: return run([=](int16_t y) { return y <= x; });
        case Op::Greater: return run([=](int16_t y) { return y > x; });
        case Op::GreaterEqual: return run([=](int16_t y) { return y >= x; });
        case Op::IsNan: return run([=](int16_t y) { return y == 0x7fff; });
        case Op::IsNotNan: return run([=](int16_t y) { return y != 0x7fff; });
        default: fail("this test is not one of numbers");
    }
}

}  // namespace

nb::object match_numbers(const AnyArray<false>& values, const std::string& name, const RawIn& literal,
                         const Within& within) {
    const Op op = op_named(name);
    const size_t n = values.size;
    check_within(within, n);
    if (literal.size != values.itemsize)
        fail("the literal has " + str(literal.size) + " bytes, the values " + str(values.itemsize));
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n * values.itemsize);
    visit_numbers(values, [&](const auto* v) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(v)>>;
        if constexpr (std::is_same_v<T, Half>)
            compare_halves(reinterpret_cast<const uint16_t*>(v), n, op, load<uint16_t>(literal.data), within, out.data);
        else
            compare_numbers<T>(v, n, op, load<T>(literal.data), within, out.data);
    });
    return std::move(out.object);
}

}  // namespace pyparq
