// The extension module pyparq.kernels._native: registers the error and every group of kernels.
#include "common.hpp"

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of pyparq: buffers in, buffers out, nothing else";
    nb::exception<pyparq::KernelError>(m, "KernelError", PyExc_ValueError);
#ifdef PYPARQ_HAVE_THRIFT_SKIP
    bind_thrift_skip(m);
#endif
}
