// See needle.hpp.
#include "select/needle.hpp"
#include "values/checks.hpp"

#if PYPARQ_AVX2
#include <immintrin.h>
#endif

namespace pyparq {
namespace {

// How common a byte is in text, roughly.
int commonness(uint8_t b) {
    constexpr std::string_view kLetters = "zqxjkvbpygfwmucldrhsnioate";  // the rarest first
    if (b == ' ') return 60;
    if (b >= 'a' && b <= 'z') return 20 + static_cast<int>(kLetters.find(static_cast<char>(b)));
    if (b >= '0' && b <= '9') return 25;
    if (b == ',' || b == '.' || b == '-' || b == '/' || b == '_' || b == '"' || b == ':' || b == '\n') return 22;
    if (b >= 'A' && b <= 'Z') return 8 + static_cast<int>(kLetters.find(static_cast<char>(b - 'A' + 'a'))) / 3;
    if (b >= 0x80) return b < 0xc0 ? 18 : 28;  // text of other alphabets repeats few first bytes
    return b == 0 ? 30 : 5;
}

}  // namespace

Needle::Needle(std::string bytes, bool folds) : bytes_(std::move(bytes)), folds_(folds) {
    const size_t n = bytes_.size();
    if (n > std::numeric_limits<uint32_t>::max()) fail("a pattern of " + str(n) + " bytes is too long");
    for (size_t i = 1; i < n; ++i)
        if (commonness(data()[i]) < commonness(data()[first_])) first_ = i;
    second_ = first_ == 0 && n > 1 ? 1 : 0;
    for (size_t i = 1; i < n; ++i)
        if (i != first_ && commonness(data()[i]) < commonness(data()[second_])) second_ = i;
    if (n == 0) return;
    borders_.assign(n + 1, 0);
    uint32_t k = 0;
    for (size_t i = 1; i < n; ++i) {
        while (k > 0 && bytes_[i] != bytes_[k]) k = borders_[k];
        if (bytes_[i] == bytes_[k]) ++k;
        borders_[i + 1] = k;
    }
}

bool Needle::stands_at(const uint8_t* p, Cursor& cursor) const {
    const uint8_t* const x = data();
    const size_t n = size();
    size_t i = 0;
    while (!folds_ && i + 8 <= n && load<uint64_t>(p + i) == load<uint64_t>(x + i)) i += 8;
    while (i < n && seen(p[i]) == x[i]) ++i;
    if (i == n) return true;
    cursor.wasted += i + 1;
    return false;
}

bool Needle::is_slow(const uint8_t* p, const Cursor& cursor) const {
    return cursor.wasted > 256 + 4 * static_cast<size_t>(p - cursor.start);
}

#if PYPARQ_AVX2
namespace {

// Two bytes, and the bits of each in which it may differ.
struct Pair {
    __m256i a, b, not_of_a, not_of_b;
};

PYPARQ_TARGET_AVX2 uint32_t both_equal(const uint8_t* p, const uint8_t* q, const Pair& pair) {
    const __m256i x = _mm256_or_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), pair.not_of_a);
    const __m256i y = _mm256_or_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(q)), pair.not_of_b);
    return static_cast<uint32_t>(
        _mm256_movemask_epi8(_mm256_and_si256(_mm256_cmpeq_epi8(x, pair.a), _mm256_cmpeq_epi8(y, pair.b))));
}

}  // namespace

// `p` moves on to where it ends: less than a block before the last place, or a place from which it is slow.
PYPARQ_TARGET_AVX2 const uint8_t* Needle::find_in_blocks(const uint8_t*& p, const uint8_t* last, Cursor& cursor) const {
    const Pair pair{_mm256_set1_epi8(bytes_[first_]), _mm256_set1_epi8(bytes_[second_]),
                    _mm256_set1_epi8(static_cast<char>(differs(first_))), _mm256_set1_epi8(static_cast<char>(differs(second_)))};
    for (; last - p >= 31; p += 32) {
        for (uint32_t found = both_equal(p + first_, p + second_, pair); found != 0; found &= found - 1) {
            const uint8_t* const at = p + std::countr_zero(found);
            if (stands_at(at, cursor)) return at;
        }
        if (is_slow(p + 32, cursor)) {
            p += 32;
            break;
        }
    }
    return nullptr;
}
#endif

const uint8_t* Needle::find_linearly(const uint8_t* p, const uint8_t* end) const {
    const uint8_t* const x = data();
    const size_t n = size();
    size_t k = 0;
    for (; p < end; ++p) {
        while (k > 0 && seen(*p) != x[k]) k = borders_[k];
        if (seen(*p) == x[k]) ++k;
        if (k == n) return p + 1 - n;
    }
    return nullptr;
}

const uint8_t* Needle::find(const uint8_t* p, const uint8_t* end) const {
    const size_t n = size();
    if (static_cast<size_t>(end - p) < n) return nullptr;
    if (n == 0) return p;
    if (n == 1 && differs(0) == 0) return static_cast<const uint8_t*>(std::memchr(p, bytes_[0], static_cast<size_t>(end - p)));
    const uint8_t* const last = end - n;
    Cursor cursor{p};
#if PYPARQ_AVX2
    if (have_avx2()) {
        const uint8_t* const found = find_in_blocks(p, last, cursor);
        if (found != nullptr) return found;
        if (!is_slow(p, cursor) && p <= last && last - cursor.start >= 31) {  // once more, over what is left and some before
            const uint8_t* rest = last - 31;
            const uint8_t* const late = find_in_blocks(rest, last, cursor);
            return late;
        }
    }
#endif
    const auto a = static_cast<uint8_t>(bytes_[first_]), b = static_cast<uint8_t>(bytes_[second_]);
    for (; p <= last && !is_slow(p, cursor); ++p)
        if (seen(p[first_]) == a && seen(p[second_]) == b && stands_at(p, cursor)) return p;
    return p <= last ? find_linearly(p, end) : nullptr;
}

}  // namespace pyparq
