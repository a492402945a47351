#include "codecs/library_codecs.hpp"

#include "base/workers.hpp"

#include <algorithm>
#include <climits>

namespace pyparq {
namespace {

// Contexts are kept, one for each thread and use: to make one takes as long as a small page.

constexpr size_t kPiece = size_t{128} << 10;  // bytes that a slow compressor is given at a time: it can be stopped in between

// A gzip or zlib wrapper, whichever there is, and a gzip wrapper (zlib.h, inflateInit2 and deflateInit2).
constexpr int kAnyWrapper = 32 + 15, kGzipWrapper = 16 + 15, kUsualMemory = 8;

struct Inflating {
    const Zlib* zlib = nullptr;
    ZStream stream{};

    bool begin(const Zlib& with) {
        if (zlib == nullptr) {
            if (with.inflateInit2_(&stream, kAnyWrapper, "1", sizeof(stream)) != Zlib::kOk) return false;
            zlib = &with;
            return true;
        }
        return zlib->inflateReset2(&stream, kAnyWrapper) == Zlib::kOk;
    }
    ~Inflating() {
        if (zlib != nullptr) zlib->inflateEnd(&stream);
    }
};

struct Deflating {
    const Zlib* zlib = nullptr;
    int level = INT_MIN;
    ZStream stream{};

    bool begin(const Zlib& with, int wanted) {
        if (zlib != nullptr && level == wanted) return zlib->deflateReset(&stream) == Zlib::kOk;
        end();
        stream = {};
        if (with.deflateInit2_(&stream, wanted, Zlib::kDeflated, kGzipWrapper, kUsualMemory, 0, "1", sizeof(stream)) != Zlib::kOk)
            return false;
        zlib = &with, level = wanted;
        return true;
    }
    void end() {
        if (zlib != nullptr) zlib->deflateEnd(&stream);
        zlib = nullptr;
    }
    ~Deflating() { end(); }
};

thread_local Inflating inflating;
thread_local Deflating deflating;

unsigned at_once(size_t n) { return static_cast<unsigned>(std::min<size_t>(n, UINT_MAX)); }

// libdeflate's, for whole members.
struct WholeInflating {
    void* inflater = nullptr;
    void (*free)(void*) = nullptr;

    void* get(const Zlib& zlib) {
        if (inflater == nullptr) inflater = zlib.newInflater(), free = zlib.freeInflater;
        return inflater;
    }
    ~WholeInflating() {
        if (inflater != nullptr) free(inflater);
    }
};

thread_local WholeInflating whole_inflating;

// What `in` holds where it is one gzip member; -1 where it may be anything else, which zlib judges.
int64_t inflate_whole(const Zlib& zlib, const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    void* const inflater = whole_inflating.get(zlib);
    size_t taken = 0, written = 0;
    if (inflater == nullptr || zlib.inflateGzip(inflater, in, n, out, room, &taken, &written) != 0 || taken != n) return -1;
    return static_cast<int64_t>(written);
}

// Inflates one gzip member, and moves `in` and `out` behind it. Returns zlib's result.
int inflate_member(const Zlib& zlib, const uint8_t*& in, const uint8_t* in_end, uint8_t*& out, uint8_t* end) {
    ZStream& stream = inflating.stream;
    for (;;) {
        stream.next_in = in, stream.avail_in = at_once(static_cast<size_t>(in_end - in));
        stream.next_out = out, stream.avail_out = at_once(static_cast<size_t>(end - out));
        const int said = zlib.inflate(&stream, Zlib::kNoFlush);
        const bool moved = in != stream.next_in || out != stream.next_out;
        in = stream.next_in, out = stream.next_out;
        if (said != Zlib::kOk || !moved || out == end) return said == Zlib::kOk && !moved ? Zlib::kBufferError : said;
    }
}

}  // namespace

int64_t gzip_inflate(const Zlib& zlib, const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted) {
    if (zlib.inflateGzip != nullptr && wanted >= room) {
        if (const int64_t found = inflate_whole(zlib, in, n, out, room); found >= 0) return found;
    }
    const uint8_t* const in_end = in + n;
    uint8_t *at = out, *const end = out + std::min(wanted, room);
    // Members follow each other. Bytes behind the one that fills the room are ignored.
    while (in < in_end && (at < end || room == 0)) {
        if (!inflating.begin(zlib)) return -1;
        const int said = inflate_member(zlib, in, in_end, at, end);
        if (said == Zlib::kEnd) continue;
        if (said != Zlib::kOk && said != Zlib::kBufferError) return -1;
        if (at < end) return -1;
        if (wanted < room) break;
        // The room is full before the member's end was seen: this is right unless one more byte comes.
        uint8_t more = 0, *more_at = &more;
        const int then = inflate_member(zlib, in, in_end, more_at, &more + 1);
        if (more_at != &more || (then != Zlib::kEnd && then != Zlib::kBufferError)) return -1;
    }
    return at - out;
}

namespace {

// libdeflate's, for whole members.
struct WholeDeflating {
    void* deflater = nullptr;
    void (*free)(void*) = nullptr;
    int level = INT_MIN;

    void* get(const Zlib& zlib, int wanted) {
        if (deflater == nullptr || level != wanted) {
            end();
            deflater = zlib.newDeflater(wanted), free = zlib.freeDeflater, level = wanted;
        }
        return deflater;
    }
    void end() {
        if (deflater != nullptr) free(deflater);
        deflater = nullptr;
    }
    ~WholeDeflating() { end(); }
};

thread_local WholeDeflating whole_deflating;

// The level of libdeflate that makes a member no larger than zlib's `level` does.
int level_of_libdeflate(int level) { return level > 1 && level < 9 ? level + 1 : level; }

// Bytes that may be compressed in one call, which nothing stops.
constexpr size_t kMostAtOnce = size_t{4} << 20;

}  // namespace

int64_t gzip_deflate(const Zlib& zlib, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    if (zlib.deflateGzip != nullptr && n <= kMostAtOnce) {
        void* const deflater = whole_deflating.get(zlib, level_of_libdeflate(level));
        const size_t size = deflater == nullptr ? 0 : zlib.deflateGzip(deflater, in, n, out, room);
        if (size > 0) return static_cast<int64_t>(size);
    }
    if (!deflating.begin(zlib, level)) return -1;
    ZStream& stream = deflating.stream;
    const uint8_t* const in_end = in + n;
    uint8_t *at = out, *const end = out + room;
    for (;;) {
        const size_t piece = std::min(kPiece, static_cast<size_t>(in_end - in));
        const bool last = in + piece == in_end;
        stream.next_in = in, stream.avail_in = static_cast<unsigned>(piece);
        stream.next_out = at, stream.avail_out = at_once(static_cast<size_t>(end - at));
        const int said = zlib.deflate(&stream, last ? Zlib::kFinish : Zlib::kNoFlush);
        in = stream.next_in, at = stream.next_out;
        if (said == Zlib::kEnd) return at - out;
        if ((said != Zlib::kOk && said != Zlib::kBufferError) || at == end || stop_requested()) return -1;
    }
}

namespace {

// A context of zstd's.
class Context {
  public:
    using Free = size_t (*)(void*);
    void* get(void* (*make)(), Free free) {
        if (context_ == nullptr) context_ = make(), free_ = free;
        return context_;
    }
    ~Context() {
        if (context_ != nullptr) free_(context_);
    }

  private:
    void* context_ = nullptr;
    Free free_ = nullptr;
};

thread_local Context decompressing, compressing;

// The beginning of a frame, block by block; 0 where it ends before there is enough, or something is wrong.
int64_t zstd_start(const Zstd& zstd, void* context, const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted) {
    if (zstd.decompressBegin == nullptr || zstd.isError(zstd.decompressBegin(context))) return 0;
    size_t written = 0;
    while (written < wanted) {
        const size_t next = zstd.nextSrcSizeToDecompress(context);
        if (next == 0 || next > n) return 0;
        const size_t found = zstd.decompressContinue(context, out + written, room - written, in, next);
        if (zstd.isError(found) || found > room - written) return 0;
        in += next, n -= next, written += found;
    }
    return static_cast<int64_t>(written);
}

}  // namespace

int64_t zstd_inflate(const Zstd& zstd, const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted) {
    void* const context = decompressing.get(zstd.createDCtx, zstd.freeDCtx);
    if (context == nullptr) return -1;
    if (wanted < room / 2) {
        if (const int64_t found = zstd_start(zstd, context, in, n, out, room, wanted); found > 0) return found;
    }
    const size_t found = zstd.decompressDCtx(context, out, room, in, n);
    return zstd.isError(found) ? -1 : static_cast<int64_t>(found);
}

int64_t zstd_deflate(const Zstd& zstd, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    void* const context = compressing.get(zstd.createCCtx, zstd.freeCCtx);
    if (context == nullptr || zstd.isError(zstd.CCtx_reset(context, Zstd::kResetSession)) ||
        zstd.isError(zstd.CCtx_setParameter(context, Zstd::kCompressionLevel, level)) ||
        zstd.isError(zstd.CCtx_setPledgedSrcSize(context, n)))
        return -1;
    // Quick levels get all at once, which spares copies; slow ones can be stopped.
    constexpr int kSlow = 10;
    constexpr size_t kQuick = size_t{4} << 20;
    const size_t piece = level < kSlow && n <= kQuick ? n : kPiece;
    Zstd::OutBuffer written{out, room, 0};
    for (size_t at = 0;;) {
        Zstd::InBuffer read{in + at, std::min(piece, n - at), 0};
        const bool last = at + read.size == n;
        const size_t left = zstd.compressStream2(context, &written, &read, last ? Zstd::kEnd : Zstd::kContinue);
        if (zstd.isError(left)) return -1;
        at += read.pos;
        if (last && left == 0) return static_cast<int64_t>(written.pos);
        if (written.pos == room || stop_requested()) return -1;
    }
}

int64_t brotli_inflate(const Brotli& brotli, const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    size_t written = room;
    return brotli.decompress(n, in, &written, out) == Brotli::kSuccess && written <= room ? static_cast<int64_t>(written) : -1;
}

int64_t brotli_deflate(const Brotli& brotli, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    constexpr int kWindow = 22;
    size_t written = room;
    return brotli.compress(level, kWindow, Brotli::kGeneric, n, in, &written, out) != 0 ? static_cast<int64_t>(written) : -1;
}

}  // namespace pyparq
