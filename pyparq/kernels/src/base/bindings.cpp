// Where Python meets `base/`: names, types and docstrings.
#include "base/calls.hpp"
#include "base/workers.hpp"

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_memory(nb::module_& m) {
    begin_memory();
    m.def("take_memory", &take_memory, "size"_a,
          nb::sig("def take_memory(size: int) -> NDArray[np.uint8]"),
          "Bytes of anything, in memory that is used again when the last view of it is gone.");
    nb::borrow<nb::module_>(m.attr("probes")).def("idle_memory", &idle_memory, "Bytes that wait to be used again.");
    m.def("release_idle_memory", &release_idle_memory,
          "Give them back to the system.");
    m.def("keep_idle_memory", &keep_idle_memory, "most"_a,
          "Keep no more than so many idle bytes of it.");
}

void bind_workers(nb::module_& m) {
    begin_workers();
    nb::module_ probes = nb::borrow<nb::module_>(m.attr("probes"));
    probes.def("run_parallel",
               &run_parallel_python,
               "tasks"_a, "threads"_a, "run"_a,
               nb::sig("def run_parallel(tasks: int, threads: int, run: Callable[[int], object]) -> None"),
               R"(`run(k)` for each k below `tasks`, on this thread and up to `threads - 1` others that are not Python's. The
first error ends the work and is raised, when no call is under way any more.)");
    probes.def("stop_requested", [] {
        const NoGil nogil;
        return stop_requested();
    }, "Within such a call: whether its result is of no use any more.");
}

}  // namespace

void bind_base(nb::module_& m) {
    nb::exception<KernelError>(m, "KernelError", PyExc_ValueError);
    begin_numpy();
    have_avx2();  // now, not first in a thread without the GIL, which a fork may leave behind half way
    bind_memory(m);
    bind_workers(m);
}

}  // namespace pyparq
