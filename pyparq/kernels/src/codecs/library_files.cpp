// Functions of shared libraries that are found at run time.
#include "codecs/library_sources.hpp"

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace pyparq {

#ifndef _WIN32
OpenLibrary::OpenLibrary(const char* path) : handle_(dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {}
OpenLibrary::~OpenLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
}
void* OpenLibrary::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

std::string file_of(const void* function) {
    Dl_info info{};
    return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}
#else
OpenLibrary::OpenLibrary(const char*) : handle_(nullptr) {}
OpenLibrary::~OpenLibrary() = default;
void* OpenLibrary::symbol(const char*) const { return nullptr; }

std::string file_of(const void*) { return ""; }
#endif

// The first name that is not found ends the search.
#define PYPARQ_FIND(name, function) \
    if (!from.find(name, function)) return name

const char* find_functions(const OpenLibrary& from, Zlib& z) {
    PYPARQ_FIND("zlibVersion", z.version);
    PYPARQ_FIND("inflateInit2_", z.inflateInit2_);
    PYPARQ_FIND("inflateReset2", z.inflateReset2);
    PYPARQ_FIND("inflate", z.inflate);
    PYPARQ_FIND("inflateEnd", z.inflateEnd);
    PYPARQ_FIND("deflateInit2_", z.deflateInit2_);
    PYPARQ_FIND("deflateReset", z.deflateReset);
    PYPARQ_FIND("deflate", z.deflate);
    PYPARQ_FIND("deflateEnd", z.deflateEnd);
    PYPARQ_FIND("crc32", z.crc32);
    return nullptr;
}

const char* find_libdeflate(const OpenLibrary& from, Zlib& z) {
    PYPARQ_FIND("libdeflate_alloc_decompressor", z.newInflater);
    PYPARQ_FIND("libdeflate_free_decompressor", z.freeInflater);
    PYPARQ_FIND("libdeflate_gzip_decompress_ex", z.inflateGzip);
    PYPARQ_FIND("libdeflate_alloc_compressor", z.newDeflater);
    PYPARQ_FIND("libdeflate_free_compressor", z.freeDeflater);
    PYPARQ_FIND("libdeflate_gzip_compress", z.deflateGzip);
    return nullptr;
}

const char* find_functions(const OpenLibrary& from, Zstd& z) {
    PYPARQ_FIND("ZSTD_versionNumber", z.version);
    PYPARQ_FIND("ZSTD_isError", z.isError);
    PYPARQ_FIND("ZSTD_createDCtx", z.createDCtx);
    PYPARQ_FIND("ZSTD_freeDCtx", z.freeDCtx);
    PYPARQ_FIND("ZSTD_decompressDCtx", z.decompressDCtx);
    PYPARQ_FIND("ZSTD_createCCtx", z.createCCtx);
    PYPARQ_FIND("ZSTD_freeCCtx", z.freeCCtx);
    PYPARQ_FIND("ZSTD_CCtx_reset", z.CCtx_reset);
    PYPARQ_FIND("ZSTD_CCtx_setParameter", z.CCtx_setParameter);
    PYPARQ_FIND("ZSTD_CCtx_setPledgedSrcSize", z.CCtx_setPledgedSrcSize);
    PYPARQ_FIND("ZSTD_compressStream2", z.compressStream2);
    if (!from.find("ZSTD_nextSrcSizeToDecompress", z.nextSrcSizeToDecompress) ||
        !from.find("ZSTD_decompressContinue", z.decompressContinue) || !from.find("ZSTD_decompressBegin", z.decompressBegin))
        z.decompressBegin = nullptr;
    return nullptr;
}

const char* find_functions(const OpenLibrary& from, Brotli& b) {
    PYPARQ_FIND("BrotliDecoderVersion", b.version);
    PYPARQ_FIND("BrotliDecoderDecompress", b.decompress);
    PYPARQ_FIND("BrotliEncoderCompress", b.compress);
    return nullptr;
}

const char* find_functions(const OpenLibrary& from, Crypto& c) {
    PYPARQ_FIND("OpenSSL_version_num", c.version);
    PYPARQ_FIND("EVP_CIPHER_CTX_new", c.CTX_new);
    PYPARQ_FIND("EVP_CIPHER_CTX_free", c.CTX_free);
    PYPARQ_FIND("EVP_CipherInit_ex", c.CipherInit_ex);
    PYPARQ_FIND("EVP_CipherUpdate", c.CipherUpdate);
    PYPARQ_FIND("EVP_CipherFinal_ex", c.CipherFinal_ex);
    PYPARQ_FIND("EVP_CIPHER_CTX_ctrl", c.CTX_ctrl);
    PYPARQ_FIND("ERR_clear_error", c.clear_error);
    PYPARQ_FIND("EVP_aes_128_gcm", c.by_size[0][0]);
    PYPARQ_FIND("EVP_aes_192_gcm", c.by_size[0][1]);
    PYPARQ_FIND("EVP_aes_256_gcm", c.by_size[0][2]);
    PYPARQ_FIND("EVP_aes_128_ctr", c.by_size[1][0]);
    PYPARQ_FIND("EVP_aes_192_ctr", c.by_size[1][1]);
    PYPARQ_FIND("EVP_aes_256_ctr", c.by_size[1][2]);
    from.find("EVP_CIPHER_fetch", c.fetch);  // null before OpenSSL 3.0
    return nullptr;
}

#undef PYPARQ_FIND

}  // namespace pyparq
