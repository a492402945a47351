// Checks of a library before it is used: its version, and what its functions make of a few known bytes.
#pragma once
#include "codecs/libraries.hpp"

#include <string>

namespace pyparq {

// The version as people write it, such as "1.2.13".
std::string version_text(const Zlib& zlib);
std::string version_text(const Zstd& zstd);
std::string version_text(const Brotli& brotli);
std::string version_text(const Crypto& crypto);

// Why the library cannot be used; empty where its version is one that `libraries.hpp` describes and all functions give what
// they must. What is optional and does not work is set to null.
std::string fault_of(Zlib& zlib);
std::string fault_of(Zstd& zstd);
std::string fault_of(Brotli& brotli);
std::string fault_of(Crypto& crypto);

// Whether libdeflate's functions are there and give what they must. Otherwise they are set to null.
bool keep_libdeflate_if_right(Zlib& zlib);

}  // namespace pyparq
