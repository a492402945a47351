// Columns as Python objects.
#include "objects/calls.hpp"
#include "objects/objects.hpp"

namespace pyparq {
namespace {

template <class T>
nb::list numbers(const void* values, size_t size, const Valid& valid) {
    const auto* const data = static_cast<const T*>(values);
    NewList found(size);
    for (size_t k = 0; k < size; ++k) {
        if (!there(valid, k)) found.set_none(k);
        else if constexpr (std::is_same_v<T, bool>) found.set(k, PyBool_FromLong(data[k] ? 1 : 0));
        else if constexpr (std::is_floating_point_v<T>) found.set(k, PyFloat_FromDouble(static_cast<double>(data[k])));
        else if constexpr (std::is_signed_v<T>) found.set(k, PyLong_FromLongLong(data[k]));
        else found.set(k, PyLong_FromUnsignedLongLong(data[k]));
    }
    return found.finish();
}

}  // namespace

nb::list objects_of_numbers(const AnyArray<false>& values, bool flags, const Valid& valid) {
    check_valid(valid, values.size);
    const void* const data = values.data;
    const size_t size = values.size;
    switch (values.itemsize) {
        case 1:
            if (flags) return numbers<bool>(data, size, valid);
            return values.kind == Kind::SignedInt ? numbers<int8_t>(data, size, valid) : numbers<uint8_t>(data, size, valid);
        case 2:
            if (values.kind == Kind::Float) break;
            return values.kind == Kind::SignedInt ? numbers<int16_t>(data, size, valid) : numbers<uint16_t>(data, size, valid);
        case 4:
            if (values.kind == Kind::Float) return numbers<float>(data, size, valid);
            return values.kind == Kind::SignedInt ? numbers<int32_t>(data, size, valid) : numbers<uint32_t>(data, size, valid);
        case 8:
            if (values.kind == Kind::Float) return numbers<double>(data, size, valid);
            return values.kind == Kind::SignedInt ? numbers<int64_t>(data, size, valid) : numbers<uint64_t>(data, size, valid);
        default: break;
    }
    fail("numbers of this width have no objects");
}

// None where a string is not UTF-8.
nb::object objects_of_bytes(const Offsets& offsets, const RawIn& data, const Valid& valid, bool text) {
    return offsets.visit([&](const auto* edges) -> nb::object {
        check_offsets(edges, offsets.size, data.size);
        const size_t size = offsets.size - 1;
        check_valid(valid, size);
        NewList found(size);
        for (size_t k = 0; k < size; ++k) {
            if (!there(valid, k)) {
                found.set_none(k);
                continue;
            }
            const auto* const first = reinterpret_cast<const char*>(data.data) + edges[k];
            const auto length = static_cast<Py_ssize_t>(edges[k + 1] - edges[k]);
            PyObject* const made = text ? PyUnicode_DecodeUTF8(first, length, nullptr) : PyBytes_FromStringAndSize(first, length);
            if (made == nullptr && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError) != 0) {
                PyErr_Clear();
                return nb::none();
            }
            found.set(k, made);
        }
        return found.finish();
    });
}

nb::list objects_at(const nb::list& entries, const In<int64_t>& places, const Valid& valid) {
    check_valid(valid, places.size);
    NewList found(places.size);
    for (size_t k = 0; k < places.size; ++k) {
        if (!there(valid, k)) {
            found.set_none(k);
            continue;
        }
        PyObject* const item = PyList_GetItem(entries.ptr(), static_cast<Py_ssize_t>(places.data[k]));
        Py_XINCREF(item);
        found.set(k, item);
    }
    return found.finish();
}

nb::list cut_list(const nb::list& items, const Offsets& offsets, const Valid& valid) {
    const NoCollecting quiet;
    return offsets.visit([&](const auto* edges) {
        check_offsets(edges, offsets.size, nb::len(items));
        const size_t size = offsets.size - 1;
        check_valid(valid, size);
        NewList found(size);
        for (size_t k = 0; k < size; ++k) {
            if (!there(valid, k)) found.set_none(k);
            else found.set(k, PyList_GetSlice(items.ptr(), static_cast<Py_ssize_t>(edges[k]), static_cast<Py_ssize_t>(edges[k + 1])));
        }
        return found.finish();
    });
}

nb::list dicts_of_lists(const nb::list& names, const nb::list& lists, size_t count, const Valid& valid) {
    check_valid(valid, count);
    const NoCollecting quiet;
    const size_t width = nb::len(names);
    if (nb::len(lists) != width) fail("a list per name is due");
    std::vector<PyObject*> keys, columns;  // the arguments hold them
    nb::object pattern = checked(PyDict_New());
    for (size_t c = 0; c < width; ++c) {
        keys.push_back(PyList_GetItem(names.ptr(), static_cast<Py_ssize_t>(c)));
        columns.push_back(PyList_GetItem(lists.ptr(), static_cast<Py_ssize_t>(c)));
        if (!Py_IS_TYPE(keys[c], &PyUnicode_Type) || !PyList_Check(columns[c])) fail("names are strings, columns lists");
        if (PyDict_SetItem(pattern.ptr(), keys[c], Py_None) != 0) throw nb::python_error();
    }
    NewList found(count);
    for (size_t row = 0; row < count; ++row) {
        if (!there(valid, row)) {
            found.set_none(row);
            continue;
        }
        nb::object dict = checked(PyDict_Copy(pattern.ptr()));  // has room for all keys
        for (size_t c = 0; c < width; ++c) {
            PyObject* const item = PyList_GetItem(columns[c], static_cast<Py_ssize_t>(row));
            if (item == nullptr || PyDict_SetItem(dict.ptr(), keys[c], item) != 0) throw nb::python_error();
        }
        found.set(row, dict.release().ptr());
    }
    return found.finish();
}

}  // namespace pyparq
