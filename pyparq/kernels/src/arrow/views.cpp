// Columns of strings as views of their bytes.
#include "arrow/calls.hpp"
#include "arrow/views.hpp"

#include <vector>

namespace pyparq {
namespace {

using view::kInline, view::kRead;

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

template <bool Nullable, class O>
void fill(const O* offsets, size_t n, const RawIn& data, Views& views) {
    // Values with enough data from their start on are read where they lie, the last few from a copy.
    const uint64_t safe = data.size < kRead ? 0 : data.size - kRead + 1;
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
        any_long |= static_cast<uint64_t>(length > kInline);
        if (end - base > views.most && length > kInline) {
            next_buffer(views, start, length);
            base = start;
            ++buffer;
        }
        view::put(views.out + 16 * i, bytes_at(data.data + start, length), length, buffer, start - base);
    };
    for (size_t i = 0; i < readable; ++i) add(i, [](const uint8_t* p, uint64_t) { return p; });
    uint8_t copy[kRead] = {};
    for (size_t i = readable; i < n; ++i)
        add(i, [&](const uint8_t* p, uint64_t length) {
            if (length != 0) std::memcpy(copy, p, length < kInline ? length : kInline);
            return static_cast<const uint8_t*>(copy);
        });
    views.any_long = any_long != 0;
}

}  // namespace

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

}  // namespace pyparq
