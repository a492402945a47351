// Arrow's string views: 16 bytes for each value, its length and the bytes themselves up to twelve, otherwise the first
// four, the number of a buffer and an offset in it.
#include "values.hpp"

#include <vector>

namespace pyparq {
namespace {

constexpr uint64_t INLINE = 12;

constexpr size_t READ = 16;  // bytes read for each value

// What stays of the first bytes of a value, by its length; of one that is not inline, behind the last length, the prefix.
struct Masks {
    alignas(16) uint8_t bytes[INLINE + 2][READ] = {};
    constexpr Masks() {
        for (size_t length = 0; length <= INLINE; ++length)
            for (size_t k = 0; k < length; ++k) bytes[length][k] = 0xff;
        for (size_t k = 0; k < 4; ++k) bytes[INLINE + 1][k] = 0xff;
    }
};
constexpr Masks MASKS;

struct Views {
    const uint8_t* bits;  // validity, or nullptr
    size_t first_bit;
    uint64_t most;  // bytes of a buffer
    uint8_t* out;
    std::vector<uint64_t> starts{0};  // of the buffers, in the data
    bool any_long = false;
};

// Begins the next buffer at a value that the last one has no room for.
void next_buffer(Views& views, uint64_t start, uint64_t length) {
    if (length > views.most) fail("a value of " + str(length) + " bytes in a column of views");
    views.starts.push_back(start);
}

// One view of a value whose bytes (or all of them, and anything) lie at p. No branch on the length: short and long values
// follow each other in no order.
inline void put(uint8_t* w, const uint8_t* p, uint64_t length, uint64_t buffer, uint64_t offset) {
    const uint64_t outside = length > INLINE ? ~uint64_t{0} : 0;
    const uint8_t* const mask = MASKS.bytes[length > INLINE ? INLINE + 1 : length];
    const uint64_t place = (buffer | offset << 32) & outside;
#ifdef PYPARQ_SSE2
    const __m128i kept = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)),
                                       _mm_load_si128(reinterpret_cast<const __m128i*>(mask)));
    const __m128i numbers = _mm_unpacklo_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(length)),
                                               _mm_cvtsi64_si128(static_cast<int64_t>(place)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(w), _mm_or_si128(_mm_slli_si128(kept, 4), numbers));
#else
    const uint64_t low = load<uint64_t>(p) & load<uint64_t>(mask), high = load<uint64_t>(p + 8) & load<uint64_t>(mask + 8);
    store<uint64_t>(w, length | low << 32);
    store<uint64_t>(w + 8, (low >> 32 | high << 32) | place);
#endif
}

template <bool Nullable, class O>
void fill(const O* offsets, size_t n, const RawIn& data, Views& views) {
    // Values with enough data from their start on are read where they lie, the last few from a copy.
    const uint64_t safe = data.size < READ ? 0 : data.size - READ + 1;
    size_t readable = n;
    while (readable > 0 && static_cast<uint64_t>(offsets[readable - 1]) >= safe) --readable;
    uint64_t base = 0, buffer = 0, any_long = 0;
    const auto add = [&](size_t i, auto bytes_at) {
        const uint64_t start = static_cast<uint64_t>(offsets[i]), end = static_cast<uint64_t>(offsets[i + 1]);
        uint64_t length = end - start;
        if constexpr (Nullable) {
            const size_t bit = views.first_bit + i;
            length = views.bits[bit >> 3] >> (bit & 7) & 1 ? length : 0;
        }
        any_long |= static_cast<uint64_t>(length > INLINE);
        if (end - base > views.most && length > INLINE) {
            next_buffer(views, start, length);
            base = start;
            ++buffer;
        }
        put(views.out + 16 * i, bytes_at(data.data + start, length), length, buffer, start - base);
    };
    for (size_t i = 0; i < readable; ++i) add(i, [](const uint8_t* p, uint64_t) { return p; });
    uint8_t copy[READ] = {};
    for (size_t i = readable; i < n; ++i)
        add(i, [&](const uint8_t* p, uint64_t length) {
            if (length != 0) std::memcpy(copy, p, length < INLINE ? length : INLINE);
            return static_cast<const uint8_t*>(copy);
        });
    views.any_long = any_long != 0;
}

nb::object string_views(const Offsets& offsets, const RawIn& data, const Valid& validity, int64_t first_bit,
                        int64_t most, const RawOut& out) {
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    const size_t n = offsets.size - 1, first = checked_count(first_bit, "first_bit");
    if (out.size != checked_mul(n, 16)) fail("out has " + str(out.size) + " bytes for " + str(n) + " views");
    if (most < 1 || most > std::numeric_limits<int32_t>::max()) fail("buffers of " + str(most) + " bytes");
    if (!validity.none() && (first > validity.size * 8 || validity.size * 8 - first < n))
        fail(str(n) + " values from bit " + str(first_bit) + " on, but " + str(validity.size) + " bytes of validity");
    Views views{validity.none() ? nullptr : validity.data, first, static_cast<uint64_t>(most), out.data};
    {
        NoGil nogil(out.size);
        offsets.visit([&](const auto* o) {
            check_offsets(o, offsets.size, data.size);
            views.bits == nullptr ? fill<false>(o, n, data, views) : fill<true>(o, n, data, views);
        });
    }
    nb::list starts;
    if (views.any_long)
        for (const uint64_t start : views.starts) starts.append(start);
    return starts;
}

}  // namespace

// The view of one value that lies at `offset` of a buffer.
void put_view(uint8_t* out, const uint8_t* bytes, size_t length, uint32_t buffer, uint32_t offset) {
    uint8_t first[READ] = {};
    if (length > 0) std::memcpy(first, bytes, std::min(length, READ));
    put(out, first, length, buffer, offset);
}

}  // namespace pyparq

void bind_views(nb::module_& m) {
    using namespace nb::literals;
    m.def("string_views", &pyparq::string_views, "offsets"_a, "data"_a, "validity"_a.none(), "first_bit"_a, "most"_a,
          "out"_a);
}
