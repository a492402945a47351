// C functions of zlib, zstd, Brotli and libcrypto, which the kernels call without Python. They come from libraries that the
// build linked (PYPARQ_SYSTEM_LIBS), or are looked up at run time in libraries that installed Python packages bring. Where a
// library is missing, Python packages do its work, more slowly. README.md in kernels/ tells the whole story.
//
// The structs and numbers below repeat those of the libraries' headers, which a default build does not have.
// linked_libraries.cpp compares them with the headers where these are there. library_checks.cpp compares versions and tries
// every function before a library is believed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pyparq {

// Of zlib.h, which keeps this layout since 1995.
struct ZStream {
    const uint8_t* next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t* next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char* msg;
    void* state;
    void* (*zalloc)(void*, unsigned, unsigned);
    void (*zfree)(void*, void*);
    void* opaque;
    int data_type;
    unsigned long adler, reserved;
};

// In Python's module zlib.
struct Zlib {
    static constexpr const char* kLibrary = "zlib";
    static constexpr int kOk = 0, kEnd = 1, kBufferError = -5, kNoFlush = 0, kFinish = 4, kDeflated = 8;
    int (*inflateInit2_)(ZStream*, int window_bits, const char* version, int size);
    int (*inflateReset2)(ZStream*, int window_bits);
    int (*inflate)(ZStream*, int flush);
    int (*inflateEnd)(ZStream*);
    int (*deflateInit2_)(ZStream*, int level, int method, int window_bits, int memory, int strategy, const char*, int size);
    int (*deflateReset)(ZStream*);
    int (*deflate)(ZStream*, int flush);
    int (*deflateEnd)(ZStream*);
    unsigned long (*crc32)(unsigned long, const uint8_t*, unsigned);
    const char* (*version)();
    // libdeflate's, which reads and writes whole gzip members at two to four times the speed. Null where it is not there.
    void* (*newInflater)();
    void (*freeInflater)(void*);
    int (*inflateGzip)(void*, const void* in, size_t n, void* out, size_t room, size_t* taken, size_t* written);  // 0: done
    void* (*newDeflater)(int level);
    void (*freeDeflater)(void*);
    size_t (*deflateGzip)(void*, const void* in, size_t n, void* out, size_t room);  // 0: it does not fit
};

// In the package zstandard.
struct Zstd {
    static constexpr const char* kLibrary = "zstd";
    struct InBuffer {
        const void* src;
        size_t size, pos;
    };
    struct OutBuffer {
        void* dst;
        size_t size, pos;
    };
    static constexpr int kCompressionLevel = 100, kResetSession = 1, kContinue = 0, kEnd = 2;
    unsigned (*isError)(size_t);
    void* (*createDCtx)();
    size_t (*freeDCtx)(void*);
    size_t (*decompressDCtx)(void*, void* out, size_t room, const void* in, size_t n);
    void* (*createCCtx)();
    size_t (*freeCCtx)(void*);
    size_t (*CCtx_reset)(void*, int what);
    size_t (*CCtx_setParameter)(void*, int which, int value);
    size_t (*CCtx_setPledgedSrcSize)(void*, unsigned long long size);
    size_t (*compressStream2)(void*, OutBuffer*, InBuffer*, int end);
    // These three decode the beginning of a frame. zstd marks them as experimental: null where they are missing.
    size_t (*decompressBegin)(void*);
    size_t (*nextSrcSizeToDecompress)(void*);
    size_t (*decompressContinue)(void*, void* out, size_t room, const void* in, size_t n);
    unsigned (*version)();
};

// In the package cramjam.
struct Brotli {
    static constexpr const char* kLibrary = "brotli";
    static constexpr int kSuccess = 1, kGeneric = 0;
    int (*decompress)(size_t n, const uint8_t* in, size_t* written, uint8_t* out);
    int (*compress)(int quality, int window_bits, int mode, size_t n, const uint8_t* in, size_t* written, uint8_t* out);
    uint32_t (*version)();
};

// OpenSSL's libcrypto, in Python's module _hashlib.
struct Crypto {
    static constexpr const char* kLibrary = "libcrypto";
    static constexpr int kGetTag = 0x10, kSetTag = 0x11;
    void* (*CTX_new)();
    void (*CTX_free)(void*);
    int (*CipherInit_ex)(void*, const void* cipher, void* engine, const uint8_t* key, const uint8_t* start, int encrypts);
    int (*CipherUpdate)(void*, uint8_t* out, int* written, const uint8_t* in, int n);
    int (*CipherFinal_ex)(void*, uint8_t* out, int* written);
    int (*CTX_ctrl)(void*, int what, int n, void* data);
    void (*clear_error)();
    unsigned long (*version)();
    const void* (*by_size[2][3])();                                   // EVP_aes_128_gcm and so on: GCM, CTR; keys of 16, 24 and 32 bytes
    void* (*fetch)(void*, const char* name, const char* properties);  // null before OpenSSL 3.0
    const void* ciphers[2][3];                                        // what these give, once the library is checked
};

// Each is null where the library is missing. The first call of each needs the GIL for a moment: the caller must not hold a
// lock that a thread with the GIL waits for.
const Zlib* zlib();
const Zstd* zstd();
const Brotli* brotli();
const Crypto* crypto();

}  // namespace pyparq
