// The RLE / bit-packed hybrid, both ways, and the deprecated BIT_PACKED levels.
#include "values/calls.hpp"
#include "decode/rle_bitpacked.hpp"
#include "encode/encoders.hpp"
#include "values/checks.hpp"

namespace pyparq {

void decode_hybrid_u8(const uint8_t* data, size_t size, unsigned w, size_t count, uint8_t* out, uint32_t last) {
    decode_hybrid(data, size, w, count, out, last);
}

bool is_one_run(const uint8_t* data, size_t size, size_t n, uint32_t value) {
    if (size < 2 || n == 0) return false;
    size_t pos = 0;
    const uint64_t header = read_run_header(data, size, pos);
    return (header & 1) == 0 && header >> 1 >= n && pos < size && data[pos] == value;
}

size_t unpack_old_levels(const uint8_t* data, size_t size, unsigned w, size_t n, uint8_t* out) {
    const size_t bytes = checked_mul(n, w) / 8 + (n * w % 8 != 0);
    if (bytes > size) fail("BIT_PACKED levels need " + str(bytes) + " bytes, there are " + str(size));
    unsigned acc = 0, have = 0;
    for (size_t i = 0; i < n; ++i) {
        if (have < w) {
            acc = (acc << 8) | *data++;
            have += 8;
        }
        have -= w;
        out[i] = static_cast<uint8_t>(acc >> have & ((1u << w) - 1));
    }
    return bytes;
}

namespace {

constexpr size_t kMaxGroups = size_t{1} << 24;  // per bit-packed run: readers hold the count in an int

unsigned checked_width(int64_t width, int64_t most) {
    if (width < 0 || width > most) fail("bit width " + str(width) + " is not in 0.." + str(most));
    return static_cast<unsigned>(width);
}

template <class T>
size_t decode(const RawIn& data, unsigned w, int64_t count, const Out<T>& out, uint32_t last) {
    const size_t n = checked_count(count, "count");
    if (n > out.size) fail("out has " + str(out.size) + " items, " + str(n) + " are needed");
    NoGil nogil(n * sizeof(T));
    if (w == 0) {
        std::memset(out.data, 0, n * sizeof(T));
        return 0;
    }
    return decode_hybrid(data.data, data.size, w, n, out.data, last);
}

// ---- writing --------------------------------------------------------------------------------------------

class HybridWriter {
  public:
    HybridWriter(uint8_t* out, size_t room, unsigned width)
        : start_(out), p_(out), end_(out + room), w_(width), value_bytes_((width + 7) / 8) {}

    void varint(uint64_t v) {
        need(10);
        for (; v >= 0x80; v >>= 7) *p_++ = static_cast<uint8_t>(v | 0x80);
        *p_++ = static_cast<uint8_t>(v);
    }
    void run(size_t n, uint32_t value) {
        for (; n > 0;) {
            const size_t part = std::min(n, size_t{1} << 30);
            varint(uint64_t{part} << 1);
            need(value_bytes_);
            std::memcpy(p_, &value, value_bytes_);
            p_ += value_bytes_;
            n -= part;
        }
    }
    // The last group of all may be partial: it is padded with zeros.
    template <class T>
    void packed(const T* values, size_t n) {
        while (n > 0) {
            const size_t groups = std::min((n + 7) / 8, kMaxGroups);
            varint(uint64_t{groups} << 1 | 1);
            need(groups * w_);
            const size_t whole = std::min(n / 8, groups);
            for (size_t g = 0; g < whole; ++g, p_ += w_) pack_group(values + 8 * g, w_, p_);
            if (whole < groups) {
                T tail[8] = {};
                std::memcpy(tail, values + 8 * whole, (n - 8 * whole) * sizeof(T));
                pack_group(tail, w_, p_);
                p_ += w_;
            }
            const size_t taken = std::min(n, groups * 8);
            values += taken;
            n -= taken;
        }
    }
    size_t value_bytes() const { return value_bytes_; }
    size_t used() const { return static_cast<size_t>(p_ - start_); }

  private:
    void need(size_t n) const {
        if (static_cast<size_t>(end_ - p_) < n) fail("internal: RLE output bound too small");
    }
    uint8_t *start_, *p_, *end_;
    unsigned w_;
    size_t value_bytes_;
};

template <class T>
bool eight_equal(const T* v) {
    if constexpr (sizeof(T) == 1) {
        const uint64_t x = load<uint64_t>(v);
        return x == (x & 0xff) * 0x0101010101010101ull;
    } else {
        uint32_t differ = 0;
        for (int j = 1; j < 8; ++j) differ |= static_cast<uint32_t>(v[j] ^ v[0]);
        return differ == 0;
    }
}

template <class T>
size_t run_end(const T* v, size_t i, size_t n) {
    const T x = v[i];
    if constexpr (sizeof(T) == 1) {
        const uint64_t pattern = uint64_t{x} * 0x0101010101010101ull;
        while (i + 8 <= n && load<uint64_t>(v + i) == pattern) i += 8;
    } else {
        while (i + 8 <= n && v[i] == x && eight_equal(v + i)) i += 8;
    }
    while (i < n && v[i] == x) ++i;
    return i;
}

// Runs are looked for at group boundaries only: a bit-packed run holds whole groups of eight, so a run that
// starts inside a group gives its first values to that group anyway.
template <class T>
size_t encode_hybrid(const T* v, size_t n, unsigned w, uint8_t* out, size_t room) {
    HybridWriter writer(out, room, w);
    size_t literal = 0, i = 0;
    while (i < n) {
        const bool candidate = i + 8 <= n ? eight_equal(v + i) : run_end(v, i, n) == n;
        if (!candidate) {
            i += 8;
            continue;
        }
        const size_t e = run_end(v, i, n);
        const size_t groups = (e == n ? e - i + 7 : e - i) / 8;
        // Breaking a bit-packed run costs the run's header and value, and the next run's header.
        const size_t cost = 1 + writer.value_bytes() + (e < n ? 1 : 0);
        if (groups * w < cost && (literal < i || e < n)) {
            i += 8 * groups;
            continue;
        }
        writer.packed(v + literal, i - literal);
        writer.run(e - i, static_cast<uint32_t>(v[i]));
        literal = i = e;
    }
    writer.packed(v + literal, n - literal);
    return writer.used();
}

template <class T>
nb::object encode(const In<T>& values, unsigned w) {
    const size_t n = values.size;
    Scratch out(hybrid_bound(n, w));
    size_t used;
    {
        NoGil nogil(n * sizeof(T));
        uint32_t bits = 0;
        for (size_t i = 0; i < n; ++i) bits |= static_cast<uint32_t>(values.data[i]);
        if (w < 32 && bits >> w != 0) fail("a value does not fit in " + str(uint64_t{w}) + " bits");
        used = encode_hybrid(values.data, n, w, out.data, out.size);
    }
    return out.finish(used);
}

}  // namespace

size_t rle_decode_u8(const RawIn& data, int64_t bit_width, int64_t count, const Out<uint8_t>& out,
                     int64_t max_value) {
    const unsigned w = checked_width(bit_width, 8);
    int64_t last = (int64_t{1} << w) - 1;
    if (max_value >= 0) last = std::min(last, max_value);
    return decode(data, w, count, out, static_cast<uint32_t>(last));
}

size_t rle_decode_i32(const RawIn& data, int64_t bit_width, int64_t count, const Out<int32_t>& out,
                      int64_t limit) {
    const unsigned w = checked_width(bit_width, 32);
    if (limit < 0 || limit > int64_t{1} << 31) fail("limit is not in 0..2^31: " + str(limit));
    if (limit == 0) {
        if (count > 0) fail("RLE value 0 is beyond an empty range");
        return 0;
    }
    const int64_t widest = (int64_t{1} << w) - 1;
    return decode(data, w, count, out, static_cast<uint32_t>(std::min(limit - 1, widest)));
}

size_t bit_packed_decode_u8(const RawIn& data, int64_t bit_width, int64_t count, const Out<uint8_t>& out) {
    const unsigned w = checked_width(bit_width, 8);
    const size_t n = checked_count(count, "count");
    if (n > out.size) fail("out has " + str(out.size) + " items, " + str(n) + " are needed");
    NoGil nogil(n);
    return unpack_old_levels(data.data, data.size, w, n, out.data);
}

nb::object rle_encode_u8(const In<uint8_t>& values, int64_t bit_width) {
    return encode(values, checked_width(bit_width, 8));
}

nb::object rle_encode_i32(const In<int32_t>& values, int64_t bit_width) {
    return encode(values, checked_width(bit_width, 32));
}

size_t hybrid_bound(size_t n, unsigned w) {
    const size_t groups = n / 8 + 1;
    return checked_mul(groups, w) + groups / 16 + 64;
}

size_t hybrid_into(const uint8_t* v, size_t n, unsigned w, uint8_t* out, size_t room) {
    return encode_hybrid(v, n, w, out, room);
}

size_t hybrid_into(const int32_t* v, size_t n, unsigned w, uint8_t* out, size_t room) {
    return encode_hybrid(v, n, w, out, room);
}

}  // namespace pyparq
