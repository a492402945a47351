// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "base/common.hpp"

namespace pyparq {

// Once, while the module is made.
void begin_numpy();
void begin_memory();
void begin_workers();

void close_pool();

nb::object take_memory(int64_t size);
size_t idle_memory();
void release_idle_memory();
void keep_idle_memory(int64_t most);

void run_parallel_python(int64_t tasks, int64_t threads, const nb::callable& run);

}  // namespace pyparq
