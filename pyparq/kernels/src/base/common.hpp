// Shared by every kernel: the error, checked views of Python buffers, fresh numpy arrays, the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__SSE2__) && !defined(PYPARQ_NO_SIMD)
#define PYPARQ_SSE2 1
#include <emmintrin.h>
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(PYPARQ_NO_SIMD)
#define PYPARQ_NEON 1  // every 64-bit ARM has it
#include <arm_neon.h>
#endif

static_assert(std::endian::native == std::endian::little,
              "Parquet is little-endian and these kernels copy its bytes as they are");

namespace nb = nanobind;

namespace pyparq {

// Bad bytes, or arguments that do not fit together. In Python: pyparq.kernels.KernelError (a ValueError).
struct KernelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(const std::string& what) { throw KernelError(what); }

template <class T>
    requires std::is_integral_v<T>
std::string str(T v) {
    return std::to_string(v);
}

inline size_t checked_mul(size_t a, size_t b) {
    size_t r;
#if defined(__GNUC__)
    if (__builtin_mul_overflow(a, b, &r)) fail("size overflows: " + str(a) + " * " + str(b));
#else
    if (b != 0 && a > std::numeric_limits<size_t>::max() / b) fail("size overflows");
    r = a * b;
#endif
    return r;
}

inline size_t checked_count(int64_t count, const char* name) {
    if (count < 0) fail(std::string(name) + " is negative: " + str(count));
    return static_cast<size_t>(count);
}

// ---- views of Python buffers ----------------------------------------------------------------------------

// Owns one Py_buffer. Movable, because nanobind moves arguments about.
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer(Buffer&& other) noexcept : view_(other.view_), held_(std::exchange(other.held_, false)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        if (this != &other) {
            release();
            view_ = other.view_;
            held_ = std::exchange(other.held_, false);
        }
        return *this;
    }
    ~Buffer() { release(); }

    bool acquire(PyObject* source, int flags) noexcept {
        release();
        if (PyObject_GetBuffer(source, &view_, flags) != 0) {
            PyErr_Clear();
            return false;
        }
        held_ = true;
        return true;
    }
    const Py_buffer& view() const { return view_; }
    bool held() const { return held_; }

  private:
    void release() noexcept {
        if (held_) PyBuffer_Release(&view_);
        held_ = false;
    }
    Py_buffer view_{};
    bool held_ = false;
};

enum class Kind : uint8_t { SignedInt,
                            UnsignedInt,
                            Float,
                            Other };

// The kind of a single-item struct-module format in native byte order.
inline Kind format_kind(const char* f) noexcept {
    if (f == nullptr) return Kind::UnsignedInt;  // no format means unsigned bytes
    if (*f == '@' || *f == '=' || *f == '<') ++f;
    if (f[0] == '\0' || f[1] != '\0') return Kind::Other;
    switch (f[0]) {
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q':
        case 'n': return Kind::SignedInt;
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q':
        case 'N':
        case '?':
        case 'c':
            return Kind::UnsignedInt;
        case 'e':
        case 'f':
        case 'd': return Kind::Float;
        default: return Kind::Other;
    }
}

template <class T>
constexpr Kind kind_of() {
    if constexpr (std::is_floating_point_v<T>) return Kind::Float;
    else if constexpr (std::is_signed_v<T>) return Kind::SignedInt;
    else return Kind::UnsignedInt;
}

// Bytes of any C-contiguous buffer, whatever its items are.
template <bool Writable>
struct Raw {
    using Byte = std::conditional_t<Writable, uint8_t, const uint8_t>;
    Buffer buffer;
    Byte* data = nullptr;
    size_t size = 0;

    bool load(PyObject* source) noexcept {
        if (!buffer.acquire(source, Writable ? PyBUF_WRITABLE : PyBUF_SIMPLE)) return false;
        data = static_cast<Byte*>(buffer.view().buf);
        size = static_cast<size_t>(buffer.view().len);
        return true;
    }
};
using RawIn = Raw<false>;
using RawOut = Raw<true>;

// A one-dimensional array of exactly T. With Nullable, None gives data == nullptr.
template <class T, bool Writable = false, bool Nullable = false>
struct Array {
    using Item = std::conditional_t<Writable, T, const T>;
    Buffer buffer;
    Item* data = nullptr;
    size_t size = 0;

    bool load(PyObject* source) noexcept {
        if constexpr (Nullable) {
            if (source == Py_None) return true;
        }
        if (!buffer.acquire(source, PyBUF_ND | PyBUF_FORMAT | (Writable ? PyBUF_WRITABLE : 0))) return false;
        const Py_buffer& v = buffer.view();
        if (v.ndim != 1 || v.itemsize != static_cast<Py_ssize_t>(sizeof(T))) return false;
        if (format_kind(v.format) != kind_of<T>()) return false;
        if (v.len != 0 && reinterpret_cast<uintptr_t>(v.buf) % alignof(T) != 0) return false;
        data = static_cast<Item*>(v.buf);
        size = static_cast<size_t>(v.len) / sizeof(T);
        return true;
    }
    bool none() const { return Nullable && data == nullptr && !buffer.held(); }
};
template <class T>
using In = Array<T>;
template <class T>
using Out = Array<T, true>;
using Valid = Array<uint8_t, false, true>;  // one byte per slot, 1 = present; None = all present

// An array of one of several item types, told apart at run time.
template <bool Writable>
struct AnyArray {
    using Void = std::conditional_t<Writable, void, const void>;
    Buffer buffer;
    Void* data = nullptr;
    size_t size = 0;
    size_t itemsize = 0;
    Kind kind = Kind::Other;

    bool load(PyObject* source) noexcept {
        if (!buffer.acquire(source, PyBUF_ND | PyBUF_FORMAT | (Writable ? PyBUF_WRITABLE : 0))) return false;
        const Py_buffer& v = buffer.view();
        if (v.ndim != 1 || v.itemsize <= 0) return false;
        data = v.buf;
        itemsize = static_cast<size_t>(v.itemsize);
        size = static_cast<size_t>(v.len) / itemsize;
        kind = format_kind(v.format);
        return kind != Kind::Other && (v.len == 0 || reinterpret_cast<uintptr_t>(v.buf) % itemsize == 0);
    }
};

// int32 or int64 offsets.
template <bool Writable>
struct OffsetArray : AnyArray<Writable> {
    bool load(PyObject* source) noexcept {
        return AnyArray<Writable>::load(source) && this->kind == Kind::SignedInt &&
               (this->itemsize == 4 || this->itemsize == 8);
    }
    // Calls f with a typed pointer.
    template <class F>
    decltype(auto) visit(F&& f) const {
        using P32 = std::conditional_t<Writable, int32_t*, const int32_t*>;
        using P64 = std::conditional_t<Writable, int64_t*, const int64_t*>;
        if (this->itemsize == 4) return f(static_cast<P32>(this->data));
        return f(static_cast<P64>(this->data));
    }
};
using Offsets = OffsetArray<false>;
using OffsetsOut = OffsetArray<true>;

// ---- calls of Python ------------------------------------------------------------------------------------

// Clears an Exception and returns it; anything else, such as an interrupt, goes on.
inline nb::python_error clear_exception() {
    nb::python_error error;
    if (!error.matches(PyExc_Exception)) throw error;
    return error;
}

// What `function` returns, an invalid object where it raises an Exception.
template <class... Args>
nb::object call(const nb::object& function, const Args&... args) {
    PyObject* const given[] = {args.ptr()...};
    nb::object result = nb::steal(PyObject_Vectorcall(function.ptr(), given, sizeof...(args), nullptr));
    if (!result.is_valid()) clear_exception();
    return result;
}

inline nb::bytes python_bytes(std::string_view bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// A memoryview for the length of a call: nothing keeps alive what it looks at.
inline nb::object passing_view(const uint8_t* data, size_t size) {
    auto* const bytes = const_cast<char*>(reinterpret_cast<const char*>(data));
    nb::object view = nb::steal(PyMemoryView_FromMemory(bytes, static_cast<Py_ssize_t>(size), PyBUF_READ));
    if (!view.is_valid()) throw nb::python_error();
    return view;
}

// ---- results --------------------------------------------------------------------------------------------

// numpy.empty(n, dtype), called from C++: the array owns its memory and numpy's allocator does its tricks.
nb::object numpy_empty(size_t n, char kind, size_t itemsize);

template <class T>
struct Fresh {
    nb::object object;
    T* data = nullptr;
    size_t size = 0;

    explicit Fresh(size_t n) : Fresh(n, numpy_empty(n, letter(), sizeof(T))) {}

  private:
    Fresh(size_t n, nb::object o) : object(std::move(o)), size(n) {
        Py_buffer view;
        if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
        data = static_cast<T*>(view.buf);  // stays while `object` lives: numpy does not move arrays
        PyBuffer_Release(&view);
    }
    static constexpr char letter() {
        if constexpr (std::is_same_v<T, bool>) return 'b';
        constexpr Kind k = kind_of<T>();
        return k == Kind::Float ? 'f' : k == Kind::SignedInt ? 'i'
                                                             : 'u';
    }
};

// Room for a result whose size is known only when it is there; copied to a bytes object of that size. What
// is never written costs no memory.
class Scratch {
  public:
    explicit Scratch(size_t bound) : size(bound), memory_(std::make_unique_for_overwrite<uint8_t[]>(bound)) {
        data = memory_.get();
    }
    nb::object finish(size_t used) const { return nb::bytes(data, used); }
    uint8_t* data = nullptr;
    size_t size = 0;

  private:
    std::unique_ptr<uint8_t[]> memory_;
};

// Array cut to its first n items; a copy when the rest would be dead weight.
nb::object first_items(nb::object array, size_t have, size_t n);

// Takes the GIL back. A thread that the interpreter ends instead, because it exits, waits for the end of the process.
void take_gil(PyThreadState* state) noexcept;

// Releases the GIL. Where the bytes of work are given, only if they are worth the switch: tiny calls from many threads would
// only queue for it.
class NoGil {
  public:
    NoGil() : state_(PyEval_SaveThread()) {}
    explicit NoGil(size_t bytes_of_work) : state_(bytes_of_work >= 8192 ? PyEval_SaveThread() : nullptr) {}
    NoGil(const NoGil&) = delete;
    NoGil& operator=(const NoGil&) = delete;
    ~NoGil() {
        if (state_ != nullptr) take_gil(state_);
    }

  private:
    PyThreadState* state_;
};

// ---- little-endian loads and stores ---------------------------------------------------------------------

template <class T>
inline T load(const void* p) {
    T v;
    std::memcpy(&v, p, sizeof(T));
    return v;
}
// Ask for memory that is soon needed.
inline void prefetch([[maybe_unused]] const void* p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#endif
}

template <class T>
inline void store(void* p, T v) {
    std::memcpy(p, &v, sizeof(T));
}

// ---- SIMD -----------------------------------------------------------------------------------------------

#if defined(__x86_64__) && defined(__GNUC__) && !defined(PYPARQ_NO_SIMD)
#define PYPARQ_AVX2 1
#define PYPARQ_TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
inline bool have_avx2() {
    static const bool yes = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    return yes;
}
#else
#define PYPARQ_TARGET_AVX2
inline bool have_avx2() { return false; }
#endif

// Checks that offsets rise from >= 0 to <= limit; without that no offset may be followed.
template <class O>
inline void check_offsets(const O* offsets, size_t size, size_t limit, const char* name = "offsets") {
    if (size == 0) fail(std::string(name) + " are empty (n values need n + 1 offsets)");
    O falls = 0;
    for (size_t i = 0; i + 1 < size; ++i) falls |= static_cast<O>(offsets[i + 1] < offsets[i]);
    if (offsets[0] < 0 || falls != 0) fail(std::string(name) + " are negative or fall");
    if (static_cast<uint64_t>(offsets[size - 1]) > limit)
        fail(std::string(name) + " end at " + str(static_cast<int64_t>(offsets[size - 1])) +
             ", beyond the data of " + str(limit) + " bytes");
}

}  // namespace pyparq

namespace nanobind::detail {

template <class V>
struct pyparq_buffer_caster {
    NB_TYPE_CASTER(V, const_name("Buffer"))
    bool from_python(handle src, uint32_t, cleanup_list*) noexcept { return value.load(src.ptr()); }
};
template <bool W>
struct type_caster<pyparq::Raw<W>> : pyparq_buffer_caster<pyparq::Raw<W>> {};
template <class T, bool W, bool N>
struct type_caster<pyparq::Array<T, W, N>> : pyparq_buffer_caster<pyparq::Array<T, W, N>> {};
template <bool W>
struct type_caster<pyparq::AnyArray<W>> : pyparq_buffer_caster<pyparq::AnyArray<W>> {};
template <bool W>
struct type_caster<pyparq::OffsetArray<W>> : pyparq_buffer_caster<pyparq::OffsetArray<W>> {};

}  // namespace nanobind::detail
