// Numbers as decimal text, one behind the other: the shortest that reads back as the same number.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "values/calls.hpp"
#include "base/common.hpp"

namespace pyparq {
namespace {

// Room for one: a sign, 17 digits, up to 5 zeros with their point, and some more.
constexpr size_t LONGEST = 32;

// Beyond these, Python and numpy write exponents, and not all of their versions at the same place.
template <class T>
bool is_plain(T value) {
    const T size = std::fabs(value);
    if (sizeof(T) == 8) return size == 0 || (size >= T(1e-4) && size < T(9007199254740992.0));
    return size == 0 || (size >= T(1e-3) && size < T(1e6));
}

// The text of `value` at `out`; how long it is, 0 where it is left to Python.
template <class T>
size_t text_of(T value, char* out) {
    char* const end = out + LONGEST;
    if constexpr (std::is_floating_point_v<T>) {
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
        if (!is_plain(value)) return 0;
        char* at = std::to_chars(out, end - 2, value, std::chars_format::fixed).ptr;
        if (std::find(out, at, '.') == at) *at++ = '.', *at++ = '0';
        return static_cast<size_t>(at - out);
#else
        return 0;
#endif
    } else {
        return static_cast<size_t>(std::to_chars(out, end, value).ptr - out);
    }
}

template <class T>
size_t write_all(const T* values, size_t n, int64_t* offsets, uint8_t* out) {
    size_t at = 0;
    for (size_t k = 0; k < n; ++k) {
        offsets[k] = static_cast<int64_t>(at);
        at += text_of(values[k], reinterpret_cast<char*>(out) + at);
    }
    offsets[n] = static_cast<int64_t>(at);
    return at;
}

}  // namespace

nb::tuple number_texts(const AnyArray<false>& values) {
    const size_t n = values.size;
    Fresh<int64_t> offsets(n + 1);
    Fresh<uint8_t> out(checked_mul(n, LONGEST));
    size_t used = 0;
    {
        NoGil nogil(n * values.itemsize);
        const auto write = [&](auto zero) {
            using T = decltype(zero);
            used = write_all(static_cast<const T*>(values.data), n, offsets.data, out.data);
            return true;
        };
        const bool is_signed = values.kind == Kind::SignedInt, is_float = values.kind == Kind::Float;
        switch (values.itemsize) {
            case 1: is_signed ? write(int8_t{}) : write(uint8_t{}); break;
            case 2:
                is_float ? false : is_signed ? write(int16_t{})
                                             : write(uint16_t{});
                break;
            case 4:
                is_float ? write(float{}) : is_signed ? write(int32_t{})
                                                      : write(uint32_t{});
                break;
            case 8:
                is_float ? write(double{}) : is_signed ? write(int64_t{})
                                                       : write(uint64_t{});
                break;
            default: break;
        }
        if (used == 0) std::fill_n(offsets.data, n + 1, 0);
    }
    return nb::make_tuple(std::move(offsets.object), first_items(std::move(out.object), out.size, used));
}

}  // namespace pyparq
