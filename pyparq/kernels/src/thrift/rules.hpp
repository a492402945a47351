// Checks serialized structs by the rules of the format (pyparq/format/generated/rules.py): what passes cannot
// make the decoder crash, over-allocate or hide a missing field. Small structs of numbers are read here at once.
#pragma once
#include "base/utf8.hpp"
#include "thrift/column_chunks.hpp"
#include "thrift/column_index.hpp"
#include "thrift/wire.hpp"

#include <tuple>

namespace pyparq {

enum Flag : uint8_t { kRequired = 1,
                      kText = 2,
                      kTextOrBytes = 4 };

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
                    std::string what = "Thrift rules: bad field ";
                    what.append(name).append(".").append(field_name);
                    throw KernelError(what);
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

    [[noreturn, gnu::cold, gnu::noinline]] static void fail_element(const Cursor& c, const Struct& s,
                                                                    const Field& field, uint8_t element) {
        c.fail("list " + s.name + "." + field.name + " has elements of type " + std::to_string(element));
    }

    static int64_t integer(Cursor& c, uint8_t type) {
        return c.number(type == kI64 ? 64 : type == kI32 ? 32
                                                         : 16);
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
                if ((field.flags & (kText | kTextOrBytes)) && !utf8_valid(c.p - length, length)) {
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

// The GIL stays: a page header is checked in less time than giving it back takes.
inline nb::tuple check_struct_python(const Rules& rules, const RawIn& data, int64_t offset, size_t kind) {
    Cursor c = cursor(data, offset);
    const bool raw = rules.check(c, kind);
    return nb::make_tuple(c.at(), raw);
}

inline nb::tuple lists_of_struct(const Rules& rules, const RawIn& data, int64_t offset, size_t kind) {
    Cursor c = cursor(data, offset);
    uint64_t there;
    const auto found = rules.lists(c, kind, there);
    nb::list lists;
    for (size_t id = 1; id < found.size(); ++id) {
        lists.append((there >> id & 1) != 0 ? int64_array(found[id]) : nb::none());
    }
    return nb::make_tuple(c.at(), lists);
}

}  // namespace pyparq
