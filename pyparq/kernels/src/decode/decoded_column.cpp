#include "decode/decoded_column.hpp"

#include <nanobind/ndarray.h>

namespace pyparq {

// Not in the headers of the stable ABI.
extern "C" int PyTraceMalloc_Track(unsigned int domain, uintptr_t address, size_t size);
extern "C" int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t address);

namespace {

constexpr unsigned kNumpyDomain = 389047;  // numpy.lib.tracemalloc_domain

struct GivesBack {
    Area area;
    void operator()(const void*) const noexcept {
        PyTraceMalloc_Untrack(kNumpyDomain, reinterpret_cast<uintptr_t>(area.data));
        give_area(area);
    }
};

}  // namespace

SharedBytes::SharedBytes(Area area, size_t size) : owner_(area.data, GivesBack{area}), data_(area.data), size_(size) {
    PyTraceMalloc_Track(kNumpyDomain, reinterpret_cast<uintptr_t>(area.data), size);
}

template <class T>
nb::object SharedBytes::array() const {
    auto held = std::make_unique<std::shared_ptr<const void>>(owner_);
    const nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
    static_cast<void>(held.release());  // the capsule has it
    auto* const data = const_cast<uint8_t*>(data_);
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(reinterpret_cast<T*>(data), {size_ / sizeof(T)}, owner));
}

template nb::object SharedBytes::array<uint8_t>() const;
template nb::object SharedBytes::array<int32_t>() const;
template nb::object SharedBytes::array<int64_t>() const;

nb::object DecodedColumn::python_offsets() const {
    if (!offsets) return nb::none();
    return wide ? offsets.array<int64_t>() : offsets.array<int32_t>();
}

}  // namespace pyparq
