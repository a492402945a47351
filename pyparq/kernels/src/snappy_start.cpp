// Arenas, and the beginnings of Snappy blocks, for Python.
#include "snappy_start.hpp"

void bind_snappy_start(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    nb::class_<Arena>(m, "Arena")
        .def(nb::init<nb::object>(), "more"_a)
        .def("take", [](Arena& arena, int64_t size) { return arena.take(checked_count(size, "size")); }, "size"_a)
        .def("clear", &Arena::clear);
    m.attr("SNAPPY_START_PAYS_FROM") = kStartPaysFrom;
    m.def("snappy_start",
          [](const nb::object& decode, const nb::object& block, int64_t size, int64_t wanted, const nb::object& out,
             Arena& spare) {
              return snappy_start(decode, block, checked_count(size, "size"), checked_count(wanted, "wanted"), out, spare);
          },
          "decode"_a, "block"_a, "size"_a, "wanted"_a, "out"_a, "spare"_a);
}
