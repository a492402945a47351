// Arenas, for Python.
#include "base/arena.hpp"

void bind_arena(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    nb::class_<Arena>(m, "Arena")
        .def(nb::init<nb::object>(), "more"_a)
        .def("take", [](Arena& arena, int64_t size) { return arena.take(checked_count(size, "size")); }, "size"_a)
        .def("clear", &Arena::clear);
}
