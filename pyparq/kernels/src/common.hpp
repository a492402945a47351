// Shared by every kernel: the error, checked views of Python buffers, fresh numpy arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace nb = nanobind;

namespace pyparq {

// Bad bytes or arguments that do not fit together. Python sees pyparq.kernels.KernelError (a ValueError).
struct KernelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace pyparq

// One per source file; module.cpp calls them all.
void bind_thrift_skip(nb::module_& m);
