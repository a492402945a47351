#include "codecs/calls.hpp"
#include "codecs/libraries.hpp"

#include "base/common.hpp"
#include "codecs/library_checks.hpp"
#include "codecs/library_sources.hpp"

#include <nanobind/stl/string.h>

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>

namespace pyparq {
namespace {

// What became of the search for a library.
struct Outcome {
    const char* state = "missing";  // or "linked", "found", "switched off"
    std::string version, file;      // of a library that is used
    std::string reason;             // why each candidate was refused, one after another
};

int raise_now(void* exception) {
    const nb::object raised = nb::steal(static_cast<PyObject*>(exception));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
    return -1;
}

// Raises the exception again, in the main thread and where Python can raise it: Ctrl-C, or what the handler of another signal
// raised, must not be swallowed here.
void raise_later(const nb::python_error& error) {
    if (error.matches(PyExc_MemoryError) || error.matches(PyExc_RecursionError)) return;  // of this call, not of the program
    PyObject* const exception = nb::borrow(error.value()).release().ptr();
    if (Py_AddPendingCall(&raise_now, exception) != 0) Py_DECREF(exception);
}

// One library. The first use looks for it; several threads may do that at once and find the same. There is no lock: the
// thread that has it would need the GIL while the thread with the GIL may want the lock, and a fork could leave it taken.
template <class Functions>
class Library {
  public:
    const Functions* get() {
        const Answer* answer = answer_.load(std::memory_order_acquire);
        if (answer == nullptr) answer = look();
        return answer != nullptr && answer->usable ? &answer->functions : nullptr;
    }

    // Null where the search was interrupted just now.
    const Outcome* outcome() {
        get();
        const Answer* const answer = answer_.load(std::memory_order_acquire);
        return answer == nullptr ? nullptr : &answer->outcome;
    }

  private:
    struct Answer {
        Functions functions{};
        bool usable = false;
        Outcome outcome;
    };

    // Null where an exception came in between, such as Ctrl-C: then the library is not known to be missing, and the next use
    // looks again. Not for ever: where each look fails, so many of them settle it.
    const Answer* look() {
        constexpr int kMostFailures = 8;
        const nb::gil_scoped_acquire gil;
        const nb::error_scope outer;  // an error that is on its way already
        try {
            auto answer = std::make_unique<Answer>();
            const nb::module_ finder = nb::module_::import_("pyparq.kernels.libraries");
            if (nb::cast<bool>(finder.attr("is_switched_off")(Functions::kLibrary)))
                answer->outcome.state = "switched off";
            else if (link_functions(answer->functions))
                try_functions(*answer, "linked");
            else
                search(*answer, finder.attr("files_of")(Functions::kLibrary));
            return publish(std::move(answer));
        } catch (nb::python_error& error) {
            raise_later(error);
            if (failures_.fetch_add(1) + 1 < kMostFailures) return nullptr;
            auto answer = std::make_unique<Answer>();
            answer->outcome.reason = std::string("looking for it failed: ") + error.what();
            return publish(std::move(answer));
        }
    }

    static void search(Answer& answer, const nb::object& files) {
        for (const nb::handle file : files) {
            const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(file.ptr()));
            if (!bytes.is_valid()) throw nb::python_error();
            const char* const path = PyBytes_AsString(bytes.ptr());
            OpenLibrary library(path);
            if (!library.is_open()) continue;
            answer.functions = Functions{};
            if (const char* const name = find_functions(library, answer.functions); name != nullptr) {
                refuse(answer, path, std::string("it has no ") + name);
            } else if (try_functions(answer, "found")) {
                library.keep();
                if constexpr (std::is_same_v<Functions, Zlib>) add_libdeflate(answer);
                return;
            }
        }
    }

    static void add_libdeflate(Answer& answer) {
        const nb::module_ finder = nb::module_::import_("pyparq.kernels.libraries");
        for (const nb::handle file : finder.attr("files_of_libdeflate")()) {
            const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(file.ptr()));
            if (!bytes.is_valid()) throw nb::python_error();
            OpenLibrary library(PyBytes_AsString(bytes.ptr()));
            if (!library.is_open()) continue;
            const char* const missing = find_libdeflate(library, answer.functions);
            if (keep_libdeflate_if_right(answer.functions) && missing == nullptr) {
                library.keep();
                answer.outcome.version = version_text(answer.functions);
                return;
            }
        }
    }

    // Believes the functions if they pass the checks.
    static bool try_functions(Answer& answer, const char* state) {
        const std::string file = file_of(reinterpret_cast<const void*>(answer.functions.version));
        if (const std::string fault = fault_of(answer.functions); !fault.empty()) {
            refuse(answer, file, fault);
            return false;
        }
        answer.usable = true;
        answer.outcome.state = state, answer.outcome.version = version_text(answer.functions), answer.outcome.file = file;
        answer.outcome.reason.clear();
        return true;
    }

    static void refuse(Answer& answer, const std::string& file, const std::string& why) {
        std::string& reason = answer.outcome.reason;
        reason += (reason.empty() ? "" : "; ") + file + ": " + why;
    }

    // The first answer stays. Only who gave it warns, so a missing library warns once.
    const Answer* publish(std::unique_ptr<Answer> answer) {
        const Answer* expected = nullptr;
        if (!answer_.compare_exchange_strong(expected, answer.get(), std::memory_order_acq_rel)) return expected;
        const Answer* const kept = answer.release();
        if (kept->outcome.state != std::string("missing")) return kept;
        try {
            nb::module_::import_("pyparq.kernels.libraries")
                .attr("warn_missing")(Functions::kLibrary, text_of(kept->outcome.reason));
        } catch (nb::python_error& error) {
            raise_later(error);  // the user asked for warnings as errors
        }
        return kept;
    }

  public:
    // Paths need not be UTF-8.
    static nb::object text_of(const std::string& bytes) {
        return nb::steal(PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
    }

  private:
    std::atomic<const Answer*> answer_{nullptr};
    std::atomic<int> failures_{0};
};

Library<Zlib> zlib_library;
Library<Zstd> zstd_library;
Library<Brotli> brotli_library;
Library<Crypto> crypto_library;

template <class Functions>
void report(nb::list& rows, Library<Functions>& library) {
    static const Outcome kInterrupted{"interrupted", "", "", ""};
    const Outcome* outcome = library.outcome();
    if (outcome == nullptr) outcome = &kInterrupted;
    using L = Library<Functions>;
    rows.append(nb::make_tuple(Functions::kLibrary, outcome->state, outcome->version, L::text_of(outcome->file),
                               L::text_of(outcome->reason)));
}

}  // namespace

const Zlib* zlib() { return zlib_library.get(); }
const Zstd* zstd() { return zstd_library.get(); }
const Brotli* brotli() { return brotli_library.get(); }
const Crypto* crypto() { return crypto_library.get(); }

nb::list library_report() {
    nb::list rows;
    report(rows, zlib_library);
    report(rows, zstd_library);
    report(rows, brotli_library);
    report(rows, crypto_library);
    return rows;
}

}  // namespace pyparq
