// Numbers looked up in a set of others.
#pragma once
#include "select/match.hpp"
#include "select/numbers.hpp"

#include <vector>

namespace pyparq {

inline uint64_t mixed(uint64_t key) {  // splitmix64
    key += 0x9e3779b97f4a7c15ull;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ key >> 27) * 0x94d049bb133111ebull;
    return key ^ key >> 31;
}

// The number as an integer: equal numbers have the same, both zeros among them. NaN must not be asked for.
template <class T>
inline uint64_t key_of(T v) {
    if constexpr (std::is_same_v<T, Half>) return static_cast<uint16_t>(order_of_half(v.bits));
    else if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(v + 0.0f);
    else if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(v + 0.0);
    else return static_cast<uint64_t>(static_cast<int64_t>(v));
}

template <class T>
inline bool is_nan(T v) {
    if constexpr (std::is_same_v<T, Half>) return (v.bits & 0x7fff) > 0x7c00;
    else return v != v;
}

// Numbers to look up: a bitmap over the span of integers if that is small, otherwise a hash table. A bitmap of hashes
// with eight bits or more per slot is asked first, for all values and without branches, because it rules out most of them.
class NumberSet {
  public:
    explicit NumberSet(const AnyArray<false>& values) : kind_(values.kind), itemsize_(values.itemsize) {
        visit_numbers(values, [&](const auto* v) { build(v, values.size); });
    }

    nb::object test(const AnyArray<false>& values, const Within& within) const {
        if (values.kind != kind_ || values.itemsize != itemsize_) fail("the set holds numbers of another type");
        const size_t n = values.size;
        check_within(within, n);
        Fresh<uint64_t> out(words_for(n));
        NoGil nogil(n * 8);
        visit_numbers(values, [&](const auto* v) { look_up(v, n, within, out.data); });
        return std::move(out.object);
    }

  private:
    template <class T>
    void build(const T* v, size_t n) {
        NoGil nogil(n * 8);
        if constexpr (std::is_integral_v<T>) {
            T low = n > 0 ? v[0] : T{0}, high = low;
            for (size_t i = 0; i < n; ++i) low = std::min(low, v[i]), high = std::max(high, v[i]);
            const uint64_t span = key_of(high) - key_of(low);
            if (span / 8 <= std::max<uint64_t>(kSmallTable, 16 * n)) {
                low_ = key_of(low), span_ = span;
                bits_.assign(words_for(span + 1), 0);
                if (n == 0) span_ = 0;
                for (size_t i = 0; i < n; ++i) {
                    const uint64_t at = key_of(v[i]) - low_;
                    bits_[at / 64] |= uint64_t{1} << at % 64;
                }
                return;
            }
        }
        const size_t slots = std::bit_ceil(2 * n + 2);
        slots_.assign(slots, 0);
        used_.assign(words_for(slots), 0);
        const size_t filter_bits = std::max<size_t>(8 * slots, kSmallFilter);
        filter_.assign(filter_bits / 64, 0);
        shift_ = 64 - std::countr_zero(filter_bits);
        for (size_t i = 0; i < n; ++i)
            if (!is_nan(v[i])) insert(key_of(v[i]));
    }

    void insert(uint64_t key) {
        const uint64_t h = mixed(key), mask = slots_.size() - 1;
        uint64_t k = h & mask;
        for (; used_[k / 64] >> k % 64 & 1; k = (k + 1) & mask)
            if (slots_[k] == key) return;
        slots_[k] = key;
        used_[k / 64] |= uint64_t{1} << k % 64;
        const uint64_t f = filter_place(key, shift_);
        filter_[f / 64] |= uint64_t{1} << f % 64;
    }

    static uint64_t filter_place(uint64_t key, int shift) { return (key ^ key >> 32) * 0x9e3779b97f4a7c15ull >> shift; }

    bool holds(uint64_t key) const {
        const uint64_t h = mixed(key), mask = slots_.size() - 1;
        for (uint64_t k = h & mask; used_[k / 64] >> k % 64 & 1; k = (k + 1) & mask)
            if (slots_[k] == key) return true;
        return false;
    }

    template <class T>
    void look_up(const T* v, size_t n, const Within& within, uint64_t* out) const {
        if constexpr (std::is_integral_v<T>) {
            if (!bits_.empty()) {
                const uint64_t* const bits = bits_.data();
                const uint64_t low = low_, span = span_;
                return fill(n, within, out, [=](size_t i) {
                    const uint64_t at = key_of(v[i]) - low, place = at <= span ? at : 0;
                    return (at <= span) & (bits[place / 64] >> place % 64 & 1);
                });
            }
        }
        const uint64_t* const filter = filter_.data();
        const int shift = shift_;
        fill(n, within, out, [=](size_t i) {
            const uint64_t f = filter_place(key_of(v[i]), shift);
            return filter[f / 64] >> f % 64 & 1;
        });
        for (size_t i = 0; i < words_for(n); ++i) {
            for (uint64_t todo = out[i]; todo != 0; todo &= todo - 1) {
                const size_t k = i * 64 + static_cast<size_t>(std::countr_zero(todo));
                if (is_nan(v[k]) || !holds(key_of(v[k]))) out[i] &= ~(todo & (~todo + 1));
            }
        }
    }

    static constexpr uint64_t kSmallTable = 1 << 16;
    static constexpr size_t kSmallFilter = 1 << 16;  // bits; the nearest cache holds them
    Kind kind_;
    size_t itemsize_;
    uint64_t low_ = 0, span_ = 0;
    int shift_ = 0;
    std::vector<uint64_t> bits_, slots_, used_, filter_;
};

}  // namespace pyparq
