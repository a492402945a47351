// What libFuzzer calls: hands each input to a Python function of targets.py, and changes inputs by what they are made of.
//
// PYPARQ_FUZZ_TARGET names the function. An exception that it lets through is a finding.
#include <Python.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mutators.hpp"

extern "C" PyObject* PyInit__native();

namespace {

PyObject* target = nullptr;
std::string form;

[[noreturn]] void stop(const char* what) {
    PyErr_Print();
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

// The extension is part of this program. The package finds it where it would be.
constexpr const char* kStart = R"(
import sys, _native
sys.modules["pyparq.kernels._native"] = _native
import targets
)";

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* const name = std::getenv("PYPARQ_FUZZ_TARGET");
    if (name == nullptr) stop("PYPARQ_FUZZ_TARGET is not set: use run.py");
    PyImport_AppendInittab("_native", PyInit__native);
    Py_InitializeEx(0);
    if (PyRun_SimpleString(kStart) != 0) stop("the targets cannot be imported");
    PyObject* const module = PyImport_ImportModule("targets");
    PyObject* const found = PyObject_GetAttrString(module, "TARGETS");
    PyObject* const entry = found == nullptr ? nullptr : PyMapping_GetItemString(found, name);
    if (entry == nullptr) stop("no such target");
    target = PyObject_GetAttrString(entry, "run");
    PyObject* const text = PyObject_GetAttrString(entry, "form");
    form = PyUnicode_AsUTF8(text);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // The bytes as they lie, so that a read beyond them is seen.
    auto* const bytes = const_cast<char*>(reinterpret_cast<const char*>(data));
    static char none = 0;
    PyObject* const view = PyMemoryView_FromMemory(size == 0 ? &none : bytes, static_cast<Py_ssize_t>(size), PyBUF_READ);
    if (view == nullptr) stop("no memory for a view");
    PyObject* const result = PyObject_CallOneArg(target, view);
    if (result == nullptr) stop("a target failed");
    Py_DECREF(result);
    Py_DECREF(view);
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
    if (form == "thrift") return mutate_thrift(data, size, most, seed);
    if (form == "pages") return mutate_pages(data, size, most, seed);
    return LLVMFuzzerMutate(data, size, most);
}
