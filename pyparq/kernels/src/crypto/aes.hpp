// Modules of encrypted files as bytes (Encryption.md, 4.4 and 5.1).
#pragma once
#include "base/common.hpp"

namespace pyparq {

// A stored module: its length, a nonce, the text and, by GCM, a tag.
constexpr size_t kLength = 4, kNonce = 12, kTag = 16, kFrame = kLength + kNonce;

// The modules that pages consist of.
constexpr int kDataPageModule = 2, kDictionaryModule = 3, kDataHeaderModule = 4, kDictionaryHeaderModule = 5;

inline bool is_page_module(int64_t module) { return module >= kDataPageModule && module <= kDictionaryHeaderModule; }
// Whether the AAD of a module has the number of a page.
inline bool has_number(int64_t module) { return module == kDataPageModule || module == kDataHeaderModule; }
// Whether AES_GCM_CTR_V1 leaves a module without authentication.
inline bool is_body(int64_t module) { return module <= kDictionaryModule; }

// Whether an AAD can hold the number of a page.
inline bool counted(int64_t page) { return page >= 0 && page <= 0x7fff; }

// A bytes object of these two, one after another.
inline nb::bytes joined(const void* first, size_t first_size, const void* last, size_t last_size) {
    const auto both = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(first_size + last_size)));
    if (!both.is_valid()) throw nb::python_error();
    char* const out = PyBytes_AsString(both.ptr());
    if (first_size > 0) std::memcpy(out, first, first_size);
    std::memcpy(out + first_size, last, last_size);
    return both;
}

// The AAD of a page, from what stands before its number.
inline nb::bytes aad_of(const std::string& before, int64_t page) {
    const uint8_t number[] = {static_cast<uint8_t>(page), static_cast<uint8_t>(page >> 8)};
    return joined(before.data(), before.size(), number, sizeof(number));
}

// The first counter of AES-CTR.
inline nb::bytes first_counter(const uint8_t* nonce) {
    constexpr uint8_t kStart[] = {0, 0, 0, 1};
    return joined(nonce, kNonce, kStart, sizeof(kStart));
}

}  // namespace pyparq
