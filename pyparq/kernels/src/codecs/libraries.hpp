// C functions of libraries that are installed anyway, called without Python. Where one is not found, its users do without.
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

// What Python's module zlib is linked to.
struct Zlib {
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
};

// What the package zstandard brings.
struct Zstd {
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
    size_t (*decompressBegin)(void*);
    size_t (*nextSrcSizeToDecompress)(void*);
    size_t (*decompressContinue)(void*, void* out, size_t room, const void* in, size_t n);
};

// What the package cramjam brings.
struct Brotli {
    static constexpr int kSuccess = 1, kGeneric = 0;
    int (*decompress)(size_t n, const uint8_t* in, size_t* written, uint8_t* out);
    int (*compress)(int quality, int window_bits, int mode, size_t n, const uint8_t* in, size_t* written, uint8_t* out);
};

// libcrypto of OpenSSL (1.1.1 and later): what Python's module _hashlib is linked to.
struct Crypto {
    static constexpr int kGetTag = 0x10, kSetTag = 0x11;
    void* (*CTX_new)();
    void (*CTX_free)(void*);
    int (*CipherInit_ex)(void*, const void* cipher, void* engine, const uint8_t* key, const uint8_t* start, int encrypts);
    int (*CipherUpdate)(void*, uint8_t* out, int* written, const uint8_t* in, int n);
    int (*CipherFinal_ex)(void*, uint8_t* out, int* written);
    int (*CTX_ctrl)(void*, int what, int n, void* data);
    void (*clear_error)();
    const void* ciphers[2][3];  // GCM, CTR; of keys of 16, 24 and 32 bytes
};

// Null where the library is not there, or does not have what it takes. The first call needs the GIL for a moment: no lock
// may be held that somebody with the GIL waits for.
const Zlib* zlib();
const Zstd* zstd();
const Brotli* brotli();
const Crypto* crypto();

}  // namespace pyparq
