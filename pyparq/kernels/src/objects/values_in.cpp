// A list of values of one of Python's own types as a column. Anything else, such as a subclass, is left to Python.
#include "objects/calls.hpp"
#include "objects/each_value.hpp"

#include <limits>
#include <vector>

namespace pyparq {
namespace {

constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max();

nb::object integers(const nb::list& values, size_t size) {
    ValidBits valid(size);
    Fresh<int64_t> found(size);
    std::memset(found.data, 0, size * sizeof(int64_t));
    const bool all = each_value(values, size, valid, [&](size_t k, PyObject* value) {
        if (!Py_IS_TYPE(value, &PyLong_Type)) return false;
        int overflow = 0;
        found.data[k] = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow == 0;
    });
    return all ? made_column("l", size, valid, nb::make_tuple(found.object)) : nb::none();
}

nb::object floats(const nb::list& values, size_t size) {
    ValidBits valid(size);
    Fresh<double> found(size);
    std::memset(found.data, 0, size * sizeof(double));
    const bool all = each_value(values, size, valid, [&](size_t k, PyObject* value) {
        if (!Py_IS_TYPE(value, &PyFloat_Type)) return false;
        found.data[k] = PyFloat_AsDouble(value);
        return true;
    });
    return all ? made_column("g", size, valid, nb::make_tuple(found.object)) : nb::none();
}

nb::object flags(const nb::list& values, size_t size) {
    ValidBits valid(size);
    Fresh<uint8_t> found((size + 7) / 8);
    std::memset(found.data, 0, found.size);
    const bool all = each_value(values, size, valid, [&](size_t k, PyObject* value) {
        if (value != Py_True && value != Py_False) return false;
        if (value == Py_True) found.data[k / 8] |= static_cast<uint8_t>(1U << (k % 8));
        return true;
    });
    return all ? made_column("b", size, valid, nb::make_tuple(found.object)) : nb::none();
}

// The UTF-8 of a string, or the bytes of bytes. Nothing where it has none: a lone surrogate.
bool bytes_of(PyObject* value, bool text, const char*& data, Py_ssize_t& size) {
    if (text) {
        data = PyUnicode_AsUTF8AndSize(value, &size);
        if (data == nullptr) clear_exception();
        return data != nullptr;
    }
    char* found = nullptr;
    if (PyBytes_AsStringAndSize(value, &found, &size) != 0) throw nb::python_error();
    data = found;
    return true;
}

nb::object binary(const nb::list& values, size_t size, bool text) {
    ValidBits valid(size);
    Fresh<int32_t> offsets(size + 1);
    std::vector<char> joined;
    joined.reserve(16 * size);
    size_t last = 0;  // the values before it have their offsets
    offsets.data[0] = 0;
    const PyTypeObject* const type = text ? &PyUnicode_Type : &PyBytes_Type;
    const bool all = each_value(values, size, valid, [&](size_t k, PyObject* value) {
        const char* data = nullptr;
        Py_ssize_t length = 0;
        if (Py_TYPE(value) != type || !bytes_of(value, text, data, length)) return false;
        if (static_cast<size_t>(length) > kMostBytes - joined.size()) return false;
        for (; last < k; ++last) offsets.data[last + 1] = static_cast<int32_t>(joined.size());
        joined.insert(joined.end(), data, data + length);
        offsets.data[++last] = static_cast<int32_t>(joined.size());
        return true;
    });
    if (!all) return nb::none();
    for (; last < size; ++last) offsets.data[last + 1] = static_cast<int32_t>(joined.size());
    Fresh<uint8_t> bytes(joined.size());
    if (!joined.empty()) std::memcpy(bytes.data, joined.data(), joined.size());
    return made_column(text ? "u" : "z", size, valid, nb::make_tuple(offsets.object, bytes.object));
}

}  // namespace

// (format, length, validity or None, nulls, buffers); None for anything but values of one of Python's own types.
nb::object column_of_objects(const nb::list& values, int64_t precision, int64_t scale) {
    const size_t size = nb::len(values);
    PyObject* first = nullptr;
    for (size_t k = 0; k < size && (first == nullptr || first == Py_None); ++k)
        first = PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(k));
    if (first == nullptr || first == Py_None) return nb::none();
    const DecimalType wanted{precision, scale};
    if (precision == 0 && Py_IS_TYPE(first, &PyLong_Type)) return integers(values, size);
    if (Py_IS_TYPE(first, &PyFloat_Type)) return floats(values, size);
    if (Py_IS_TYPE(first, &PyUnicode_Type)) return binary(values, size, true);
    if (Py_IS_TYPE(first, &PyBytes_Type)) return binary(values, size, false);
    if (Py_IS_TYPE(first, &PyBool_Type)) return flags(values, size);
    if (const auto found = column_of_exact(values, size, first, precision == 0 ? nullptr : &wanted)) return *found;
    return column_of_times(values, size, first).value_or(nb::none());
}

}  // namespace pyparq
