// Fresh numpy arrays, made from C++.
#include "base/calls.hpp"
#include "base/memory.hpp"

#include <nanobind/ndarray.h>

namespace pyparq {
namespace {

constexpr size_t kReused = size_t{64} << 10;  // from this many bytes on, memory is used again that was given back

struct Numpy {
    nb::object empty;
    nb::object boolean, u1, u4, u8, i1, i2, i4, i8, u2, f4, f8;
};

// Never freed: the interpreter may be gone before static destructors run.
Numpy* numpy = nullptr;

Numpy* loaded() {
    nb::module_ np = nb::module_::import_("numpy");
    nb::object dtype = np.attr("dtype");
    auto* n = new Numpy;
    n->empty = np.attr("empty");
    n->boolean = dtype("?");
    n->u1 = dtype("u1"), n->u2 = dtype("u2"), n->u4 = dtype("u4"), n->u8 = dtype("u8");
    n->i1 = dtype("i1"), n->i2 = dtype("i2"), n->i4 = dtype("i4"), n->i8 = dtype("i8");
    n->f4 = dtype("f4"), n->f8 = dtype("f8");
    return n;
}

const nb::object& dtype_of(char kind, size_t itemsize) {
    switch (kind) {
        case 'b': return numpy->boolean;
        case 'f': return itemsize == 4 ? numpy->f4 : numpy->f8;
        case 'i':
            return itemsize == 1 ? numpy->i1 : itemsize == 2 ? numpy->i2
                                           : itemsize == 4   ? numpy->i4
                                                             : numpy->i8;
        default:
            return itemsize == 1 ? numpy->u1 : itemsize == 2 ? numpy->u2
                                           : itemsize == 4   ? numpy->u4
                                                             : numpy->u8;
    }
}

nb::dlpack::dtype stored_type(char kind, size_t itemsize) {
    using Code = nb::dlpack::dtype_code;
    const Code code = kind == 'b' ? Code::Bool : kind == 'f' ? Code::Float
                                             : kind == 'i'   ? Code::Int
                                                             : Code::UInt;
    return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * itemsize), 1};
}

nb::object reused(size_t n, char kind, size_t itemsize) {
    const Area area = take_area_for_python(n * itemsize);
    const nb::capsule owner = owner_of(area, n * itemsize);
    return nb::cast(nb::ndarray<nb::numpy>(area.data, 1, &n, owner, nullptr, stored_type(kind, itemsize)));
}

}  // namespace

void begin_numpy() { numpy = loaded(); }

nb::object numpy_empty(size_t n, char kind, size_t itemsize) {
    if (n > static_cast<size_t>(PY_SSIZE_T_MAX) / itemsize) fail("result too large: " + str(n) + " items");
    return n * itemsize < kReused ? numpy->empty(n, dtype_of(kind, itemsize)) : reused(n, kind, itemsize);
}

nb::object first_items(nb::object array, size_t have, size_t n) {
    if (n == have) return array;
    nb::object part = array[nb::slice(nb::int_(0), nb::int_(n), nb::int_(1))];
    return n < have / 2 ? nb::object(part.attr("copy")()) : part;
}

}  // namespace pyparq
