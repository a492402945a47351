// BYTE_STREAM_SPLIT (Encodings.md): byte k of every value together, for each k in turn.
#include "values/calls.hpp"
#include "encode/encoders.hpp"
#include "values/byte_stream_split.hpp"
#include "values/checks.hpp"

namespace pyparq {

namespace {

// Values [from, n), byte by byte; blocks keep both sides in the cache.
void join_plain(const uint8_t* streams, size_t n, size_t width, size_t from, uint8_t* out) {
    for (; from < n; from += 256) {
        const size_t to = std::min(n, from + 256);
        for (size_t k = 0; k < width; ++k)
            for (size_t i = from; i < to; ++i) out[i * width + k] = streams[k * n + i];
    }
}

void split_plain(const uint8_t* values, size_t n, size_t width, size_t from, uint8_t* out) {
    for (; from < n; from += 256) {
        const size_t to = std::min(n, from + 256);
        for (size_t k = 0; k < width; ++k)
            for (size_t i = from; i < to; ++i) out[k * n + i] = values[i * width + k];
    }
}

// Sixteen bytes in a register: bytes of two taken in turn, and every other byte of two.
#if defined(PYPARQ_SSE2)
using Bytes = __m128i;
inline Bytes load_16(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const Bytes*>(p)); }
inline void store_16(uint8_t* p, Bytes x) { _mm_storeu_si128(reinterpret_cast<Bytes*>(p), x); }
inline Bytes in_turn_low(Bytes a, Bytes b) { return _mm_unpacklo_epi8(a, b); }
inline Bytes in_turn_high(Bytes a, Bytes b) { return _mm_unpackhi_epi8(a, b); }
inline Bytes even_bytes(Bytes a, Bytes b) {
    const Bytes low = _mm_set1_epi16(0xff);
    return _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low));
}
inline Bytes odd_bytes(Bytes a, Bytes b) { return _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8)); }
#elif defined(PYPARQ_NEON)
using Bytes = uint8x16_t;
inline Bytes load_16(const uint8_t* p) { return vld1q_u8(p); }
inline void store_16(uint8_t* p, Bytes x) { vst1q_u8(p, x); }
inline Bytes in_turn_low(Bytes a, Bytes b) { return vzip1q_u8(a, b); }
inline Bytes in_turn_high(Bytes a, Bytes b) { return vzip2q_u8(a, b); }
inline Bytes even_bytes(Bytes a, Bytes b) { return vuzp1q_u8(a, b); }
inline Bytes odd_bytes(Bytes a, Bytes b) { return vuzp2q_u8(a, b); }
#endif

#if defined(PYPARQ_SSE2) || defined(PYPARQ_NEON)
// Sixteen values at once. One perfect shuffle interleaves the upper half of the rows with the lower; log2(W)
// of them bring the W bytes of each value together. Splitting runs the shuffles backwards. Both return how
// many values they did.
template <size_t W>
size_t join_sixteens(const uint8_t* streams, size_t n, uint8_t* out) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        Bytes x[W], y[W];
        for (size_t k = 0; k < W; ++k) x[k] = load_16(streams + k * n + i);
        for (size_t step = 1; step < W; step *= 2) {
            for (size_t k = 0; k < W / 2; ++k) {
                y[2 * k] = in_turn_low(x[k], x[k + W / 2]);
                y[2 * k + 1] = in_turn_high(x[k], x[k + W / 2]);
            }
            std::copy_n(y, W, x);
        }
        for (size_t k = 0; k < W; ++k) store_16(out + i * W + 16 * k, x[k]);
    }
    return i;
}

template <size_t W>
size_t split_sixteens(const uint8_t* values, size_t n, uint8_t* out) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        Bytes x[W], y[W];
        for (size_t k = 0; k < W; ++k) x[k] = load_16(values + i * W + 16 * k);
        for (size_t step = 1; step < W; step *= 2) {
            for (size_t k = 0; k < W / 2; ++k) {
                y[k] = even_bytes(x[2 * k], x[2 * k + 1]);
                y[k + W / 2] = odd_bytes(x[2 * k], x[2 * k + 1]);
            }
            std::copy_n(y, W, x);
        }
        for (size_t k = 0; k < W; ++k) store_16(out + k * n + i, x[k]);
    }
    return i;
}
#else
template <size_t W>
size_t join_sixteens(const uint8_t*, size_t, uint8_t*) { return 0; }
template <size_t W>
size_t split_sixteens(const uint8_t*, size_t, uint8_t*) { return 0; }
#endif

}  // namespace

void byte_stream_split_decode(const RawIn& data, int64_t width_, const RawOut& out) {
    const size_t width = checked_value_width(width_), n = checked_items(data.size, width, "streams");
    if (out.size != data.size) fail("out has " + str(out.size) + " bytes, but needs " + str(data.size));
    NoGil nogil(data.size);
    join_streams(data.data, n, width, out.data);
}

nb::object byte_stream_split_encode(const RawIn& values, int64_t width_) {
    const size_t width = checked_value_width(width_), n = checked_items(values.size, width, "values");
    Fresh<uint8_t> out(values.size);
    NoGil nogil(values.size);
    split_into(values.data, n, width, out.data);
    return std::move(out.object);
}

void join_streams(const uint8_t* streams, size_t n, size_t width, uint8_t* out) {
    size_t done = 0;
    if (width == 2) done = join_sixteens<2>(streams, n, out);
    if (width == 4) done = join_sixteens<4>(streams, n, out);
    if (width == 8) done = join_sixteens<8>(streams, n, out);
    join_plain(streams, n, width, done, out);
}

void split_into(const uint8_t* values, size_t n, size_t width, uint8_t* out) {
    size_t done = 0;
    if (width == 2) done = split_sixteens<2>(values, n, out);
    if (width == 4) done = split_sixteens<4>(values, n, out);
    if (width == 8) done = split_sixteens<8>(values, n, out);
    split_plain(values, n, width, done, out);
}

}  // namespace pyparq
