// The extension module pyparq.kernels._native. Each folder's bindings.cpp registers what Python may use of it.
#include "base/common.hpp"

namespace pyparq {

void bind_arrow(nb::module_& m);
void bind_base(nb::module_& m);
void bind_codecs(nb::module_& m);
void bind_crypto(nb::module_& m);
void bind_decode(nb::module_& m);
void bind_encode(nb::module_& m);
void bind_index(nb::module_& m);
void bind_io(nb::module_& m);
void bind_objects(nb::module_& m);
void bind_select(nb::module_& m);
void bind_thrift(nb::module_& m);
void bind_values(nb::module_& m);
void bind_variant(nb::module_& m);

}  // namespace pyparq

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of pyparq: buffers in, buffers out, nothing else";
    // Other code in the process may never release objects that it can reach (pyarrow's key tools). nanobind would blame
    // these kernels at exit, in thirty lines.
    nb::set_leak_warnings(false);
    m.def_submodule("probes", "What only the tests call.");
    pyparq::bind_base(m);
    pyparq::bind_arrow(m);
    pyparq::bind_codecs(m);
    pyparq::bind_crypto(m);
    pyparq::bind_decode(m);
    pyparq::bind_encode(m);
    pyparq::bind_index(m);
    pyparq::bind_io(m);
    pyparq::bind_objects(m);
    pyparq::bind_select(m);
    pyparq::bind_thrift(m);
    pyparq::bind_values(m);
    pyparq::bind_variant(m);
}
