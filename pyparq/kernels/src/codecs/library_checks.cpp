#include "codecs/library_checks.hpp"

#include "codecs/library_codecs.hpp"

#include <cstdlib>
#include <cstring>

namespace pyparq {
namespace {

struct Version {
    unsigned major, minor, patch;

    std::string text() const { return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch); }
    bool operator<(const Version& other) const {
        if (major != other.major) return major < other.major;
        return minor != other.minor ? minor < other.minor : patch < other.patch;
    }
};

// "1.2.13", or "1.3.1.zlib-ng".
Version version_of(const Zlib& zlib) {
    Version found{};
    const char* at = zlib.version();
    for (unsigned* part : {&found.major, &found.minor, &found.patch}) {
        if (at == nullptr || *at < '0' || *at > '9') break;
        char* end = nullptr;
        *part = static_cast<unsigned>(std::strtoul(at, &end, 10));
        at = *end == '.' ? end + 1 : nullptr;
    }
    return found;
}

Version version_of(const Zstd& zstd) {
    const unsigned v = zstd.version();
    return {v / 10000, v / 100 % 100, v % 100};
}

Version version_of(const Brotli& brotli) {
    const uint32_t v = brotli.version();
    return {v >> 24, v >> 12 & 0xfff, v & 0xfff};
}

// From 3.0 on the last number has a place of its own; before, it was the third of three and a letter followed.
Version version_of(const Crypto& crypto) {
    const unsigned long v = crypto.version();
    const auto major = static_cast<unsigned>(v >> 28 & 0xf);
    return {major, static_cast<unsigned>(v >> 20 & 0xff), static_cast<unsigned>((major >= 3 ? v >> 4 : v >> 12) & 0xff)};
}

// The first version that has all functions, and the first one that is too new to be trusted with them.
struct Range {
    Version from, before;
};
constexpr Range kZlib{{1, 2, 4}, {2, 0, 0}}, kZstd{{1, 4, 0}, {2, 0, 0}}, kBrotli{{1, 0, 0}, {2, 0, 0}},
    kCrypto{{1, 1, 1}, {5, 0, 0}};

std::string fault_of_version(const Version& found, const Range& known) {
    if (!(found < known.from) && found < known.before) return {};
    return "it is version " + found.text() + ", but pyparq knows " + known.from.text() + " and later ones below " +
           known.before.text();
}

constexpr const char* kFailed = "it failed its self-test";

constexpr uint8_t kText[] = "pyparq pyparq pyparq: row group, column chunk, page";
constexpr size_t kTextSize = sizeof(kText) - 1, kRoom = 512;

bool is_text(const uint8_t* out, int64_t size) {
    return size == static_cast<int64_t>(kTextSize) && std::memcmp(out, kText, kTextSize) == 0;
}

// A stream whose fields lie where they must: zlib moved the pointers on and counted what it took and gave.
bool is_at(const ZStream& stream, const uint8_t* in, size_t taken, const uint8_t* out, size_t given) {
    return stream.next_in == in + taken && stream.total_in == taken && stream.next_out == out + given &&
           stream.total_out == given;
}

bool deflates(const Zlib& z, uint8_t* out, size_t& size) {
    ZStream stream{};
    constexpr int kSmallWindow = 16 + 9, kLeastMemory = 1;  // for little memory; 16 asks for gzip's wrapper
    if (z.deflateInit2_(&stream, 6, Zlib::kDeflated, kSmallWindow, kLeastMemory, 0, "1", sizeof(stream)) != Zlib::kOk)
        return false;
    bool fine = true;
    for (int round = 0; fine && round < 2; ++round) {  // the second after a reset
        stream.next_in = kText, stream.avail_in = kTextSize, stream.next_out = out, stream.avail_out = kRoom;
        fine = z.deflate(&stream, Zlib::kFinish) == Zlib::kEnd && stream.avail_in == 0 && stream.avail_out < kRoom;
        size = kRoom - stream.avail_out;
        fine = fine && is_at(stream, kText, kTextSize, out, size) && z.deflateReset(&stream) == Zlib::kOk;
    }
    z.deflateEnd(&stream);
    return fine;
}

bool inflates(const Zlib& z, const uint8_t* in, size_t size) {
    ZStream stream{};
    constexpr int kAnyWrapper = 32 + 15;
    if (z.inflateInit2_(&stream, kAnyWrapper, "1", sizeof(stream)) != Zlib::kOk) return false;
    bool fine = true;
    for (int round = 0; fine && round < 2; ++round) {
        uint8_t out[kRoom];
        stream.next_in = in, stream.avail_in = static_cast<unsigned>(size), stream.next_out = out, stream.avail_out = kRoom;
        fine = z.inflate(&stream, Zlib::kNoFlush) == Zlib::kEnd && is_at(stream, in, size, out, kTextSize) &&
               is_text(out, static_cast<int64_t>(kRoom - stream.avail_out)) &&
               z.inflateReset2(&stream, kAnyWrapper) == Zlib::kOk;
    }
    z.inflateEnd(&stream);
    return fine;
}

bool inflates_whole(const Zlib& z, const uint8_t* in, size_t size) {
    void* const inflater = z.newInflater();
    if (inflater == nullptr) return false;
    uint8_t out[kRoom];
    size_t taken = 0, written = 0;
    const bool fine = z.inflateGzip(inflater, in, size, out, kRoom, &taken, &written) == 0 && taken == size &&
                      is_text(out, static_cast<int64_t>(written)) &&
                      z.inflateGzip(inflater, in, size, out, kTextSize - 1, &taken, &written) != 0;
    z.freeInflater(inflater);
    return fine;
}

bool deflates_whole(const Zlib& z) {
    void* const deflater = z.newDeflater(6);
    if (deflater == nullptr) return false;
    uint8_t out[kRoom];
    const size_t size = z.deflateGzip(deflater, kText, kTextSize, out, kRoom);
    const bool fine = size > 0 && size < kRoom && inflates(z, out, size) &&
                      z.deflateGzip(deflater, kText, kTextSize, out, size - 1) == 0;
    z.freeDeflater(deflater);
    return fine;
}

bool starts_frames(const Zstd& z, void* context, const uint8_t* in, size_t size) {
    uint8_t out[kRoom];
    size_t written = 0;
    if (z.isError(z.decompressBegin(context))) return false;
    while (written < kTextSize) {
        const size_t next = z.nextSrcSizeToDecompress(context);
        if (next == 0 || next > size) return false;
        const size_t found = z.decompressContinue(context, out + written, kRoom - written, in, next);
        if (z.isError(found) || found > kRoom - written) return false;
        in += next, size -= next, written += found;
    }
    return is_text(out, static_cast<int64_t>(written));
}

size_t zstd_compressed(const Zstd& z, uint8_t* out) {
    void* const context = z.createCCtx();
    if (context == nullptr) return 0;
    Zstd::OutBuffer written{out, kRoom, 0};
    Zstd::InBuffer read{kText, kTextSize, 0};
    const bool fine = !z.isError(z.CCtx_reset(context, Zstd::kResetSession)) &&
                      !z.isError(z.CCtx_setParameter(context, Zstd::kCompressionLevel, 1)) &&
                      !z.isError(z.CCtx_setPledgedSrcSize(context, kTextSize)) &&
                      z.compressStream2(context, &written, &read, Zstd::kEnd) == 0 && read.pos == kTextSize;
    z.freeCCtx(context);
    return fine ? written.pos : 0;
}

// Of the GCM specification, the tests of 16 bytes whose key, nonce and text have no bit set: what these become, and the tag.
constexpr uint8_t kZeros[32] = {};
constexpr uint8_t kSealed[3][32] = {
    {0x03, 0x88, 0xda, 0xce, 0x60, 0xb6, 0xa3, 0x92, 0xf3, 0x28, 0xc2, 0xb9, 0x71, 0xb2, 0xfe, 0x78,
     0xab, 0x6e, 0x47, 0xd4, 0x2c, 0xec, 0x13, 0xbd, 0xf5, 0x3a, 0x67, 0xb2, 0x12, 0x57, 0xbd, 0xdf},
    {0x98, 0xe7, 0x24, 0x7c, 0x07, 0xf0, 0xfe, 0x41, 0x1c, 0x26, 0x7e, 0x43, 0x84, 0xb0, 0xf6, 0x00,
     0x2f, 0xf5, 0x8d, 0x80, 0x03, 0x39, 0x27, 0xab, 0x8e, 0xf4, 0xd4, 0x58, 0x75, 0x14, 0xf0, 0xfb},
    {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e, 0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18,
     0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0, 0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19},
};
constexpr int kBlock = 16;

bool seals(const Crypto& c, void* context, size_t size) {
    uint8_t out[kBlock], tag[kBlock], rest[kBlock];
    int n = 0, more = 0;
    return c.CipherInit_ex(context, c.ciphers[0][size], nullptr, kZeros, kZeros, 1) == 1 &&
           c.CipherUpdate(context, out, &n, kZeros, kBlock) == 1 && n == kBlock &&
           c.CipherFinal_ex(context, rest, &more) == 1 &&
           c.CTX_ctrl(context, Crypto::kGetTag, kBlock, tag) == 1 && std::memcmp(out, kSealed[size], kBlock) == 0 &&
           std::memcmp(tag, kSealed[size] + kBlock, kBlock) == 0;
}

// Whether it opens what was sealed; one bit of the tag may be another.
bool opens(const Crypto& c, void* context, size_t size, uint8_t bit) {
    uint8_t out[kBlock], tag[kBlock], rest[kBlock];
    int n = 0, more = 0;
    std::memcpy(tag, kSealed[size] + kBlock, kBlock);
    tag[0] ^= bit;
    return c.CipherInit_ex(context, c.ciphers[0][size], nullptr, kZeros, kZeros, 0) == 1 &&
           c.CipherUpdate(context, out, &n, kSealed[size], kBlock) == 1 && n == kBlock &&
           c.CTX_ctrl(context, Crypto::kSetTag, kBlock, tag) == 1 && c.CipherFinal_ex(context, rest, &more) == 1 &&
           std::memcmp(out, kZeros, kBlock) == 0;
}

// GCM encrypts by CTR, its first block with counter 2.
bool counts(const Crypto& c, void* context, size_t size) {
    constexpr uint8_t kSecond[kBlock] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    uint8_t out[kBlock];
    int n = 0;
    return c.CipherInit_ex(context, c.ciphers[1][size], nullptr, kZeros, kSecond, 1) == 1 &&
           c.CipherUpdate(context, out, &n, kZeros, kBlock) == 1 && n == kBlock && std::memcmp(out, kSealed[size], kBlock) == 0;
}

// Since 3.0 the library would look for the cipher with every key, unless it was fetched before.
bool fetch_ciphers(Crypto& c) {
    constexpr const char* kNames[2][3] = {{"AES-128-GCM", "AES-192-GCM", "AES-256-GCM"},
                                          {"AES-128-CTR", "AES-192-CTR", "AES-256-CTR"}};
    for (size_t mode = 0; mode < 2; ++mode)
        for (size_t size = 0; size < 3; ++size) {
            c.ciphers[mode][size] =
                c.fetch != nullptr ? c.fetch(nullptr, kNames[mode][size], nullptr) : c.by_size[mode][size]();
            if (c.ciphers[mode][size] == nullptr) return false;
        }
    return true;
}

}  // namespace

std::string version_text(const Zlib& zlib) {
    return std::string(zlib.version()) + (zlib.inflateGzip != nullptr ? " and libdeflate" : "");
}
std::string version_text(const Zstd& zstd) { return version_of(zstd).text(); }
std::string version_text(const Brotli& brotli) { return version_of(brotli).text(); }
std::string version_text(const Crypto& crypto) { return version_of(crypto).text(); }

std::string fault_of(Zlib& z) {
    if (std::string fault = fault_of_version(version_of(z), kZlib); !fault.empty()) return fault;
    constexpr uint8_t kDigits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    uint8_t stream[kRoom];
    size_t size = 0;
    const bool fine = z.crc32(0, kDigits, sizeof(kDigits)) == 0xcbf43926u && deflates(z, stream, size) &&
                      inflates(z, stream, size);
    keep_libdeflate_if_right(z);
    return fine ? "" : kFailed;
}

bool keep_libdeflate_if_right(Zlib& z) {
    uint8_t stream[kRoom];
    size_t size = 0;
    if (z.inflateGzip != nullptr && z.deflateGzip != nullptr && deflates(z, stream, size) &&
        inflates_whole(z, stream, size) && deflates_whole(z))
        return true;
    z.inflateGzip = nullptr, z.deflateGzip = nullptr;
    return false;
}

std::string fault_of(Zstd& z) {
    if (std::string fault = fault_of_version(version_of(z), kZstd); !fault.empty()) return fault;
    constexpr uint8_t kKnown[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x03, 0x19, 0x00, 0x00, 'y', 'e', 's'};
    uint8_t stream[kRoom], out[kRoom];
    const size_t size = zstd_compressed(z, stream);
    void* const context = z.createDCtx();
    if (size == 0 || context == nullptr) return kFailed;
    const bool fine = is_text(out, static_cast<int64_t>(z.decompressDCtx(context, out, kRoom, stream, size))) &&
                      z.isError(z.decompressDCtx(context, out, kTextSize - 1, stream, size)) &&
                      z.decompressDCtx(context, out, kRoom, kKnown, sizeof(kKnown)) == 3 && std::memcmp(out, "yes", 3) == 0;
    if (z.decompressBegin != nullptr && !starts_frames(z, context, stream, size)) z.decompressBegin = nullptr;
    z.freeDCtx(context);
    return fine ? "" : kFailed;
}

std::string fault_of(Brotli& b) {
    if (std::string fault = fault_of_version(version_of(b), kBrotli); !fault.empty()) return fault;
    constexpr uint8_t kKnown[] = {0x0b, 0x01, 0x80, 'y', 'e', 's', 0x03};
    uint8_t stream[kRoom], out[kRoom];
    const int64_t size = brotli_deflate(b, 1, kText, kTextSize, stream, kRoom);
    const bool fine = size > 0 && is_text(out, brotli_inflate(b, stream, static_cast<size_t>(size), out, kRoom)) &&
                      brotli_inflate(b, stream, static_cast<size_t>(size), out, kTextSize - 1) < 0 &&
                      brotli_inflate(b, kKnown, sizeof(kKnown), out, kRoom) == 3 && std::memcmp(out, "yes", 3) == 0;
    return fine ? "" : kFailed;
}

std::string fault_of(Crypto& c) {
    if (std::string fault = fault_of_version(version_of(c), kCrypto); !fault.empty()) return fault;
    if (!fetch_ciphers(c)) return "it has no AES";
    bool fine = true;
    for (size_t size = 0; size < 3; ++size) {
        void* const context = c.CTX_new();
        if (context == nullptr) return kFailed;
        fine = fine && seals(c, context, size) && opens(c, context, size, 0) && !opens(c, context, size, 1) &&
               counts(c, context, size);
        c.CTX_free(context);
    }
    c.clear_error();  // the wrong tag left one
    return fine ? "" : kFailed;
}

}  // namespace pyparq
