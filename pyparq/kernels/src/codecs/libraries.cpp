#include "codecs/libraries.hpp"

#include "base/common.hpp"

#include <atomic>
#include <string>

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace pyparq {
namespace {

#ifndef _WIN32
// A library that stays loaded as long as somebody uses what was found in it.
class Loaded {
  public:
    explicit Loaded(const char* path) : handle_(dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {}
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    ~Loaded() {
        if (handle_ != nullptr) dlclose(handle_);
    }
    // Whether it has the function.
    template <class F>
    bool find(const char* name, F*& function) const {
        function = handle_ == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(handle_, name));
        return function != nullptr;
    }
    void keep() { handle_ = nullptr; }

  private:
    void* handle_;
};
#else
struct Loaded {
    explicit Loaded(const char*) {}
    template <class F>
    bool find(const char*, F*&) const {
        return false;
    }
    void keep() {}
};
#endif

// Each of these: whether the library has all functions, and they do what is expected of them.

bool load_functions(const Loaded& from, Zlib& z) {
    if (!from.find("inflateInit2_", z.inflateInit2_) || !from.find("inflateReset2", z.inflateReset2) ||
        !from.find("inflate", z.inflate) || !from.find("inflateEnd", z.inflateEnd) ||
        !from.find("deflateInit2_", z.deflateInit2_) || !from.find("deflateReset", z.deflateReset) ||
        !from.find("deflate", z.deflate) || !from.find("deflateEnd", z.deflateEnd) || !from.find("crc32", z.crc32))
        return false;
    constexpr uint8_t kKnown[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    ZStream stream{};
    return z.crc32(0, kKnown, sizeof(kKnown)) == 0xcbf43926u &&
           z.inflateInit2_(&stream, 47, "1", sizeof(ZStream)) == Zlib::kOk && z.inflateEnd(&stream) == Zlib::kOk;
}

bool load_functions(const Loaded& from, Zstd& z) {
    if (!from.find("ZSTD_isError", z.isError) || !from.find("ZSTD_createDCtx", z.createDCtx) ||
        !from.find("ZSTD_freeDCtx", z.freeDCtx) || !from.find("ZSTD_decompressDCtx", z.decompressDCtx) ||
        !from.find("ZSTD_createCCtx", z.createCCtx) || !from.find("ZSTD_freeCCtx", z.freeCCtx) ||
        !from.find("ZSTD_CCtx_reset", z.CCtx_reset) || !from.find("ZSTD_CCtx_setParameter", z.CCtx_setParameter) ||
        !from.find("ZSTD_CCtx_setPledgedSrcSize", z.CCtx_setPledgedSrcSize) ||
        !from.find("ZSTD_compressStream2", z.compressStream2))
        return false;
    // These are for a part of a frame only.
    if (!from.find("ZSTD_decompressBegin", z.decompressBegin) ||
        !from.find("ZSTD_nextSrcSizeToDecompress", z.nextSrcSizeToDecompress) ||
        !from.find("ZSTD_decompressContinue", z.decompressContinue))
        z.decompressBegin = nullptr;
    constexpr uint8_t kKnown[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x03, 0x19, 0x00, 0x00, 'y', 'e', 's'};
    uint8_t out[3] = {};
    void* const context = z.createDCtx();
    if (context == nullptr) return false;
    const size_t written = z.decompressDCtx(context, out, sizeof(out), kKnown, sizeof(kKnown));
    z.freeDCtx(context);
    return written == 3 && std::memcmp(out, "yes", 3) == 0;
}

bool load_functions(const Loaded& from, Brotli& b) {
    if (!from.find("BrotliDecoderDecompress", b.decompress) || !from.find("BrotliEncoderCompress", b.compress))
        return false;
    constexpr uint8_t kKnown[] = {0x0b, 0x01, 0x80, 'y', 'e', 's', 0x03};
    uint8_t out[3] = {};
    size_t written = sizeof(out);
    return b.decompress(sizeof(kKnown), kKnown, &written, out) == Brotli::kSuccess && written == 3 &&
           std::memcmp(out, "yes", 3) == 0;
}

bool load_functions(const Loaded& from, Crypto& c) {
    const void* (*known[2][3])();
    if (!from.find("EVP_CIPHER_CTX_new", c.CTX_new) || !from.find("EVP_CIPHER_CTX_free", c.CTX_free) ||
        !from.find("EVP_CipherInit_ex", c.CipherInit_ex) || !from.find("EVP_CipherUpdate", c.CipherUpdate) ||
        !from.find("EVP_CipherFinal_ex", c.CipherFinal_ex) || !from.find("EVP_CIPHER_CTX_ctrl", c.CTX_ctrl) ||
        !from.find("ERR_clear_error", c.clear_error) || !from.find("EVP_aes_128_gcm", known[0][0]) ||
        !from.find("EVP_aes_192_gcm", known[0][1]) || !from.find("EVP_aes_256_gcm", known[0][2]) ||
        !from.find("EVP_aes_128_ctr", known[1][0]) || !from.find("EVP_aes_192_ctr", known[1][1]) ||
        !from.find("EVP_aes_256_ctr", known[1][2]))
        return false;
    // Since 3.0 the library would look for the cipher with every key, unless it is told which it is.
    constexpr const char* kNames[2][3] = {{"AES-128-GCM", "AES-192-GCM", "AES-256-GCM"},
                                          {"AES-128-CTR", "AES-192-CTR", "AES-256-CTR"}};
    void* (*fetch)(void*, const char* name, const char* properties) = nullptr;
    from.find("EVP_CIPHER_fetch", fetch);
    for (size_t mode = 0; mode < 2; ++mode)
        for (size_t size = 0; size < 3; ++size) {
            c.ciphers[mode][size] = fetch != nullptr ? fetch(nullptr, kNames[mode][size], nullptr) : known[mode][size]();
            if (c.ciphers[mode][size] == nullptr) return false;
        }
    // The second test of the GCM specification: all bits of key, nonce and text are zero.
    constexpr uint8_t kZeros[16] = {}, kText[16] = {0x03, 0x88, 0xda, 0xce, 0x60, 0xb6, 0xa3, 0x92,
                                                    0xf3, 0x28, 0xc2, 0xb9, 0x71, 0xb2, 0xfe, 0x78};
    uint8_t tag[16] = {0xab, 0x6e, 0x47, 0xd4, 0x2c, 0xec, 0x13, 0xbd, 0xf5, 0x3a, 0x67, 0xb2, 0x12, 0x57, 0xbd, 0xdf};
    uint8_t out[16] = {1}, rest[16];
    int n = 0;
    void* const context = c.CTX_new();
    if (context == nullptr) return false;
    const bool fits = c.CipherInit_ex(context, c.ciphers[0][0], nullptr, kZeros, kZeros, 0) == 1 &&
                      c.CipherUpdate(context, out, &n, kText, 16) == 1 && n == 16 &&
                      c.CTX_ctrl(context, Crypto::kSetTag, 16, tag) == 1 && c.CipherFinal_ex(context, rest, &n) == 1;
    c.CTX_free(context);
    return fits && std::memcmp(out, kZeros, 16) == 0;
}

// The functions of one library: looked for once, or by several threads that then find the same. No lock: whoever had it
// would need the GIL, and whoever has the GIL may need the lock; and a fork could leave it taken.
template <class Functions>
class Found {
  public:
    explicit constexpr Found(const char* package) : package_(package) {}

    const Functions* get() {
        if (!looked_.load(std::memory_order_acquire)) look();
        return functions_.load(std::memory_order_relaxed);
    }

  private:
    void look() {
        const nb::gil_scoped_acquire gil;
        const nb::error_scope outer;  // somebody else's error
        try {
            const nb::object paths = nb::module_::import_("pyparq.kernels.libraries").attr("files_of")(package_);
            for (const nb::handle path : paths) {
                const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(path.ptr()));
                if (!bytes.is_valid()) throw nb::python_error();
                if (load_from(PyBytes_AsString(bytes.ptr()))) break;
            }
        } catch (nb::python_error& error) {
            if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // again, where Python can raise it
        }
        looked_.store(true, std::memory_order_release);
    }

    bool load_from(const char* path) {
        Loaded library(path);
        Functions found;
        if (!load_functions(library, found)) return false;
        library.keep();
        functions_.store(new Functions(found), std::memory_order_release);
        return true;
    }

    const char* const package_;
    std::atomic<bool> looked_{false};
    std::atomic<const Functions*> functions_{nullptr};
};

Found<Zlib> zlib_found{"zlib"};
Found<Zstd> zstd_found{"zstandard"};
Found<Brotli> brotli_found{"cramjam"};
Found<Crypto> crypto_found{"_hashlib"};

}  // namespace

const Zlib* zlib() { return zlib_found.get(); }
const Zstd* zstd() { return zstd_found.get(); }
const Brotli* brotli() { return brotli_found.get(); }
const Crypto* crypto() { return crypto_found.get(); }

}  // namespace pyparq
