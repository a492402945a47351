// Functions of the libraries that the build linked, and proof that libraries.hpp repeats their headers rightly.
// PYPARQ_SYSTEM_LIBS links all of them, PYPARQ_CODEC_SOURCES all but libcrypto.
#include "codecs/library_sources.hpp"

#ifdef PYPARQ_LINKED_CODECS
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <zlib.h>
#include <zstd.h>

#ifdef PYPARQ_LIBDEFLATE
#include <libdeflate.h>
#endif
#endif

#ifdef PYPARQ_LINKED_CRYPTO
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#endif

#if defined(PYPARQ_LINKED_CODECS) || defined(PYPARQ_LINKED_CRYPTO)
namespace {

// The same function, with the types of libraries.hpp in place of the library's own.
template <class To, class From>
void set(To*& to, From* from) {
    to = reinterpret_cast<To*>(reinterpret_cast<void (*)()>(from));
}

}  // namespace
#endif

#ifdef PYPARQ_LINKED_CODECS

// zstd exports these, but declares them for static linking only. Weak: a build of zstd may leave them out.
#ifdef __ELF__
extern "C" {
__attribute__((weak)) size_t ZSTD_decompressBegin(ZSTD_DCtx*);
__attribute__((weak)) size_t ZSTD_nextSrcSizeToDecompress(ZSTD_DCtx*);
__attribute__((weak)) size_t ZSTD_decompressContinue(ZSTD_DCtx*, void*, size_t, const void*, size_t);
}
#endif

namespace pyparq {
namespace {

#define PYPARQ_SAME_PLACE(ours, theirs, field) static_assert(offsetof(ours, field) == offsetof(theirs, field))
static_assert(sizeof(ZStream) == sizeof(z_stream));
PYPARQ_SAME_PLACE(ZStream, z_stream, next_in);
PYPARQ_SAME_PLACE(ZStream, z_stream, avail_in);
PYPARQ_SAME_PLACE(ZStream, z_stream, total_in);
PYPARQ_SAME_PLACE(ZStream, z_stream, next_out);
PYPARQ_SAME_PLACE(ZStream, z_stream, avail_out);
PYPARQ_SAME_PLACE(ZStream, z_stream, total_out);
PYPARQ_SAME_PLACE(ZStream, z_stream, state);
PYPARQ_SAME_PLACE(ZStream, z_stream, zalloc);
PYPARQ_SAME_PLACE(ZStream, z_stream, opaque);
static_assert(Zlib::kOk == Z_OK && Zlib::kEnd == Z_STREAM_END && Zlib::kBufferError == Z_BUF_ERROR);
static_assert(Zlib::kNoFlush == Z_NO_FLUSH && Zlib::kFinish == Z_FINISH && Zlib::kDeflated == Z_DEFLATED);

static_assert(sizeof(Zstd::InBuffer) == sizeof(ZSTD_inBuffer) && sizeof(Zstd::OutBuffer) == sizeof(ZSTD_outBuffer));
PYPARQ_SAME_PLACE(Zstd::InBuffer, ZSTD_inBuffer, size);
PYPARQ_SAME_PLACE(Zstd::InBuffer, ZSTD_inBuffer, pos);
PYPARQ_SAME_PLACE(Zstd::OutBuffer, ZSTD_outBuffer, size);
PYPARQ_SAME_PLACE(Zstd::OutBuffer, ZSTD_outBuffer, pos);
static_assert(Zstd::kCompressionLevel == ZSTD_c_compressionLevel && Zstd::kResetSession == ZSTD_reset_session_only);
static_assert(Zstd::kContinue == ZSTD_e_continue && Zstd::kEnd == ZSTD_e_end);

static_assert(Brotli::kSuccess == BROTLI_DECODER_RESULT_SUCCESS && Brotli::kGeneric == BROTLI_MODE_GENERIC);
static_assert(sizeof(BROTLI_BOOL) == sizeof(int) && sizeof(BrotliDecoderResult) == sizeof(int));

}  // namespace

bool link_functions(Zlib& z) {
    set(z.version, &::zlibVersion);
    set(z.inflateInit2_, &::inflateInit2_);
    set(z.inflateReset2, &::inflateReset2);
    set(z.inflate, &::inflate);
    set(z.inflateEnd, &::inflateEnd);
    set(z.deflateInit2_, &::deflateInit2_);
    set(z.deflateReset, &::deflateReset);
    set(z.deflate, &::deflate);
    set(z.deflateEnd, &::deflateEnd);
    set(z.crc32, &::crc32);
#ifdef PYPARQ_LIBDEFLATE
    static_assert(LIBDEFLATE_SUCCESS == 0 && sizeof(libdeflate_result) == sizeof(int));
    set(z.newInflater, &::libdeflate_alloc_decompressor);
    set(z.freeInflater, &::libdeflate_free_decompressor);
    set(z.inflateGzip, &::libdeflate_gzip_decompress_ex);
    set(z.newDeflater, &::libdeflate_alloc_compressor);
    set(z.freeDeflater, &::libdeflate_free_compressor);
    set(z.deflateGzip, &::libdeflate_gzip_compress);
#endif
    return true;
}

bool link_functions(Zstd& z) {
    set(z.version, &::ZSTD_versionNumber);
    set(z.isError, &::ZSTD_isError);
    set(z.createDCtx, &::ZSTD_createDCtx);
    set(z.freeDCtx, &::ZSTD_freeDCtx);
    set(z.decompressDCtx, &::ZSTD_decompressDCtx);
    set(z.createCCtx, &::ZSTD_createCCtx);
    set(z.freeCCtx, &::ZSTD_freeCCtx);
    set(z.CCtx_reset, &::ZSTD_CCtx_reset);
    set(z.CCtx_setParameter, &::ZSTD_CCtx_setParameter);
    set(z.CCtx_setPledgedSrcSize, &::ZSTD_CCtx_setPledgedSrcSize);
    set(z.compressStream2, &::ZSTD_compressStream2);
#ifdef __ELF__
    set(z.nextSrcSizeToDecompress, &::ZSTD_nextSrcSizeToDecompress);
    set(z.decompressContinue, &::ZSTD_decompressContinue);
    set(z.decompressBegin, &::ZSTD_decompressBegin);
    if (z.nextSrcSizeToDecompress == nullptr || z.decompressContinue == nullptr) z.decompressBegin = nullptr;
#endif
    return true;
}

bool link_functions(Brotli& b) {
    set(b.version, &::BrotliDecoderVersion);
    set(b.decompress, &::BrotliDecoderDecompress);
    set(b.compress, &::BrotliEncoderCompress);
    return true;
}

}  // namespace pyparq
#else
namespace pyparq {

bool link_functions(Zlib&) { return false; }
bool link_functions(Zstd&) { return false; }
bool link_functions(Brotli&) { return false; }

}  // namespace pyparq
#endif

#ifdef PYPARQ_LINKED_CRYPTO
namespace pyparq {

static_assert(Crypto::kGetTag == EVP_CTRL_AEAD_GET_TAG && Crypto::kSetTag == EVP_CTRL_AEAD_SET_TAG);

bool link_functions(Crypto& c) {
    set(c.version, &::OpenSSL_version_num);
    set(c.CTX_new, &::EVP_CIPHER_CTX_new);
    set(c.CTX_free, &::EVP_CIPHER_CTX_free);
    set(c.CipherInit_ex, &::EVP_CipherInit_ex);
    set(c.CipherUpdate, &::EVP_CipherUpdate);
    set(c.CipherFinal_ex, &::EVP_CipherFinal_ex);
    set(c.CTX_ctrl, &::EVP_CIPHER_CTX_ctrl);
    set(c.clear_error, &::ERR_clear_error);
    set(c.by_size[0][0], &::EVP_aes_128_gcm);
    set(c.by_size[0][1], &::EVP_aes_192_gcm);
    set(c.by_size[0][2], &::EVP_aes_256_gcm);
    set(c.by_size[1][0], &::EVP_aes_128_ctr);
    set(c.by_size[1][1], &::EVP_aes_192_ctr);
    set(c.by_size[1][2], &::EVP_aes_256_ctr);
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    set(c.fetch, &::EVP_CIPHER_fetch);
#endif
    return true;
}

}  // namespace pyparq
#else
namespace pyparq {

bool link_functions(Crypto&) { return false; }

}  // namespace pyparq
#endif
