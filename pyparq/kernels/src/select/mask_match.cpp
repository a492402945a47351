// Tests of values against a literal, a set or a table of answers, into bitmaps: 64 values at a time, so that nothing but
// the bitmap is written. `within` marks the values that matter. The bits of all others are not set, and words of 64 such
// values are skipped.
#include "base/bits.hpp"
#include "values/checks.hpp"

#include <nanobind/stl/string.h>

#include <memory>

#if PYPARQ_AVX2
#include <immintrin.h>
#endif

namespace pyparq {
namespace {

using Within = Array<uint64_t, false, true>;

enum class Op { Equal,
                NotEqual,
                Less,
                LessEqual,
                Greater,
                GreaterEqual,
                IsNan,
                IsNotNan,
                StartsWith,
                NotStartsWith };

Op op_named(const std::string& name) {
    constexpr std::pair<const char*, Op> kOps[] = {
        {"==", Op::Equal}, {"!=", Op::NotEqual}, {"<", Op::Less}, {"<=", Op::LessEqual}, {">", Op::Greater}, {">=", Op::GreaterEqual}, {"is_nan", Op::IsNan}, {"is_not_nan", Op::IsNotNan}, {"starts_with", Op::StartsWith}, {"not starts_with", Op::NotStartsWith}};
    for (const auto& [known, op] : kOps)
        if (name == known) return op;
    fail("there is no test " + name);
}

void check_within(const Within& within, size_t n) {
    if (!within.none() && within.size != words_for(n))
        fail("a bitmap of " + str(n) + " bits has " + str(within.size) + " words of 64 instead of " + str(words_for(n)));
}

// 64 bytes, each 0 or 1, as bits.
inline uint64_t pack64(const uint8_t* ones) {
    uint64_t word = 0;
#if PYPARQ_SSE2
    for (int k = 0; k < 4; ++k) {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ones + 16 * k));
        word |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_slli_epi16(x, 7)))) << (16 * k);
    }
#else
    for (int k = 0; k < 8; ++k) word |= (load<uint64_t>(ones + 8 * k) * 0x0102040810204080ull >> 56) << (8 * k);
#endif
    return word;
}

template <class Test>
[[gnu::always_inline]] inline void fill_words(size_t n, const uint64_t* within, uint64_t* out, const Test& test) {
    uint8_t ones[64];
    size_t i = 0;
    for (; i < n / 64; ++i) {
        if (within != nullptr && within[i] == 0) {
            out[i] = 0;
            continue;
        }
        for (size_t k = 0; k < 64; ++k) ones[k] = test(i * 64 + k) ? 1 : 0;
        out[i] = pack64(ones) & (within != nullptr ? within[i] : ~uint64_t{0});
    }
    if (n % 64 != 0) {
        uint64_t word = 0;
        for (size_t k = 0; k < n % 64; ++k) word |= static_cast<uint64_t>(test(i * 64 + k) ? 1 : 0) << k;
        out[i] = word & (within != nullptr ? within[i] : ~uint64_t{0});
    }
}

#if PYPARQ_AVX2
template <class Test>
PYPARQ_TARGET_AVX2 void fill_words_avx2(size_t n, const uint64_t* within, uint64_t* out, const Test& test) {
    fill_words(n, within, out, test);
}
#endif

template <class Test>
void fill(size_t n, const uint64_t* within, uint64_t* out, const Test& test) {
#if PYPARQ_AVX2
    if (have_avx2()) return fill_words_avx2(n, within, out, test);
#endif
    fill_words(n, within, out, test);
}

template <class Test>
void fill(size_t n, const Within& within, uint64_t* out, const Test& test) {
    fill(n, within.data, out, test);
}

// The same for tests that cost more than a few cycles: where few of 64 are wanted, only these are looked at.
template <class Test>
void fill_one_by_one(size_t n, const Within& within, uint64_t* out, const Test& test) {
    const size_t count = words_for(n);
    for (size_t i = 0; i < count; ++i) {
        uint64_t todo = i + 1 == count && n % 64 != 0 ? low_bits(n % 64) : ~uint64_t{0};
        if (!within.none()) todo &= within.data[i];
        uint64_t word = 0;
        if (todo == ~uint64_t{0}) {
            for (size_t k = 0; k < 64; ++k) word |= static_cast<uint64_t>(test(i * 64 + k) ? 1 : 0) << k;
        } else {
            for (; todo != 0; todo &= todo - 1) {
                const size_t k = static_cast<size_t>(std::countr_zero(todo));
                word |= static_cast<uint64_t>(test(i * 64 + k) ? 1 : 0) << k;
            }
        }
        out[i] = word;
    }
}

// ---- numbers --------------------------------------------------------------------------------------------

// Half-precision floats as integers that sort like them: both zeros 0, NaN above all.
inline int16_t order_of_half(uint16_t bits) {
    const int16_t magnitude = static_cast<int16_t>(bits & 0x7fff);
    if (magnitude > 0x7c00) return 0x7fff;
    return bits & 0x8000 ? static_cast<int16_t>(-magnitude) : magnitude;
}

// NaN stands above every number, so it passes the negations of < and <=; the literal is never NaN.
template <class T>
void compare_numbers(const T* v, size_t n, Op op, T x, const Within& within, uint64_t* out) {
    switch (op) {
        case Op::Equal: return fill(n, within, out, [=](size_t i) { return v[i] == x; });
        case Op::NotEqual: return fill(n, within, out, [=](size_t i) { return v[i] != x; });
        case Op::Less: return fill(n, within, out, [=](size_t i) { return v[i] < x; });
        case Op::LessEqual: return fill(n, within, out, [=](size_t i) { return v[i] <= x; });
        case Op::Greater: return fill(n, within, out, [=](size_t i) { return !(v[i] <= x); });
        case Op::GreaterEqual: return fill(n, within, out, [=](size_t i) { return !(v[i] < x); });
        case Op::IsNan: return fill(n, within, out, [=](size_t i) { return v[i] != v[i]; });
        case Op::IsNotNan: return fill(n, within, out, [=](size_t i) { return v[i] == v[i]; });
        default: fail("this test is not one of numbers");
    }
}

void compare_halves(const uint16_t* v, size_t n, Op op, uint16_t literal, const Within& within, uint64_t* out) {
    const int16_t x = order_of_half(literal);
    const auto run = [&](auto&& test) {
        fill(n, within, out, [&](size_t i) { return test(order_of_half(v[i])); });
    };
    switch (op) {
        case Op::Equal: return run([=](int16_t y) { return y == x; });
        case Op::NotEqual: return run([=](int16_t y) { return y != x; });
        case Op::Less: return run([=](int16_t y) { return y < x; });
        case Op::LessEqual: return run([=](int16_t y) { return y <= x; });
        case Op::Greater: return run([=](int16_t y) { return y > x; });
        case Op::GreaterEqual: return run([=](int16_t y) { return y >= x; });
        case Op::IsNan: return run([=](int16_t y) { return y == 0x7fff; });
        case Op::IsNotNan: return run([=](int16_t y) { return y != 0x7fff; });
        default: fail("this test is not one of numbers");
    }
}

// Calls f with a typed pointer; halves come as Half.
struct Half {
    uint16_t bits;
};

template <class F>
decltype(auto) visit_numbers(const AnyArray<false>& values, F&& f) {
    const void* const p = values.data;
    switch (values.kind) {
        case Kind::SignedInt:
            switch (values.itemsize) {
                case 1: return f(static_cast<const int8_t*>(p));
                case 2: return f(static_cast<const int16_t*>(p));
                case 4: return f(static_cast<const int32_t*>(p));
                case 8: return f(static_cast<const int64_t*>(p));
            }
            break;
        case Kind::UnsignedInt:
            switch (values.itemsize) {
                case 1: return f(static_cast<const uint8_t*>(p));
                case 2: return f(static_cast<const uint16_t*>(p));
                case 4: return f(static_cast<const uint32_t*>(p));
                case 8: return f(static_cast<const uint64_t*>(p));
            }
            break;
        case Kind::Float:
            switch (values.itemsize) {
                case 2: return f(static_cast<const Half*>(p));
                case 4: return f(static_cast<const float*>(p));
                case 8: return f(static_cast<const double*>(p));
            }
            break;
        default: break;
    }
    fail("values of " + str(values.itemsize) + " bytes are not numbers this kernel knows");
}

nb::object match_numbers(const AnyArray<false>& values, const std::string& name, const RawIn& literal,
                         const Within& within) {
    const Op op = op_named(name);
    const size_t n = values.size;
    check_within(within, n);
    if (literal.size != values.itemsize)
        fail("the literal has " + str(literal.size) + " bytes, the values " + str(values.itemsize));
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n * values.itemsize);
    visit_numbers(values, [&](const auto* v) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(v)>>;
        if constexpr (std::is_same_v<T, Half>)
            compare_halves(reinterpret_cast<const uint16_t*>(v), n, op, load<uint16_t>(literal.data), within, out.data);
        else
            compare_numbers<T>(v, n, op, load<T>(literal.data), within, out.data);
    });
    return std::move(out.object);
}

// ---- bytes ----------------------------------------------------------------------------------------------

bool passes(Op op, int sign) {
    switch (op) {
        case Op::Equal: return sign == 0;
        case Op::NotEqual: return sign != 0;
        case Op::Less: return sign < 0;
        case Op::LessEqual: return sign <= 0;
        case Op::Greater: return sign > 0;
        case Op::GreaterEqual: return sign >= 0;
        default: fail("this test is not one of these values");
    }
}

void check_order(Op op) { passes(op, 0); }

// Values of 16 bytes, as match_limbs takes them: no branch on what they hold.
void compare_pairs(const uint8_t* values, size_t n, Op op, const uint8_t* literal, const Within& within, uint64_t* out) {
    const auto low = load<uint64_t>(literal);
    const auto high = load<int64_t>(literal + 8);
    const auto is_less = [=](size_t i) {
        const auto x = load<uint64_t>(values + 16 * i);
        const auto y = load<int64_t>(values + 16 * i + 8);
        return static_cast<int>(y < high) | (static_cast<int>(y == high) & static_cast<int>(x < low));
    };
    const auto is_more = [=](size_t i) {
        const auto x = load<uint64_t>(values + 16 * i);
        const auto y = load<int64_t>(values + 16 * i + 8);
        return static_cast<int>(y > high) | (static_cast<int>(y == high) & static_cast<int>(x > low));
    };
    const auto is_equal = [=](size_t i) {
        return static_cast<int>(load<uint64_t>(values + 16 * i) == low) & static_cast<int>(load<int64_t>(values + 16 * i + 8) == high);
    };
    switch (op) {
        case Op::Equal: return fill(n, within, out, [=](size_t i) { return is_equal(i) != 0; });
        case Op::NotEqual: return fill(n, within, out, [=](size_t i) { return is_equal(i) == 0; });
        case Op::Less: return fill(n, within, out, [=](size_t i) { return is_less(i) != 0; });
        case Op::LessEqual: return fill(n, within, out, [=](size_t i) { return is_more(i) == 0; });
        case Op::Greater: return fill(n, within, out, [=](size_t i) { return is_more(i) != 0; });
        default: return fill(n, within, out, [=](size_t i) { return is_less(i) == 0; });
    }
}

// Little-endian two's complement of whole words, the last of them signed.
nb::object match_limbs(const RawIn& data, int64_t width_, const std::string& name, const RawIn& literal,
                       const Within& within) {
    const Op op = op_named(name);
    check_order(op);
    const size_t width = checked_value_width(width_), n = checked_items(data.size, width, "data");
    if (width % 8 != 0) fail("values of " + str(width) + " bytes are not whole words");
    if (literal.size != width) fail("the literal has " + str(literal.size) + " bytes, the values " + str(width));
    check_within(within, n);
    const size_t top = width / 8 - 1;
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(data.size);
    if (width == 16) {
        compare_pairs(data.data, n, op, literal.data, within, out.data);
        return std::move(out.object);
    }
    fill_one_by_one(n, within, out.data, [&](size_t i) {
        const uint8_t* v = data.data + i * width;
        const int64_t a = load<int64_t>(v + 8 * top), b = load<int64_t>(literal.data + 8 * top);
        int sign = a < b ? -1 : a > b ? 1
                                      : 0;
        for (size_t k = top; sign == 0 && k-- > 0;) {
            const uint64_t x = load<uint64_t>(v + 8 * k), y = load<uint64_t>(literal.data + 8 * k);
            sign = x < y ? -1 : x > y ? 1
                                      : 0;
        }
        return passes(op, sign);
    });
    return std::move(out.object);
}

template <class Get>
void test_bytes(size_t n, Op op, const RawIn& literal, const uint8_t* end, const Within& within, uint64_t* out,
                Get&& get) {
    const uint8_t* const x = literal.data;
    const size_t len = literal.size;
    if (op == Op::StartsWith || op == Op::NotStartsWith) {
        const bool wanted = op == Op::StartsWith;
        return fill_one_by_one(n, within, out, [&](size_t i) {
            const auto [p, size] = get(i);
            return (size >= len && equal_bytes(p, x, len)) == wanted;
        });
    }
    check_order(op);
    if (op == Op::Equal || op == Op::NotEqual) {
        const bool wanted = op == Op::Equal;
        if (len <= 8) {  // no branch on what the value holds
            const uint64_t mask = low_bits(8 * len), first = byteswap(order_prefix(x, len, x + len));
            return fill_one_by_one(n, within, out, [&](size_t i) {
                const auto [p, size] = get(i);
                uint64_t have = 0;
                if (end - p >= 8) have = load<uint64_t>(p);
                else if (size > 0) std::memcpy(&have, p, size < 8 ? size : 8);
                return ((size == len) & ((have & mask) == first)) == wanted;
            });
        }
        return fill_one_by_one(n, within, out, [&](size_t i) {
            const auto [p, size] = get(i);
            return (size == len && equal_bytes(p, x, len)) == wanted;
        });
    }
    const uint64_t prefix = order_prefix(x, len, x + len);
    fill_one_by_one(n, within, out, [&](size_t i) {
        const auto [p, size] = get(i);
        const uint64_t have = order_prefix(p, size, end);
        return passes(op, have != prefix ? (have < prefix ? -1 : 1) : compare_bytes(p, size, x, len));
    });
}

nb::object match_binary(const Offsets& offsets, const RawIn& data, const std::string& name, const RawIn& literal,
                        const Within& within) {
    const Op op = op_named(name);
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    const size_t n = offsets.size - 1;
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n * 8);
    offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        test_bytes(n, op, literal, data.data + data.size, within, out.data, [&](size_t i) {
            return std::pair(data.data + o[i], static_cast<size_t>(o[i + 1] - o[i]));
        });
    });
    return std::move(out.object);
}

// Values of one length, in unsigned byte order.
nb::object match_fixed(const RawIn& data, int64_t width_, const std::string& name, const RawIn& literal,
                       const Within& within) {
    const Op op = op_named(name);
    const size_t width = checked_value_width(width_), n = checked_items(data.size, width, "data");
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(data.size);
    test_bytes(n, op, literal, data.data + data.size, within, out.data,
               [&](size_t i) { return std::pair(data.data + i * width, width); });
    return std::move(out.object);
}

// ---- tables of answers ----------------------------------------------------------------------------------

#if PYPARQ_AVX2
// Of whole words of 64 codes; `in_registers`: there are at most 256 entries.
template <bool in_registers>
PYPARQ_TARGET_AVX2 void look_up_codes(const int32_t* codes, size_t words, const uint32_t* table, size_t entries,
                                      const uint64_t* within, uint64_t* out) {
    const __m256i last = _mm256_set1_epi32(static_cast<int>(entries - 1)), low = _mm256_set1_epi32(31);
    const __m256i all = in_registers ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table)) : last;
    for (size_t i = 0; i < words; ++i) {
        out[i] = 0;
        if (within != nullptr && within[i] == 0) continue;
        uint64_t word = 0;
        for (unsigned k = 0; k < 8; ++k) {
            const __m256i code = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 64 * i + 8 * k));
            const __m256i known = _mm256_cmpeq_epi32(_mm256_max_epu32(code, last), last);
            const __m256i place = _mm256_srli_epi32(_mm256_and_si256(code, known), 5);
            const __m256i found = in_registers ? _mm256_permutevar8x32_epi32(all, place)
                                               : _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), place, 4);
            const __m256i answer = _mm256_and_si256(_mm256_srlv_epi32(found, _mm256_and_si256(code, low)), known);
            const int bits = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(answer, 31)));
            word |= static_cast<uint64_t>(static_cast<uint32_t>(bits)) << 8 * k;
        }
        out[i] = within != nullptr ? word & within[i] : word;
    }
}

size_t look_up_codes(const int32_t* codes, size_t n, const In<uint64_t>& table, size_t entries, const Within& within,
                     uint64_t* out) {
    if (!have_avx2() || entries == 0 || entries > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return 0;
    const size_t words = n / 64;
    if (entries <= 256) {
        uint64_t padded[4] = {};
        for (size_t k = 0; k < table.size; ++k) padded[k] = table.data[k];
        look_up_codes<true>(codes, words, reinterpret_cast<const uint32_t*>(padded), entries, within.data, out);
    } else {
        look_up_codes<false>(codes, words, reinterpret_cast<const uint32_t*>(table.data), entries, within.data, out);
    }
    return words;
}
#endif

// For each index into a dictionary what `table` (a bitmap of `entries` bits) says of the entry; under nulls indices may
// be anything, and those beyond the table are not set.
nb::object match_codes(const AnyArray<false>& codes, const In<uint64_t>& table, int64_t entries_,
                       const Within& within) {
    const size_t n = codes.size, entries = checked_count(entries_, "entries");
    check_words(table, entries);
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n * 8 + entries);
    size_t done = 0;  // words
#if PYPARQ_AVX2
    if (codes.kind == Kind::SignedInt && codes.itemsize == 4)
        done = look_up_codes(static_cast<const int32_t*>(codes.data), n, table, entries, within, out.data);
#endif
    if (done == words_for(n)) return std::move(out.object);
    const std::unique_ptr<uint8_t[]> answers = std::make_unique_for_overwrite<uint8_t[]>(entries + 1);
    for (size_t i = 0; i < entries; ++i) answers[i] = table.data[i / 64] >> i % 64 & 1;
    answers[entries] = 0;
    visit_numbers(codes, [&](const auto* v) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(v)>>;
        if constexpr (std::is_integral_v<T>) {
            const uint64_t* const rest = within.none() ? nullptr : within.data + done;
            fill(n - 64 * done, rest, out.data + done, [&](size_t i) {
                const uint64_t code = static_cast<uint64_t>(static_cast<int64_t>(v[64 * done + i]));
                return answers[code < entries ? code : entries] != 0;
            });
        } else {
            fail("indices are integers");
        }
    });
    return std::move(out.object);
}

// ---- sets of numbers ------------------------------------------------------------------------------------

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

}  // namespace
}  // namespace pyparq

void bind_mask_match(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("match_numbers", &match_numbers, "values"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none());
    m.def("match_limbs", &match_limbs, "data"_a, "width"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none());
    m.def("match_binary", &match_binary, "offsets"_a, "data"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none());
    m.def("match_fixed", &match_fixed, "data"_a, "width"_a, "op"_a, "literal"_a, "within"_a.none() = nb::none());
    m.def("match_codes", &match_codes, "codes"_a, "table"_a, "entries"_a, "within"_a.none() = nb::none());
    nb::class_<NumberSet>(m, "NumberSet")
        .def(nb::init<const AnyArray<false>&>(), "values"_a)
        .def("test", &NumberSet::test, "values"_a, "within"_a.none() = nb::none());
}
