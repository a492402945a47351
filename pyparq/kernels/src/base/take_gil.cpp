// What becomes of threads that the interpreter ends in the middle of C++.
//
// While the interpreter exits, it ends other threads when they ask for the GIL (until Python 3.13), by pthread_exit. Their
// destructors must not run then: what they let go of needs the GIL, and other threads may still use what lies on that stack.
// So such a thread stops, and waits for the end of the process.
//
// This file is compiled without exceptions: neither of the two ways below works with them.
#include <Python.h>

#ifndef _WIN32
#include <pthread.h>
#include <unistd.h>
#endif

namespace {

#ifndef _WIN32
[[noreturn]] void wait_for_the_end() {
    while (true) pause();
}
#endif

}  // namespace

#if defined(__GLIBC__) && !defined(__arm__)
// pthread_exit of glibc unwinds the stack, as an exception does. Each C++ function that has anything to do then names a
// function that is asked what it is. All of this module name the same one, by a weak symbol of the compiler's. The symbol
// here is stronger. So this holds wherever the GIL is asked for: here, in nanobind, and in Python code that C++ calls. The
// function of libc++ could not even be called: it takes no frames of the unwinder of glibc.
#include <unwind.h>

extern "C" {

// NOLINTNEXTLINE(bugprone-reserved-identifier): the function of the C++ library
_Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                         _Unwind_Exception* exception, _Unwind_Context* context);

__attribute__((visibility("hidden"))) _Unwind_Reason_Code pyparq_personality(
    int version, _Unwind_Action actions, _Unwind_Exception_Class kind, _Unwind_Exception* exception,
    _Unwind_Context* context) {
    if ((actions & _UA_FORCE_UNWIND) != 0) wait_for_the_end();
    return __gxx_personality_v0(version, actions, kind, exception, context);
}

using Personality = decltype(&pyparq_personality);
extern const Personality pyparq_personality_symbol __asm__("DW.ref.__gxx_personality_v0")
    __attribute__((visibility("hidden")));
const Personality pyparq_personality_symbol = &pyparq_personality;

}  // extern "C"
#endif

namespace pyparq {

#if defined(__GLIBC__) || defined(_WIN32)
void take_gil(PyThreadState* state) noexcept { PyEval_RestoreThread(state); }
#else
// Elsewhere pthread_exit calls what was pushed here, and unwinds nothing.
void take_gil(PyThreadState* state) noexcept {
    pthread_cleanup_push([](void*) { wait_for_the_end(); }, nullptr);
    PyEval_RestoreThread(state);
    pthread_cleanup_pop(0);
}
#endif

}  // namespace pyparq
