// Reading DELTA_BINARY_PACKED (Encodings.md): blocks of differences, bit-packed in miniblocks.
#pragma once
#include "base/bitpack.hpp"
#include "values/checks.hpp"

#include <array>
#include <memory>

namespace pyparq::delta {

struct Reader {
    const uint8_t* p;
    const uint8_t* end;

    size_t left() const { return static_cast<size_t>(end - p); }
    uint64_t varint() {
        uint64_t v = 0;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            if (p == end) fail("delta data end inside a number");
            const uint8_t b = *p++;
            if (shift == 63 && b > 1) break;
            v |= static_cast<uint64_t>(b & 0x7f) << shift;
            if (b < 0x80) return v;
        }
        fail("a number in delta data is longer than 64 bits");
    }
    uint64_t zigzag() {
        const uint64_t v = varint();
        return v >> 1 ^ (0 - (v & 1));
    }
};

struct Header {
    uint64_t block, minis, per_mini, total;
};

inline Header read_header(Reader& in, size_t count) {
    Header h{};
    h.block = in.varint();
    h.minis = in.varint();
    h.total = in.varint();
    if (h.block == 0 || h.block % 128 != 0 || h.block > uint64_t{1} << 31)
        fail("delta block size " + str(h.block) + " is not a multiple of 128 up to 2^31");
    if (h.minis == 0 || h.block % h.minis != 0 || h.block / h.minis % 32 != 0)
        fail("delta block of " + str(h.block) + " values cannot have " + str(h.minis) + " miniblocks");
    if (h.total != count) fail("delta data hold " + str(h.total) + " values, but the page needs " + str(count));
    h.per_mini = h.block / h.minis;
    return h;
}

// n packed values of 33 to 64 bits, from a byte boundary.
inline void unpack_wide(const uint8_t* src, size_t bytes, unsigned w, size_t n, uint64_t* out) {
    const uint64_t mask = w == 64 ? ~uint64_t{0} : (uint64_t{1} << w) - 1;
    for (size_t i = 0; i < n; ++i) {
        const size_t bit = i * w, byte = bit >> 3, shift = bit & 7;
        uint64_t v = load_upto8(src + byte, bytes - byte) >> shift;
        if (shift + w > 64) v |= static_cast<uint64_t>(src[byte + 8]) << (64 - shift);
        out[i] = v & mask;
    }
}

// Sums of differences; the arithmetic wraps, as the format asks.
template <class U, class D>
inline U add_up(const D* deltas, size_t n, U min_delta, U last, U* out) {
    for (size_t i = 0; i < n; ++i) out[i] = last += min_delta + static_cast<U>(deltas[i]);
    return last;
}

// One miniblock's first `wanted` values.
template <class U>
void read_mini(Reader& in, unsigned w, uint64_t per_mini, size_t wanted, U min_delta, U& last, U* out) {
    const size_t needed = (checked_mul(wanted, w) + 7) / 8;
    if (needed > in.left()) fail("delta data end inside a miniblock");
    // Padding that is not there is forgiven, values are not.
    const size_t stored = static_cast<size_t>(std::min<uint64_t>(per_mini / 8 * w, in.left()));
    for (size_t from = 0; from < wanted; from += 256) {
        const size_t n = std::min<size_t>(256, wanted - from), at = from / 8 * w;
        const uint8_t* const src = in.p + at;  // may be looked ahead in, up to the end of the data
        if (w > 32) {
            std::array<uint64_t, 256> deltas;
            unpack_wide(src, in.left() - at, w, n, deltas.data());
            last = add_up(deltas.data(), n, min_delta, last, out + from);
        } else {
            std::array<uint32_t, 256> deltas;
            if (w == 0) std::fill_n(deltas.data(), n, 0u);
            else unpack_u32(src, in.left() - at, w, n, deltas.data());
            last = add_up(deltas.data(), n, min_delta, last, out + from);
        }
    }
    in.p += stored;
}

template <class U>
void decode(Reader& in, U* out, size_t count) {
    if (count == 0 && in.left() == 0) return;  // a page of nulls may hold no header
    const Header h = read_header(in, count);
    U last = static_cast<U>(in.zigzag());
    if (count == 0) return;
    out[0] = last;
    for (size_t done = 1; done < count;) {
        const U min_delta = static_cast<U>(in.zigzag());
        if (h.minis > in.left()) fail("delta data end inside the miniblocks' bit widths");
        const uint8_t* widths = in.p;
        in.p += h.minis;
        for (uint64_t m = 0; m < h.minis && done < count; ++m) {
            if (widths[m] > 8 * sizeof(U))
                fail("delta bit width " + str(uint64_t{widths[m]}) + " is wider than the type");
            const size_t wanted = static_cast<size_t>(std::min<uint64_t>(h.per_mini, count - done));
            read_mini(in, widths[m], h.per_mini, wanted, min_delta, last, out + done);
            done += wanted;
        }
    }
}

// Lengths, all of them >= 0. Their number is the caller's, not the file's.
inline std::unique_ptr<uint32_t[]> decode_lengths(Reader& in, size_t count, const char* name) {
    auto lengths = std::make_unique_for_overwrite<uint32_t[]>(count);
    decode(in, lengths.get(), count);
    uint32_t any = 0;
    for (size_t i = 0; i < count; ++i) any |= lengths[i];
    if (any >> 31) fail(std::string("a ") + name + " length is negative");
    return lengths;
}

// Byte arrays of DELTA_BYTE_ARRAY: how many bytes each shares with the one before it, how many follow, and where these lie.
struct Prefixed {
    std::unique_ptr<uint32_t[]> prefix, suffix;
    uint64_t total = 0;  // bytes of all of them
    const uint8_t* bytes = nullptr;
    const uint8_t* end = nullptr;

    uint32_t length(size_t i) const { return prefix[i] + suffix[i]; }
};

// At most `most` bytes in all.
inline Prefixed read_prefixed(Reader in, size_t count, uint64_t most) {
    if (count > 0 || in.left() > 0) {
        Reader look = in;
        read_header(look, count);  // before anything is allocated: does the page claim as many?
    }
    Prefixed found;
    found.prefix = decode_lengths(in, count, "prefix");
    found.suffix = decode_lengths(in, count, "suffix");
    uint64_t stored = 0, last = 0;
    for (size_t i = 0; i < count; ++i) {
        if (found.prefix[i] > last)
            fail("value " + str(uint64_t{i}) + " takes " + str(uint64_t{found.prefix[i]}) + " bytes from one of " + str(last));
        stored += found.suffix[i];
        last = uint64_t{found.prefix[i]} + found.suffix[i];
        found.total += last;
        if (found.total > most) fail("byte arrays grow beyond the " + str(most) + " bytes allowed");
    }
    if (stored > in.left()) fail("suffixes declare " + str(stored) + " bytes, " + str(uint64_t{in.left()}) + " are left");
    found.bytes = in.p, found.end = in.end;
    return found;
}

// Writes all of them one after another; returns where their stored bytes end.
inline const uint8_t* spell_prefixed(const Prefixed& from, size_t count, uint8_t* out) {
    const uint8_t* const end = out + from.total;
    const uint8_t *previous = out, *in = from.bytes;
    for (size_t i = 0; i < count; ++i) {
        uint8_t* const value = out;
        copy_short(out, end, previous, end, from.prefix[i]);
        out += from.prefix[i];
        copy_short(out, end, in, from.end, from.suffix[i]);
        out += from.suffix[i];
        in += from.suffix[i];
        previous = value;
    }
    return in;
}

}  // namespace pyparq::delta
