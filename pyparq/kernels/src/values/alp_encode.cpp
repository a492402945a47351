// Writes ALP pages. The pairs of exponent and factor that are best for some vectors of the page are tried on each vector.
#include "base/bits.hpp"
#include "encode/encoders.hpp"
#include "values/alp.hpp"
#include "values/calls.hpp"
#include "values/checks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace pyparq {
namespace {

constexpr size_t kVector = size_t{1} << kAlpLogVector;
constexpr size_t kSampledVectors = 8, kSampled = 32;  // of a page, and of each of these
constexpr size_t kTried = 32;                         // values of a vector that choose its pair
constexpr size_t kKept = 5;                           // pairs

struct Pair {
    unsigned exponent, factor;
    bool operator==(const Pair&) const = default;
};

// The integer that stands for a value, as a T: 0 for one that has none. NaN, infinities and -0.0 do not come back from it.
template <class T>
struct Encoder {
    using Bits = typename Alp<T>::Bits;
    T up, down, ten, tenth;

    explicit Encoder(Pair pair)
        : up(Alp<T>::kTens[pair.exponent]), down(Alp<T>::kTenths[pair.factor]), ten(Alp<T>::kTens[pair.factor]),
          tenth(Alp<T>::kTenths[pair.exponent]) {}

    [[gnu::always_inline]] T whole(T value) const {
        const T scaled = value * up * down;
        const T rounds = std::copysign(Alp<T>::kRounds, scaled);
        const T rounded = scaled + rounds - rounds;
        const T near = std::abs(scaled) < Alp<T>::kRounds ? rounded : scaled;  // from there on all are whole
        return std::abs(scaled) < Alp<T>::kBeyond ? near + T{0} : T{0};        // -0.0 + 0.0 is 0.0
    }
    [[gnu::always_inline]] bool gives_back(T value, T integer) const {
        return std::bit_cast<Bits>(integer * ten * tenth) == std::bit_cast<Bits>(value);
    }
};

template <class T>
unsigned width_of(typename Alp<T>::Int least, typename Alp<T>::Int most) {
    using Bits = typename Alp<T>::Bits;
    return static_cast<unsigned>(std::bit_width(static_cast<Bits>(static_cast<Bits>(most) - static_cast<Bits>(least))));
}

// Bits of n values in integers of so many bits; where each value by itself takes fewer, they are all exceptions.
template <class T>
size_t bits_of(size_t n, size_t exceptions, unsigned width) {
    const size_t each = 8 * (2 + sizeof(T));
    return std::min(n * width + exceptions * each, n * each);
}

// A whole number of eights of values: several columns of eight are compared at once.
template <class T>
struct Sample {
    std::array<T, kSampled> values;
    size_t count = 0;

    // Up to `most` of n values, here and there. The last one fills the last eight.
    void take(const T* from, size_t n, size_t most) {
        const size_t step = (n + most - 1) / most;
        count = 0;
        for (size_t i = 0; i < n; i += step) values[count++] = from[i];
        for (; count % 8 != 0; ++count) values[count] = values[count - 1];
    }
};

template <class T>
[[gnu::always_inline]] inline size_t cost_each(const Sample<T>& sample, Pair pair) {
    const Encoder<T> encoder(pair);
    T least[8], most[8];
    typename Alp<T>::Bits exceptions[8] = {};
    std::fill_n(least, 8, Alp<T>::kBeyond), std::fill_n(most, 8, -Alp<T>::kBeyond);
    for (size_t i = 0; i < sample.count; i += 8) {
        for (size_t j = 0; j < 8; ++j) {
            const T value = sample.values[i + j], integer = encoder.whole(value);
            const bool fits = encoder.gives_back(value, integer);
            exceptions[j] += !fits;
            const T low = fits ? integer : Alp<T>::kBeyond, high = fits ? integer : -Alp<T>::kBeyond;
            least[j] = low < least[j] ? low : least[j];
            most[j] = high > most[j] ? high : most[j];
        }
    }
    const size_t all = std::accumulate(exceptions, exceptions + 8, size_t{0});
    using Int = typename Alp<T>::Int;
    const unsigned width = all == sample.count ? 0 : width_of<T>(static_cast<Int>(*std::min_element(least, least + 8)), static_cast<Int>(*std::max_element(most, most + 8)));
    return bits_of<T>(sample.count, all, width);
}

template <class T>
PYPARQ_TARGET_AVX2 size_t cost_avx2(const Sample<T>& sample, Pair pair) { return cost_each(sample, pair); }

// Bits that these values would take.
template <class T>
size_t cost_of(const Sample<T>& sample, Pair pair) {
    return have_avx2() ? cost_avx2(sample, pair) : cost_each(sample, pair);
}

template <class T>
Pair best_of_all(const Sample<T>& sample) {
    Pair best{0, 0};
    size_t least = std::numeric_limits<size_t>::max();
    for (unsigned e = Alp<T>::kMostExponent + 1; e-- > 0;) {
        for (unsigned f = e + 1; f-- > 0;) {
            const size_t cost = cost_of(sample, {e, f});
            if (cost < least) least = cost, best = {e, f};
        }
    }
    return best;
}

// The pairs that are best for vectors of a page, those of most vectors first.
template <class T>
std::vector<Pair> pairs_of(const T* values, size_t n) {
    std::vector<std::pair<size_t, Pair>> found;  // for how many
    const size_t vectors = (n + kVector - 1) / kVector, step = (vectors + kSampledVectors - 1) / kSampledVectors;
    Sample<T> some;
    for (size_t k = 0; k < vectors; k += step) {
        const size_t from = k * kVector;
        some.take(values + from, std::min(kVector, n - from), kSampled);
        const Pair best = best_of_all(some);
        const auto known = std::find_if(found.begin(), found.end(), [&](const auto& item) { return item.second == best; });
        if (known == found.end()) found.emplace_back(1, best);
        else ++known->first;
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Pair> kept;
    for (size_t k = 0; k < std::min(found.size(), kKept); ++k) kept.push_back(found[k].second);
    return kept;
}

template <class T>
Pair best_of(const std::vector<Pair>& pairs, const T* values, size_t n) {
    if (pairs.size() == 1) return pairs[0];
    Sample<T> some;
    some.take(values, n, kTried);
    return *std::min_element(pairs.begin(), pairs.end(), [&](Pair a, Pair b) { return cost_of(some, a) < cost_of(some, b); });
}

// n values of w bits, the first in the lowest.
template <class U>
uint8_t* pack(const U* values, size_t n, unsigned w, uint8_t* out) {
    if (w == 0) return out;
    uint64_t held = 0;
    unsigned used = 0;
    for (size_t i = 0; i < n; ++i) {
        const uint64_t value = values[i];
        held |= value << used;
        used += w;
        if (used < 64) continue;
        store(out, held);
        out += 8, used -= 64;
        held = used == 0 ? 0 : value >> (w - used);
    }
    std::memcpy(out, &held, (used + 7) / 8);
    return out + (used + 7) / 8;
}

// One vector: its integers, and where it has exceptions.
template <class T>
struct Made {
    using Int = typename Alp<T>::Int;
    using Bits = typename Alp<T>::Bits;
    std::array<Int, kVector> integers;
    std::array<Bits, kVector> deltas;
    std::array<uint16_t, kVector> positions;
    size_t exceptions = 0;
    Int base = 0;

    // Exceptions take the integer of the first value that has one, so that they add no bits.
    void encode(const T* values, size_t n, Pair pair) {
        const Encoder<T> encoder(pair);
        exceptions = 0;
        for (size_t i = 0; i < n; ++i) {
            positions[exceptions] = static_cast<uint16_t>(i);
            const T integer = encoder.whole(values[i]);
            integers[i] = static_cast<Int>(integer);
            exceptions += !encoder.gives_back(values[i], integer);
        }
        if (exceptions == 0) return;
        size_t first = 0;
        while (first < exceptions && positions[first] == first) ++first;
        const Int filler = exceptions == n ? 0 : integers[first];
        for (size_t k = 0; k < exceptions; ++k) integers[positions[k]] = filler;
    }

    // Where the integers do not pay, there are none.
    unsigned settle(size_t n) {
        const auto [least, most] = std::minmax_element(integers.begin(), integers.begin() + static_cast<std::ptrdiff_t>(n));
        const unsigned width = width_of<T>(*least, *most);
        base = *least;
        if (bits_of<T>(n, exceptions, width) < bits_of<T>(n, n, 0) || exceptions == 0) return width;
        std::iota(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(n), uint16_t{0});
        exceptions = n, base = 0;
        integers.fill(0);
        return 0;
    }

    uint8_t* put(const T* values, size_t n, Pair pair, uint8_t* out) {
        const unsigned width = settle(n);
        out[0] = static_cast<uint8_t>(pair.exponent), out[1] = static_cast<uint8_t>(pair.factor);
        store(out + 2, static_cast<uint16_t>(exceptions));
        store(out + 4, base);
        out[4 + sizeof(T)] = static_cast<uint8_t>(width);
        for (size_t i = 0; i < n; ++i) deltas[i] = static_cast<Bits>(static_cast<Bits>(integers[i]) - static_cast<Bits>(base));
        out = pack(deltas.data(), n, width, out + kAlpVectorHeader<T>);
        std::memcpy(out, positions.data(), 2 * exceptions);
        out += 2 * exceptions;
        for (size_t k = 0; k < exceptions; ++k, out += sizeof(T)) store(out, values[positions[k]]);
        return out;
    }
};

template <class T>
size_t page_into(const uint8_t* data, size_t count, uint8_t* out) {
    // Values may lie anywhere: they are copied to where a T may.
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), data, count * sizeof(T));
    const size_t vectors = (count + kVector - 1) / kVector;
    out[0] = 0, out[1] = 0, out[2] = kAlpLogVector;
    store(out + 3, static_cast<int32_t>(count));
    uint8_t* const offsets = out + kAlpHeader;
    uint8_t* at = offsets + 4 * vectors;
    if (count == 0) return kAlpHeader;
    const std::vector<Pair> pairs = pairs_of(values.data(), count);
    Made<T> made;
    for (size_t k = 0; k < vectors; ++k) {
        store(offsets + 4 * k, static_cast<uint32_t>(at - offsets));
        const T* const from = values.data() + k * kVector;
        const size_t n = std::min(kVector, count - k * kVector);
        const Pair pair = best_of(pairs, from, n);
        made.encode(from, n, pair);
        at = made.put(from, n, pair, at);
    }
    return static_cast<size_t>(at - out);
}

}  // namespace

// Every value an exception, beside integers of all their bits.
size_t alp_bound(size_t n, size_t width) {
    const size_t vectors = (n + kVector - 1) / kVector;
    return kAlpHeader + vectors * (4 + 4 + width + 1) + checked_mul(n, 2 * width + 2) + 8;
}

size_t alp_into(const Values& v, uint8_t* out) {
    if (v.count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) fail("a page of ALP holds at most 2^31 - 1 values");
    return v.width == 4 ? page_into<float>(v.data, v.count, out) : page_into<double>(v.data, v.count, out);
}

nb::object alp_encode_page(const RawIn& values, int64_t width_) {
    const size_t width = checked_alp_width(width_);
    Values v;
    v.data = values.data, v.size = values.size, v.width = width;
    v.count = checked_items(values.size, width, "values");
    const Scratch made(alp_bound(v.count, width));
    size_t size;
    {
        NoGil nogil(values.size);
        size = alp_into(v, made.data);
    }
    return made.finish(size);
}

}  // namespace pyparq
