// Writing Snappy blocks (format_description.txt of google/snappy), by the algorithm of that library: so they are, byte for
// byte, what the libraries after it write.
#include "base/common.hpp"
#include "codecs/snappy.hpp"

#include <algorithm>
#include <array>

namespace pyparq {
namespace {

constexpr size_t kBlock = size_t{1} << 16, kTable = size_t{1} << 14, kMargin = 15;

uint8_t* put_literal(uint8_t* out, const uint8_t* from, size_t n) {
    const size_t stated = n - 1;
    if (stated < 60) {
        *out++ = static_cast<uint8_t>(stated << 2);
        if (n <= 16) {  // sixteen bytes can be read: the margin; and written: the bound has room
            std::memcpy(out, from, 16);
            return out + n;
        }
    } else if (stated < 256) {
        *out++ = 60 << 2;
        *out++ = static_cast<uint8_t>(stated);
    } else {
        *out++ = 61 << 2;
        store(out, static_cast<uint16_t>(stated));
        out += 2;
    }
    std::memcpy(out, from, n);
    return out + n;
}

uint8_t* put_last_literal(uint8_t* out, const uint8_t* from, size_t n) {
    if (n > 16 || n == 0) return n == 0 ? out : put_literal(out, from, n);
    *out++ = static_cast<uint8_t>((n - 1) << 2);
    std::memcpy(out, from, n);
    return out + n;
}

uint8_t* put_far_copy(uint8_t* out, size_t offset, size_t n) {
    *out++ = static_cast<uint8_t>((n - 1) << 2 | 2);
    store(out, static_cast<uint16_t>(offset));
    return out + 2;
}

uint8_t* put_copy(uint8_t* out, size_t offset, size_t n) {
    for (; n >= 68; n -= 64) out = put_far_copy(out, offset, 64);
    if (n > 64) out = put_far_copy(out, offset, 60), n -= 60;
    if (n >= 12 || offset >= 2048) return put_far_copy(out, offset, n);
    *out++ = static_cast<uint8_t>((offset >> 8) << 5 | (n - 4) << 2 | 1);
    *out++ = static_cast<uint8_t>(offset);
    return out;
}

// How many bytes from `a` and from `b`, which is behind it, are the same, up to `end`.
size_t match_length(const uint8_t* a, const uint8_t* b, const uint8_t* end) {
    const uint8_t* const start = b;
    for (; end - b >= 8; a += 8, b += 8) {
        const uint64_t differ = load<uint64_t>(a) ^ load<uint64_t>(b);
        if (differ != 0) return static_cast<size_t>(b - start) + static_cast<size_t>(std::countr_zero(differ)) / 8;
    }
    for (; b < end && *a == *b; ++a, ++b) {
    }
    return static_cast<size_t>(b - start);
}

// Clears as much of the table as a block of n bytes needs; returns how far hashes are shifted for that.
int clear_table(uint16_t* table, size_t n) {
    size_t size = 256;
    int shift = 32 - 8;
    for (; size < kTable && size < n; size *= 2) --shift;
    std::fill_n(table, size, uint16_t{0});
    return shift;
}

// One block of at most 64 KiB; copies look back within it only.
uint8_t* put_block(const uint8_t* in, size_t n, uint8_t* out, uint16_t* table) {
    const uint8_t *const end = in + n, *emitted = in;
    if (n < kMargin + 2) return put_last_literal(out, in, n);
    const auto hash = [shift = clear_table(table, n)](uint32_t v) { return (v * 0x1e35a7bdu) >> shift; };
    const uint8_t *const limit = end - kMargin, *at = in + 1;
    uint32_t next_hash = hash(load<uint32_t>(at));
    while (true) {
        const uint8_t *next = at, *candidate = in;
        size_t skip = 32;
        do {  // where nothing has matched for a while, ever fewer places are looked at
            at = next;
            const uint32_t h = next_hash;
            const size_t between = skip >> 5;
            skip += between;
            next = at + between;
            if (next > limit) return put_last_literal(out, emitted, static_cast<size_t>(end - emitted));
            next_hash = hash(load<uint32_t>(next));
            candidate = in + table[h];
            table[h] = static_cast<uint16_t>(at - in);
        } while (load<uint32_t>(at) != load<uint32_t>(candidate));
        out = put_literal(out, emitted, static_cast<size_t>(at - emitted));
        uint64_t around;
        do {
            const size_t matched = 4 + match_length(candidate + 4, at + 4, end);
            out = put_copy(out, static_cast<size_t>(at - candidate), matched);
            at += matched;
            emitted = at;
            if (at >= limit) return put_last_literal(out, emitted, static_cast<size_t>(end - emitted));
            around = load<uint64_t>(at - 1);
            table[hash(static_cast<uint32_t>(around))] = static_cast<uint16_t>(at - in - 1);
            const uint32_t h = hash(static_cast<uint32_t>(around >> 8));
            candidate = in + table[h];
            table[h] = static_cast<uint16_t>(at - in);
        } while (static_cast<uint32_t>(around >> 8) == load<uint32_t>(candidate));
        next_hash = hash(static_cast<uint32_t>(around >> 16));
        ++at;
    }
}

}  // namespace

int64_t snappy_deflate(const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    if (n > std::numeric_limits<uint32_t>::max() || room < 32 + n + n / 6) return -1;
    uint8_t* at = out;
    for (size_t v = n;; v >>= 7) {
        *at++ = static_cast<uint8_t>(v >= 0x80 ? v | 0x80 : v);
        if (v < 0x80) break;
    }
    alignas(64) std::array<uint16_t, kTable> table;
    for (size_t from = 0; from < n; from += kBlock) at = put_block(in + from, std::min(kBlock, n - from), at, table.data());
    return at - out;
}

}  // namespace pyparq
