// A lazy ArrowArrayStream (Arrow C stream interface): Python makes each array when the consumer asks for it. The consumer
// may call from any thread, with or without the GIL, and may release the stream at any time.
#include "arrow/calls.hpp"
#include "arrow/c_data.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

namespace pyparq {
namespace {

// Set before the interpreter goes: from then on a thread that asked for the GIL would wait for ever, or be ended.
std::atomic<bool> gone{false};
// Callbacks that are with Python now. The interpreter waits for them: where they ended in the middle of C++, the process
// would be aborted.
std::atomic<int> inside{0};

constexpr auto LONGEST_WAIT = std::chrono::seconds(10);

}  // namespace

Visit::Visit() {
    ++inside;  // counted first, so that close_streams sees this visit or refuses it
    if (gone) --inside, welcome_ = false;
}

Visit::~Visit() {
    if (welcome_) --inside;
}

namespace {

void close_streams() {
    gone = true;
    const NoGil nogil;
    const auto until = std::chrono::steady_clock::now() + LONGEST_WAIT;
    while (inside > 0 && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

struct Run {
    PyObject* producer;  // owned, but released only under the GIL
    std::string error;
    int failed = 0;  // an errno; once it is set, every further call fails in the same way
};

std::string text_of(nb::handle value) {
    nb::object text = nb::steal(PyObject_Str(value.ptr()));
    if (!text.is_valid()) throw nb::python_error();
    nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
    if (!bytes.is_valid()) throw nb::python_error();
    return PyBytes_AsString(bytes.ptr());
}

// "Type: message", and the errno that consumers make their own kinds of errors from.
int error_of(nb::python_error& error, std::string& text) {
    try {
        text = text_of(error.type().attr("__name__"));
        const std::string message = text_of(error.value());
        if (!message.empty()) text += ": " + message;
    } catch (const std::exception&) {
        text = "an error without a message";
    }
    if (error.matches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();  // the consumer's error takes its place: let it come again, to where Python runs next
        return EINTR;
    }
    if (error.matches(PyExc_MemoryError)) return ENOMEM;
    if (error.matches(PyExc_NotImplementedError)) return ENOSYS;
    return error.matches(PyExc_ValueError) ? EINVAL : EIO;
}

template <class Work>
int with_python(ArrowArrayStream* stream, const Work& work) {
    auto* run = static_cast<Run*>(stream->private_data);
    if (run->failed != 0) return run->failed;
    Visit visit;
    if (!visit) {
        run->error = "the interpreter is shutting down";
        return run->failed = ECANCELED;
    }
    nb::gil_scoped_acquire gil;
    nb::error_scope outer;  // the caller may be handling an error of its own
    try {
        work(nb::handle(run->producer));
    } catch (nb::python_error& error) {
        run->failed = error_of(error, run->error);
    } catch (const std::exception& error) {
        run->error = error.what();
        run->failed = EIO;
    }
    return run->failed;
}

// The contents of the capsule. The owner of `out` releases them.
template <class T>
void move_out(const nb::object& capsule, const char* name, T* out) {
    auto* held = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (held == nullptr) throw nb::python_error();
    if (held->release == nullptr) fail(std::string("an ") + name + " capsule that was emptied before");
    *out = *held;
    held->release = nullptr;
}

// Releasing an array takes the GIL too, for the Python objects that own its buffers: not when the interpreter is gone.
extern "C" void array_release(ArrowArray* array) {
    std::unique_ptr<ArrowArray> made(static_cast<ArrowArray*>(array->private_data));
    array->release = nullptr;
    Visit visit;
    if (visit) made->release(made.get());
}

void guard_release(ArrowArray* array) {
    array->private_data = new ArrowArray(*array);
    array->release = array_release;
}

extern "C" int stream_get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
    return with_python(stream, [out](nb::handle producer) {
        move_out(nb::object(producer.attr("get_schema")()), "arrow_schema", out);
    });
}

extern "C" int stream_get_next(ArrowArrayStream* stream, ArrowArray* out) {
    out->release = nullptr;  // the end, unless there is one more
    return with_python(stream, [out](nb::handle producer) {
        nb::object capsule = producer.attr("get_next")();
        if (capsule.is_none()) return;
        move_out(capsule, "arrow_array", out);
        guard_release(out);
    });
}

extern "C" const char* stream_get_last_error(ArrowArrayStream* stream) {
    const auto* run = static_cast<Run*>(stream->private_data);
    return run->failed == 0 ? nullptr : run->error.c_str();
}

// False where an interrupt kept the producer from closing; any other error is printed.
bool close(PyObject* producer) {
    PyObject* done = PyObject_CallMethod(producer, "close", nullptr);
    const bool interrupted = done == nullptr && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
    if (interrupted)
        PyErr_Clear();
    else if (done == nullptr)
        PyErr_WriteUnraisable(producer);
    Py_XDECREF(done);
    return !interrupted;
}

extern "C" void stream_release(ArrowArrayStream* stream) {
    std::unique_ptr<Run> run(static_cast<Run*>(stream->private_data));
    stream->release = nullptr;
    stream->private_data = nullptr;
    Visit visit;
    if (!visit) return;  // what the producer holds goes with the process
    nb::gil_scoped_acquire gil;
    nb::error_scope outer;
    // An interrupt may come here, such as the one that error_of() lets come again: the producer is closed all the same,
    // and the interrupt goes on to the consumer.
    const bool interrupted = !close(run->producer);
    if (interrupted) close(run->producer);
    Py_DECREF(run->producer);
    if (interrupted) PyErr_SetInterrupt();
}

}  // namespace

nb::object arrow_stream(nb::object producer) {
    auto* const run = new Run{producer.release().ptr(), {}};
    return capsule_of(
        ArrowArrayStream{stream_get_schema, stream_get_next, stream_get_last_error, stream_release, run}, kStreamCapsule);
}

void begin_streams() {
    gone = false;
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&close_streams));
    nb::module_ os = nb::module_::import_("os");
    if (nb::hasattr(os, "register_at_fork"))  // a child has none of the threads that were inside
        os.attr("register_at_fork")(nb::arg("after_in_child") = nb::cpp_function([] { inside = 0; }));
}

}  // namespace pyparq
