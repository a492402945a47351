// Keep the values whose rows are set in a bitmap: one pass into an output of the final size.
#include "select/calls.hpp"
#include "base/bits.hpp"
#include "values/checks.hpp"

namespace pyparq {
namespace {

template <class T>
void keep_typed(const uint64_t* words, size_t n, const uint8_t* in, uint8_t* out) {
    for (size_t i = 0; i < n; ++i) {
        uint64_t w = words[i];
        if (w == 0) continue;
        const uint8_t* from = in + i * 64 * sizeof(T);
        if (w == ~uint64_t{0}) {
            std::memcpy(out, from, 64 * sizeof(T));
            out += 64 * sizeof(T);
            continue;
        }
        for (; w != 0; w &= w - 1, out += sizeof(T))
            std::memcpy(out, from + static_cast<size_t>(std::countr_zero(w)) * sizeof(T), sizeof(T));
    }
}

struct Sixteen {
    uint64_t parts[2];
};

#if PYPARQ_AVX2
PYPARQ_TARGET_AVX2 void extract_all_avx2(const uint64_t* words, size_t n, const uint8_t* bits, size_t size, size_t at,
                                         BitWriter& writer) {
    for (size_t i = 0; i < n; ++i) {
        const uint64_t w = words[i];
        if (w == 0) continue;
        const uint64_t x = load_bits(bits, size, at + 64 * i);
        writer.append(__builtin_ia32_pext_di(x, w), static_cast<size_t>(std::popcount(w)));
    }
}
#endif

void extract_all(const uint64_t* words, size_t n, const uint8_t* bits, size_t size, size_t at, BitWriter& writer) {
#if PYPARQ_AVX2
    if (have_avx2()) return extract_all_avx2(words, n, bits, size, at, writer);
#endif
    for (size_t i = 0; i < n; ++i) {
        const uint64_t w = words[i];
        if (w == 0) continue;
        const uint64_t x = load_bits(bits, size, at + 64 * i);
        writer.append(w == ~uint64_t{0} ? x : extract_bits(x, w), static_cast<size_t>(std::popcount(w)));
    }
}

}  // namespace

// `values` holds items of `width` bytes, as many as the bitmap has bits; `out` has room for those that are set.
void keep_fixed(const In<uint64_t>& words, const RawIn& values, int64_t width_, const RawOut& out) {
    const size_t width = checked_value_width(width_), n = checked_items(values.size, width, "values");
    check_words(words, n);
    NoGil nogil(values.size);
    const size_t kept = count_bits(words.data, words.size);
    if (out.size != kept * width)
        fail("out has " + str(out.size) + " bytes, " + str(kept) + " values of " + str(width) + " are kept");
    switch (width) {
        case 1: return keep_typed<uint8_t>(words.data, words.size, values.data, out.data);
        case 2: return keep_typed<uint16_t>(words.data, words.size, values.data, out.data);
        case 4: return keep_typed<uint32_t>(words.data, words.size, values.data, out.data);
        case 8: return keep_typed<uint64_t>(words.data, words.size, values.data, out.data);
        case 16: return keep_typed<Sixteen>(words.data, words.size, values.data, out.data);
    }
    uint8_t* w = out.data;
    for_runs(words.data, words.size, [&](size_t first, size_t count) {
        std::memcpy(w, values.data + first * width, count * width);
        w += count * width;
    });
}

// The bits of a bitmap (from bit `offset` on, `length` of them) that a mask of as many bits keeps, as words.
nb::object keep_bits(const In<uint64_t>& words, const RawIn& bitmap, int64_t offset, int64_t length) {
    const size_t at = checked_count(offset, "offset"), n = checked_count(length, "length");
    if (at > bitmap.size * 8 || n > bitmap.size * 8 - at)
        fail(str(n) + " bits from bit " + str(at) + " on are not in a bitmap of " + str(bitmap.size) + " bytes");
    check_words(words, n);
    Fresh<uint64_t> out(words_for(count_bits(words.data, words.size)));
    NoGil nogil(words.size * 8);
    BitWriter writer(out.data);
    extract_all(words.data, words.size, bitmap.data, bitmap.size, at, writer);
    writer.finish();
    return std::move(out.object);
}

// Bytes of the strings that a mask keeps.
int64_t kept_bytes(const In<uint64_t>& words, const Offsets& offsets) {
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    const size_t n = offsets.size - 1;
    check_words(words, n);
    NoGil nogil(n * 8);
    return offsets.visit([&](const auto* o) -> int64_t {
        check_offsets(o, offsets.size, static_cast<size_t>(std::numeric_limits<int64_t>::max() / 4));
        int64_t total = 0;
        for_runs(words.data, words.size, [&](size_t first, size_t count) { total += o[first + count] - o[first]; });
        return total;
    });
}

void keep_binary(const In<uint64_t>& words, const Offsets& offsets, const RawIn& data, const OffsetsOut& out_offsets,
                 const RawOut& out_data) {
    if (offsets.itemsize != out_offsets.itemsize) fail("the offsets differ in width");
    offsets.visit([&](const auto* o) {
        using O = std::remove_cv_t<std::remove_pointer_t<decltype(o)>>;
        check_offsets(o, offsets.size, data.size);
        const size_t n = offsets.size - 1;
        check_words(words, n);
        const size_t kept = count_bits(words.data, words.size);
        if (out_offsets.size != kept + 1)
            fail("out_offsets has " + str(out_offsets.size) + " items, " + str(kept) + " values need one more than that");
        NoGil nogil(n * 8);
        O* const to = static_cast<O*>(out_offsets.data);
        const uint8_t *end = data.data + data.size, *w_end = out_data.data + out_data.size;
        uint8_t* w = out_data.data;
        size_t k = 0;
        O at = 0;
        to[0] = 0;
        for_runs(words.data, words.size, [&](size_t first, size_t count) {
            const size_t len = static_cast<size_t>(o[first + count] - o[first]);
            if (len > static_cast<size_t>(w_end - w)) fail("out_data is too small at value " + str(first));
            copy_short(w, w_end, data.data + o[first], end, len);
            w += len;
            const O shift = static_cast<O>(at - o[first]);
            for (size_t i = 0; i < count; ++i) to[++k] = static_cast<O>(o[first + i + 1] + shift);
            at = static_cast<O>(at + static_cast<O>(len));
        });
        if (w != w_end) fail("out_data has " + str(out_data.size) + " bytes, more than the values that are kept");
    });
}

// Which entries of a leaf in lists belong to the rows that are set: a row begins at each repetition level of 0.
nb::object mask_entries(const In<uint64_t>& words, int64_t num_rows, const In<uint8_t>& rep_levels) {
    const size_t rows = checked_count(num_rows, "the number of rows");
    check_words(words, rows);
    const size_t n = rep_levels.size;
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n);
    size_t row = 0;  // one more than the row of the entry
    uint64_t keep = 0;
    for (size_t i = 0; i < out.size; ++i) {
        uint64_t w = 0;
        const size_t from = i * 64, to = n - from < 64 ? n : from + 64;
        for (size_t k = from; k < to; ++k) {
            if (rep_levels.data[k] == 0) {
                if (row == rows) fail("the repetition levels start more than " + str(rows) + " rows");
                keep = words.data[row / 64] >> row % 64 & 1;
                ++row;
            }
            w |= keep << (k - from);
        }
        out.data[i] = w;
    }
    if (row != rows) fail("the repetition levels start " + str(row) + " rows instead of " + str(rows));
    return std::move(out.object);
}

// Of entries that are kept or not, those that have an element: the bits where the definition level comes to `level`.
nb::object mask_slots(const In<uint64_t>& words, const In<uint8_t>& def_levels, int64_t level) {
    const size_t n = def_levels.size;
    check_words(words, n);
    if (level < 0 || level > 255) fail("level is out of range: " + str(level));
    Fresh<uint64_t> out(words.size);
    size_t slots = 0;
    {
        NoGil nogil(n);
        BitWriter writer(out.data);
        for (size_t i = 0; i < words.size; ++i) {
            uint64_t there = 0;
            const size_t from = i * 64, to = n - from < 64 ? n : from + 64;
            for (size_t k = from; k < to; ++k)
                there |= static_cast<uint64_t>(def_levels.data[k] >= level) << (k - from);
            const size_t count = static_cast<size_t>(std::popcount(there));
            slots += count;
            writer.append(extract_bits(words.data[i], there), count);
        }
        writer.finish();
    }
    return first_items(std::move(out.object), words.size, words_for(slots));
}

}  // namespace pyparq
