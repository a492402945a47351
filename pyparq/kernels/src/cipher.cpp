#include "cipher.hpp"

#include "libraries.hpp"

#include <atomic>

namespace pyparq {
namespace {

std::atomic<uint64_t> keys{0};

// A copy that the compiler does not leave out because nobody looks at it any more.
void forget(std::array<uint8_t, 32>& bytes) {
    volatile uint8_t* const p = bytes.data();
    for (size_t k = 0; k < bytes.size(); ++k) p[k] = 0;
}

}  // namespace

AesKey::AesKey(const nb::bytes& key) : kind_(key.size() / 8 - 2), number_(++keys) {
    if (key.size() != 16 && key.size() != 24 && key.size() != 32) fail("an AES key has 16, 24 or 32 bytes");
    std::memcpy(bytes_.data(), key.c_str(), key.size());
}

AesKey::~AesKey() { forget(bytes_); }

bool aes_is_native() { return crypto() != nullptr; }

AesContext::~AesContext() {
    for (const One& one : by_mode_)
        if (one.context != nullptr) crypto()->CTX_free(one.context);
}

// Readies the context of a mode for the bytes behind `start`: GCM's nonce, or CTR's first counter.
bool AesContext::begin(bool ctr, const AesKey& key, const uint8_t* start) {
    const Crypto& c = *crypto();
    One& one = by_mode_[ctr];
    if (one.context == nullptr && (one.context = c.CTX_new()) == nullptr) return false;
    if (one.key == key.number()) return c.CipherInit_ex(one.context, nullptr, nullptr, nullptr, start, 0) == 1;
    one.key = 0;
    if (c.CipherInit_ex(one.context, c.ciphers[ctr][key.kind()], nullptr, key.bytes(), start, 0) != 1) return false;
    one.key = key.number();
    return true;
}

bool AesContext::open_gcm(const AesKey& key, const uint8_t* nonce, const std::string& aad, const uint8_t* number,
                          size_t number_size, const uint8_t* body, size_t size, uint8_t* out) {
    const Crypto& c = *crypto();
    uint8_t tag[kTag], rest[kTag];
    std::memcpy(tag, body + size, kTag);
    int written = 0;
    const auto update = [&](uint8_t* to, const uint8_t* from, size_t n) {
        return n == 0 || c.CipherUpdate(by_mode_[0].context, to, &written, from, static_cast<int>(n)) == 1;
    };
    const bool fits = begin(false, key, nonce) && update(nullptr, reinterpret_cast<const uint8_t*>(aad.data()), aad.size()) &&
                      update(nullptr, number, number_size) && update(out, body, size) &&
                      c.CTX_ctrl(by_mode_[0].context, Crypto::kSetTag, static_cast<int>(kTag), tag) == 1 &&
                      c.CipherFinal_ex(by_mode_[0].context, rest, &written) == 1;
    if (!fits) c.clear_error();  // others on this thread may look at what is left there
    return fits;
}

bool AesContext::open_ctr(const AesKey& key, const uint8_t* nonce, const uint8_t* body, size_t size, uint8_t* out) {
    const Crypto& c = *crypto();
    uint8_t start[kNonce + 4] = {};
    std::memcpy(start, nonce, kNonce);
    start[kNonce + 3] = 1;
    int written = 0;
    const bool fine = begin(true, key, start) &&
                      (size == 0 || c.CipherUpdate(by_mode_[1].context, out, &written, body, static_cast<int>(size)) == 1);
    if (!fine) c.clear_error();
    return fine;
}

}  // namespace pyparq
