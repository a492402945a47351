// Threads of our own, which work without Python's lock.
#pragma once
#include <cstddef>
#include <functional>

namespace pyparq {

// Calls `run(0)` to `run(tasks - 1)`, each once, on the calling thread and up to `threads - 1` others, and returns when
// all have ended. May be called with the GIL, which it gives up meanwhile, or without it; by several threads at a time;
// and within a task, which then makes all calls itself.
//
// The first exception ends the work: tasks that have not begun never do, and it is thrown here when the others have ended.
// So does a signal that Python has a handler for which raises, Ctrl-C above all, and a Python task (`pyparq.runtime.threads`)
// whose result is no longer needed. Both are checked every 50 ms.
//
// Waking a thread takes about 10 us: for less work than that, give `threads` as 1.
void run_parallel(size_t tasks, size_t threads, const std::function<void(size_t task)>& run);

// Whether the task that asks should end, its result being of no use: something has failed, or was interrupted. To be asked
// every few milliseconds; it takes some 30 ns. Outside of `run_parallel` it is false.
bool stop_requested();

}  // namespace pyparq
