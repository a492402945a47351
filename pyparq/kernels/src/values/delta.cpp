// DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, both ways (Encodings.md).
#include "values/calls.hpp"
#include "decode/delta_binary_packed.hpp"
#include "encode/encoders.hpp"
#include "values/checks.hpp"

#include <vector>

namespace pyparq {
namespace {

using namespace delta;

template <class T>
size_t delta_decode(const RawIn& data, const Out<T>& out, int64_t count_) {
    const size_t count = checked_count(count_, "count");
    if (count > out.size) fail("out has " + str(out.size) + " items, " + str(count) + " are needed");
    NoGil nogil(count * sizeof(T));
    Reader in{data.data, data.data + data.size};
    decode(in, reinterpret_cast<std::make_unsigned_t<T>*>(out.data), count);
    return static_cast<size_t>(in.p - data.data);
}

// Before anything is allocated for `count` values: do the data claim as many?
void check_header(const RawIn& data, size_t count) {
    if (count == 0 && data.size == 0) return;
    Reader in{data.data, data.data + data.size};
    read_header(in, count);
}

// ---- writing --------------------------------------------------------------------------------------------

constexpr size_t kBlock = 128, kMinis = 4, kMini = kBlock / kMinis;

uint8_t* put_varint(uint8_t* p, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *p++ = static_cast<uint8_t>(v | 0x80);
    *p++ = static_cast<uint8_t>(v);
    return p;
}

template <class U>
uint8_t* put_zigzag(uint8_t* p, U v) {
    using S = std::make_signed_t<U>;
    return put_varint(p, static_cast<U>(v << 1) ^ static_cast<U>(static_cast<S>(v) >> (8 * sizeof(U) - 1)));
}

// 32 values of w bits to 4 * w bytes. Writes up to 8 bytes more.
template <class U>
void pack_mini(const U* v, unsigned w, uint8_t* out) {
    uint64_t acc = 0;
    unsigned have = 0;
    for (size_t i = 0; i < kMini; ++i) {
        const uint64_t x = v[i];
        acc |= x << have;
        if (have + w >= 64) {
            store(out, acc);
            out += 8;
            acc = have == 0 ? 0 : x >> (64 - have);
            have = have + w - 64;
        } else {
            have += w;
        }
    }
    store(out, acc);
}

// Room for `n` values: every block's minimum, widths and full-width miniblocks, and slack for pack_mini.
template <class U>
size_t encode_bound(size_t n) {
    return 64 + checked_mul(n / kBlock + 1, 10 + kMinis + kBlock * sizeof(U));
}

// Value i is get(i), read once and in order.
template <class U, class Get>
uint8_t* encode(size_t n, Get&& get, uint8_t* p) {
    using S = std::make_signed_t<U>;
    p = put_varint(put_varint(put_varint(p, kBlock), kMinis), n);
    U last = n > 0 ? static_cast<U>(get(0)) : U{0};
    p = put_zigzag(p, last);
    for (size_t done = 1; done < n;) {
        const size_t m = std::min(kBlock, n - done);
        std::array<U, kBlock> delta{};
        S least = std::numeric_limits<S>::max();
        for (size_t i = 0; i < m; ++i) {
            const U v = static_cast<U>(get(done + i));
            delta[i] = v - last;
            last = v;
            least = std::min(least, static_cast<S>(delta[i]));
        }
        for (size_t i = 0; i < m; ++i) delta[i] -= static_cast<U>(least);
        p = put_zigzag(p, static_cast<U>(least));
        uint8_t* widths = p;
        p += kMinis;
        for (size_t k = 0; k < kMinis; ++k) {
            widths[k] = 0;
            if (k * kMini >= m) continue;
            U any = 0;
            for (size_t i = 0; i < kMini; ++i) any |= delta[k * kMini + i];
            widths[k] = static_cast<uint8_t>(std::bit_width(any));
            pack_mini(delta.data() + k * kMini, widths[k], p);
            p += 4 * widths[k];
        }
        done += m;
    }
    return p;
}

template <class T>
nb::object delta_encode(const In<T>& values) {
    Values v;
    v.data = reinterpret_cast<const uint8_t*>(values.data), v.count = values.size, v.width = sizeof(T);
    Scratch out(delta_bound(v.count, v.width));
    size_t used;
    {
        NoGil nogil(values.size * sizeof(T));
        used = delta_into(v, out.data);
    }
    return out.finish(used);
}

template <class O>
uint32_t checked_length(const O* o, size_t i) {
    const auto len = static_cast<uint64_t>(o[i + 1] - o[i]);
    if (len >> 31) fail("value " + str(i) + " has " + str(len) + " bytes; the format allows 2^31 - 1");
    return static_cast<uint32_t>(len);
}

uint32_t common_prefix(const uint8_t* a, const uint8_t* b, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t differ = load<uint64_t>(a + i) ^ load<uint64_t>(b + i);
        if (differ != 0) return static_cast<uint32_t>(i + static_cast<size_t>(std::countr_zero(differ)) / 8);
    }
    while (i < n && a[i] == b[i]) ++i;
    return static_cast<uint32_t>(i);
}

}  // namespace

size_t delta_decode_i32(const RawIn& data, const Out<int32_t>& out, int64_t count) { return delta_decode(data, out, count); }
size_t delta_decode_i64(const RawIn& data, const Out<int64_t>& out, int64_t count) { return delta_decode(data, out, count); }
nb::object delta_encode_i32(const In<int32_t>& values) { return delta_encode(values); }
nb::object delta_encode_i64(const In<int64_t>& values) { return delta_encode(values); }

size_t delta_length_decode(const RawIn& data, int64_t count_, const OffsetsOut& out_offsets, const RawOut& out_data,
                           int64_t base) {
    const size_t count = checked_count(count_, "count");
    if (out_offsets.size == 0 || out_offsets.size - 1 != count) fail("out_offsets needs one item more than values");
    if (base < 0 || base > std::numeric_limits<int64_t>::max() / 4) fail("base is out of range: " + str(base));
    check_header(data, count);
    NoGil nogil(data.size);
    Reader in{data.data, data.data + data.size};
    const auto lengths = decode_lengths(in, count, "byte array");
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) total += lengths[i];
    if (total > in.left()) fail("byte arrays declare " + str(total) + " bytes, " + str(in.left()) + " are left");
    if (total > out_data.size) fail("out_data is too small: " + str(total) + " bytes are needed");
    out_offsets.visit([&](auto* o) {
        using O = std::remove_pointer_t<decltype(o)>;
        if (static_cast<uint64_t>(base) + total > static_cast<uint64_t>(std::numeric_limits<O>::max()))
            fail("offsets do not fit in " + str(uint64_t{8 * sizeof(O)}) + " bits");
        O at = static_cast<O>(base);
        o[0] = at;
        for (size_t i = 0; i < count; ++i) o[i + 1] = at = static_cast<O>(at + static_cast<O>(lengths[i]));
    });
    if (total > 0) std::memcpy(out_data.data, in.p, total);
    return static_cast<size_t>(in.p - data.data) + total;
}

nb::object delta_length_encode(const Offsets& offsets, const RawIn& data) {
    const Values v = byte_arrays(offsets, data);
    Scratch out(delta_length_bound(v));
    size_t used;
    {
        NoGil nogil(out.size);
        used = delta_length_into(v, out.data);
    }
    return out.finish(used);
}

nb::object delta_byte_array_decode(const RawIn& data, int64_t count_, int64_t max_bytes) {
    const size_t count = checked_count(count_, "count"), most = checked_count(max_bytes, "max_bytes");
    check_header(data, count);
    Fresh<int64_t> offsets(count + 1);
    Prefixed found;
    {
        NoGil nogil(data.size);
        found = read_prefixed({data.data, data.data + data.size}, count, most);
        int64_t at = offsets.data[0] = 0;
        for (size_t i = 0; i < count; ++i) offsets.data[i + 1] = at += found.length(i);
    }
    Fresh<uint8_t> out(found.total);
    const uint8_t* end;
    {
        NoGil nogil(found.total);
        end = spell_prefixed(found, count, out.data);
    }
    return nb::make_tuple(offsets.object, out.object, static_cast<size_t>(end - data.data));
}

nb::object delta_byte_array_encode(const Offsets& offsets, const RawIn& data) {
    const Values v = byte_arrays(offsets, data);
    Scratch out(delta_byte_array_bound(v));
    size_t used;
    {
        NoGil nogil(out.size);
        used = delta_byte_array_into(v, out.data, out.size);
    }
    return out.finish(used);
}

size_t delta_bound(size_t n, size_t width) { return width == 4 ? encode_bound<uint32_t>(n) : encode_bound<uint64_t>(n); }

size_t delta_into(const Values& v, uint8_t* out) {
    uint8_t* end = nullptr;
    if (v.width == 4) end = encode<uint32_t>(v.count, [&](size_t i) { return load<uint32_t>(v.data + 4 * i); }, out);
    else end = encode<uint64_t>(v.count, [&](size_t i) { return load<uint64_t>(v.data + 8 * i); }, out);
    return static_cast<size_t>(end - out);
}

size_t delta_length_bound(const Values& v) { return encode_bound<uint32_t>(v.count) + v.bytes(0, v.count); }

size_t delta_length_into(const Values& v, uint8_t* out) {
    uint8_t* p = v.visit([&](const auto* o) {
        return encode<uint32_t>(v.count, [&](size_t i) { return checked_length(o, i); }, out);
    });
    const size_t total = v.bytes(0, v.count);
    if (total > 0) std::memcpy(p, v.data + v.offset(0), total);
    return static_cast<size_t>(p - out) + total;
}

size_t delta_byte_array_bound(const Values& v) {
    return 2 * encode_bound<uint32_t>(v.count) + (v.binary() ? v.bytes(0, v.count) : v.count * v.width);
}

size_t delta_byte_array_into(const Values& v, uint8_t* out, size_t room) {
    if (!v.binary()) {
        std::vector<int64_t> offsets(v.count + 1);
        for (size_t i = 0; i <= v.count; ++i) offsets[i] = static_cast<int64_t>(i * v.width);
        Values rows = v;
        rows.width = 0, rows.wide = offsets.data();
        return delta_byte_array_into(rows, out, room);
    }
    uint8_t* p = out;
    v.visit([&](const auto* o) {
        std::vector<uint32_t> prefix(v.count), suffix(v.count);
        for (size_t i = 0; i < v.count; ++i) {
            const uint32_t len = checked_length(o, i);
            prefix[i] = i == 0 ? 0 : common_prefix(v.data + o[i - 1], v.data + o[i], std::min(len, checked_length(o, i - 1)));
            suffix[i] = len - prefix[i];
        }
        p = encode<uint32_t>(v.count, [&](size_t i) { return prefix[i]; }, p);
        p = encode<uint32_t>(v.count, [&](size_t i) { return suffix[i]; }, p);
        for (size_t i = 0; i < v.count; ++i) {
            copy_short(p, out + room, v.data + o[i] + prefix[i], v.data + v.size, suffix[i]);
            p += suffix[i];
        }
    });
    return static_cast<size_t>(p - out);
}

}  // namespace pyparq
