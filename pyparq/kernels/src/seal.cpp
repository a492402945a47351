// How the pages of one column chunk are encrypted: by a library, whose calls come from Python.
#include "arena.hpp"
#include "cipher.hpp"

#include <array>

namespace pyparq {
namespace {

// Nonces of one key, and how many there were.
class Nonces {
  public:
    // `random(size)` gives so many random bytes.
    explicit Nonces(nb::object random) : random_(std::move(random)) {}

    // A nonce for one more encryption; None where `most` were given.
    nb::object take(int64_t most) {
        if (used >= most) return nb::none();
        ++used;
        while (drawn_.empty()) draw();
        const size_t rest = drawn_.size() - kNonce;
        nb::bytes nonce(drawn_.data() + rest, kNonce);
        drawn_.resize(rest);
        return nonce;
    }

    // A forked process must not use those that its parent will.
    void forget() { drawn_.clear(); }

    int64_t used = 0;

  private:
    // Many at a time: asking the system lets other threads in, and then waits for them.
    void draw() {
        constexpr size_t kDrawn = 64 * kNonce;
        const nb::object bytes = random_(kDrawn);
        RawIn view;
        if (!view.load(bytes.ptr()) || view.size != kDrawn) fail("too few random bytes");
        drawn_.append(reinterpret_cast<const char*>(view.data), view.size);
    }

    nb::object random_;
    std::string drawn_;
};

// Seals the pages of one column chunk, on one thread.
class Sealer {
  public:
    // At most `invocations` of the nonces are used; `encrypt_into(nonce, text, aad, out)` of AES-GCM, and for the bodies of
    // pages, where they are not None, `reset_nonce(counter)` and `update_into(text, out)` of AES-CTR; the AADs of modules 2
    // to 5, up to the page's number. What has more than `most` bytes, or is not usual, goes to
    // `otherwise(module, parts, page)`.
    Sealer(Nonces* nonces, int64_t invocations, nb::object encrypt_into, nb::object reset_nonce, nb::object update_into,
           const nb::sequence& aads, int64_t most, nb::object otherwise)
        : nonces_(nonces), invocations_(invocations), encrypt_into_(std::move(encrypt_into)),
          reset_nonce_(std::move(reset_nonce)), update_into_(std::move(update_into)), most_(most),
          otherwise_(std::move(otherwise)) {
        if (nb::len(aads) != aads_.size()) fail("AADs of four modules are needed");
        for (size_t k = 0; k < aads_.size(); ++k) {
            const auto aad = nb::cast<nb::bytes>(aads[k]);
            aads_[k].assign(aad.c_str(), aad.size());
        }
    }

    // The stored form of the bytes in `parts`, one after another, as a list of one.
    nb::object seal(int64_t module, const nb::list& parts, int64_t page) const {
        nb::object sealed;
        if (module >= kDataPage && module <= kDictionaryPageHeader && (!by_number(module) || counted(page)))
            sealed = usual(module, parts, page);
        if (!sealed.is_valid()) return otherwise_(module, parts, page);
        nb::list result;
        result.append(sealed);
        return result;
    }

  private:
    static constexpr int64_t kDataPage = 2, kDictionaryPage = 3, kDataPageHeader = 4, kDictionaryPageHeader = 5;

    static bool by_number(int64_t module) { return module == kDataPage || module == kDataPageHeader; }

    // An invalid object where something is not as usual.
    nb::object usual(int64_t module, const nb::list& parts, int64_t page) const {
        const size_t count = nb::len(parts);
        size_t size = 0;
        bool bytes = true;
        for (size_t k = 0; k < count; ++k) {
            RawIn part;
            if (!part.load(nb::object(parts[k]).ptr())) return {};
            size += part.size, bytes = bytes && part.buffer.view().itemsize == 1;
        }
        const bool ctr = !reset_nonce_.is_none() && module <= kDictionaryPage;
        const size_t length = kNonce + size + (ctr ? 0 : kTag);
        if (static_cast<int64_t>(size) > most_ || length >> 31 != 0) return {};
        const nb::object taken = nonces_->take(invocations_);
        if (taken.is_none()) return {};
        const auto nonce = nb::borrow<nb::bytes>(taken);
        const nb::object out = nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(kLength + length)));
        if (!out.is_valid()) throw nb::python_error();
        auto* const data = reinterpret_cast<uint8_t*>(PyByteArray_AsString(out.ptr()));
        const auto stated = static_cast<uint32_t>(length);
        std::memcpy(data, &stated, kLength);
        std::memcpy(data + kLength, nonce.c_str(), kNonce);
        const nb::object view = nb::steal(PyMemoryView_FromObject(out.ptr()));
        if (!view.is_valid()) throw nb::python_error();
        const nb::object into = part(view, kFrame, kLength + length);
        // Several parts, or others than bytes, are encrypted where they come to stand.
        const nb::object text = count == 1 && bytes ? nb::object(parts[0]) : joined(parts, into, size);
        if (ctr) return size == 0 || run_ctr(data + kLength, text, into) ? out : nb::object();
        const std::string& before = aads_[static_cast<size_t>(module - kDataPage)];
        const nb::bytes aad = by_number(module) ? aad_of(before, page) : nb::bytes(before.data(), before.size());
        return call(encrypt_into_, nonce, text, aad, into).is_valid() ? out : nb::object();
    }

    bool run_ctr(const uint8_t* nonce, const nb::object& text, const nb::object& into) const {
        return call(reset_nonce_, first_counter(nonce)).is_valid() && call(update_into_, text, into).is_valid();
    }

    static nb::object joined(const nb::list& parts, const nb::object& into, size_t size) {
        RawOut out;
        if (!out.load(into.ptr())) fail("a module must be writable");
        size_t at = 0;
        for (const nb::handle part : parts) {
            RawIn bytes;
            if (!bytes.load(part.ptr()) || bytes.size > size - at) fail("parts of a module that change");
            if (bytes.size > 0) std::memcpy(out.data + at, bytes.data, bytes.size);
            at += bytes.size;
        }
        return part(into, 0, at);
    }

    Nonces* nonces_;
    int64_t invocations_;
    nb::object encrypt_into_, reset_nonce_, update_into_;
    std::array<std::string, 4> aads_;
    int64_t most_;
    nb::object otherwise_;
};

}  // namespace
}  // namespace pyparq

void bind_seal(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    nb::class_<AesKey>(m, "AesKey").def(nb::init<nb::bytes>(), "key"_a);
    m.def("aes_is_native", &aes_is_native);
    nb::class_<Nonces>(m, "Nonces", nb::is_weak_referenceable())
        .def(nb::init<nb::object>(), "random"_a)
        .def("take", &Nonces::take, "most"_a)
        .def("forget", &Nonces::forget)
        .def_ro("used", &Nonces::used);
    nb::class_<Sealer>(m, "Sealer")
        .def(nb::init<Nonces*, int64_t, nb::object, nb::object, nb::object, nb::sequence, int64_t, nb::object>(),
             "nonces"_a, "invocations"_a, "encrypt_into"_a.none(), "reset_nonce"_a.none(), "update_into"_a.none(), "aads"_a,
             "most"_a, "otherwise"_a, nb::keep_alive<1, 2>())
        .def("seal", &Sealer::seal, "module"_a, "parts"_a, "page"_a);
}
