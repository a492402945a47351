// AES of the format's modules (Encryption.md, 4 and 5.1) by OpenSSL's libcrypto, without Python.
#pragma once
#include "crypto/aes.hpp"

#include <array>
#include <string>

namespace pyparq {

// A key of 16, 24 or 32 bytes.
class AesKey {
  public:
    explicit AesKey(const nb::bytes& key);
    AesKey(const AesKey&) = delete;
    AesKey& operator=(const AesKey&) = delete;
    ~AesKey();

    const uint8_t* bytes() const { return bytes_.data(); }
    size_t kind() const { return kind_; }        // 0, 1, 2: by its size
    uint64_t number() const { return number_; }  // no other key of this process has it

  private:
    std::array<uint8_t, 32> bytes_{};
    size_t kind_;
    uint64_t number_;
};

// Whether the library is there. The first call needs the GIL for a moment.
bool aes_is_native();

// A part of what a module holds.
struct TextPart {
    const uint8_t* data;
    size_t size;
};

// What the library keeps for a key. For one thread at a time.
class AesContext {
  public:
    AesContext() = default;
    AesContext(const AesContext&) = delete;
    AesContext& operator=(const AesContext&) = delete;
    ~AesContext();

    // The text of `size` bytes by GCM and the tag behind them; false where the tag is another, or the library refuses. The AAD
    // is both parts, one after another.
    bool open_gcm(const AesKey& key, const uint8_t* nonce, const std::string& aad, const uint8_t* number, size_t number_size,
                  const uint8_t* body, size_t size, uint8_t* out);
    // The text of `size` bytes by CTR.
    bool open_ctr(const AesKey& key, const uint8_t* nonce, const uint8_t* body, size_t size, uint8_t* out);

    // The other way round: `parts`, one after another, by GCM with the tag behind them, or by CTR. Below 2 GiB.
    bool seal_gcm(const AesKey& key, const uint8_t* nonce, const std::string& aad, const uint8_t* number, size_t number_size,
                  const TextPart* parts, size_t count, uint8_t* out);
    bool seal_ctr(const AesKey& key, const uint8_t* nonce, const TextPart* parts, size_t count, uint8_t* out);

  private:
    struct KeyedContext {
        void* context = nullptr;
        uint64_t key = 0;
    };
    bool begin(bool ctr, const AesKey& key, const uint8_t* start, bool encrypts);
    bool begin_ctr(const AesKey& key, const uint8_t* nonce, bool encrypts);
    bool update(bool ctr, uint8_t* out, const uint8_t* text, size_t size);
    bool put_aad(const std::string& aad, const uint8_t* number, size_t number_size);
    bool put_parts(bool ctr, const TextPart* parts, size_t count, uint8_t* out);
    bool finish(bool fine);
    KeyedContext by_mode_[2];  // GCM, CTR
};

}  // namespace pyparq
