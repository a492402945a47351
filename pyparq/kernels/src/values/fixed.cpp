// Values of fixed width: dictionary gather, spreading over nulls and back.
#include "values/calls.hpp"
#include "base/widths.hpp"
#include "decode/rle_bitpacked.hpp"
#include "values/checks.hpp"

#include <array>

namespace pyparq {

size_t count_equal(const uint8_t* v, size_t n, uint8_t value) {
    const uint64_t pattern = uint64_t{value} * 0x0101010101010101ull;
    size_t others = 0, i = 0;
    while (i + 8 <= n) {  // sums of bytes, before any of them can pass 255
        uint64_t sums = 0;
        for (const size_t stop = std::min(n - 8, i + 8 * 254); i <= stop; i += 8)
            sums += ones_of_eight(load<uint64_t>(v + i) ^ pattern);
        others += (sums & 0x00ff00ff00ff00ffull) * 0x0001000100010001ull >> 48;
        others += (sums >> 8 & 0x00ff00ff00ff00ffull) * 0x0001000100010001ull >> 48;
    }
    for (; i < n; ++i) others += v[i] != value;
    return n - others;
}

size_t count_set(const uint8_t* valid, size_t n) { return n - count_equal(valid, n, 0); }

#ifdef PYPARQ_AVX2
namespace {

// For eight slots, a bit each: how many values lie before each of them, a byte each.
constexpr std::array<uint64_t, 256> values_before() {
    std::array<uint64_t, 256> all{};
    for (unsigned bits = 0; bits < 256; ++bits)
        for (unsigned j = 1; j < 8; ++j)
            all[bits] |= static_cast<uint64_t>(std::popcount(bits & ((1u << j) - 1))) << 8 * j;
    return all;
}
constexpr std::array<uint64_t, 256> kValuesBefore = values_before();

__attribute__((target("avx2,popcnt"))) size_t spread_starts_avx2(const int32_t* starts, size_t readable,
                                                                 const uint8_t* valid, size_t n, int32_t* out,
                                                                 size_t& k) {
    size_t i = 0, at = k;
    for (; i + 8 <= n && at + 8 <= readable; i += 8) {
        const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(valid + i));
        const unsigned bits = ~static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128()))) & 0xff;
        const __m256i before = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(kValuesBefore[bits])));
        const __m256i near = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(starts + at));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permutevar8x32_epi32(near, before));
        at += static_cast<size_t>(std::popcount(bits));
    }
    k = at;
    return i;
}

}  // namespace
#endif

// As many slots as can be done eight at once; `k` counts their values.
size_t spread_starts(const int32_t* starts, size_t readable, const uint8_t* valid, size_t n, int32_t* out, size_t& k) {
#ifdef PYPARQ_AVX2
    if (have_avx2()) return spread_starts_avx2(starts, readable, valid, n, out, k);
#endif
    return 0;
}

// Indices up to and including the last present slot.
size_t end_of_set(const uint8_t* valid, size_t n) {
    while (n > 0 && valid[n - 1] == 0) --n;
    return n;
}

size_t checked_value_width(int64_t width) {
    if (width < 1 || width > std::numeric_limits<int32_t>::max()) fail("value width is not positive: " + str(width));
    return static_cast<size_t>(width);
}

size_t checked_items(size_t bytes, size_t width, const char* name) {
    if (bytes % width != 0)
        fail(std::string(name) + " of " + str(bytes) + " bytes are not whole values of " + str(width));
    return bytes / width;
}

namespace {

[[gnu::always_inline]] inline uint32_t largest(const int32_t* v, size_t n) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; ++i) top = std::max(top, static_cast<uint32_t>(v[i]));
    return top;
}
PYPARQ_TARGET_AVX2 uint32_t largest_avx2(const int32_t* v, size_t n) { return largest(v, n); }

}  // namespace

// Fails unless every index is in [0, limit).
void check_indices(const int32_t* indices, size_t n, size_t limit) {
    const uint32_t top = have_avx2() ? largest_avx2(indices, n) : largest(indices, n);
    if (n > 0 && top >= limit)
        fail("dictionary index " + str(int64_t{static_cast<int32_t>(top)}) + " is not in a dictionary of " +
             str(limit) + " entries");
}

void gather_fixed(const RawIn& dict, int64_t width_, const In<int32_t>& indices, const RawOut& out) {
    const size_t width = checked_value_width(width_), entries = checked_items(dict.size, width, "dictionary");
    const size_t n = indices.size;
    if (out.size != checked_mul(n, width))
        fail("out has " + str(out.size) + " bytes, " + str(n) + " values of " + str(width) + " are needed");
    NoGil nogil(out.size);
    by_width(width, [&](auto tag) {
        using T = decltype(tag);
        for (size_t from = 0; from < n; from += 4096) {  // checked and used while in the first-level cache
            const size_t to = std::min(n, from + 4096);
            check_indices(indices.data + from, to - from, entries);
            for (size_t i = from; i < to; ++i) {
                const size_t k = static_cast<size_t>(indices.data[i]);
                if constexpr (is_odd<T>) std::memcpy(out.data + i * width, dict.data + k * width, width);
                else store(out.data + i * sizeof(T), load<T>(dict.data + k * sizeof(T)));
            }
        }
    });
}

nb::object compact_fixed(const RawIn& values, int64_t width_, const Valid& valid) {
    const size_t width = checked_value_width(width_), n = checked_items(values.size, width, "values");
    if (!valid.none() && valid.size != n) fail(str(n) + " values but " + str(valid.size) + " validity bytes");
    const size_t set = valid.none() ? n : count_set(valid.data, n);
    Fresh<uint8_t> out(set * width);
    NoGil nogil(values.size);
    if (set == n) {
        if (n > 0) std::memcpy(out.data, values.data, values.size);
        return std::move(out.object);
    }
    const size_t end = end_of_set(valid.data, n);
    by_width(width, [&](auto tag) {
        using T = decltype(tag);
        size_t k = 0;
        for (size_t i = 0; i < end; ++i) {  // k < set for every i < end, so each write has its place
            if constexpr (is_odd<T>) {
                if (valid.data[i] != 0) std::memcpy(out.data + k * width, values.data + i * width, width);
            } else {
                store(out.data + k * sizeof(T), load<T>(values.data + i * sizeof(T)));
            }
            k += valid.data[i] != 0;
        }
    });
    return std::move(out.object);
}

}  // namespace pyparq
