// Pages sealed by a library whose calls come from Python: where libcrypto is not found.
#pragma once
#include "crypto/seal.hpp"

namespace pyparq {

// Bytes from..to of a memoryview, as one that keeps alive what it looks at.
inline nb::object part(const nb::object& view, size_t from, size_t to) {
    return view[nb::slice(nb::int_(from), nb::int_(to), nb::int_(1))];
}

inline std::array<std::string, 4> aads_of(const nb::sequence& given) {
    std::array<std::string, 4> aads;
    if (nb::len(given) != aads.size()) fail("AADs of four modules are needed");
    for (size_t k = 0; k < aads.size(); ++k) {
        const auto aad = nb::cast<nb::bytes>(given[k]);
        aads[k].assign(aad.c_str(), aad.size());
    }
    return aads;
}

// Seals the pages of one column chunk, on one thread, by a library whose calls come from Python: where libcrypto is not found.
class Sealer {
  public:
    // At most `invocations` of the nonces are used; `encrypt_into(nonce, text, aad, out)` of AES-GCM, and for the bodies of
    // pages, where they are not None, `reset_nonce(counter)` and `update_into(text, out)` of AES-CTR; the AADs of modules 2
    // to 5, up to the page's number. What has more than `most` bytes, or is not usual, goes to
    // `otherwise(module, parts, page)`.
    Sealer(Nonces* nonces, int64_t invocations, nb::object encrypt_into, nb::object reset_nonce, nb::object update_into,
           const nb::sequence& aads, int64_t most, nb::object otherwise)
        : nonces_(nonces), invocations_(invocations), encrypt_into_(std::move(encrypt_into)),
          reset_nonce_(std::move(reset_nonce)), update_into_(std::move(update_into)),
          aads_(aads_of(aads)), most_(most), otherwise_(std::move(otherwise)) {}

    // The stored form of the bytes in `parts`, one after another, as a list of one.
    nb::object seal(int64_t module, const nb::list& parts, int64_t page) const {
        nb::object sealed;
        if (is_page_module(module) && (!has_number(module) || counted(page)))
            sealed = usual(module, parts, page);
        if (!sealed.is_valid()) return otherwise_(module, parts, page);
        nb::list result;
        result.append(sealed);
        return result;
    }

  private:
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
        const bool ctr = !reset_nonce_.is_none() && is_body(module);
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
        const std::string& before = aads_[static_cast<size_t>(module - kDataPageModule)];
        const nb::bytes aad = has_number(module) ? aad_of(before, page) : nb::bytes(before.data(), before.size());
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

}  // namespace pyparq
