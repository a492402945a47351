#include "codecs/codecs.hpp"

#include "base/common.hpp"
#include "codecs/library_codecs.hpp"
#include "codecs/lz4.hpp"
#include "codecs/lzo.hpp"
#include "codecs/snappy.hpp"

namespace pyparq {
namespace {

// CompressionCodec of parquet.thrift.
enum Codec : int { UNCOMPRESSED,
                   SNAPPY,
                   GZIP,
                   LZO,
                   BROTLI,
                   LZ4,
                   ZSTD,
                   LZ4_RAW };

int64_t copy_all(const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    if (n > room) return -1;
    if (n > 0) std::memcpy(out, in, n);
    return static_cast<int64_t>(n);
}

}  // namespace

bool codec_is_native(int codec) {
    switch (codec) {
        case UNCOMPRESSED:
        case SNAPPY:
        case LZO:
        case LZ4:
        case LZ4_RAW: return true;
        case GZIP: return zlib() != nullptr;
        case ZSTD: return zstd() != nullptr;
        case BROTLI: return brotli() != nullptr;
        default: return false;
    }
}

int64_t inflate_native(int codec, const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted) {
    switch (codec) {
        case UNCOMPRESSED: return copy_all(in, n, out, room);
        case SNAPPY: return snappy_inflate(in, n, out, room, wanted);
        case LZO: return lzo_hadoop_inflate(in, n, out, room);
        case LZ4: return lz4_hadoop_inflate(in, n, out, room);
        case LZ4_RAW: return lz4_inflate(in, n, out, room, wanted);
        case GZIP: return zlib() == nullptr ? -1 : gzip_inflate(*zlib(), in, n, out, room, wanted);
        case ZSTD: return zstd() == nullptr ? -1 : zstd_inflate(*zstd(), in, n, out, room, wanted);
        case BROTLI: return brotli() == nullptr ? -1 : brotli_inflate(*brotli(), in, n, out, room);
        default: return -1;
    }
}

size_t deflate_bound(int codec, size_t n) {
    switch (codec) {
        case SNAPPY: return 32 + n + n / 6;
        case GZIP: return n + n / 8 + n / 64 + 64;  // zlib needs less, zlib-ng spends up to 9 bits on a byte
        case BROTLI: return n + n / 1024 + 1024;
        case ZSTD: return n + n / 256 + (n < size_t{128} << 10 ? ((size_t{128} << 10) - n) / 2048 : 0) + 64;
        case LZ4_RAW: return n + n / 255 + 16;
        default: return n;
    }
}

bool codec_writes_native(int codec) {
    return codec == UNCOMPRESSED || codec == SNAPPY || ((codec == GZIP || codec == ZSTD || codec == BROTLI) && codec_is_native(codec));
}

int64_t deflate_native(int codec, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    switch (codec) {
        case UNCOMPRESSED: return copy_all(in, n, out, room);
        case SNAPPY: return snappy_deflate(in, n, out, room);
        case GZIP: return zlib() == nullptr ? -1 : gzip_deflate(*zlib(), level, in, n, out, room);
        case ZSTD: return zstd() == nullptr ? -1 : zstd_deflate(*zstd(), level, in, n, out, room);
        case BROTLI: return brotli() == nullptr ? -1 : brotli_deflate(*brotli(), level, in, n, out, room);
        default: return -1;
    }
}

}  // namespace pyparq
