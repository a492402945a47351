// How the pages of an encrypted column chunk are sealed (Encryption.md, 4 and 5): nonces, and libcrypto.
#pragma once
#include "crypto/cipher.hpp"

#include <array>
#include <atomic>
#include <string>
#include <vector>

namespace pyparq {

class NonceBlock;

// Nonces of one key, and how many there were. All needs the GIL, but for forks().
class Nonces {
  public:
    // `random(size)` gives so many random bytes.
    explicit Nonces(nb::object random) : random_(std::move(random)) {}

    // A nonce for one more encryption; None where `most` were given.
    nb::object take(int64_t most);
    // The same for `count` encryptions; false, with nothing done, where so many are not left.
    bool take(size_t count, int64_t most, NonceBlock& block);
    // A forked process must not use those that its parent will.
    void forget() {
        drawn_.clear();
        forks_.fetch_add(1, std::memory_order_relaxed);
    }
    uint64_t forks() const { return forks_.load(std::memory_order_relaxed); }

    int64_t used = 0;

  private:
    std::string drawn(size_t count);

    nb::object random_;
    std::string drawn_;
    std::atomic<uint64_t> forks_{0};
};

// Nonces for threads without the GIL. Each is given once.
class NonceBlock {
  public:
    // Null where none is left, or where this process is a fork of the one that has them.
    const char* take() {
        if (from_ == nullptr || from_->forks() != forks_) return nullptr;
        const size_t k = next_.fetch_add(1, std::memory_order_relaxed);
        return k < bytes_.size() / kNonce ? bytes_.data() + k * kNonce : nullptr;
    }

  private:
    friend class Nonces;
    const Nonces* from_ = nullptr;
    uint64_t forks_ = 0;
    std::string bytes_;
    std::atomic<size_t> next_{0};
};

// What seals the pages of one column chunk by libcrypto, on any thread.
class NativeSealer {
  public:
    NativeSealer(nb::object nonces, int64_t invocations, nb::object key, bool ctr, const nb::sequence& aads, nb::object otherwise);

    // Nonces for so many modules, where so many are left. Needs the GIL.
    bool draw(size_t count, NonceBlock& block) const { return nonces_->take(count, invocations_, block); }
    // Bytes that a module of so much text takes.
    size_t stored_size(int module, size_t size) const { return kFrame + size + (ctr_ && is_body(module) ? 0 : kTag); }
    // Puts the stored form of `parts`, which have `size` bytes, where it has room; false where something is not usual, or no
    // nonce is left. Such a module is a matter of otherwise(module, parts, page).
    bool seal(int module, const TextPart* parts, size_t count, size_t size, int64_t page, NonceBlock& nonces, AesContext& aes,
              uint8_t* out) const;
    // All of it, with the GIL.
    nb::object seal_one(int64_t module, const nb::list& parts, int64_t page) const;
    const nb::object& otherwise() const { return otherwise_; }

  private:
    nb::object nonces_object_, key_object_, otherwise_;
    Nonces* nonces_;
    const AesKey* key_;
    int64_t invocations_;
    bool ctr_;
    std::array<std::string, 4> aads_;
};

}  // namespace pyparq
