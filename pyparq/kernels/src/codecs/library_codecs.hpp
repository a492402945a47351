// GZIP, ZSTD and BROTLI through libraries. Each function needs the library that it names.
#pragma once
#include "codecs/libraries.hpp"

namespace pyparq {

// As `inflate_native` and `deflate_native`.
int64_t gzip_inflate(const Zlib& zlib, const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted);
int64_t gzip_deflate(const Zlib& zlib, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room);
int64_t zstd_inflate(const Zstd& zstd, const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted);
int64_t zstd_deflate(const Zstd& zstd, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room);
int64_t brotli_inflate(const Brotli& brotli, const uint8_t* in, size_t n, uint8_t* out, size_t room);
int64_t brotli_deflate(const Brotli& brotli, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room);

}  // namespace pyparq
