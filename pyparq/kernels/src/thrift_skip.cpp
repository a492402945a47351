// Thrift compact protocol without meaning: where structs end, whether bytes can be decoded safely, and where the
// row groups and column chunks of a footer lie. Values are never handed out: that is the generated code's work.
//
// skip_struct knows only the wire format. Rules::check also knows the structs (pyparq/format/generated/rules.py),
// so that what it lets through cannot make the decoder crash, over-allocate or hide a missing field.
#include "common.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <tuple>
#include <vector>

namespace pyparq {
namespace {

// The bytes end inside the struct: with more of them it might be fine (page headers of unknown length).
struct ThriftTruncated : KernelError {
    using KernelError::KernelError;
};

enum Wire : uint8_t {
    kStop = 0, kTrue = 1, kFalse = 2, kByte = 3, kI16 = 4, kI32 = 5, kI64 = 6, kDouble = 7,
    kBinary = 8, kList = 9, kSet = 10, kMap = 11, kStruct = 12, kUuid = 13,
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

    // A field header: false at the end of the struct. `id` is the last id and becomes this one.
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
        if (id < 1 || id > 32767) fail("field id out of range");
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

void skip_struct(Cursor& c, int depth);

// One value outside a field header, where a bool takes a byte.
void skip_value(Cursor& c, uint8_t type, int depth) {
    switch (type) {
        case kTrue: case kFalse: case kByte: c.advance(1); return;
        case kI16: c.skip_varint(3); return;
        case kI32: c.skip_varint(5); return;
        case kI64: c.skip_varint(10); return;
        case kDouble: c.advance(8); return;
        case kBinary: c.skip_binary(); return;
        case kStruct: skip_struct(c, depth + 1); return;
        case kUuid: c.advance(16); return;
        case kList: case kSet: {
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

void skip_field(Cursor& c, uint8_t type, int depth) {
    if (type != kTrue && type != kFalse) skip_value(c, type, depth);  // a bool is its own header
}

void skip_struct(Cursor& c, int depth) {
    if (depth > kMaxDepth) c.fail("nested too deeply");
    while (true) {
        const uint8_t head = c.byte();
        if (head == 0) return;
        if ((head & 0xf0) == 0) c.skip_varint(3);
        switch (head & 0x0f) {
            case kTrue: case kFalse: break;
            case kI32: c.skip_varint(5); break;
            case kI64: c.skip_varint(10); break;
            case kBinary: c.skip_binary(); break;
            case kStruct: skip_struct(c, depth + 1); break;
            case kStop: c.fail("unknown field type 0");
            default: skip_value(c, head & 0x0f, depth);
        }
    }
}

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(const uint8_t* p, size_t n) {
    const uint8_t* const end = p + n;
    auto tail = [&](ptrdiff_t k, uint8_t low, uint8_t high) {
        if (end - p <= k || p[1] < low || p[1] > high) return false;
        for (ptrdiff_t i = 2; i <= k; ++i) {
            if ((p[i] & 0xc0) != 0x80) return false;
        }
        p += k + 1;
        return true;
    };
    while (p < end) {
        const uint8_t b = *p;
        bool good;
        if (b < 0x80) { ++p; good = true; }
        else if (b < 0xc2) good = false;
        else if (b < 0xe0) good = tail(1, 0x80, 0xbf);
        else if (b < 0xf0) good = tail(2, b == 0xe0 ? 0xa0 : 0x80, b == 0xed ? 0x9f : 0xbf);
        else if (b < 0xf5) good = tail(3, b == 0xf0 ? 0x90 : 0x80, b == 0xf4 ? 0x8f : 0xbf);
        else good = false;
        if (!good) return false;
    }
    return true;
}

// ---------------------------------------------------------------- checking against the structs

enum Flag : uint8_t { kRequired = 1, kText = 2, kTextOrBytes = 4 };

struct Field {
    uint8_t wire = 0;  // 0: no such field
    uint8_t element = 0;
    uint8_t flags = 0;
    int32_t child = -1;
    std::string name;
};

struct Struct {
    std::string name;
    bool is_union = false;
    uint64_t required = 0;
    std::vector<Field> fields;  // by id
};

using FieldRow = std::tuple<int, std::string, int, int, int, int>;
using StructRow = std::tuple<std::string, bool, std::vector<FieldRow>>;

class Rules {
public:
    explicit Rules(const std::vector<StructRow>& rows) {
        for (const auto& [name, is_union, fields] : rows) {
            Struct s{name, is_union, 0, {}};
            for (const auto& [id, field_name, wire, element, child, flags] : fields) {
                const bool holds_struct = wire == kStruct || element == kStruct;
                if (id < 1 || id > 63 || wire < 1 || wire > kUuid || element < 0 || element > kUuid ||
                    holds_struct != (child >= 0 && child < static_cast<int>(rows.size()))) {
                    throw KernelError("Thrift rules: bad field " + name + "." + field_name);
                }
                if (s.fields.size() <= static_cast<size_t>(id)) s.fields.resize(static_cast<size_t>(id) + 1);
                s.fields[static_cast<size_t>(id)] = {static_cast<uint8_t>(wire), static_cast<uint8_t>(element),
                                                     static_cast<uint8_t>(flags), child, field_name};
                if (flags & kRequired) s.required |= uint64_t{1} << id;
            }
            structs_.push_back(std::move(s));
        }
    }

    // Checks a struct of kind `kind`; true when a text that may be raw bytes is not UTF-8.
    bool check(Cursor& c, size_t kind) const {
        bool raw = false;
        check_struct(c, of_kind(kind), 1, raw);
        return raw;
    }

    // The integers and bools of a struct by field, structs among them likewise; everything is checked as above.
    nb::object numbers(Cursor& c, size_t kind) const { return numbers_of(c, of_kind(kind), 1); }

    // The lists of a struct that holds nothing but lists of integers, or of structs of required integers: one
    // vector per field id, the elements' first fields first. `there` has a bit per id that was in the bytes.
    std::vector<std::vector<int64_t>> lists(Cursor& c, size_t kind, uint64_t& there) const {
        const Struct& s = of_kind(kind);
        std::vector<std::vector<int64_t>> found(s.fields.size());
        there = 0;
        walk(c, s, 1, there, [&](const Field& field, int32_t id, uint8_t) {
            if (field.wire != kList) throw KernelError("Thrift rules: " + s.name + " holds more than lists");
            uint8_t element;
            const size_t count = c.list(element);
            if (count > 0 && element != field.element) fail_element(c, s, field, element);
            std::vector<int64_t>& out = found[static_cast<size_t>(id)];
            if (field.element == kStruct) {
                const Struct& item = structs_[static_cast<size_t>(field.child)];
                const size_t width = item.fields.empty() ? 0 : item.fields.size() - 1;
                out.resize(count * width);
                for (size_t n = 0; n < count; ++n) integers(c, item, out.data() + n, count);
            } else {
                out.resize(count);
                for (int64_t& value : out) value = integer(c, field.element);
            }
        });
        return found;
    }

private:
    const Struct& of_kind(size_t kind) const {
        if (kind >= structs_.size()) throw KernelError("Thrift rules: no such struct");
        return structs_[kind];
    }

    // The fields of a struct that the rules know, each handed to `take(field, id, type)`; `seen` gets their bits.
    template <class Take>
    void walk(Cursor& c, const Struct& s, int depth, uint64_t& seen, Take&& take) const {
        int32_t id = 0;
        uint8_t type;
        while (c.field(type, id)) {
            const bool known = id > 0 && static_cast<size_t>(id) < s.fields.size();
            const uint8_t wire = type == kFalse ? static_cast<uint8_t>(kTrue) : type;
            // Fields of another type are passed over like unknown ones: the decoder does the same.
            if (!known || s.fields[static_cast<size_t>(id)].wire != wire) {
                skip_field(c, type, depth);
                continue;
            }
            const Field& field = s.fields[static_cast<size_t>(id)];
            const uint64_t bit = uint64_t{1} << id;
            if (seen & bit) c.fail(s.name + "." + field.name + " appears twice");
            seen |= bit;
            take(field, id, type);
        }
        if (const uint64_t missing = s.required & ~seen) {
            c.fail(s.name + " lacks its required field " +
                   s.fields[static_cast<size_t>(std::countr_zero(missing))].name);
        }
    }

    void check_struct(Cursor& c, const Struct& s, int depth, bool& raw) const {
        if (depth > kMaxDepth) c.fail("nested too deeply");
        uint64_t seen = 0;
        walk(c, s, depth, seen, [&](const Field& field, int32_t, uint8_t type) {
            check_field(c, s, field, type, depth, raw);
        });
        if (s.is_union && (seen & (seen - 1))) c.fail("union " + s.name + " has several members set");
    }

    void check_field(Cursor& c, const Struct& s, const Field& field, uint8_t type, int depth, bool& raw) const {
        if (type == kList) {
            check_list(c, s, field, depth, raw);
        } else if (type != kTrue && type != kFalse) {  // a bool is its own header
            check_value(c, s, field, type, depth, raw);
        }
    }

    nb::object numbers_of(Cursor& c, const Struct& s, int depth) const {
        if (depth > kMaxDepth) c.fail("nested too deeply");
        const size_t fields = s.fields.empty() ? 0 : s.fields.size() - 1;
        nb::object found = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(fields)));
        if (!found.is_valid()) throw nb::python_error();
        const auto put = [&](size_t k, nb::object value) {
            PyTuple_SetItem(found.ptr(), static_cast<Py_ssize_t>(k), value.release().ptr());
        };
        for (size_t k = 0; k < fields; ++k) put(k, nb::none());
        uint64_t seen = 0;
        walk(c, s, depth, seen, [&](const Field& field, int32_t id, uint8_t type) {
            const size_t k = static_cast<size_t>(id - 1);
            bool raw = false;
            if (type == kTrue || type == kFalse) put(k, nb::bool_(type == kTrue));
            else if (type == kI16 || type == kI32 || type == kI64) put(k, nb::int_(integer(c, type)));
            else if (type == kStruct) put(k, numbers_of(c, structs_[static_cast<size_t>(field.child)], depth + 1));
            else check_field(c, s, field, type, depth, raw);
        });
        if (s.is_union && (seen & (seen - 1))) c.fail("union " + s.name + " has several members set");
        return found;
    }

    [[noreturn, gnu::cold, gnu::noinline]] static void fail_element(const Cursor& c, const Struct& s,
                                                                    const Field& field, uint8_t element) {
        c.fail("list " + s.name + "." + field.name + " has elements of type " + std::to_string(element));
    }

    static int64_t integer(Cursor& c, uint8_t type) {
        return c.number(type == kI64 ? 64 : type == kI32 ? 32 : 16);
    }

    // A struct of required integers: field k to `out[k * stride]`.
    void integers(Cursor& c, const Struct& s, int64_t* out, size_t stride) const {
        uint64_t seen = 0;
        walk(c, s, 2, seen, [&](const Field& field, int32_t id, uint8_t wire) {
            const bool number = wire == kI16 || wire == kI32 || wire == kI64;
            if (!number || !(field.flags & kRequired)) {
                throw KernelError("Thrift rules: " + s.name + " holds more than required integers");
            }
            out[static_cast<size_t>(id - 1) * stride] = integer(c, wire);
        });
    }

    void check_list(Cursor& c, const Struct& s, const Field& field, int depth, bool& raw) const {
        uint8_t element;
        const size_t count = c.list(element);
        if (element == kFalse) element = kTrue;
        if (count > 0 && element != field.element) fail_element(c, s, field, element);
        for (size_t n = count; n > 0; --n) {
            if (element == kTrue) {
                if (c.byte() > 2) c.fail("list " + s.name + "." + field.name + " has a bool that is none");
            } else {
                check_value(c, s, field, element, depth, raw);
            }
        }
    }

    void check_value(Cursor& c, const Struct& s, const Field& field, uint8_t type, int depth, bool& raw) const {
        switch (type) {
            case kI16: c.varint(16); return;
            case kI32: c.varint(32); return;
            case kI64: c.varint(64); return;
            case kStruct: check_struct(c, structs_[static_cast<size_t>(field.child)], depth + 1, raw); return;
            case kBinary: {
                const size_t length = c.varint(32);
                c.advance(length);
                if ((field.flags & (kText | kTextOrBytes)) && !is_utf8(c.p - length, length)) {
                    if (field.flags & kText) c.fail(s.name + "." + field.name + " is not UTF-8");
                    raw = true;
                }
                return;
            }
            default: skip_value(c, type, depth); return;
        }
    }

    std::vector<Struct> structs_;
};

// ---------------------------------------------------------------- the footer's index

struct FooterIndex {
    int64_t schema[2] = {-1, -1};      // the lists with their headers: [start, end)
    int64_t row_groups[2] = {-1, -1};
    std::vector<int64_t> groups;       // per row group: start, end, start and end of its column list, its rows
    std::vector<int64_t> first;        // per row group: where its chunks begin in `chunks`; then the total
    std::vector<int64_t> chunks;       // per row group: start of each column chunk, then the end of the last
};

constexpr int32_t kSchemaId = 2, kRowGroupsId = 4, kColumnsId = 1, kNumRowsId = 3;

size_t struct_list(Cursor& c, const char* what) {
    uint8_t element;
    const size_t count = c.list(element);
    if (count > 0 && element != kStruct) c.fail(std::string(what) + " is not a list of structs");
    return count;
}

void index_row_group(Cursor& c, FooterIndex& out) {
    const int64_t start = c.at();
    int64_t columns[2] = {-1, -1}, rows = -1;
    bool counted = false;
    out.first.push_back(static_cast<int64_t>(out.chunks.size()));
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id == kNumRowsId && type == kI64) {
            if (counted) c.fail("RowGroup.num_rows appears twice");
            counted = true;
            rows = c.number(64);
            continue;
        }
        if (id != kColumnsId || type != kList) {
            skip_field(c, type, 2);
            continue;
        }
        if (columns[0] >= 0) c.fail("RowGroup.columns appears twice");
        columns[0] = c.at();
        for (size_t n = struct_list(c, "RowGroup.columns"); n > 0; --n) {
            out.chunks.push_back(c.at());
            skip_struct(c, 3);
        }
        columns[1] = c.at();
        out.chunks.push_back(columns[1]);
    }
    if (columns[0] < 0) c.fail("RowGroup lacks its required field columns");
    if (!counted) c.fail("RowGroup lacks its required field num_rows");
    out.groups.insert(out.groups.end(), {start, c.at(), columns[0], columns[1], rows});
}

void index_footer(Cursor& c, FooterIndex& out) {
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        int64_t* place = nullptr;
        if (type == kList && id == kSchemaId) place = out.schema;
        if (type == kList && id == kRowGroupsId) place = out.row_groups;
        if (place == nullptr) {
            skip_field(c, type, 1);
            continue;
        }
        if (place[0] >= 0) c.fail("FileMetaData has a list twice");
        place[0] = c.at();
        if (id == kRowGroupsId) {
            for (size_t n = struct_list(c, "FileMetaData.row_groups"); n > 0; --n) index_row_group(c, out);
        } else {
            for (size_t n = struct_list(c, "FileMetaData.schema"); n > 0; --n) skip_struct(c, 2);
        }
        place[1] = c.at();
    }
    if (out.schema[0] < 0) c.fail("FileMetaData lacks its required field schema");
    if (out.row_groups[0] < 0) c.fail("FileMetaData lacks its required field row_groups");
    out.first.push_back(static_cast<int64_t>(out.chunks.size()));
}

// ---------------------------------------------------------------- Python's side

Cursor cursor(const RawIn& bytes, int64_t offset) {
    if (offset < 0 || static_cast<uint64_t>(offset) > bytes.size) fail("Thrift: offset outside the bytes");
    return {bytes.data, bytes.data + offset, bytes.data + bytes.size};
}

nb::object int64_array(const std::vector<int64_t>& values) {
    Fresh<int64_t> out(values.size());
    if (!values.empty()) std::memcpy(out.data, values.data(), values.size() * sizeof(int64_t));
    return std::move(out.object);
}

int64_t skip_struct_py(const RawIn& data, int64_t offset) {
    Cursor c = cursor(data, offset);
    NoGil free(c.left());
    skip_struct(c, 1);
    return c.at();
}

nb::tuple index_footer_py(const RawIn& data) {
    Cursor c = cursor(data, 0);
    FooterIndex index;
    {
        NoGil free(data.size);
        index_footer(c, index);
    }
    return nb::make_tuple(c.at(), nb::make_tuple(index.schema[0], index.schema[1]),
                          nb::make_tuple(index.row_groups[0], index.row_groups[1]), int64_array(index.groups),
                          int64_array(index.first), int64_array(index.chunks));
}

// The GIL stays: a page header is checked in less time than giving it back takes.
nb::tuple check_py(const Rules& rules, const RawIn& data, int64_t offset, size_t kind) {
    Cursor c = cursor(data, offset);
    const bool raw = rules.check(c, kind);
    return nb::make_tuple(c.at(), raw);
}

nb::tuple numbers_py(const Rules& rules, const RawIn& data, int64_t offset, size_t kind) {
    Cursor c = cursor(data, offset);
    nb::object found = rules.numbers(c, kind);
    return nb::make_tuple(c.at(), found);
}

nb::tuple lists_py(const Rules& rules, const RawIn& data, int64_t offset, size_t kind) {
    Cursor c = cursor(data, offset);
    uint64_t there;
    const auto found = rules.lists(c, kind, there);
    nb::list lists;
    for (size_t id = 1; id < found.size(); ++id) {
        lists.append((there >> id & 1) != 0 ? int64_array(found[id]) : nb::none());
    }
    return nb::make_tuple(c.at(), lists);
}

}  // namespace
}  // namespace pyparq

void bind_thrift_skip(nb::module_& m) {
    using namespace pyparq;
    nb::exception<ThriftTruncated>(m, "ThriftTruncated", nb::object(m.attr("KernelError")));
    m.def("thrift_skip_struct", &skip_struct_py, nb::arg("data"), nb::arg("offset") = 0,
          "End of the compact protocol struct that starts at offset.");
    m.def("thrift_index_footer", &index_footer_py, nb::arg("data"),
          "Where things lie in a serialized FileMetaData: (its end, the schema list, the row group list; five "
          "numbers per row group: start, end, start and end of its column list, its rows; per row group where its chunks "
          "begin in the last array; starts of the chunks and, per row group, the end of the last).");
    nb::class_<Rules>(m, "ThriftRules", "What a byte check knows of the structs: format/generated/rules.py.")
        .def(nb::init<const std::vector<StructRow>&>(), nb::arg("rows"))
        .def("check", &check_py, nb::arg("data"), nb::arg("offset"), nb::arg("kind"),
             "(end, whether a text that may be raw bytes is not UTF-8) of the struct at offset.")
        .def("numbers", &numbers_py, nb::arg("data"), nb::arg("offset"), nb::arg("kind"),
             "(end, integers and bools by field, structs among them as such tuples, None for all else) of the struct.")
        .def("lists", &lists_py, nb::arg("data"), nb::arg("offset"), nb::arg("kind"),
             "(end, lists by field) of a struct of nothing but lists of integers, or of structs of required integers: "
             "int64 arrays, None for absent ones; structs with all of their first field, then all of the next.");
}
