// What the passes that make a column of a list of objects share.
#pragma once
#include "objects/objects.hpp"

#include <optional>

namespace pyparq {

// Calls `take(k, value)` for each value that is not None; false where that says so.
template <class F>
bool each_value(const nb::list& values, size_t size, ValidBits& valid, F&& take) {
    for (size_t k = 0; k < size; ++k) {
        if (k + kAhead < size) fetch_soon(PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(k + kAhead)));
        PyObject* const value = PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(k));
        if (value == nullptr) {  // the code of a time zone took values away
            clear_exception();
            return false;
        }
        if (value == Py_None) valid.clear(k);
        else if (!take(k, value)) return false;
    }
    return true;
}

inline nb::object made_column(const char* format, size_t size, const ValidBits& valid, const nb::object& buffers) {
    return nb::make_tuple(format, size, valid.object(), valid.nulls, buffers);
}

// Digits in all, and digits after the point.
struct DecimalType {
    int64_t precision, scale;
};

// Each gives a column, None where a value is not of the first one's kind, and nothing where `first` is not of theirs.
std::optional<nb::object> column_of_times(const nb::list& values, size_t size, PyObject* first);
std::optional<nb::object> column_of_exact(const nb::list& values, size_t size, PyObject* first, const DecimalType* wanted);

}  // namespace pyparq
