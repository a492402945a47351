// Dicts and lists taken apart: the values of each key, the items of all lists. Subclasses are left to Python.
#include "objects/calls.hpp"
#include "objects/objects.hpp"

#include <deque>

namespace pyparq {
namespace {

// The keys of the dicts so far, in the order in which they came, and the values of each.
class Keys {
  public:
    explicit Keys(size_t rows) : rows_(rows), places_(checked(PyDict_New())) {}

    // Adds a value of row `row`, whose keys before it are `guess`. Takes no reference; false for a key that is no string.
    bool add(size_t row, size_t guess, PyObject* key, PyObject* value) {
        if (guess >= names_.size() || names_[guess].ptr() != key) {
            if (!Py_IS_TYPE(key, &PyUnicode_Type)) return false;
            guess = place(key);
        }
        Py_INCREF(value);
        lists_[guess].set(row, value);
        return true;
    }
    nb::object names() const {
        nb::list found;
        for (const nb::object& name : names_) found.append(name);
        return found;
    }
    nb::object lists() {
        nb::list found;
        for (NewList& list : lists_) found.append(list.finish());
        return found;
    }

  private:
    size_t place(PyObject* key) {
        if (PyObject* const found = PyDict_GetItemWithError(places_.ptr(), key); found != nullptr)
            return PyLong_AsSize_t(found);
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        const size_t made = names_.size();
        if (PyDict_SetItem(places_.ptr(), key, nb::int_(made).ptr()) != 0) throw nb::python_error();
        names_.push_back(nb::borrow(key));
        lists_.emplace_back(rows_);
        return made;
    }

    size_t rows_;
    nb::object places_;
    std::vector<nb::object> names_;
    std::deque<NewList> lists_;
};

nb::object item_of(const nb::list& list, size_t k) {
    PyObject* const item = PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(k));
    if (item == nullptr) throw nb::python_error();
    return nb::borrow(item);
}

}  // namespace

nb::object first_other(const nb::list& values, const nb::object& type) {
    const size_t size = nb::len(values);
    for (size_t k = 0; k < size; ++k) {
        if (k + kAhead < size) fetch_soon(PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(k + kAhead)));
        PyObject* const value = PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(k));
        if (value == nullptr) throw nb::python_error();
        if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != type.ptr()) return nb::int_(k);
    }
    return nb::none();
}

// (names, a list of values for each, one byte per row or None); None unless every row is a dict with strings as keys, or None.
nb::object split_dicts(const nb::list& rows) {
    const NoCollecting quiet;  // nothing may change a dict while its keys are walked
    const size_t size = nb::len(rows);
    Keys keys(size);
    Fresh<bool> present(size);
    bool all = true;
    for (size_t row = 0; row < size; ++row) {
        if (row + kAhead < size) fetch_soon(PyList_GetItem(rows.ptr(), static_cast<Py_ssize_t>(row + kAhead)));
        const nb::object dict = item_of(rows, row);
        present.data[row] = !dict.is_none();
        all &= present.data[row];
        if (dict.is_none()) continue;
        if (!Py_IS_TYPE(dict.ptr(), &PyDict_Type)) return nb::none();
        Py_ssize_t at = 0;
        PyObject *key = nullptr, *value = nullptr;
        for (size_t k = 0; PyDict_Next(dict.ptr(), &at, &key, &value) != 0; ++k)
            if (!keys.add(row, k, key, value)) return nb::none();
    }
    return nb::make_tuple(keys.names(), keys.lists(), all ? nb::none() : present.object);
}

// (all items, int64 offsets, one byte per list or None); None unless every value is a list, a tuple or None.
nb::object join_lists(const nb::list& values) {
    const NoCollecting quiet;
    const size_t size = nb::len(values);
    Fresh<int64_t> offsets(size + 1);
    Fresh<bool> present(size);
    bool all = true;
    int64_t total = offsets.data[0] = 0;
    for (size_t k = 0; k < size; ++k) {
        const nb::object value = item_of(values, k);
        present.data[k] = !value.is_none();
        all &= present.data[k];
        if (Py_IS_TYPE(value.ptr(), &PyList_Type)) total += PyList_Size(value.ptr());
        else if (Py_IS_TYPE(value.ptr(), &PyTuple_Type)) total += PyTuple_Size(value.ptr());
        else if (!value.is_none()) return nb::none();
        offsets.data[k + 1] = total;
    }
    NewList items(static_cast<size_t>(total));
    for (size_t k = 0; k < size; ++k) {
        const nb::object value = item_of(values, k);
        const bool is_list = Py_IS_TYPE(value.ptr(), &PyList_Type);
        for (int64_t i = offsets.data[k]; i < offsets.data[k + 1]; ++i) {
            const auto place = static_cast<Py_ssize_t>(i - offsets.data[k]);
            PyObject* const item = is_list ? PyList_GetItem(value.ptr(), place) : PyTuple_GetItem(value.ptr(), place);
            if (item == nullptr) throw nb::python_error();
            Py_INCREF(item);
            items.set(static_cast<size_t>(i), item);
        }
    }
    return nb::make_tuple(items.finish(), offsets.object, all ? nb::none() : present.object);
}

}  // namespace pyparq
