#include "libraries.hpp"

#include "common.hpp"

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

}  // namespace

const Zlib* zlib() { return zlib_found.get(); }
const Zstd* zstd() { return zstd_found.get(); }
const Brotli* brotli() { return brotli_found.get(); }

}  // namespace pyparq
