// Byte arrays: PLAIN both ways, offsets over nulls, gathers and row selection, UTF-8.
#include "values/calls.hpp"
#include "base/utf8.hpp"
#include "encode/encoders.hpp"
#include "values/checks.hpp"

#include <vector>

namespace pyparq {
namespace {

void check_room(const OffsetsOut& out, size_t values) {
    if (out.size != values + 1)
        fail("out_offsets has " + str(out.size) + " items, " + str(values) + " values need one more than that");
}

template <class O>
void check_fits(uint64_t last) {
    if (last > static_cast<uint64_t>(std::numeric_limits<O>::max()))
        fail("offset " + str(last) + " does not fit in " + str(uint64_t{8 * sizeof(O)}) + " bits");
}

uint64_t checked_base(int64_t base) {
    if (base < 0 || base > std::numeric_limits<int64_t>::max() / 4) fail("base is out of range: " + str(base));
    return static_cast<uint64_t>(base);
}

// ---- PLAIN: a 4-byte little-endian length, then the bytes ------------------------------------------------

template <class O>
size_t plain_decode(const RawIn& data, size_t n, O* offsets, const RawOut& out, uint64_t base) {
    const uint8_t *p = data.data, *end = data.data + data.size;
    uint8_t *w = out.data, *w_end = out.data + out.size;
    offsets[0] = static_cast<O>(base);
    for (size_t i = 0; i < n; ++i) {
        if (end - p < 4) fail("PLAIN byte arrays end inside the length of value " + str(i));
        const size_t len = load<uint32_t>(p);
        p += 4;
        if (len > static_cast<size_t>(end - p))
            fail("PLAIN byte array " + str(i) + " declares " + str(len) + " bytes, " +
                 str(static_cast<size_t>(end - p)) + " are left");
        if (len > static_cast<size_t>(w_end - w)) fail("out_data is too small at value " + str(i));
        copy_short(w, w_end, p, end, len);
        p += len;
        w += len;
        offsets[i + 1] = static_cast<O>(base + static_cast<uint64_t>(w - out.data));
    }
    check_fits<O>(base + static_cast<uint64_t>(w - out.data));
    return static_cast<size_t>(p - data.data);
}

// ---- offsets ------------------------------------------------------------------------------------------

// ---- gathers --------------------------------------------------------------------------------------------

// ---- UTF-8 ----------------------------------------------------------------------------------------------

bool all_ascii(const uint8_t* p, size_t n) {
    for (size_t from = 0; from < n; from += 65536) {
        const size_t to = std::min(n, from + 65536);
        uint8_t any = 0;
        for (size_t i = from; i < to; ++i) any |= p[i];
        if (any & 0x80) return false;
    }
    return true;
}

}  // namespace

size_t plain_binary_decode(const RawIn& data, int64_t count, const OffsetsOut& out_offsets, const RawOut& out_data,
                           int64_t base) {
    const size_t n = checked_count(count, "count");
    if (n > data.size / 4) fail(str(n) + " PLAIN byte arrays cannot fit in " + str(data.size) + " bytes");
    check_room(out_offsets, n);
    const uint64_t b = checked_base(base);
    NoGil nogil(data.size);
    return out_offsets.visit([&](auto* o) { return plain_decode(data, n, o, out_data, b); });
}

nb::object plain_binary_encode(const Offsets& offsets, const RawIn& data) {
    const Values v = byte_arrays(offsets, data);
    Fresh<uint8_t> out(v.plain_size());
    NoGil nogil(out.size);
    plain_binary_into(v, out.data);
    return std::move(out.object);
}

nb::object narrow_offsets(const In<int64_t>& offsets) {
    check_offsets(offsets.data, offsets.size, std::numeric_limits<int32_t>::max());
    Fresh<int32_t> out(offsets.size);
    NoGil nogil(offsets.size * 8);
    for (size_t i = 0; i < offsets.size; ++i) out.data[i] = static_cast<int32_t>(offsets.data[i]);
    return std::move(out.object);
}

int64_t gather_binary_offsets(const Offsets& dict_offsets, const In<int32_t>& indices, const OffsetsOut& out_offsets,
                              int64_t base) {
    const size_t n = indices.size;
    check_room(out_offsets, n);
    const uint64_t b = checked_base(base);
    NoGil nogil(n * 8);
    return dict_offsets.visit([&](const auto* dict) {
        check_offsets(dict, dict_offsets.size, static_cast<size_t>(std::numeric_limits<int64_t>::max() / 4));
        // n indices of one long entry must not overflow the sum.
        const uint64_t longest = static_cast<uint64_t>(dict[dict_offsets.size - 1]) + 1;
        if (n > (uint64_t{1} << 62) / longest) fail("gathered bytes overflow");
        return out_offsets.visit([&](auto* out) {
            using O = std::remove_pointer_t<decltype(out)>;
            uint64_t at = b;
            out[0] = static_cast<O>(at);
            for (size_t from = 0; from < n; from += 4096) {
                const size_t to = std::min(n, from + 4096);
                check_indices(indices.data + from, to - from, dict_offsets.size - 1);
                for (size_t i = from; i < to; ++i) {
                    const auto* d = dict + indices.data[i];
                    at += static_cast<uint64_t>(d[1] - d[0]);
                    out[i + 1] = static_cast<O>(at);
                }
            }
            check_fits<O>(at);
            return static_cast<int64_t>(at - b);
        });
    });
}

size_t gather_binary_bytes(const Offsets& dict_offsets, const RawIn& dict_data, const In<int32_t>& indices,
                           const RawOut& out_data) {
    const size_t n = indices.size;
    NoGil nogil(n * 8);
    return dict_offsets.visit([&](const auto* dict) {
        check_offsets(dict, dict_offsets.size, dict_data.size, "dictionary offsets");
        const uint8_t *end = dict_data.data + dict_data.size, *w_end = out_data.data + out_data.size;
        uint8_t* w = out_data.data;
        for (size_t from = 0; from < n; from += 4096) {
            const size_t to = std::min(n, from + 4096);
            check_indices(indices.data + from, to - from, dict_offsets.size - 1);
            for (size_t i = from; i < to; ++i) {
                const auto* d = dict + indices.data[i];
                const size_t len = static_cast<size_t>(d[1] - d[0]);
                if (len > static_cast<size_t>(w_end - w)) fail("out_data is too small at value " + str(i));
                copy_short(w, w_end, dict_data.data + d[0], end, len);
                w += len;
            }
        }
        return static_cast<size_t>(w - out_data.data);
    });
}

nb::object take_binary(const Offsets& offsets, const RawIn& data, const In<int64_t>& rows) {
    const size_t m = rows.size;
    Fresh<int64_t> out_offsets(m + 1);
    return offsets.visit([&](const auto* o) -> nb::object {
        check_offsets(o, offsets.size, data.size);
        const uint64_t n = offsets.size - 1;
        int64_t at = 0;
        out_offsets.data[0] = 0;
        for (size_t i = 0; i < m; ++i) {
            const uint64_t r = static_cast<uint64_t>(rows.data[i]);
            if (r >= n) fail("row " + str(rows.data[i]) + " is not in 0.." + str(n));
            at += static_cast<int64_t>(o[r + 1] - o[r]);
            if (at > std::numeric_limits<int64_t>::max() / 4) fail("taken bytes overflow");
            out_offsets.data[i + 1] = at;
        }
        Fresh<uint8_t> out(static_cast<size_t>(at));
        {
            NoGil nogil(m * 8 + out.size);
            const uint8_t *end = data.data + data.size, *w_end = out.data + out.size;
            uint8_t* w = out.data;
            for (size_t i = 0; i < m; ++i) {
                const auto* d = o + rows.data[i];
                const size_t len = static_cast<size_t>(d[1] - d[0]);
                copy_short(w, w_end, data.data + d[0], end, len);
                w += len;
            }
        }
        return nb::make_tuple(out_offsets.object, out.object);
    });
}

nb::object compact_binary(const Offsets& offsets, const RawIn& data, const Valid& valid) {
    return offsets.visit([&](const auto* o) -> nb::object {
        check_offsets(o, offsets.size, data.size);
        const size_t n = offsets.size - 1;
        if (!valid.none() && valid.size != n) fail(str(n) + " values but " + str(valid.size) + " validity bytes");
        size_t set = 0, bytes = 0;
        for (size_t i = 0; i < n; ++i) {
            const bool present = valid.none() || valid.data[i] != 0;
            set += present;
            bytes += present ? static_cast<size_t>(o[i + 1] - o[i]) : 0;
        }
        Fresh<int64_t> out_offsets(set + 1);
        Fresh<uint8_t> out(bytes);
        {
            NoGil nogil(n * 8 + bytes);
            const uint8_t *end = data.data + data.size, *w_end = out.data + bytes;
            uint8_t* w = out.data;
            size_t k = 0;
            out_offsets.data[0] = 0;
            const size_t last = valid.none() ? n : end_of_set(valid.data, n);
            for (size_t i = 0; i < last; ++i) {  // no branch on validity: k < set up to the last present slot
                const bool present = valid.none() || valid.data[i] != 0;
                const size_t len = present ? static_cast<size_t>(o[i + 1] - o[i]) : 0;
                copy_short(w, w_end, data.data + o[i], end, len);
                w += len;
                out_offsets.data[k + 1] = static_cast<int64_t>(w - out.data);
                k += present;
            }
        }
        return nb::make_tuple(out_offsets.object, out.object);
    });
}

int64_t utf8_validate(const Offsets& offsets, const RawIn& data) {
    NoGil nogil(data.size + offsets.size);
    return first_invalid_utf8(byte_arrays(offsets, data));
}

int64_t first_invalid_utf8(const Values& v) {
    return v.visit([&](const auto* o) -> int64_t {
        const size_t n = v.count, total = v.bytes(0, n);
        if (total == 0 || all_ascii(v.data + o[0], total)) return -1;
        // Valid as one stream, and no value starts inside a character: then each value is valid on its own.
        if (utf8_valid(v.data + o[0], total)) {
            bool split = false;
            for (size_t i = 0; i < n; ++i) split |= o[i] < o[n] && (v.data[o[i]] & 0xc0) == 0x80;
            if (!split) return -1;
        }
        for (size_t i = 0; i < n; ++i)
            if (!utf8_valid(v.data + o[i], static_cast<size_t>(o[i + 1] - o[i]))) return static_cast<int64_t>(i);
        return -1;
    });
}

Values byte_arrays(const Offsets& offsets, const RawIn& data) {
    Values v;
    offsets.visit([&](const auto* o) { check_offsets(o, offsets.size, data.size); });
    v.data = data.data, v.size = data.size, v.count = offsets.size - 1;
    if (offsets.itemsize == 4) v.narrow = static_cast<const int32_t*>(offsets.data);
    else v.wide = static_cast<const int64_t*>(offsets.data);
    return v;
}

void plain_binary_into(const Values& v, uint8_t* out) {
    const uint8_t *end = v.data + v.size, *w_end = out + v.plain_size();
    v.visit([&](const auto* o) {
        for (size_t i = 0; i < v.count; ++i) {
            const size_t len = static_cast<size_t>(o[i + 1] - o[i]);
            if (len > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
                fail("value " + str(i) + " has " + str(len) + " bytes; the format allows 2^31 - 1");
            store(out, static_cast<uint32_t>(len));
            copy_short(out + 4, w_end, v.data + o[i], end, len);
            out += 4 + len;
        }
    });
}

}  // namespace pyparq
