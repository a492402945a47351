// Dictionaries of short byte strings, laid out to be gathered from in one pass: every entry padded to whole vector
// registers, so that a value costs one load, one store and one addition, whatever its length.
#pragma once
#include "decode/memory.hpp"
#include "decode/rle_bitpacked.hpp"
#include "values/checks.hpp"

namespace pyparq {

inline constexpr size_t kLongestShort = 64;  // bytes of an entry
inline constexpr size_t kIndexBlock = 1024;  // indices, in the first-level cache

// Where the next value goes. There is room for every value at the longest length, and for one register more.
template <class O>
struct Spot {
    O* offsets;  // the next to be written: where the next value ends
    O end;       // of the values so far
    uint8_t* out;
};

// W bytes from one place to another, in the widest registers that the calling function may use.
template <size_t W>
[[gnu::always_inline]] inline void copy(uint8_t* to, const uint8_t* from) {
#ifdef PYPARQ_AVX2
    if constexpr (W % 32 == 0) {
        typedef uint64_t Wide __attribute__((vector_size(32), aligned(1), may_alias));
        for (size_t k = 0; k < W; k += 32) *reinterpret_cast<Wide*>(to + k) = *reinterpret_cast<const Wide*>(from + k);
        return;
    }
#endif
    std::memcpy(to, from, W);
}

template <size_t W>
struct Entries {
    const uint8_t* slots;
    const uint32_t* lengths;
    size_t length;  // of every entry, where they are all alike; above kLongestShort where not

    template <class O>
    void put(const uint32_t* indices, size_t n, Spot<O>& at) const {
#ifdef PYPARQ_AVX2
        if constexpr (W >= 32) {
            if (have_avx2()) return put_avx2(indices, n, at);
        }
#endif
        put_plainly(indices, n, at);
    }

    // `count` values over the n slots that are present.
    template <class O>
    void put_present(const uint32_t* indices, size_t count, const uint8_t* valid, size_t n, Spot<O>& at) const {
        O starts[kIndexBlock + 8] = {};
        starts[0] = at.end;
        Spot<O> packed{starts + 1, at.end, at.out};
        put(indices, count, packed);
        O spread[kIndexBlock + 1];  // what lies before the first offset may be another thread's
        spread_over_slots(starts, kIndexBlock + 8, valid, n, spread);
        std::memcpy(at.offsets, spread + 1, n * sizeof(O));
        at = {at.offsets + n, packed.end, packed.out};
    }

  private:
#ifdef PYPARQ_AVX2
    template <class O>
    PYPARQ_TARGET_AVX2 void put_avx2(const uint32_t* indices, size_t n, Spot<O>& at) const {
        put_plainly(indices, n, at);  // inlined
    }
#endif

    template <class O>
    [[gnu::always_inline]] void put_plainly(const uint32_t* indices, size_t n, Spot<O>& at) const {
        if (length <= kLongestShort) return put_alike(indices, n, at);
        const auto* const from = slots;  // names of their own: the bytes written might be anything else
        const auto* const sizes = lengths;
        O* const offsets = at.offsets;
        const O base = at.end;
        uint8_t *const start = at.out, *w = start;
        for (size_t i = 0; i < n; ++i) {
            copy<W>(w, from + size_t{indices[i]} * W);
            w += sizes[indices[i]];
            offsets[i] = static_cast<O>(base + static_cast<O>(w - start));
        }
        step(at, n, w);
    }

    template <class O>
    [[gnu::always_inline]] void put_alike(const uint32_t* indices, size_t n, Spot<O>& at) const {
        const auto* const from = slots;
        const size_t step_by = length;
        O* const offsets = at.offsets;
        const O base = at.end;
        for (size_t i = 0; i < n; ++i) offsets[i] = static_cast<O>(base + static_cast<O>((i + 1) * step_by));
        uint8_t* w = at.out;
        for (size_t i = 0; i < n; ++i, w += step_by) copy<W>(w, from + size_t{indices[i]} * W);
        step(at, n, w);
    }
    template <class O>
    [[gnu::always_inline]] static void step(Spot<O>& at, size_t n, uint8_t* w) {
        at.end = static_cast<O>(at.end + static_cast<O>(w - at.out));
        at.offsets += n;
        at.out = w;
    }
};

// All entries of a dictionary.
class ShortEntries {
  public:
    // Whether they are short enough, and few enough to be worth it.
    template <class O>
    bool load(const O* offsets, size_t entries, const uint8_t* data) {
        size_t shortest = kLongestShort;
        longest_ = 0;
        count_ = entries;
        lengths_.grow(entries * sizeof(uint32_t));
        auto* const lengths = lengths_.as<uint32_t>();
        for (size_t i = 0; i < entries; ++i) {
            const size_t length = static_cast<size_t>(offsets[i + 1] - offsets[i]);
            if (length > kLongestShort) return false;
            longest_ = std::max(longest_, length);
            shortest = std::min(shortest, length);
            lengths[i] = static_cast<uint32_t>(length);
        }
        alike_ = shortest == longest_;
        width_ = longest_ <= 8 ? 8 : longest_ <= 16 ? 16
                                 : longest_ <= 32   ? 32
                                                    : 64;
        slots_.grow(entries * width_);
        for (size_t i = 0; i < entries; ++i)
            if (lengths[i] > 0) std::memcpy(slots_.data() + i * width_, data + offsets[i], lengths[i]);
        return true;
    }
    size_t size() const { return count_; }
    size_t longest() const { return longest_; }
    // Bytes of room that the longest so many values need.
    size_t room(size_t values) const { return values * longest_ + kLongestShort; }

    // Calls f with the entries, which put values.
    template <class F>
    void visit(F&& f) const {
        const size_t length = alike_ ? longest_ : kLongestShort + 1;
        if (width_ == 8) f(Entries<8>{slots_.data(), lengths_.as<uint32_t>(), length});
        else if (width_ == 16) f(Entries<16>{slots_.data(), lengths_.as<uint32_t>(), length});
        else if (width_ == 32) f(Entries<32>{slots_.data(), lengths_.as<uint32_t>(), length});
        else f(Entries<64>{slots_.data(), lengths_.as<uint32_t>(), length});
    }

  private:
    size_t count_ = 0, longest_ = 0, width_ = 8;
    bool alike_ = false;
    Block slots_;  // what lies behind an entry may be anything: it is written over by the next value
    Block lengths_;
};

}  // namespace pyparq
