// Takes the GIL back where the standard library is libc++: see common.hpp. This file is compiled without exceptions. glibc's
// pthread_cleanup_push is then a jump buffer, which the end of a thread reaches before the frames of other files. With
// exceptions it is a destructor, which libc++'s unwinder would have to call.
#include <Python.h>

#if defined(__GLIBC__) && !defined(__GLIBCXX__)
#include <pthread.h>
#include <unistd.h>

namespace pyparq {

namespace {

[[noreturn]] void wait_for_the_end(void* /*unused*/) {
    while (true) pause();
}

}  // namespace

void take_gil(PyThreadState* state) noexcept {
    pthread_cleanup_push(wait_for_the_end, nullptr);
    PyEval_RestoreThread(state);
    pthread_cleanup_pop(0);
}

}  // namespace pyparq
#endif
