// The fields of an Arrow schema in FlatBuffers (Arrow's Schema.fbs) that are nothing but a name and a type: for
// ARROW:schema metadata of wide files. Bytes from outside: every offset is checked, and a field that is in any way more
// (children, metadata, a dictionary) or damaged is left to pyparq/arrow/schema/ipc_read.py, which says what is wrong.
#include "arrow/calls.hpp"
#include "base/common.hpp"

#include <optional>
#include <string_view>

namespace pyparq {
namespace {

struct Flat {
    const uint8_t* data;
    size_t size;

    template <class T>
    bool read(size_t at, T& value) const {
        if (at > size || size - at < sizeof(T)) return false;
        std::memcpy(&value, data + at, sizeof(T));
        return true;
    }
    // The place that an offset at `at` points to. The vtables are the only ones behind, and have their own.
    bool follow(size_t at, size_t& place) const {
        uint32_t offset;
        if (!read(at, offset)) return false;
        place = at + offset;
        return place < size;
    }
};

// One table: where it is, and the offsets of its members.
struct Table {
    Flat flat{};
    size_t start = 0, members = 0, count = 0;

    bool load(const Flat& from, size_t at) {
        int32_t back;
        uint16_t bytes;
        if (!from.read(at, back)) return false;
        const int64_t vtable = static_cast<int64_t>(at) - back;
        if (vtable < 0 || !from.read(static_cast<size_t>(vtable), bytes)) return false;
        if (bytes < 4 || bytes % 2 || static_cast<size_t>(vtable) + bytes > from.size) return false;
        flat = from, start = at, members = static_cast<size_t>(vtable) + 4, count = (bytes - 4u) / 2;
        return true;
    }
    // 0 for a member that is absent.
    size_t place(size_t member) const {
        uint16_t offset = 0;
        if (member < count) flat.read(members + 2 * member, offset);
        return offset ? start + offset : 0;
    }
    template <class T>
    bool number(size_t member, T& value, T otherwise = 0) const {
        value = otherwise;
        const size_t at = place(member);
        return at == 0 || flat.read(at, value);
    }
    bool table(size_t member, Table& found) const {
        size_t at = place(member);
        return at != 0 && flat.follow(at, at) && found.load(flat, at);
    }
    // Where the items of a vector begin; none of them where it is absent.
    bool vector(size_t member, size_t& items, uint32_t& length) const {
        size_t at = place(member);
        length = 0, items = 0;
        if (at == 0) return true;
        if (!flat.follow(at, at) || !flat.read(at, length)) return false;
        items = at + 4;
        return true;
    }
    bool text(size_t member, std::string_view& found) const {
        size_t items;
        uint32_t length;
        if (!vector(member, items, length) || length > flat.size - items) return false;
        found = {reinterpret_cast<const char*>(flat.data) + items, length};
        return true;
    }
};

constexpr const char* kUnits[] = {"s", "m", "u", "n"};

std::optional<std::string> integer_format(const Table& type) {
    int32_t bits;
    uint8_t is_signed;
    if (!type.number(0, bits) || !type.number(1, is_signed)) return {};
    const char* found = bits == 8 ? "cC" : bits == 16 ? "sS"
                                       : bits == 32   ? "iI"
                                       : bits == 64   ? "lL"
                                                      : nullptr;
    if (bits == 128) return is_signed ? "_pli128" : "_plu128";  // as polars calls them
    return found ? std::string(1, found[is_signed ? 0 : 1]) : std::string();
}

// A unit of a Timestamp, Time or Duration behind `prefix`.
std::optional<std::string> unit_format(const Table& type, const char* prefix, int16_t otherwise) {
    int16_t unit;
    if (!type.number(0, unit, otherwise) || unit < 0 || unit > 3) return {};
    return std::string(prefix) + kUnits[unit];
}

std::optional<std::string> decimal_format(const Table& type) {
    int32_t precision, scale, bits;
    if (!type.number(0, precision) || !type.number(1, scale) || !type.number(2, bits, 128)) return {};
    std::string found = "d:" + str(int64_t{precision}) + "," + str(int64_t{scale});
    return bits == 128 ? found : found + "," + str(int64_t{bits});
}

std::optional<std::string> timestamp_format(const Table& type) {
    auto found = unit_format(type, "ts", 0);
    std::string_view zone;
    if (!found || !type.text(1, zone) || zone.size() > 64) return {};
    for (const char c : zone)
        if (c < ' ' || c > '~') return {};
    return *found + ":" + std::string(zone);
}

// The format of the C data interface; none for types with children, and for what does not fit.
std::optional<std::string> format_of(uint8_t kind, const Table& type) {
    switch (kind) {
        case 1: return "n";
        case 4: return "z";
        case 5: return "u";
        case 6: return "b";
        case 19: return "Z";
        case 20: return "U";
        case 23: return "vz";
        case 24: return "vu";
        case 2: return integer_format(type);
        case 3: {
            int16_t precision;
            if (!type.number(0, precision) || precision < 0 || precision > 2) return {};
            return std::string(1, "efg"[precision]);
        }
        case 7: return decimal_format(type);
        case 8: {
            int16_t unit;
            if (!type.number(0, unit, int16_t{1})) return {};
            return unit ? "tdm" : "tdD";
        }
        case 9: return unit_format(type, "tt", 1);
        case 18: return unit_format(type, "tD", 1);
        case 10: return timestamp_format(type);
        case 15: {
            int32_t width;
            if (!type.number(0, width)) return {};
            return "w:" + str(int64_t{width});
        }
        default: return {};
    }
}

// (name, format), or None.
nb::object plain_field(const Flat& flat, size_t at) {
    Table field, type;
    std::string_view name;
    uint8_t kind;
    size_t items;
    uint32_t children, pairs;
    if (!field.load(flat, at) || field.place(4) != 0 || !field.vector(5, items, children) ||
        !field.vector(6, items, pairs) || children || pairs || !field.text(0, name) || !field.number(2, kind) ||
        !field.table(3, type))
        return nb::none();
    const auto format = format_of(kind, type);
    if (!format) return nb::none();
    PyObject* text = PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), nullptr);
    if (text == nullptr) {
        PyErr_Clear();
        return nb::none();
    }
    return nb::make_tuple(nb::steal(text), nb::str(format->data(), format->size()));
}

}  // namespace

nb::object arrow_schema_field(const RawIn& data, int64_t offset, int64_t index) {
    const Flat flat{data.data, data.size};
    const size_t start = checked_count(offset, "offset"), wanted = checked_count(index, "index");
    uint32_t count;
    size_t at;
    if (!flat.read(start, count) || wanted >= count || wanted >= (flat.size - start - 4) / 4) return nb::none();
    return flat.follow(start + 4 + 4 * wanted, at) ? plain_field(flat, at) : nb::object(nb::none());
}

}  // namespace pyparq
