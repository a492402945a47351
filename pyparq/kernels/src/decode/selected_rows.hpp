// Rows of a row group that are wanted: all, some ranges, or those of a bitmap.
#pragma once
#include "base/common.hpp"

#include <algorithm>
#include <bit>

namespace pyparq {

// For each byte the places of its set bits, ascending.
struct BitPlaces {
    uint8_t of[256][8] = {};

    constexpr BitPlaces() {
        for (int byte = 0; byte < 256; ++byte)
            for (int bit = 0, k = 0; bit < 8; ++bit)
                if ((byte >> bit & 1) != 0) of[byte][k++] = static_cast<uint8_t>(bit);
    }
};
inline constexpr BitPlaces kBitPlaces;
constexpr int kManyBits = 12;  // from so many set bits of 64 on, a byte at a time is quicker than a bit

struct RowSelection {
    enum Form { kAll,
                kRanges,
                kBitmap } form = kAll;
    const int64_t *starts = nullptr, *ends = nullptr;  // of ranges: sorted, disjoint
    size_t ranges = 0;
    const uint8_t* bits = nullptr;  // least significant first
    int64_t num_rows = 0;           // that the bitmap has

    bool all() const { return form == kAll; }

    // How many rows of [first, last) are wanted.
    int64_t count(int64_t first, int64_t last) const {
        if (form == kAll) return last - first;
        int64_t found = 0;
        if (form == kRanges) {
            each_range(first, last, [&](int64_t a, int64_t b) { found += b - a; });
            return found;
        }
        each_word(first, last, [&](int64_t, uint64_t word) { found += std::popcount(word); });
        return found;
    }

    // Their numbers less `first`, ascending, into `out`, which has room for all and 8 more; returns how many.
    size_t places(int64_t first, int64_t last, uint32_t* out) const {
        uint32_t* const begin = out;
        if (form == kRanges) {
            each_range(first, last, [&](int64_t a, int64_t b) {
                for (int64_t r = a; r < b; ++r) *out++ = static_cast<uint32_t>(r - first);
            });
        } else if (form == kBitmap) {
            each_word(first, last, [&](int64_t row, uint64_t word) {
                const auto base = static_cast<uint32_t>(row - first);
                if (word == ~uint64_t{0}) {
                    for (uint32_t k = 0; k < 64; ++k) out[k] = base + k;
                    out += 64;
                    return;
                }
                if (std::popcount(word) >= kManyBits) {
                    for (uint32_t k = 0; k < 64; k += 8) {
                        const auto byte = static_cast<uint8_t>(word >> k);
                        for (uint32_t i = 0; i < 8; ++i) out[i] = base + k + kBitPlaces.of[byte][i];
                        out += std::popcount(byte);
                    }
                    return;
                }
                for (; word != 0; word &= word - 1) *out++ = base + static_cast<uint32_t>(std::countr_zero(word));
            });
        } else {
            for (int64_t r = first; r < last; ++r) *out++ = static_cast<uint32_t>(r - first);
        }
        return static_cast<size_t>(out - begin);
    }

    // The last one of [first, last); first - 1 where there is none.
    int64_t last_of(int64_t first, int64_t last) const {
        int64_t found = first - 1;
        if (form == kAll) return last - 1;
        if (form == kRanges) each_range(first, last, [&](int64_t, int64_t b) { found = b - 1; });
        else each_word(first, last, [&](int64_t row, uint64_t word) {
            if (word != 0) found = row + 63 - std::countl_zero(word);
        });
        return found;
    }

  private:
    template <class F>
    void each_range(int64_t first, int64_t last, F&& f) const {
        size_t k = static_cast<size_t>(std::upper_bound(ends, ends + ranges, first) - ends);
        for (; k < ranges && starts[k] < last; ++k) f(std::max(starts[k], first), std::min(ends[k], last));
    }
    // Words of 64 rows: `f(row of the lowest bit, word)`, bits outside of [first, last) cleared.
    template <class F>
    void each_word(int64_t first, int64_t last, F&& f) const {
        last = std::min(last, num_rows);
        if (first >= last) return;
        const int64_t end = (last + 63) / 64;
        for (int64_t w = first / 64; w < end; ++w) {
            uint64_t word = load<uint64_t>(bits + 8 * w);
            if (w == first / 64) word &= ~uint64_t{0} << (first & 63);
            if (w == end - 1 && (last & 63) != 0) word &= ~uint64_t{0} >> (64 - (last & 63));
            f(w * 64, word);
        }
    }
};

}  // namespace pyparq
