// CRC-32 of pages (README.md, "Checksumming"; the polynomial of zlib and gzip), by carry-less multiplication: 64 bytes
// at a time are folded onto the next 64, which leaves the remainder as it is. Where a processor lacks the instruction,
// zlib is the quicker one (see kernels/__init__.py).
#include "common.hpp"

#include <array>

#if defined(PYPARQ_AVX2)
#define PYPARQ_CLMUL 1
#include <immintrin.h>
#endif

namespace pyparq {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320;  // the lowest bit is the highest power of x

constexpr std::array<uint32_t, 256> crc_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t v = i;
        for (int bit = 0; bit < 8; ++bit) v = v >> 1 ^ (v & 1 ? kPolynomial : 0);
        table[i] = v;
    }
    return table;
}
constexpr std::array<uint32_t, 256> kTable = crc_table();

// `state` is the register: the CRC before its final inversion.
uint32_t crc_bytes(uint32_t state, const uint8_t* p, size_t n) {
    for (; n > 0; --n) state = state >> 8 ^ kTable[(state ^ *p++) & 0xff];
    return state;
}

#ifdef PYPARQ_CLMUL
// x^n modulo the polynomial, in the register's order of bits and one place up: what 64 bits have to be multiplied by
// to move them n + 32 bits on (a product of reflected factors comes out one place low).
constexpr uint64_t power(unsigned n) {
    uint32_t v = uint32_t{1} << 31;
    for (; n > 0; --n) v = v >> 1 ^ (v & 1 ? kPolynomial : 0);
    return uint64_t{v} << 1;
}

bool have_clmul() {
    static const bool yes = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    return yes;
}

__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i x, __m128i by, const uint8_t* next) {
    const __m128i moved = _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
    return _mm_xor_si128(moved, _mm_loadu_si128(reinterpret_cast<const __m128i*>(next)));
}

__attribute__((target("pclmul,sse4.1"))) uint32_t crc_folded(uint32_t state, const uint8_t* p, size_t n) {
    const auto load16 = [](const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
    const __m128i far = _mm_set_epi64x(power(512 - 32), power(512 + 32));
    const __m128i near = _mm_set_epi64x(power(128 - 32), power(128 + 32));
    __m128i x[4];
    for (int k = 0; k < 4; ++k) x[k] = load16(p + 16 * k);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(static_cast<int>(state)));
    p += 64, n -= 64;
    for (; n >= 64; p += 64, n -= 64)
        for (int k = 0; k < 4; ++k) x[k] = fold(x[k], far, p + 16 * k);
    uint8_t rest[64];
    for (int k = 0; k < 4; ++k) _mm_storeu_si128(reinterpret_cast<__m128i*>(rest + 16 * k), x[k]);
    __m128i last = x[0];
    for (int k = 1; k < 4; ++k) last = fold(last, near, rest + 16 * k);
    for (; n >= 16; p += 16, n -= 16) last = fold(last, near, p);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), last);
    return crc_bytes(crc_bytes(0, rest, 16), p, n);
}
#else
bool have_clmul() { return false; }
#endif

uint32_t crc32(const RawIn& data, uint32_t value) {
    NoGil nogil(data.size / 8);  // a page takes no longer than waiting for the GIL would
#ifdef PYPARQ_CLMUL
    if (data.size >= 64 && have_clmul()) return ~crc_folded(~value, data.data, data.size);
#endif
    return ~crc_bytes(~value, data.data, data.size);
}

}  // namespace
}  // namespace pyparq

void bind_crc(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.attr("FAST_CRC32") = have_clmul();
    m.def("crc32", &crc32, "data"_a, "value"_a = 0);
}
