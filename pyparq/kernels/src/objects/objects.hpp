// Small things that passes over Python objects share. No pass runs code of Python's while it looks at a borrowed object.
#pragma once
#include "base/common.hpp"

#include <vector>

namespace pyparq {

inline nb::object checked(PyObject* made) {
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

// Objects lie all over the memory: they are asked for some steps before they are looked at.
constexpr size_t kAhead = 8;

inline void fetch_soon([[maybe_unused]] const PyObject* object) {
#if defined(__GNUC__)
    __builtin_prefetch(object);
    __builtin_prefetch(reinterpret_cast<const char*>(object) + 40);
#endif
}

// A new list whose items are set one by one. Items that are not set are None in the end.
class NewList {
  public:
    explicit NewList(size_t size) : list_(checked(PyList_New(static_cast<Py_ssize_t>(size)))), size_(size) {}
    // Takes the reference.
    void set(size_t k, PyObject* item) {
        if (item == nullptr) throw nb::python_error();
        PyList_SetItem(list_.ptr(), static_cast<Py_ssize_t>(k), item);
        ++count_;
    }
    void set_none(size_t k) {
        Py_INCREF(Py_None);
        set(k, Py_None);
    }
    nb::list finish() {
        for (size_t k = 0; count_ < size_ && k < size_; ++k)
            if (PyList_GetItem(list_.ptr(), static_cast<Py_ssize_t>(k)) == nullptr) set_none(k);
        return nb::borrow<nb::list>(list_);
    }

  private:
    nb::object list_;
    size_t size_, count_ = 0;
};

// A bit per value, 1 where it is there.
class ValidBits {
  public:
    explicit ValidBits(size_t size) : bits_((size + 7) / 8) { std::memset(bits_.data, 0xff, bits_.size); }
    void clear(size_t k) {
        bits_.data[k / 8] &= static_cast<uint8_t>(~(1U << (k % 8)));
        ++nulls;
    }
    bool has(size_t k) const { return (bits_.data[k / 8] >> (k % 8) & 1) != 0; }
    nb::object object() const { return nulls == 0 ? nb::none() : bits_.object; }
    int64_t nulls = 0;

  private:
    Fresh<uint8_t> bits_;
};

// Makes objects that the garbage collector would look at again and again while they are made.
class NoCollecting {
  public:
    NoCollecting() : was_on_(PyGC_Disable() != 0) {}
    NoCollecting(const NoCollecting&) = delete;
    NoCollecting& operator=(const NoCollecting&) = delete;
    ~NoCollecting() {
        if (was_on_) PyGC_Enable();
    }

  private:
    bool was_on_;
};

inline bool there(const Valid& valid, size_t k) { return valid.data == nullptr || valid.data[k] != 0; }

inline void check_valid(const Valid& valid, size_t size) {
    if (!valid.none() && valid.size != size) fail("a byte per value is due");
}

}  // namespace pyparq
