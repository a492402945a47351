// XXH64 with seed 0 over whole columns, and split block Bloom filters (BloomFilter.md).
#include "index/calls.hpp"
#include "index/sbbf.hpp"
#include "values/checks.hpp"

#ifdef PYPARQ_AVX2
#include <immintrin.h>
#endif

namespace pyparq {
namespace {

// ---- XXH64 (xxhash_spec.md 0.1.1) -----------------------------------------------------------------------

constexpr uint64_t kP1 = 0x9E3779B185EBCA87ull, kP2 = 0xC2B2AE3D27D4EB4Full, kP3 = 0x165667B19E3779F9ull,
                   kP4 = 0x85EBCA77C2B2AE63ull, kP5 = 0x27D4EB2F165667C5ull;

inline uint64_t lane_round(uint64_t acc, uint64_t lane) { return std::rotl(acc + lane * kP2, 31) * kP1; }

inline uint64_t avalanche(uint64_t h) {
    h = (h ^ h >> 33) * kP2;
    h = (h ^ h >> 29) * kP3;
    return h ^ h >> 32;
}

inline uint64_t take8(uint64_t h, uint64_t v) { return std::rotl(h ^ lane_round(0, v), 27) * kP1 + kP4; }
inline uint64_t take4(uint64_t h, uint32_t v) { return std::rotl(h ^ v * kP1, 23) * kP2 + kP3; }
inline uint64_t take1(uint64_t h, uint8_t v) { return std::rotl(h ^ v * kP5, 11) * kP1; }

inline uint64_t xxh64(const uint8_t* p, size_t n) {
    const uint8_t* end = p + n;
    uint64_t h = kP5;
    if (n >= 32) {
        uint64_t a = kP1 + kP2, b = kP2, c = 0, d = 0 - kP1;
        for (; end - p >= 32; p += 32) {
            a = lane_round(a, load<uint64_t>(p));
            b = lane_round(b, load<uint64_t>(p + 8));
            c = lane_round(c, load<uint64_t>(p + 16));
            d = lane_round(d, load<uint64_t>(p + 24));
        }
        h = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
        for (uint64_t acc : {a, b, c, d}) h = (h ^ lane_round(0, acc)) * kP1 + kP4;
    }
    h += n;
    for (; end - p >= 8; p += 8) h = take8(h, load<uint64_t>(p));
    if (end - p >= 4) {
        h = take4(h, load<uint32_t>(p));
        p += 4;
    }
    for (; p < end; ++p) h = take1(h, *p);
    return avalanche(h);
}

// ---- split block Bloom filter ---------------------------------------------------------------------------

constexpr size_t kAhead = 16;

uint64_t checked_blocks(size_t bytes) {
    if (bytes == 0 || bytes % kBlock != 0)
        fail("a Bloom filter bitset is a positive multiple of 32 bytes, not " + str(bytes));
    if (bytes / kBlock >= uint64_t{1} << 31) fail("a Bloom filter has fewer than 2^31 blocks");
    return bytes / kBlock;
}

inline void insert_one(uint8_t* block, uint32_t x) {
    for (size_t i = 0; i < 8; ++i)
        store(block + 4 * i, load<uint32_t>(block + 4 * i) | 1u << (x * kSalt[i] >> 27));
}

#ifdef PYPARQ_AVX2
PYPARQ_TARGET_AVX2 inline __m256i block_mask(uint32_t x) {
    const __m256i salt = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kSalt));
    const __m256i y = _mm256_srli_epi32(_mm256_mullo_epi32(salt, _mm256_set1_epi32(static_cast<int>(x))), 27);
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), y);
}

PYPARQ_TARGET_AVX2 void insert_avx2(uint8_t* bits, uint64_t blocks, const uint64_t* hashes, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        if (i + kAhead < n) prefetch(bits + block_at(hashes[i + kAhead], blocks));
        auto* block = reinterpret_cast<__m256i*>(bits + block_at(hashes[i], blocks));
        const __m256i mask = block_mask(static_cast<uint32_t>(hashes[i]));
        _mm256_storeu_si256(block, _mm256_or_si256(_mm256_loadu_si256(block), mask));
    }
}

PYPARQ_TARGET_AVX2 void check_avx2(const uint8_t* bits, uint64_t blocks, const uint64_t* hashes, size_t n, bool* out) {
    for (size_t i = 0; i < n; ++i) {
        if (i + kAhead < n) prefetch(bits + block_at(hashes[i + kAhead], blocks));
        const auto* block = reinterpret_cast<const __m256i*>(bits + block_at(hashes[i], blocks));
        out[i] = _mm256_testc_si256(_mm256_loadu_si256(block), block_mask(static_cast<uint32_t>(hashes[i]))) != 0;
    }
}
#endif

}  // namespace

nb::object xxh64_fixed(const RawIn& values, int64_t width_) {
    const size_t width = checked_value_width(width_), n = checked_items(values.size, width, "values");
    Fresh<uint64_t> out(n);
    NoGil nogil(n * 16);
    const uint8_t* p = values.data;
    if (width == 8)
        for (size_t i = 0; i < n; ++i) out.data[i] = avalanche(take8(kP5 + 8, load<uint64_t>(p + 8 * i)));
    else if (width == 4)
        for (size_t i = 0; i < n; ++i) out.data[i] = avalanche(take4(kP5 + 4, load<uint32_t>(p + 4 * i)));
    else
        for (size_t i = 0; i < n; ++i) out.data[i] = xxh64(p + i * width, width);
    return std::move(out.object);
}

nb::object xxh64_binary(const Offsets& offsets, const RawIn& data) {
    return offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        const size_t n = offsets.size - 1;
        Fresh<uint64_t> out(n);
        NoGil nogil(n * 16);
        for (size_t i = 0; i < n; ++i) out.data[i] = xxh64(data.data + o[i], static_cast<size_t>(o[i + 1] - o[i]));
        return std::move(out.object);
    });
}

void sbbf_insert(const RawOut& bitset, const In<uint64_t>& hashes) {
    const uint64_t blocks = checked_blocks(bitset.size);
    NoGil nogil(hashes.size * 8);
#ifdef PYPARQ_AVX2
    if (have_avx2()) return insert_avx2(bitset.data, blocks, hashes.data, hashes.size);
#endif
    for (size_t i = 0; i < hashes.size; ++i) {
        if (i + kAhead < hashes.size) prefetch(bitset.data + block_at(hashes.data[i + kAhead], blocks));
        insert_one(bitset.data + block_at(hashes.data[i], blocks), static_cast<uint32_t>(hashes.data[i]));
    }
}

nb::object sbbf_check(const RawIn& bitset, const In<uint64_t>& hashes) {
    const uint64_t blocks = checked_blocks(bitset.size);
    Fresh<bool> out(hashes.size);
    NoGil nogil(hashes.size * 8);
#ifdef PYPARQ_AVX2
    if (have_avx2()) {
        check_avx2(bitset.data, blocks, hashes.data, hashes.size, out.data);
        return std::move(out.object);
    }
#endif
    for (size_t i = 0; i < hashes.size; ++i) {
        if (i + kAhead < hashes.size) prefetch(bitset.data + block_at(hashes.data[i + kAhead], blocks));
        out.data[i] = check_one(bitset.data + block_at(hashes.data[i], blocks), static_cast<uint32_t>(hashes.data[i]));
    }
    return std::move(out.object);
}

}  // namespace pyparq
