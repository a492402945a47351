// Codes of a dictionary against a table of answers, one for each entry.
#include "select/calls.hpp"
#include "select/numbers.hpp"
#include "values/checks.hpp"

#include <memory>

namespace pyparq {
namespace {

#if PYPARQ_AVX2
// Of whole words of 64 codes; `in_registers`: there are at most 256 entries.
template <bool in_registers>
PYPARQ_TARGET_AVX2 void look_up_codes(const int32_t* codes, size_t words, const uint32_t* table, size_t entries,
                                      const uint64_t* within, uint64_t* out) {
    const __m256i last = _mm256_set1_epi32(static_cast<int>(entries - 1)), low = _mm256_set1_epi32(31);
    const __m256i all = in_registers ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table)) : last;
    for (size_t i = 0; i < words; ++i) {
        out[i] = 0;
        if (within != nullptr && within[i] == 0) continue;
        uint64_t word = 0;
        for (unsigned k = 0; k < 8; ++k) {
            const __m256i code = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 64 * i + 8 * k));
            const __m256i known = _mm256_cmpeq_epi32(_mm256_max_epu32(code, last), last);
            const __m256i place = _mm256_srli_epi32(_mm256_and_si256(code, known), 5);
            const __m256i found = in_registers ? _mm256_permutevar8x32_epi32(all, place)
                                               : _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), place, 4);
            const __m256i answer = _mm256_and_si256(_mm256_srlv_epi32(found, _mm256_and_si256(code, low)), known);
            const int bits = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(answer, 31)));
            word |= static_cast<uint64_t>(static_cast<uint32_t>(bits)) << 8 * k;
        }
        out[i] = within != nullptr ? word & within[i] : word;
    }
}

size_t look_up_codes(const int32_t* codes, size_t n, const In<uint64_t>& table, size_t entries, const Within& within,
                     uint64_t* out) {
    if (!have_avx2() || entries == 0 || entries > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return 0;
    const size_t words = n / 64;
    if (entries <= 256) {
        uint64_t padded[4] = {};
        for (size_t k = 0; k < table.size; ++k) padded[k] = table.data[k];
        look_up_codes<true>(codes, words, reinterpret_cast<const uint32_t*>(padded), entries, within.data, out);
    } else {
        look_up_codes<false>(codes, words, reinterpret_cast<const uint32_t*>(table.data), entries, within.data, out);
    }
    return words;
}
#endif

}  // namespace

// For each index into a dictionary what `table` (a bitmap of `entries` bits) says of the entry; under nulls indices may
// be anything, and those beyond the table are not set.
nb::object match_codes(const AnyArray<false>& codes, const In<uint64_t>& table, int64_t entries_,
                       const Within& within) {
    const size_t n = codes.size, entries = checked_count(entries_, "entries");
    check_words(table, entries);
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n * 8 + entries);
    size_t done = 0;  // words
#if PYPARQ_AVX2
    if (codes.kind == Kind::SignedInt && codes.itemsize == 4)
        done = look_up_codes(static_cast<const int32_t*>(codes.data), n, table, entries, within, out.data);
#endif
    if (done == words_for(n)) return std::move(out.object);
    const std::unique_ptr<uint8_t[]> answers = std::make_unique_for_overwrite<uint8_t[]>(entries + 1);
    for (size_t i = 0; i < entries; ++i) answers[i] = table.data[i / 64] >> i % 64 & 1;
    answers[entries] = 0;
    visit_numbers(codes, [&](const auto* v) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(v)>>;
        if constexpr (std::is_integral_v<T>) {
            const uint64_t* const rest = within.none() ? nullptr : within.data + done;
            fill(n - 64 * done, rest, out.data + done, [&](size_t i) {
                const uint64_t code = static_cast<uint64_t>(static_cast<int64_t>(v[64 * done + i]));
                return answers[code < entries ? code : entries] != 0;
            });
        } else {
            fail("indices are integers");
        }
    });
    return std::move(out.object);
}

}  // namespace pyparq
