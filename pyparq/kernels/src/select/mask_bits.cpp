// Sets of rows as bitmaps: counting, runs, and the way to ranges and back.
#include "select/calls.hpp"
#include "base/bits.hpp"

namespace pyparq {
namespace {

constexpr size_t kMostRows = size_t{1} << 40;

size_t checked_rows(int64_t n) {
    const size_t rows = checked_count(n, "the number of rows");
    if (rows > kMostRows) fail("a bitmap of " + str(rows) + " rows is too large");
    return rows;
}

// Ranges must ascend, be disjoint and end within n; how many rows they hold.
size_t check_ranges(const In<int64_t>& starts, const In<int64_t>& ends, size_t n) {
    if (starts.size != ends.size) fail(str(starts.size) + " ranges start but " + str(ends.size) + " end");
    int64_t before = 0;
    size_t held = 0;
    for (size_t i = 0; i < starts.size; ++i) {
        if (starts.data[i] < before || ends.data[i] < starts.data[i])
            fail("range " + str(i) + " is negative, or begins before the one before it ends");
        before = ends.data[i];
        held += static_cast<size_t>(before - starts.data[i]);
    }
    if (static_cast<uint64_t>(before) > n) fail("the last range ends at " + str(before) + " of " + str(n) + " rows");
    return held;
}

Fresh<uint64_t> zeros(size_t bits) {
    Fresh<uint64_t> out(words_for(bits));
    std::memset(out.data, 0, out.size * 8);
    return out;
}

[[gnu::always_inline]] inline size_t count_runs(const uint64_t* words, size_t n) {
    size_t starts = 0;
    uint64_t last = 0;  // the bit before
    for (size_t i = 0; i < n; ++i) {
        const uint64_t w = words[i];
        starts += static_cast<size_t>(std::popcount(w & ~(w << 1 | last)));
        last = w >> 63;
    }
    return starts;
}

#if PYPARQ_AVX2
PYPARQ_TARGET_AVX2 size_t count_runs_avx2(const uint64_t* words, size_t n) { return count_runs(words, n); }
#endif

}  // namespace

size_t mask_count(const In<uint64_t>& words) { return count_bits(words.data, words.size); }

// How many bits are set before each place; places ascend.
nb::object mask_ranks(const In<uint64_t>& words, const In<int64_t>& places) {
    Fresh<int64_t> out(places.size);
    NoGil nogil(words.size * 8);
    size_t done = 0;
    int64_t before = 0;
    for (size_t k = 0; k < places.size; ++k) {
        const size_t place = checked_count(places.data[k], "place");
        if (place / 64 < done || place > words.size * 64) fail("places that do not ascend, or behind the bitmap");
        before += static_cast<int64_t>(count_bits(words.data + done, place / 64 - done));
        done = place / 64;
        const uint64_t rest = place % 64 == 0 ? 0 : words.data[done] & low_bits(place % 64);
        out.data[k] = before + std::popcount(rest);
    }
    return std::move(out.object);
}

// Runs of set bits.
size_t mask_runs(const In<uint64_t>& words) {
#if PYPARQ_AVX2
    if (have_avx2()) return count_runs_avx2(words.data, words.size);
#endif
    return count_runs(words.data, words.size);
}

// The runs of set bits as ranges; two that are no more than `join` rows apart become one.
nb::object mask_to_ranges(const In<uint64_t>& words, int64_t num_rows, int64_t join_) {
    const size_t n = checked_rows(num_rows), join = checked_count(join_, "join");
    check_words(words, n);
    std::vector<int64_t> starts, ends;
    {
        NoGil nogil(words.size * 8);
        for_runs(words.data, words.size, [&](size_t first, size_t count) {
            if (!ends.empty() && first - static_cast<size_t>(ends.back()) <= join) {
                ends.back() = static_cast<int64_t>(first + count);
            } else {
                starts.push_back(static_cast<int64_t>(first));
                ends.push_back(static_cast<int64_t>(first + count));
            }
        });
    }
    Fresh<int64_t> a(starts.size()), b(ends.size());
    if (!starts.empty()) {
        std::memcpy(a.data, starts.data(), starts.size() * 8);
        std::memcpy(b.data, ends.data(), ends.size() * 8);
    }
    return nb::make_tuple(a.object, b.object);
}

nb::object mask_from_ranges(const In<int64_t>& starts, const In<int64_t>& ends, int64_t num_rows) {
    const size_t n = checked_rows(num_rows);
    check_ranges(starts, ends, n);
    Fresh<uint64_t> out = zeros(n);
    NoGil nogil(out.size * 8 + starts.size * 8);
    for (size_t k = 0; k < starts.size; ++k) {
        size_t at = static_cast<size_t>(starts.data[k]);
        const size_t end = static_cast<size_t>(ends.data[k]);
        while (at < end) {
            const size_t room = 64 - at % 64, count = end - at < room ? end - at : room;
            out.data[at / 64] |= low_bits(count) << at % 64;
            at += count;
        }
    }
    return std::move(out.object);
}

nb::object mask_rows(const In<uint64_t>& words) {
    Fresh<int64_t> out(count_bits(words.data, words.size));
    NoGil nogil(out.size * 8);
    int64_t* w = out.data;
    for_runs(words.data, words.size, [&](size_t first, size_t count) {
        for (size_t i = 0; i < count; ++i) *w++ = static_cast<int64_t>(first + i);
    });
    return std::move(out.object);
}

// The first `count` set bits.
nb::object mask_head(const In<uint64_t>& words, int64_t count) {
    size_t left = checked_count(count, "count");
    Fresh<uint64_t> out(words.size);
    size_t i = 0;
    for (; i < words.size; ++i) {
        const size_t here = static_cast<size_t>(std::popcount(words.data[i]));
        if (here > left) break;
        left -= here;
        out.data[i] = words.data[i];
    }
    for (; i < words.size; ++i) {
        uint64_t w = words.data[i], kept = 0;
        for (; left > 0 && w != 0; --left, w &= w - 1) kept |= w & (~w + 1);
        out.data[i] = kept;
        left = 0;
    }
    return std::move(out.object);
}

// The bits that lie in some ranges, side by side: row k of the result is the k-th row of the ranges.
nb::object mask_within(const In<uint64_t>& words, int64_t num_rows, const In<int64_t>& starts,
                       const In<int64_t>& ends) {
    const size_t n = checked_rows(num_rows);
    check_words(words, n);
    const size_t held = check_ranges(starts, ends, n);
    Fresh<uint64_t> out = zeros(held);
    NoGil nogil(out.size * 8 + starts.size * 8);
    BitWriter writer(out.data);
    for (size_t k = 0; k < starts.size; ++k)
        writer.append_range(reinterpret_cast<const uint8_t*>(words.data), words.size * 8,
                            static_cast<size_t>(starts.data[k]), static_cast<size_t>(ends.data[k] - starts.data[k]));
    writer.finish();
    return std::move(out.object);
}

// The reverse: bit k goes to the k-th row of the ranges; other rows are not set.
nb::object mask_spread(const In<uint64_t>& words, const In<int64_t>& starts, const In<int64_t>& ends,
                       int64_t num_rows) {
    const size_t n = checked_rows(num_rows), held = check_ranges(starts, ends, n);
    check_words(words, held);
    Fresh<uint64_t> out = zeros(n);
    NoGil nogil(out.size * 8 + starts.size * 8);
    BitWriter writer(out.data);
    size_t at = 0, from = 0;
    for (size_t k = 0; k < starts.size; ++k) {
        const size_t start = static_cast<size_t>(starts.data[k]), end = static_cast<size_t>(ends.data[k]);
        writer.append_zeros(start - at);
        writer.append_range(reinterpret_cast<const uint8_t*>(words.data), words.size * 8, from, end - start);
        from += end - start;
        at = end;
    }
    writer.finish();
    return std::move(out.object);
}

// `length` bits of a bitmap from bit `offset` on as words of their own, zeros behind them.
nb::object mask_of_bits(const RawIn& bitmap, int64_t offset, int64_t length) {
    const size_t at = checked_count(offset, "offset"), n = checked_rows(length);
    if (at > bitmap.size * 8 || n > bitmap.size * 8 - at)
        fail(str(n) + " bits from bit " + str(at) + " on are not in a bitmap of " + str(bitmap.size) + " bytes");
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(out.size * 8);
    for (size_t i = 0; i < out.size; ++i) out.data[i] = load_bits(bitmap.data, bitmap.size, at + 64 * i);
    if (n % 64 != 0) out.data[out.size - 1] &= low_bits(n % 64);
    return std::move(out.object);
}

}  // namespace pyparq
