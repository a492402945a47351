// Modules of encrypted files as bytes (Encryption.md, 4.4 and 5.1).
#pragma once
#include "common.hpp"

namespace pyparq {

// A stored module: its length, a nonce, the text and, by GCM, a tag.
constexpr size_t kLength = 4, kNonce = 12, kTag = 16, kFrame = kLength + kNonce;

// Whether an AAD can hold the number of a page.
inline bool counted(int64_t page) { return page >= 0 && page <= 0x7fff; }

// The AAD of a page, from what stands before its number.
inline nb::bytes aad_of(const std::string& before, int64_t page) {
    const std::string whole = before + static_cast<char>(page & 255) + static_cast<char>(page >> 8);
    return nb::bytes(whole.data(), whole.size());
}

// The first counter of AES-CTR.
inline nb::bytes first_counter(const uint8_t* nonce) {
    std::string counter(reinterpret_cast<const char*>(nonce), kNonce);
    counter.append("\0\0\0\1", 4);
    return nb::bytes(counter.data(), counter.size());
}

}  // namespace pyparq
