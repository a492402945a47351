// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "crypto/cipher.hpp"

namespace pyparq {

nb::object encrypt(const AesKey& key, const nb::bytes& nonce, const RawIn& text, const nb::object& aad);
void encrypt_into(const AesKey& key, const nb::bytes& nonce, const RawIn& text, const nb::object& aad, const RawOut& out);
nb::object decrypt(const AesKey& key, const nb::bytes& nonce, const RawIn& sealed, const nb::object& aad);
void decrypt_into(const AesKey& key, const nb::bytes& nonce, const RawIn& sealed, const nb::object& aad, const RawOut& out);
void run_ctr(const AesKey& key, const nb::bytes& nonce, const RawIn& text, const RawOut& out);

}  // namespace pyparq
