// The structs of the Arrow C data and stream interfaces, as the specification fixes them; and who may call Python from them.
#pragma once
#include "base/common.hpp"

extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
    int (*get_next)(ArrowArrayStream*, ArrowArray*);
    const char* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};

}  // extern "C"

namespace pyparq {

// Whether Python may be called, for as long as this lives: not once the interpreter is about to go, because a thread that
// asked for the GIL then would wait for ever, or be ended in the middle of C++. The interpreter waits for those inside.
class Visit {
  public:
    Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit();
    explicit operator bool() const { return welcome_; }

  private:
    bool welcome_ = true;
};

constexpr const char* kSchemaCapsule = "arrow_schema";
constexpr const char* kArrayCapsule = "arrow_array";
constexpr const char* kStreamCapsule = "arrow_array_stream";

// A capsule of `made`. It releases `made` unless a consumer has taken it over.
template <class T>
nb::object capsule_of(T&& made, const char* name) {
    auto held = std::make_unique<T>(made);
    PyObject* const capsule = PyCapsule_New(held.get(), name, [](PyObject* self) {
        const char* const own = PyCapsule_GetName(self);
        auto* const struct_ = static_cast<T*>(PyCapsule_GetPointer(self, own));
        if (struct_ == nullptr) return PyErr_Clear();
        if (struct_->release != nullptr) struct_->release(struct_);
        delete struct_;
    });
    if (capsule == nullptr) {
        made.release(&made);
        throw nb::python_error();
    }
    held.release();
    return nb::steal(capsule);
}

}  // namespace pyparq
