// The wire of the Thrift compact protocol: numbers, headers, and stepping over what is not wanted. No meaning: that
// a struct ends within its bytes and nests no deeper than allowed is all that is known here.
#pragma once

#include "base/common.hpp"

#include <bit>
#include <vector>

namespace pyparq {

// The bytes end inside the struct: with more of them it might be fine (page headers of unknown length).
struct ThriftTruncated : KernelError {
    using KernelError::KernelError;
};

// Every file has its own copy of what follows: the compiler then knows all callers, and inlines accordingly.

enum Wire : uint8_t {
    kStop = 0,
    kTrue = 1,
    kFalse = 2,
    kByte = 3,
    kI16 = 4,
    kI32 = 5,
    kI64 = 6,
    kDouble = 7,
    kBinary = 8,
    kList = 9,
    kSet = 10,
    kMap = 11,
    kStruct = 12,
    kUuid = 13,
};

// The accelerated decoder of the thrift package stops at 64 levels; nothing in Parquet needs ten.
constexpr int kMaxDepth = 48;

struct Cursor {
    const uint8_t* begin;
    const uint8_t* p;
    const uint8_t* end;

    int64_t at() const { return p - begin; }
    size_t left() const { return static_cast<size_t>(end - p); }

    [[noreturn, gnu::cold, gnu::noinline]] void fail(const std::string& what) const {
        throw KernelError("Thrift: " + what + " at byte " + std::to_string(at()));
    }
    [[noreturn, gnu::cold, gnu::noinline]] void truncated() const {
        throw ThriftTruncated("Thrift: the bytes end inside a struct, at byte " + std::to_string(at()));
    }
    void advance(size_t n) {
        if (n > left()) truncated();
        p += n;
    }
    uint8_t byte() {
        if (p == end) truncated();
        return *p++;
    }

    // Value of a varint that must fit `bits` bits.
    uint64_t varint(int bits) {
        uint64_t value = 0;
        for (int shift = 0;; shift += 7) {
            if (shift >= bits) fail("integer longer than its type");
            const uint8_t b = byte();
            const uint64_t part = b & 0x7f;
            if (shift + 7 > bits && (part >> (bits - shift)) != 0) fail("integer larger than its type");
            value |= part << shift;
            if (b < 0x80) return value;
        }
    }
    // A zigzag number of at most `bits` bits.
    int64_t number(int bits) {
        const uint64_t z = varint(bits);
        return static_cast<int64_t>(z >> 1) ^ -static_cast<int64_t>(z & 1);
    }
    // Steps over a varint of at most `max_bytes`.
    void skip_varint(size_t max_bytes) {
        if constexpr (std::endian::native == std::endian::little) {
            if (left() >= 8) {
                uint64_t word;
                std::memcpy(&word, p, 8);
                const uint64_t stops = ~word & 0x8080808080808080ull;
                if (stops != 0) {
                    const size_t n = static_cast<size_t>(std::countr_zero(stops)) / 8 + 1;
                    if (n > max_bytes) fail("integer longer than its type");
                    p += n;
                    return;
                }
            }
        }
        for (size_t n = 0; n < max_bytes; ++n) {
            if (byte() < 0x80) return;
        }
        fail("integer longer than its type");
    }
    void skip_binary() { advance(varint(32)); }

    // A field header: false at the end of the struct. `id` is the last id and becomes this one. An id may be any 16-bit
    // number: the format's own extension field has -16384.
    bool field(uint8_t& type, int32_t& id) {
        const uint8_t head = byte();
        if (head == 0) return false;
        type = head & 0x0f;
        if (type == kStop || type > kUuid) fail("unknown field type " + std::to_string(type));
        if (head >> 4) {
            id += head >> 4;
        } else {
            const auto z = static_cast<uint32_t>(varint(16));
            id = static_cast<int32_t>(z >> 1) ^ -static_cast<int32_t>(z & 1);
        }
        if (id > 32767) fail("field id out of range");
        return true;
    }
    // A list or set header. Every element takes at least a byte, so a count beyond the bytes left is a lie.
    size_t list(uint8_t& element) {
        const uint8_t head = byte();
        element = head & 0x0f;
        size_t count = head >> 4;
        if (count == 15) count = varint(32);
        if (element > kUuid || (element == kStop && count > 0)) {
            fail("unknown element type " + std::to_string(element));
        }
        if (count > left()) truncated();
        return count;
    }
};

inline void skip_struct(Cursor& c, int depth);

// One value outside a field header, where a bool takes a byte.
inline void skip_value(Cursor& c, uint8_t type, int depth) {
    switch (type) {
        case kTrue:
        case kFalse:
        case kByte: c.advance(1); return;
        case kI16: c.skip_varint(3); return;
        case kI32: c.skip_varint(5); return;
        case kI64: c.skip_varint(10); return;
        case kDouble: c.advance(8); return;
        case kBinary: c.skip_binary(); return;
        case kStruct: skip_struct(c, depth + 1); return;
        case kUuid: c.advance(16); return;
        case kList:
        case kSet: {
            if (depth >= kMaxDepth) c.fail("nested too deeply");
            uint8_t element;
            for (size_t n = c.list(element); n > 0; --n) skip_value(c, element, depth + 1);
            return;
        }
        case kMap: {
            if (depth >= kMaxDepth) c.fail("nested too deeply");
            const size_t count = c.varint(32);
            if (count == 0) return;
            const uint8_t types = c.byte();
            if (count > c.left() / 2) c.truncated();
            for (size_t n = count; n > 0; --n) {
                skip_value(c, types >> 4, depth + 1);
                skip_value(c, types & 0x0f, depth + 1);
            }
            return;
        }
        default: c.fail("unknown type " + std::to_string(type));
    }
}

inline void skip_field(Cursor& c, uint8_t type, int depth) {
    if (type != kTrue && type != kFalse) skip_value(c, type, depth);  // a bool is its own header
}

inline void skip_struct(Cursor& c, int depth) {
    if (depth > kMaxDepth) c.fail("nested too deeply");
    while (true) {
        const uint8_t head = c.byte();
        if (head == 0) return;
        if ((head & 0xf0) == 0) c.skip_varint(3);
        switch (head & 0x0f) {
            case kTrue:
            case kFalse: break;
            case kI32: c.skip_varint(5); break;
            case kI64: c.skip_varint(10); break;
            case kBinary: c.skip_binary(); break;
            case kStruct: skip_struct(c, depth + 1); break;
            case kStop: c.fail("unknown field type 0");
            default: skip_value(c, head & 0x0f, depth);
        }
    }
}

// ---- between Python and a cursor ---------------------------------------------------------------------

inline Cursor cursor(const RawIn& bytes, int64_t offset) {
    if (offset < 0 || static_cast<uint64_t>(offset) > bytes.size) fail("Thrift: offset outside the bytes");
    return {bytes.data, bytes.data + offset, bytes.data + bytes.size};
}

inline nb::object int64_array(const std::vector<int64_t>& values) {
    Fresh<int64_t> out(values.size());
    if (!values.empty()) std::memcpy(out.data, values.data(), values.size() * sizeof(int64_t));
    return std::move(out.object);
}

}  // namespace pyparq
