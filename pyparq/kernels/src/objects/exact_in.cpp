// Decimals (with ints among them) and UUIDs as columns of 16 bytes a value.
#include "objects/each_value.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace pyparq {
namespace {

#if defined(__SIZEOF_INT128__)
using Wide = unsigned __int128;
constexpr int kMostDigits = 38;
#else
using Wide = uint64_t;
constexpr int kMostDigits = 18;
#endif

constexpr std::array<Wide, kMostDigits + 1> powers_of_ten() {
    std::array<Wide, kMostDigits + 1> found{};
    Wide power = 1;
    for (Wide& one : found) one = power, power *= 10;
    return found;
}
constexpr auto kTen = powers_of_ten();

int digits_in(Wide number) {
    return static_cast<int>(std::upper_bound(kTen.begin() + 1, kTen.end(), number) - kTen.begin()) - (number == 0 ? 1 : 0);
}

struct Exact {
    Wide number = 0;
    int32_t scale = 0;  // digits after the point
    bool negative = false;
};

// A number in the text that Decimal has for it; false for NaN, infinity and more digits than there is room for.
bool parse(const char* at, size_t size, Exact& found) {
    const char* const end = at + size;
    found = {};
    if (at != end && *at == '-') found.negative = true, ++at;
    bool point = false;
    int digits = 0;
    int64_t scale = 0;
    for (; at != end && *at != 'E' && *at != 'e'; ++at) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9') return false;
        digits += digits != 0 || *at != '0' ? 1 : 0;
        if (digits > kMostDigits) return false;
        found.number = found.number * 10 + static_cast<unsigned>(*at - '0');
        scale += point ? 1 : 0;
    }
    if (at != end) {
        ++at;
        const bool minus = at != end && *at == '-';
        if (at != end && (*at == '-' || *at == '+')) ++at;
        if (at == end || end - at > 3) return false;
        int64_t exponent = 0;
        for (; at != end; ++at) {
            if (*at < '0' || *at > '9') return false;
            exponent = exponent * 10 + (*at - '0');
        }
        scale += minus ? exponent : -exponent;
    }
    if (scale < 0) {  // no digits after the point, and zeros before it
        if (found.number != 0) {
            if (digits - scale > kMostDigits) return false;
            found.number *= kTen[static_cast<size_t>(-scale)];
        }
        scale = 0;
    }
    found.scale = static_cast<int32_t>(scale);
    return scale <= kMostDigits;
}

struct Types {
    nb::object decimal, uuid, number, half;  // the name of a UUID's number, and the bits of half of it
};

const Types& types() {
    // Never freed: the interpreter may be gone before static destructors run. Set without a lock: an import may let other
    // threads run.
    static const Types* found = nullptr;
    if (found == nullptr)
        found = new Types{nb::module_::import_("decimal").attr("Decimal"),
                          nb::module_::import_("uuid").attr("UUID"), nb::str("int"), nb::int_(64)};
    return *found;
}

bool is(PyObject* value, const nb::object& type) { return reinterpret_cast<PyObject*>(Py_TYPE(value)) == type.ptr(); }

bool exact_of(PyObject* value, Exact& found) {
    if (Py_IS_TYPE(value, &PyLong_Type)) {
        int overflow = 0;
        const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        found = {number < 0 ? Wide{0} - static_cast<Wide>(number) : static_cast<Wide>(number), 0, number < 0};
        return overflow == 0 && digits_in(found.number) <= kMostDigits;
    }
    if (!is(value, types().decimal)) return false;
    const nb::object text = checked(PyObject_Str(value));
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) throw nb::python_error();
    return parse(data, static_cast<size_t>(size), found);
}

// The number with `scale` digits after the point; false where it has more, or more than `precision` digits in all.
bool rescale(Exact& value, const DecimalType& type) {
    const int64_t more = type.scale - value.scale;
    if (value.number == 0) return true;
    if (more < 0) {
        const Wide power = kTen[static_cast<size_t>(-more)];
        if (value.number % power != 0) return false;
        value.number /= power;
    } else {
        if (digits_in(value.number) + more > kMostDigits) return false;
        value.number *= kTen[static_cast<size_t>(more)];
    }
    return digits_in(value.number) <= type.precision;
}

// The smallest type that has all the numbers, as the digits before and after the point need it.
DecimalType fitting(const std::vector<Exact>& numbers) {
    int32_t scale = 0, whole = 0;
    for (const Exact& one : numbers) {
        scale = std::max(scale, one.scale);
        if (one.number != 0) whole = std::max(whole, digits_in(one.number) - one.scale);
    }
    return {std::max(whole + scale, 1), scale};
}

void put(const Exact& value, uint8_t* at) {
    const Wide number = value.negative ? Wide{0} - value.number : value.number;
    if constexpr (sizeof(Wide) == 16) return store(at, number);
    store(at, number);
    std::memset(at + 8, value.negative && value.number != 0 ? 0xff : 0, 8);
}

nb::object decimals(const nb::list& values, size_t size, const DecimalType* wanted) {
    ValidBits valid(size);
    std::vector<Exact> numbers(size);
    if (!each_value(values, size, valid, [&](size_t k, PyObject* value) { return exact_of(value, numbers[k]); })) return nb::none();
    const DecimalType type = wanted != nullptr ? *wanted : fitting(numbers);
    if (type.precision > kMostDigits || type.scale < 0 || type.scale > kMostDigits) return nb::none();
    Fresh<uint8_t> found(16 * size);
    for (size_t k = 0; k < size; ++k) {
        if (!rescale(numbers[k], type)) return nb::none();
        put(numbers[k], found.data + 16 * k);
    }
    const std::string format = "d:" + str(type.precision) + "," + str(type.scale);
    return made_column(format.c_str(), size, valid, nb::make_tuple(found.object));
}

// The 128 bits of a UUID, the highest byte first; false where its number was replaced by something else.
bool put_uuid(PyObject* value, uint8_t* at) {
    const nb::object number = checked(PyObject_GetAttr(value, types().number.ptr()));
    if (!Py_IS_TYPE(number.ptr(), &PyLong_Type)) return false;
    const nb::object high = checked(PyNumber_Rshift(number.ptr(), types().half.ptr()));
    const uint64_t parts[] = {PyLong_AsUnsignedLongLong(high.ptr()), PyLong_AsUnsignedLongLongMask(number.ptr())};
    if (PyErr_Occurred() != nullptr) {
        clear_exception();
        return false;
    }
    for (size_t k = 0; k < 16; ++k) at[k] = static_cast<uint8_t>(parts[k / 8] >> (56 - 8 * (k % 8)));
    return true;
}

nb::object uuids(const nb::list& values, size_t size) {
    ValidBits valid(size);
    Fresh<uint8_t> found(16 * size);
    std::memset(found.data, 0, found.size);
    const bool all = each_value(values, size, valid, [&](size_t k, PyObject* value) {
        return is(value, types().uuid) && put_uuid(value, found.data + 16 * k);
    });
    return all ? made_column("w:16", size, valid, nb::make_tuple(found.object)) : nb::none();
}

}  // namespace

std::optional<nb::object> column_of_exact(const nb::list& values, size_t size, PyObject* first, const DecimalType* wanted) {
    if (is(first, types().decimal) || (wanted != nullptr && Py_IS_TYPE(first, &PyLong_Type))) return decimals(values, size, wanted);
    if (is(first, types().uuid)) return uuids(values, size);
    return std::nullopt;
}

}  // namespace pyparq
