// Reading the RLE / bit-packed hybrid (Encodings.md): levels, dictionary indices, booleans.
#pragma once

#include "base/bitpack.hpp"

#include <vector>

namespace pyparq {

inline uint64_t read_run_header(const uint8_t* data, size_t size, size_t& pos) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (pos >= size) fail("RLE data end inside a run header");
        const uint8_t b = data[pos++];
        v |= static_cast<uint64_t>(b & 0x7f) << shift;
        if (b < 0x80) return v;
    }
    fail("RLE run header is longer than five bytes");
}

inline uint32_t read_run_value(const uint8_t* data, size_t size, size_t& pos, size_t value_bytes) {
    if (value_bytes > size - pos) fail("RLE data end inside a run value");
    uint32_t v = 0;
    std::memcpy(&v, data + pos, value_bytes);
    pos += value_bytes;
    return v;
}

inline void check_hybrid(uint32_t top, uint32_t last) {
    if (top > last) fail("RLE value " + str(uint64_t{top}) + " is beyond the largest allowed, " + str(uint64_t{last}));
}

template <class T>
inline void unpack_checked(const uint8_t* src, size_t bytes, unsigned w, size_t n, T* out, uint32_t last) {
    uint32_t top = 0;
    if constexpr (sizeof(T) == 1) {
        unpack_u8(src, bytes, w, n, out);
        if (last < (1u << w) - 1) {
            uint8_t most = 0;
            for (size_t i = 0; i < n; ++i) most = std::max(most, out[i]);
            top = most;
        }
    } else {
        top = unpack_u32(src, bytes, w, n, reinterpret_cast<uint32_t*>(out));
    }
    check_hybrid(top, last);
}

// Exactly `count` values, each <= last. Returns the bytes used.
template <class T>
size_t decode_hybrid(const uint8_t* data, size_t size, unsigned w, size_t count, T* out, uint32_t last) {
    size_t pos = 0, done = 0;
    const size_t value_bytes = (w + 7) / 8;
    while (done < count) {
        const uint64_t header = read_run_header(data, size, pos);
        const size_t left = count - done;
        if (header & 1) {
            const uint64_t groups = header >> 1;
            const size_t n = static_cast<size_t>(std::min<uint64_t>(groups * 8, left));
            // The final group may be cut short by writers that do not pad, but not inside a wanted value.
            if ((n * w + 7) / 8 > size - pos) fail("RLE data end inside a bit-packed run");
            const size_t stored = static_cast<size_t>(std::min<uint64_t>(groups * w, size - pos));
            unpack_checked(data + pos, size - pos, w, n, out + done, last);  // may look ahead in the data
            pos += stored;
            done += n;
        } else {
            const uint32_t v = read_run_value(data, size, pos, value_bytes);
            check_hybrid(v, last);
            const size_t n = static_cast<size_t>(std::min<uint64_t>(header >> 1, left));
            std::fill_n(out + done, n, static_cast<T>(v));
            done += n;
        }
    }
    return pos;
}

// The same for levels and booleans.
void decode_hybrid_u8(const uint8_t* data, size_t size, unsigned w, size_t count, uint8_t* out, uint32_t last);

// Does one run hold all the n values?
bool is_one_run(const uint8_t* data, size_t size, size_t n, uint32_t value);

// Levels before format 2 (BIT_PACKED): most significant bit first, no runs. Returns the bytes used.
size_t unpack_old_levels(const uint8_t* data, size_t size, unsigned w, size_t n, uint8_t* out);

// Dictionary indices of 0..32 bits, a piece at a time: what uses them finds them in the first-level cache.
class IndexReader {
  public:
    // `data` starts with the bit width; every index has to be below `limit`.
    IndexReader(const uint8_t* data, size_t size, size_t limit) : data_(data), size_(size) {
        if (size == 0) fail("no data, not even a bit width");
        w_ = data[0];
        pos_ = 1;
        if (w_ > 32) fail("bit width " + str(uint64_t{w_}) + " is not in 0..32");
        if (limit == 0) fail("an index into a dictionary without entries");
        last_ = static_cast<uint32_t>(std::min<uint64_t>(limit - 1, (uint64_t{1} << w_) - 1));
    }

    // The next n indices. All calls together may ask for no more than there are.
    void read(size_t n, uint32_t* out) {
        if (w_ == 0) {
            std::fill_n(out, n, 0u);
            return;
        }
        while (n > 0) {
            if (left_ == 0) next_run();
            const size_t m = static_cast<size_t>(std::min<uint64_t>(n, left_));
            if (packed_) unpack(m, out);
            else std::fill_n(out, m, value_);
            left_ -= m;
            out += m;
            n -= m;
        }
    }

  private:
    void next_run() {
        const uint64_t header = read_run_header(data_, size_, pos_);
        packed_ = header & 1;
        left_ = packed_ ? (header >> 1) * 8 : header >> 1;
        carry_at_ = carry_end_ = 0;
        if (packed_) return;
        value_ = read_run_value(data_, size_, pos_, (w_ + 7) / 8);
        check_hybrid(value_, last_);
    }
    // Whole groups of eight go straight to `out`; of a group that is wanted in part the rest is carried.
    void unpack(size_t n, uint32_t* out) {
        const size_t first = std::min(n, carry_end_ - carry_at_), whole = (n - first) / 8 * 8, rest = n - first - whole;
        // The final group may be cut short by writers that do not pad, but not inside a wanted value.
        if (((whole + rest) * w_ + 7) / 8 > size_ - pos_) fail("RLE data end inside a bit-packed run");
        uint32_t top = take(first, out);
        top = std::max(top, unpack_u32(data_ + pos_, size_ - pos_, w_, whole, out + first));  // may look ahead in the data
        pos_ += whole / 8 * w_;
        if (rest > 0) {
            carry_at_ = 0;
            carry_end_ = std::min<size_t>(8, (size_ - pos_) * 8 / w_);
            unpack_u32(data_ + pos_, size_ - pos_, w_, carry_end_, carry_);
            pos_ += std::min<size_t>(w_, size_ - pos_);
            top = std::max(top, take(rest, out + first + whole));
        }
        check_hybrid(top, last_);
    }
    // Carried values, and the largest of them; those that are not asked for may be anything.
    uint32_t take(size_t n, uint32_t* out) {
        uint32_t top = 0;
        for (size_t i = 0; i < n; ++i) top = std::max(top, out[i] = carry_[carry_at_ + i]);
        carry_at_ += n;
        return top;
    }

    const uint8_t* data_;
    size_t size_, pos_ = 0, carry_at_ = 0, carry_end_ = 0;
    unsigned w_ = 0;
    uint32_t last_ = 0, value_ = 0, carry_[8] = {};
    uint64_t left_ = 0;
    bool packed_ = false;
};

}  // namespace pyparq
