// What Python asks of a key: modules that are not sealed or opened with their pages, such as footers and indexes.
#include "crypto/calls.hpp"
#include "crypto/cipher.hpp"

#include <climits>

namespace pyparq {
namespace {

// Arguments that do not fit are a ValueError; KernelError means that libcrypto refuses, above all that a tag is wrong.
void check(bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(what);
}

// libcrypto counts bytes as int.
void check_size(size_t size) { check(size <= static_cast<size_t>(INT_MAX) - kTag, "AES takes at most 2 GiB at once"); }

const uint8_t* checked_nonce(const nb::bytes& nonce) {
    check(nonce.size() == kNonce, "a nonce has 12 bytes");
    return reinterpret_cast<const uint8_t*>(nonce.c_str());
}

std::string text_of(const nb::object& aad) {
    RawIn bytes;
    if (aad.is_none()) return {};
    check(bytes.load(aad.ptr()), "an AAD must be bytes-like");
    return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

void seal(const AesKey& key, const nb::bytes& nonce, const RawIn& text, const nb::object& aad, uint8_t* out) {
    check_size(text.size);
    const uint8_t* const start = checked_nonce(nonce);
    const std::string known = text_of(aad);
    const TextPart part{text.data, text.size};
    bool fine;
    {
        const NoGil nogil(text.size);
        AesContext aes;
        fine = aes.seal_gcm(key, start, known, nullptr, 0, &part, 1, out);
    }
    if (!fine) fail("libcrypto refused to encrypt");
}

void open(const AesKey& key, const nb::bytes& nonce, const RawIn& sealed, const nb::object& aad, uint8_t* out) {
    check_size(sealed.size);
    const uint8_t* const start = checked_nonce(nonce);
    const std::string known = text_of(aad);
    bool fine;
    {
        const NoGil nogil(sealed.size);
        AesContext aes;
        fine = sealed.size >= kTag && aes.open_gcm(key, start, known, nullptr, 0, sealed.data, sealed.size - kTag, out);
    }
    if (!fine) fail("authentication failed");
}

nb::object bytes_of(size_t size, uint8_t*& data) {
    nb::object out = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!out.is_valid()) throw nb::python_error();
    data = reinterpret_cast<uint8_t*>(PyBytes_AsString(out.ptr()));
    return out;
}

}  // namespace

nb::object encrypt(const AesKey& key, const nb::bytes& nonce, const RawIn& text, const nb::object& aad) {
    check_size(text.size);
    uint8_t* data = nullptr;
    nb::object out = bytes_of(text.size + kTag, data);
    seal(key, nonce, text, aad, data);
    return out;
}

void encrypt_into(const AesKey& key, const nb::bytes& nonce, const RawIn& text, const nb::object& aad, const RawOut& out) {
    check(out.size >= kTag && out.size - kTag == text.size, "the room must be that of the text and a tag");
    seal(key, nonce, text, aad, out.data);
}

nb::object decrypt(const AesKey& key, const nb::bytes& nonce, const RawIn& sealed, const nb::object& aad) {
    uint8_t* data = nullptr;
    nb::object out = bytes_of(sealed.size < kTag ? 0 : sealed.size - kTag, data);
    open(key, nonce, sealed, aad, data);
    return out;
}

void decrypt_into(const AesKey& key, const nb::bytes& nonce, const RawIn& sealed, const nb::object& aad, const RawOut& out) {
    check(sealed.size < kTag || out.size == sealed.size - kTag, "the room must be that of the text");
    open(key, nonce, sealed, aad, out.data);
}

// By CTR, encrypting and decrypting are the same.
void run_ctr(const AesKey& key, const nb::bytes& nonce, const RawIn& text, const RawOut& out) {
    check_size(text.size);
    check(out.size == text.size, "the room must be that of the text");
    const uint8_t* const start = checked_nonce(nonce);
    bool fine;
    {
        const NoGil nogil(text.size);
        AesContext aes;
        fine = aes.open_ctr(key, start, text.data, text.size, out.data);
    }
    if (!fine) fail("libcrypto refused to run AES-CTR");
}

}  // namespace pyparq
