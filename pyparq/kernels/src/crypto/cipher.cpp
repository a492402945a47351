#include "crypto/cipher.hpp"

#include "codecs/libraries.hpp"

#include <atomic>

namespace pyparq {
namespace {

std::atomic<uint64_t> keys{0};

// Overwrites a key. The compiler must not drop this as a write that is never read.
void forget(std::array<uint8_t, 32>& bytes) {
    volatile uint8_t* const p = bytes.data();
    for (size_t k = 0; k < bytes.size(); ++k) p[k] = 0;
}

}  // namespace

AesKey::AesKey(const nb::bytes& key) : kind_(key.size() / 8 - 2), number_(++keys) {
    if (key.size() != 16 && key.size() != 24 && key.size() != 32) fail("an AES key has 16, 24 or 32 bytes");
    if (!aes_is_native()) fail("the kernels have no libcrypto");
    std::memcpy(bytes_.data(), key.c_str(), key.size());
}

AesKey::~AesKey() { forget(bytes_); }

bool aes_is_native() { return crypto() != nullptr; }

AesContext::~AesContext() {
    for (const KeyedContext& one : by_mode_)
        if (one.context != nullptr) crypto()->CTX_free(one.context);
}

// Readies the context of a mode for the bytes behind `start`: GCM's nonce, or CTR's first counter.
bool AesContext::begin(bool ctr, const AesKey& key, const uint8_t* start, bool encrypts) {
    const Crypto& c = *crypto();
    KeyedContext& one = by_mode_[ctr];
    if (one.context == nullptr) one.context = c.CTX_new();
    if (one.context == nullptr) return false;
    if (one.key == key.number()) return c.CipherInit_ex(one.context, nullptr, nullptr, nullptr, start, encrypts) == 1;
    one.key = 0;
    if (c.CipherInit_ex(one.context, c.ciphers[ctr][key.kind()], nullptr, key.bytes(), start, encrypts) != 1) return false;
    one.key = key.number();
    return true;
}

bool AesContext::begin_ctr(const AesKey& key, const uint8_t* nonce, bool encrypts) {
    uint8_t start[kNonce + 4] = {};
    std::memcpy(start, nonce, kNonce);
    start[kNonce + 3] = 1;
    return begin(true, key, start, encrypts);
}

bool AesContext::update(bool ctr, uint8_t* out, const uint8_t* text, size_t size) {
    int written = 0;
    return size == 0 || crypto()->CipherUpdate(by_mode_[ctr].context, out, &written, text, static_cast<int>(size)) == 1;
}

bool AesContext::put_aad(const std::string& aad, const uint8_t* number, size_t number_size) {
    return update(false, nullptr, reinterpret_cast<const uint8_t*>(aad.data()), aad.size()) &&
           update(false, nullptr, number, number_size);
}

bool AesContext::put_parts(bool ctr, const TextPart* parts, size_t count, uint8_t* out) {
    for (size_t k = 0; k < count; out += parts[k++].size)
        if (!update(ctr, out, parts[k].data, parts[k].size)) return false;
    return true;
}

bool AesContext::finish(bool fine) {
    if (!fine) crypto()->clear_error();  // others on this thread may look at what is left there
    return fine;
}

bool AesContext::open_gcm(const AesKey& key, const uint8_t* nonce, const std::string& aad, const uint8_t* number,
                          size_t number_size, const uint8_t* body, size_t size, uint8_t* out) {
    const Crypto& c = *crypto();
    uint8_t tag[kTag], rest[kTag];
    std::memcpy(tag, body + size, kTag);
    int written = 0;
    return finish(begin(false, key, nonce, false) && put_aad(aad, number, number_size) && update(false, out, body, size) &&
                  c.CTX_ctrl(by_mode_[0].context, Crypto::kSetTag, static_cast<int>(kTag), tag) == 1 &&
                  c.CipherFinal_ex(by_mode_[0].context, rest, &written) == 1);
}

bool AesContext::open_ctr(const AesKey& key, const uint8_t* nonce, const uint8_t* body, size_t size, uint8_t* out) {
    return finish(begin_ctr(key, nonce, false) && update(true, out, body, size));
}

bool AesContext::seal_gcm(const AesKey& key, const uint8_t* nonce, const std::string& aad, const uint8_t* number,
                          size_t number_size, const TextPart* parts, size_t count, uint8_t* out) {
    const Crypto& c = *crypto();
    size_t size = 0;
    for (size_t k = 0; k < count; ++k) size += parts[k].size;
    uint8_t rest[kTag];
    int written = 0;
    return finish(begin(false, key, nonce, true) && put_aad(aad, number, number_size) && put_parts(false, parts, count, out) &&
                  c.CipherFinal_ex(by_mode_[0].context, rest, &written) == 1 &&
                  c.CTX_ctrl(by_mode_[0].context, Crypto::kGetTag, static_cast<int>(kTag), out + size) == 1);
}

bool AesContext::seal_ctr(const AesKey& key, const uint8_t* nonce, const TextPart* parts, size_t count, uint8_t* out) {
    return finish(begin_ctr(key, nonce, true) && put_parts(true, parts, count, out));
}

}  // namespace pyparq
