// Physical values of a leaf, and the encoders that page bodies are made with. Each writes to memory of the caller's, which
// has at least the room that its bound says.
#pragma once

#include "base/common.hpp"

#include <vector>

namespace pyparq {

// Values of one leaf without nulls. They were checked when this was made: offsets rise and stay within the data.
struct Values {
    const uint8_t* data = nullptr;
    size_t size = 0;  // bytes of data
    const int32_t* narrow = nullptr;
    const int64_t* wide = nullptr;
    size_t count = 0;
    size_t width = 0;  // 0: byte arrays

    bool binary() const { return width == 0; }
    // Calls f with the offsets of byte arrays.
    template <class F>
    decltype(auto) visit(F&& f) const {
        if (narrow != nullptr) return f(narrow);
        return f(wide);
    }
    size_t offset(size_t k) const { return static_cast<size_t>(narrow != nullptr ? narrow[k] : wide[k]); }
    // Bytes of byte arrays first..last.
    size_t bytes(size_t first, size_t last) const { return offset(last) - offset(first); }
    // In PLAIN; of booleans one byte each.
    size_t plain_size() const { return binary() ? bytes(0, count) + 4 * count : count * width; }
    Values slice(size_t first, size_t last) const {
        Values part = *this;
        part.count = last - first;
        if (!binary()) part.data += first * width, part.size = part.count * width;
        else if (narrow != nullptr) part.narrow += first;
        else part.wide += first;
        return part;
    }
};

// The first byte array that is not UTF-8, or -1. The offsets have been checked.
int64_t first_invalid_utf8(const Values& v);

// Checks the offsets.
Values byte_arrays(const Offsets& offsets, const RawIn& data);

// RLE / bit-packed hybrid of w bits; the values have been checked to fit.
size_t hybrid_bound(size_t n, unsigned w);
size_t hybrid_into(const uint8_t* v, size_t n, unsigned w, uint8_t* out, size_t room);
size_t hybrid_into(const int32_t* v, size_t n, unsigned w, uint8_t* out, size_t room);

size_t delta_bound(size_t n, size_t width);
size_t delta_into(const Values& v, uint8_t* out);
size_t delta_length_bound(const Values& v);
size_t delta_length_into(const Values& v, uint8_t* out);
size_t delta_byte_array_bound(const Values& v);
size_t delta_byte_array_into(const Values& v, uint8_t* out, size_t room);

// Of FLOAT and DOUBLE.
size_t alp_bound(size_t n, size_t width);
size_t alp_into(const Values& v, uint8_t* out);

void plain_binary_into(const Values& v, uint8_t* out);                         // v.plain_size() bytes
void split_into(const uint8_t* values, size_t n, size_t width, uint8_t* out);  // n * width bytes

// Which value of a dictionary each value is, and where each entry first occurs; `indices` has room for all values. Stops
// before the value that would make the PLAIN dictionary larger than `most` bytes; returns how many values it did.
size_t dictionary_of(const Values& v, size_t most, int32_t* indices, std::vector<int64_t>& first);

// Whether enough values occur more than once for a dictionary of at most `most` bytes to be smaller than the values: false
// where some thousands of them, here and there and beside each other, hardly repeat. The same values give the same answer.
bool may_repeat(const Values& v, size_t most);

}  // namespace pyparq
