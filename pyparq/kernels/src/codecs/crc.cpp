// CRC-32 (that of zlib and of pages) by carry-less multiplication, 64 bytes at a time: "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction", Intel, 2009. The constants are those of its reflected form. ARM has instructions for it.
#include "codecs/calls.hpp"
#include "codecs/crc.hpp"

#if defined(PYPARQ_AVX2)
#include <immintrin.h>
#elif defined(PYPARQ_NEON)
#include <arm_acle.h>
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#endif

namespace pyparq {

#ifdef PYPARQ_AVX2
namespace {

#define PYPARQ_TARGET_FOLD __attribute__((target("pclmul,sse4.1")))

PYPARQ_TARGET_FOLD inline __m128i load_16(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// What 128 bits become by the time that `more` comes behind them; `by` says how far that is.
PYPARQ_TARGET_FOLD inline __m128i fold(__m128i bits, __m128i by, __m128i more) {
    const __m128i low = _mm_clmulepi64_si128(bits, by, 0x00), high = _mm_clmulepi64_si128(bits, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), more);
}

// `size` is a multiple of 16 and at least 64; `crc` as it is between steps, that is, inverted.
PYPARQ_TARGET_FOLD uint32_t fold_all(uint32_t crc, const uint8_t* p, size_t size) {
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_8 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i polynomial = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i lower_halves = _mm_setr_epi32(~0, 0, ~0, 0);
    __m128i a = _mm_xor_si128(load_16(p), _mm_cvtsi32_si128(static_cast<int>(crc)));
    __m128i b = load_16(p + 16), c = load_16(p + 32), d = load_16(p + 48);
    for (p += 64, size -= 64; size >= 64; p += 64, size -= 64) {
        a = fold(a, by_64, load_16(p));
        b = fold(b, by_64, load_16(p + 16));
        c = fold(c, by_64, load_16(p + 32));
        d = fold(d, by_64, load_16(p + 48));
    }
    a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
    for (; size >= 16; p += 16, size -= 16) a = fold(a, by_16, load_16(p));
    // 128 bits to 64, and these to 32.
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, lower_halves), by_8, 0x00));
    __m128i rest = _mm_clmulepi64_si128(_mm_and_si128(a, lower_halves), polynomial, 0x10);
    rest = _mm_clmulepi64_si128(_mm_and_si128(rest, lower_halves), polynomial, 0x00);
    return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, rest), 1));
}

}  // namespace

bool folds_crc() {
    static const bool yes = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    return yes;
}

size_t fold_crc(uint32_t& crc, const uint8_t* data, size_t size) {
    const size_t whole = size & ~size_t{15};
    if (whole < 64 || !folds_crc()) return 0;
    crc = ~fold_all(~crc, data, whole);
    return whole;
}
#elif defined(PYPARQ_NEON)
namespace {

#if defined(__clang__)
#define PYPARQ_TARGET_CRC __attribute__((target("crc")))
#else
#define PYPARQ_TARGET_CRC __attribute__((target("+crc")))
#endif

bool have_crc() {
#if defined(__APPLE__)
    return true;
#elif defined(__linux__)
    static const bool yes = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
    return yes;
#else
    return false;
#endif
}

PYPARQ_TARGET_CRC uint32_t crc_of_eights(uint32_t crc, const uint8_t* p, size_t size) {
    for (size_t i = 0; i < size; i += 8) crc = __crc32d(crc, load<uint64_t>(p + i));
    return crc;
}

}  // namespace

size_t fold_crc(uint32_t& crc, const uint8_t* data, size_t size) {
    const size_t whole = size & ~size_t{7};
    if (!have_crc()) return 0;
    crc = ~crc_of_eights(~crc, data, whole);
    return whole;
}
#else
size_t fold_crc(uint32_t&, const uint8_t*, size_t) { return 0; }
#endif

}  // namespace pyparq
