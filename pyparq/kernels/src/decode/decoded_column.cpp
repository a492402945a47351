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

nb::object bytes_or_none(const SharedBytes& bytes) { return bytes ? bytes.array<uint8_t>() : nb::none(); }

}  // namespace

SharedBytes::SharedBytes(Area area, size_t size) : owner_(area.data, GivesBack{area}), data_(area.data), size_(size) {
    PyTraceMalloc_Track(kNumpyDomain, reinterpret_cast<uintptr_t>(area.data), size);
}

template <class T>
nb::object SharedBytes::array() const {
    auto held = std::make_unique<std::shared_ptr<const void>>(owner_);
    const nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
    held.release();
    auto* const data = const_cast<uint8_t*>(data_);
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(reinterpret_cast<T*>(data), {size_ / sizeof(T)}, owner));
}

}  // namespace pyparq

void bind_decoded_column(nb::module_& m) {
    using namespace pyparq;
    nb::class_<DecodedColumn>(m, "DecodedColumn")
        .def_ro("length", &DecodedColumn::length)
        .def_ro("null_count", &DecodedColumn::nulls)
        .def_ro("is_binary", &DecodedColumn::is_binary)
        .def_ro("has_wide_offsets", &DecodedColumn::wide)
        .def_prop_ro("size", &DecodedColumn::size)
        .def_prop_ro("buffer_size", &DecodedColumn::buffer_size)
        .def_prop_ro("validity", [](const DecodedColumn& self) { return bytes_or_none(self.validity); })
        .def_prop_ro("values", [](const DecodedColumn& self) { return self.values.array<uint8_t>(); })
        .def_prop_ro("offsets", [](const DecodedColumn& self) {
        if (!self.offsets) return nb::object(nb::none());
        return self.wide ? self.offsets.array<int64_t>() : self.offsets.array<int32_t>();
    }).def_prop_ro("definition_levels", [](const DecodedColumn& self) { return bytes_or_none(self.def); })
        .def_prop_ro("repetition_levels", [](const DecodedColumn& self) { return bytes_or_none(self.rep); });
}
