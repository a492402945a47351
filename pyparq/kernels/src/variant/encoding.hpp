// The binary encoding of Variants (VariantEncoding.md): metadata, the size of a value, objects and arrays.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/common.hpp"

namespace pyparq::variant {

using Bytes = std::vector<uint8_t>;

enum Primitive : uint8_t {
    kNull = 0,
    kTrue = 1,
    kFalse = 2,
    kInt8 = 3,
    kInt16 = 4,
    kInt32 = 5,
    kInt64 = 6,
    kDouble = 7,
    kDecimal4 = 8,
    kDecimal8 = 9,
    kDecimal16 = 10,
    kDate = 11,
    kTimestamp = 12,
    kTimestampNtz = 13,
    kFloat = 14,
    kBinary = 15,
    kString = 16,
    kTime = 17,
    kTimestampNanos = 18,
    kTimestampNtzNanos = 19,
    kUuid = 20,
};

constexpr uint8_t kObject = 2, kArray = 3;      // basic types, in the two lowest bits of the first byte
constexpr size_t kShortString = 64;             // strings below this many bytes have their length in the first byte
constexpr size_t kMostBytes = size_t{1} << 31;  // of one value: more would not fit the offsets of Arrow

struct Span {
    const uint8_t* data = nullptr;
    size_t size = 0;
};

// Bytes of the number `value`: 1 to 4.
inline size_t width_of(size_t value) { return value < (1u << 8) ? 1 : value < (1u << 16) ? 2
                                                                  : value < (1u << 24)   ? 3
                                                                                         : 4; }

inline uint32_t read_number(const uint8_t* at, size_t width) {
    uint32_t value = 0;
    for (size_t k = 0; k < width; ++k) value |= static_cast<uint32_t>(at[k]) << (8 * k);
    return value;
}

inline void write_number(Bytes& out, size_t value, size_t width) {
    for (size_t k = 0; k < width; ++k) out.push_back(static_cast<uint8_t>(value >> (8 * k)));
}

inline void append(Bytes& out, const void* data, size_t size) {
    const auto* const from = static_cast<const uint8_t*>(data);
    out.insert(out.end(), from, from + size);
}

// The names of fields. Rows that follow one another mostly share them, so they are parsed once.
class Metadata {
  public:
    // Throws KernelError for bytes that are no metadata.
    void parse(Span bytes);
    uint32_t id_of(std::string_view name) const;
    std::string_view name_of(uint32_t id) const;

  private:
    std::vector<uint8_t> bytes_;
    std::vector<std::string_view> names_;
    std::unordered_map<std::string_view, uint32_t> ids_;
    bool parsed_ = false;
};

// Where the fields of an object, or the elements of an array, are.
struct Container {
    size_t count = 0, id_width = 0, offset_width = 0;
    const uint8_t *ids = nullptr, *offsets = nullptr, *values = nullptr;
    size_t size = 0;  // of all values

    uint32_t id(size_t k) const { return read_number(ids + k * id_width, id_width); }
    Span value(size_t k) const;
};

// The parts of an object or array that begins at `value`. Throws KernelError where they lie outside of it.
Container container_of(Span value);

// Bytes of the value that begins at `at`. Throws KernelError where `left` bytes do not hold it.
size_t size_of(const uint8_t* at, size_t left);

struct ObjectField {
    std::string_view name;
    uint32_t id;
    size_t begin, size;  // within the bytes of all fields
};

// Appends the object whose fields have their values in `values`. Sorts the fields by name, and refuses two of one name.
void write_object(Bytes& out, std::vector<ObjectField>& fields, const Bytes& values);

// Appends the array whose elements are in `values`; `edges` has one more entry than there are elements.
void write_array(Bytes& out, const std::vector<size_t>& edges, const Bytes& values);

// Appends a string or binary value.
void write_text(Bytes& out, Primitive kind, Span text);

}  // namespace pyparq::variant
