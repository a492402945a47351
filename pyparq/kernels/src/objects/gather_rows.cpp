// Rows from an iterator, gathered until they are many or large: dicts of usual values. All others are left to Python.
#include "objects/calls.hpp"
#include "objects/objects.hpp"

namespace pyparq {
namespace {

constexpr int64_t kOther = -1;  // a value that Python has to look at
constexpr int64_t kSmall = 16, kNumber = 8;
constexpr int kDeepest = 32;

bool is(PyObject* value, const PyTypeObject& type) { return Py_TYPE(value) == &type; }

// About how many bytes values have; runs no code of Python's.
class Weights {
  public:
    explicit Weights(const nb::tuple& plain) : plain_(plain) {}

    int64_t of(PyObject* value, int depth) const {
        if (is(value, PyUnicode_Type)) return PyUnicode_GetLength(value);
        if (value == Py_None || is(value, PyLong_Type) || is(value, PyFloat_Type) || is(value, PyBool_Type)) return kSmall;
        if (is(value, PyBytes_Type)) return PyBytes_Size(value);
        if (depth > kDeepest) return kOther;
        if (is(value, PyDict_Type)) return of_dict(value, depth + 1);
        if (is(value, PyList_Type) || is(value, PyTuple_Type)) return of_items(value, depth + 1);
        return is_plain(value) ? kSmall : kOther;
    }

    int64_t of_dict(PyObject* dict, int depth) const {
        Py_ssize_t at = 0;
        PyObject *key = nullptr, *value = nullptr;
        int64_t sum = 0;
        while (PyDict_Next(dict, &at, &key, &value) != 0) {
            const int64_t one = of(value, depth);
            if (one == kOther) return kOther;
            sum += one;
        }
        return sum;
    }

  private:
    int64_t of_items(PyObject* items, int depth) const {
        const bool list = is(items, PyList_Type);
        const Py_ssize_t count = list ? PyList_Size(items) : PyTuple_Size(items);
        int64_t sum = 0;
        for (Py_ssize_t k = 0; k < count; ++k) {
            PyObject* const item = list ? PyList_GetItem(items, k) : PyTuple_GetItem(items, k);
            if (k == 0 && (is(item, PyLong_Type) || is(item, PyFloat_Type) || is(item, PyBool_Type))) return kNumber * count;
            const int64_t one = of(item, depth);
            if (one == kOther) return kOther;
            sum += one;
        }
        return sum;
    }

    bool is_plain(PyObject* value) const {
        const Py_ssize_t count = PyTuple_Size(plain_.ptr());
        for (Py_ssize_t k = 0; k < count; ++k)
            if (PyTuple_GetItem(plain_.ptr(), k) == reinterpret_cast<PyObject*>(Py_TYPE(value))) return true;
        return false;
    }

    const nb::tuple& plain_;
};

}  // namespace

nb::tuple gather_rows(const nb::object& source, const nb::list& rows, int64_t size, int64_t most_rows, int64_t most_bytes,
                      const nb::tuple& plain) {
    const Weights weights(plain);
    while (static_cast<int64_t>(nb::len(rows)) < most_rows && size < most_bytes) {
        PyObject* const next = PyIter_Next(source.ptr());
        if (next == nullptr) {
            if (PyErr_Occurred() != nullptr) throw nb::python_error();
            return nb::make_tuple(size, nb::list(), true);
        }
        const nb::object item = nb::steal(next);
        const int64_t weight = is(next, PyDict_Type) ? weights.of_dict(next, 0) : kOther;
        if (weight == kOther) {
            nb::list other;
            other.append(item);
            return nb::make_tuple(size, other, false);
        }
        if (PyList_Append(rows.ptr(), next) != 0) throw nb::python_error();
        size += weight;
    }
    return nb::make_tuple(size, nb::list(), false);
}

}  // namespace pyparq
