// Reads ALP pages. Vectors of few bits are unpacked, added and multiplied eight values at a time, without a stop between.
#include "base/bitpack.hpp"
#include "base/bits.hpp"
#include "values/alp.hpp"
#include "values/calls.hpp"

namespace pyparq {
namespace {

template <class T>
struct Vector {
    using Bits = typename Alp<T>::Bits;
    size_t count, exceptions;
    T ten, tenth;
    Bits base;  // wraps around
    unsigned width;
    const uint8_t *packed, *end;  // all that may be read
    const uint8_t *positions, *values;
};

template <class T>
T value_of(const Vector<T>& v, uint64_t delta) {
    const auto sum = static_cast<typename Alp<T>::Bits>(v.base + static_cast<typename Alp<T>::Bits>(delta));
    return alp_value<T>(std::bit_cast<typename Alp<T>::Int>(sum), v.ten, v.tenth);
}

#ifdef PYPARQ_AVX2
// Which bytes of two loads hold four values of w bits, and how far to shift them: of values 0 to 3 of a group, and 4 to 7.
struct QuadLayout {
    alignas(32) uint8_t bytes[2][32];
    alignas(32) uint64_t shift[2][4];
    size_t at[4];  // of the loads
};

QuadLayout quads_of(unsigned w) {
    QuadLayout layout;
    for (unsigned pair = 0; pair < 4; ++pair) {
        const unsigned start = 2 * pair * w;
        layout.at[pair] = start / 8;
        for (unsigned k = 0; k < 2; ++k) {
            const unsigned bit = start % 8 + k * w, lane = 2 * (pair & 1) + k;
            layout.shift[pair / 2][lane] = bit % 8;
            for (unsigned b = 0; b < 8; ++b) layout.bytes[pair / 2][8 * lane + b] = static_cast<uint8_t>(bit / 8 + b);
        }
    }
    return layout;
}

// Groups of eight values of at most 51 bits; their integers are less than 2^51 either way. Returns how many values it did.
PYPARQ_TARGET_AVX2 size_t groups_avx2(const Vector<double>& v, double* out) {
    const QuadLayout layout = quads_of(v.width);
    const __m256i mask = _mm256_set1_epi64x(static_cast<int64_t>(low_bits(v.width)));
    // The bits of 1.5 * 2^52 plus an integer are those of the sum: no conversion is needed.
    const __m256d rounds = _mm256_set1_pd(0x1.8p52);
    const __m256i base = _mm256_add_epi64(_mm256_castpd_si256(rounds), _mm256_set1_epi64x(static_cast<int64_t>(v.base)));
    const __m256d ten = _mm256_set1_pd(v.ten), tenth = _mm256_set1_pd(v.tenth);
    const size_t room = static_cast<size_t>(v.end - v.packed), reach = layout.at[3] + 16;
    size_t i = 0;
    for (const uint8_t* p = v.packed; i + 8 <= v.count && i / 8 * v.width + reach <= room; i += 8, p += v.width) {
        for (unsigned half = 0; half < 2; ++half) {
            const auto* const low = reinterpret_cast<const __m128i*>(p + layout.at[2 * half]);
            const auto* const high = reinterpret_cast<const __m128i*>(p + layout.at[2 * half + 1]);
            __m256i x = _mm256_loadu2_m128i(high, low);
            x = _mm256_shuffle_epi8(x, _mm256_load_si256(reinterpret_cast<const __m256i*>(layout.bytes[half])));
            x = _mm256_srlv_epi64(x, _mm256_load_si256(reinterpret_cast<const __m256i*>(layout.shift[half])));
            x = _mm256_add_epi64(_mm256_and_si256(x, mask), base);
            const __m256d whole = _mm256_sub_pd(_mm256_castsi256_pd(x), rounds);
            _mm256_storeu_pd(out + i + 4 * half, _mm256_mul_pd(_mm256_mul_pd(whole, ten), tenth));
        }
    }
    return i;
}

// The same of at most 25 bits.
PYPARQ_TARGET_AVX2 size_t groups_avx2(const Vector<float>& v, float* out) {
    const GroupLayout& layout = kGroupLayouts[v.width];
    const __m256i control = _mm256_load_si256(reinterpret_cast<const __m256i*>(layout.bytes));
    const __m256i shifts = _mm256_load_si256(reinterpret_cast<const __m256i*>(layout.shift));
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(low_bits(v.width)));
    const __m256i base = _mm256_set1_epi32(static_cast<int>(v.base));
    const __m256 ten = _mm256_set1_ps(v.ten), tenth = _mm256_set1_ps(v.tenth);
    const size_t room = static_cast<size_t>(v.end - v.packed), half = v.width / 2, reach = half + 16;
    size_t i = 0;
    for (const uint8_t* p = v.packed; i + 8 <= v.count && i / 8 * v.width + reach <= room; i += 8, p += v.width) {
        __m256i x = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(p + half), reinterpret_cast<const __m128i*>(p));
        x = _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(x, control), shifts), mask);
        const __m256 whole = _mm256_cvtepi32_ps(_mm256_add_epi32(x, base));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_mul_ps(whole, ten), tenth));
    }
    return i;
}

bool fits_groups(const Vector<double>& v) {
    constexpr auto most = int64_t{1} << 51;
    const auto base = static_cast<int64_t>(v.base);
    return v.width <= 51 && base >= -most && base < most - static_cast<int64_t>(low_bits(v.width));
}

bool fits_groups(const Vector<float>& v) { return v.width <= 25; }
#endif

template <class T>
void decode_integers(const Vector<T>& v, T* out) {
    if (v.width == 0) {
        std::fill_n(out, v.count, value_of(v, 0));
        return;
    }
    size_t i = 0;
#ifdef PYPARQ_AVX2
    if (have_avx2() && fits_groups(v)) i = groups_avx2(v, out);
#endif
    const size_t room = static_cast<size_t>(v.end - v.packed);
    const uint64_t mask = low_bits(v.width);
    for (; i < v.count; ++i) out[i] = value_of(v, load_bits(v.packed, room, i * v.width) & mask);
}

template <class T>
void put_exceptions(const Vector<T>& v, T* out) {
    for (size_t k = 0; k < v.exceptions; ++k) {
        const size_t at = load<uint16_t>(v.positions + 2 * k);
        if (at >= v.count) fail("exception " + str(k) + " is at " + str(at) + " of a vector of " + str(v.count) + " values");
        std::memcpy(out + at, v.values + k * sizeof(T), sizeof(T));
    }
}

// A page: where its vectors are.
template <class T>
class Page {
  public:
    Page(const uint8_t* data, size_t size, size_t count) : end_(data + size), count_(count) {
        if (size < kAlpHeader) fail("the header takes 7 bytes, but the page has " + str(size));
        if (data[0] != 0) fail("compression mode " + str(uint64_t{data[0]}) + " is not known");
        if (data[1] != 0) fail("integer encoding " + str(uint64_t{data[1]}) + " is not known");
        if (data[2] < kAlpLeastLog || data[2] > kAlpMostLog)
            fail("vectors of 2^" + str(uint64_t{data[2]}) + " values are not between 2^3 and 2^15");
        if (const auto stated = load<int32_t>(data + 3); stated < 0 || static_cast<size_t>(stated) != count)
            fail("the header says " + str(int64_t{stated}) + " values, the page has " + str(count));
        log_ = data[2];
        offsets_ = data + kAlpHeader;
        vectors_ = (count + (size_t{1} << log_) - 1) >> log_;
        if ((size - kAlpHeader) / 4 < vectors_) fail("the offsets of " + str(vectors_) + " vectors do not fit into the page");
        if (vectors_ > 0 && offset(0) != 4 * vectors_) fail("the first vector starts at " + str(offset(0)) + ", not behind the offsets");
    }

    void decode(const uint32_t* picks, size_t picked, T* out) const {
        if (picks == nullptr) {
            for (size_t k = 0; k < vectors_; ++k) decode_one(k, out);
            return;
        }
        for (size_t i = 0; i < picked;) {
            const size_t k = picks[i] >> log_;
            decode_one(k, out);
            while (i < picked && picks[i] >> log_ == k) ++i;
        }
    }

  private:
    size_t offset(size_t k) const { return load<uint32_t>(offsets_ + 4 * k); }

    void decode_one(size_t k, T* out) const {
        const Vector<T> v = vector(k);
        T* const place = out + (k << log_);
        decode_integers(v, place);
        put_exceptions(v, place);
    }

    Vector<T> vector(size_t k) const {
        const auto room = static_cast<size_t>(end_ - offsets_);
        const size_t start = offset(k), stop = k + 1 < vectors_ ? offset(k + 1) : room;
        if (start > stop || stop > room) fail("vector " + str(k) + " lies from " + str(start) + " to " + str(stop) + " of " + str(room) + " bytes");
        if (stop - start < kAlpVectorHeader<T>) fail("vector " + str(k) + " is shorter than its header");
        const uint8_t* const head = offsets_ + start;
        Vector<T> v = read_header(k, head);
        const size_t packed = (v.count * v.width + 7) / 8;
        const size_t needed = kAlpVectorHeader<T> + packed + v.exceptions * (2 + sizeof(T));
        // Only the last vector may have something behind it.
        if (needed > stop - start || (needed < stop - start && k + 1 < vectors_))
            fail("vector " + str(k) + " has " + str(stop - start) + " bytes, but its header says " + str(needed));
        v.packed = head + kAlpVectorHeader<T>, v.end = end_;
        v.positions = v.packed + packed, v.values = v.positions + 2 * v.exceptions;
        return v;
    }

    Vector<T> read_header(size_t k, const uint8_t* head) const {
        Vector<T> v{};
        v.count = std::min(size_t{1} << log_, count_ - (k << log_));
        const unsigned exponent = head[0], factor = head[1];
        if (exponent > Alp<T>::kMostExponent || factor > exponent)
            fail("vector " + str(k) + " has exponent " + str(uint64_t{exponent}) + " and factor " + str(uint64_t{factor}));
        v.ten = Alp<T>::kTens[factor], v.tenth = Alp<T>::kTenths[exponent];
        v.exceptions = load<uint16_t>(head + 2);
        if (v.exceptions > v.count) fail("vector " + str(k) + " has " + str(v.exceptions) + " exceptions in " + str(v.count) + " values");
        v.base = load<typename Alp<T>::Bits>(head + 4);
        v.width = head[4 + sizeof(T)];
        if (v.width > 8 * sizeof(T)) fail("vector " + str(k) + " has integers of " + str(uint64_t{v.width}) + " bits");
        return v;
    }

    const uint8_t *end_, *offsets_;
    size_t count_, vectors_;
    unsigned log_;
};

}  // namespace

void alp_decode(const uint8_t* data, size_t size, size_t width, size_t count, const uint32_t* picks, size_t picked, uint8_t* out) {
    if (count == 0 && size == 0) return;
    if (width == 4) Page<float>(data, size, count).decode(picks, picked, reinterpret_cast<float*>(out));
    else Page<double>(data, size, count).decode(picks, picked, reinterpret_cast<double*>(out));
}

size_t checked_alp_width(int64_t width) {
    if (width != 4 && width != 8) fail("ALP has floats of 4 bytes and doubles of 8, not of " + str(width));
    return static_cast<size_t>(width);
}

void alp_decode_page(const RawIn& data, int64_t width_, int64_t count_, const RawOut& out) {
    const size_t width = checked_alp_width(width_), count = checked_count(count_, "count");
    if (out.size != checked_mul(count, width)) fail("out has " + str(out.size) + " bytes, not " + str(count) + " values");
    NoGil nogil(out.size);
    alp_decode(data.data, data.size, width, count, nullptr, 0, out.data);
}

}  // namespace pyparq
