// Variants as Python objects, and Python objects as Variants. Values that need classes of Python's library, such as dates
// and decimals, pass through a function of the caller's.
#include <algorithm>
#include <map>

#include "objects/objects.hpp"
#include "variant/calls.hpp"
#include "variant/encoding.hpp"
#include "variant/exact_number.hpp"
#include "variant/shredded_types.hpp"

namespace pyparq::variant {
namespace {

constexpr size_t kMostLevels = 200;  // of objects and arrays in one value

const char* chars(const uint8_t* data) { return reinterpret_cast<const char*>(data); }

nb::object text_object(std::string_view text) {
    PyObject* const made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
    if (made == nullptr) {
        clear_exception();
        fail("a string is not UTF-8");
    }
    return nb::steal(made);
}

// ---- from bytes ----------------------------------------------------------------------------------------------------

// The objects and arrays of a Variant as dicts and lists. What the other values become, a subclass says.
class Reader {
  public:
    Reader(Span metadata, Span value) : left_(value.size) { names_.parse(metadata); }
    virtual ~Reader() = default;
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    nb::object read(Span given, size_t depth = 0) {
        const Span value{given.data, size_of(given.data, given.size)};
        const uint8_t basic = value.data[0] & 3;
        if (basic != kObject && basic != kArray) {
            spend(value.size);
            return basic == 1 ? text(value, 1) : primitive(value.data[0] >> 2, value);
        }
        if (depth == kMostLevels) fail("it nests more than " + str(kMostLevels) + " levels deep");
        const Container found = container_of(value);
        spend(static_cast<size_t>(found.values - value.data));
        return basic == kObject ? object(found, depth) : array(found, depth);
    }

  protected:
    virtual nb::object primitive(int kind, Span value) = 0;
    virtual nb::object text(Span value, size_t begin) = 0;

  private:
    // Items that overlap would be read again and again: a few bytes could become any number of objects.
    void spend(size_t bytes) {
        if (bytes > left_) fail("the items of an object or array overlap");
        left_ -= bytes;
    }
    nb::object array(const Container& found, size_t depth) {
        nb::object list = checked(PyList_New(0));
        for (size_t k = 0; k < found.count; ++k)
            if (PyList_Append(list.ptr(), read(found.value(k), depth + 1).ptr()) != 0) throw nb::python_error();
        return list;
    }
    nb::object object(const Container& found, size_t depth) {
        nb::object dict = checked(PyDict_New());
        for (size_t k = 0; k < found.count; ++k) {
            const nb::object name = text_object(names_.name_of(found.id(k)));
            if (PyDict_SetItem(dict.ptr(), name.ptr(), read(found.value(k), depth + 1).ptr()) != 0) throw nb::python_error();
        }
        return dict;
    }

    Metadata names_;
    size_t left_;  // bytes that no value has taken yet
};

class ObjectReader : public Reader {
  public:
    ObjectReader(Span metadata, Span value, const nb::object& other) : Reader(metadata, value), other_(other) {}

  protected:
    nb::object primitive(int kind, Span value) override {
        const uint8_t* const data = value.data + 1;
        switch (kind) {
            case kNull: return nb::none();
            case kTrue: return nb::bool_(true);
            case kFalse: return nb::bool_(false);
            case kInt8: return nb::int_(load<int8_t>(data));
            case kInt16: return nb::int_(load<int16_t>(data));
            case kInt32: return nb::int_(load<int32_t>(data));
            case kInt64: return nb::int_(load<int64_t>(data));
            case kDouble: return nb::float_(load<double>(data));
            case kFloat: return nb::float_(static_cast<double>(load<float>(data)));
            case kString: return text(value, 5);
            case kBinary: return python_bytes({chars(value.data) + 5, value.size - 5});
            default: return other_(kind, python_bytes({chars(data), value.size - 1}));
        }
    }
    nb::object text(Span value, size_t begin) override {
        return text_object({chars(value.data) + begin, value.size - begin});
    }

  private:
    const nb::object& other_;
};

class TypeReader : public Reader {
  public:
    using Reader::Reader;

  protected:
    nb::object primitive(int kind, Span value) override {
        const auto number = is_decimal(kind) ? exact_number(value.data) : std::nullopt;
        if (!number) return nb::int_(kind);
        return nb::make_tuple(kind, std::max({digits_of(number->unscaled), number->scale, 1}), number->scale);
    }
    nb::object text(Span /*value*/, size_t /*begin*/) override { return nb::int_(int{kString}); }
};

// ---- to bytes ------------------------------------------------------------------------------------------------------

// The names of all fields, in the order of their bytes. Ids are given when all are known.
using Names = std::map<std::string, uint32_t, std::less<>>;

// A value whose fields have no ids yet.
struct Draft {
    uint8_t basic = 0;
    Bytes bytes;  // of a value that is neither object nor array
    std::vector<Draft> items;
    std::vector<const Names::value_type*> names;  // of an object's fields, one per item

    void put(int kind, const void* data, size_t size) {
        bytes.push_back(static_cast<uint8_t>(kind << 2));
        append(bytes, data, size);
    }
    void write(Bytes& out) const {
        if (basic != kObject && basic != kArray) return append(out, bytes.data(), bytes.size());
        Bytes values;
        std::vector<size_t> edges{0};
        for (const Draft& item : items) {
            item.write(values);
            edges.push_back(values.size());
        }
        if (basic == kArray) return write_array(out, edges, values);
        std::vector<ObjectField> fields;
        fields.reserve(items.size());
        for (size_t k = 0; k < items.size(); ++k)
            fields.push_back({names[k]->first, names[k]->second, edges[k], edges[k + 1] - edges[k]});
        write_object(out, fields, values);
    }
};

template <class T>
void put_whole(Draft& draft, int kind, int64_t value) {
    const T narrow = static_cast<T>(value);
    draft.put(kind, &narrow, sizeof narrow);
}

void put_integer(Draft& draft, int64_t value) {
    if (value == static_cast<int8_t>(value)) put_whole<int8_t>(draft, kInt8, value);
    else if (value == static_cast<int16_t>(value)) put_whole<int16_t>(draft, kInt16, value);
    else if (value == static_cast<int32_t>(value)) put_whole<int32_t>(draft, kInt32, value);
    else put_whole<int64_t>(draft, kInt64, value);
}

class Writer {
  public:
    explicit Writer(const nb::object& other) : other_(other) {}

    Draft draft(const nb::handle& value, size_t depth) {
        Draft made;
        if (put_container(made, value, depth) || put_primitive(made, value)) return made;
        const nb::object given = other_(value);
        if (PyTuple_Check(given.ptr())) {
            const auto data = nb::cast<nb::bytes>(given[1]);
            made.put(nb::cast<int>(given[0]), data.data(), data.size());
        } else if (!put_container(made, given, depth) && !put_primitive(made, given)) {
            fail("a value of an unknown class was given for another");
        }
        return made;
    }
    Bytes metadata() {
        size_t total = 0;
        uint32_t id = 0;
        for (auto& [name, number] : names_) {
            number = id++;
            total += name.size();
        }
        if (total > kMostBytes) fail("the names of all fields have more than 2 GiB");
        const size_t width = width_of(std::max(total, names_.size()));
        Bytes out{static_cast<uint8_t>(1 | 1 << 4 | (width - 1) << 6)};  // version 1, sorted
        write_number(out, names_.size(), width);
        size_t at = 0;
        write_number(out, at, width);
        for (const auto& name : names_) write_number(out, at += name.first.size(), width);
        for (const auto& name : names_) append(out, name.first.data(), name.first.size());
        return out;
    }

  private:
    // False, and nothing is changed, where the value is neither a dict nor a list.
    bool put_container(Draft& made, const nb::handle& value, size_t depth) {
        const bool is_dict = PyDict_CheckExact(value.ptr());
        if (!is_dict && !PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return false;
        if (depth == kMostLevels) fail("it nests more than " + str(kMostLevels) + " levels deep");
        made.basic = is_dict ? kObject : kArray;
        // A copy, which code of Python's cannot change meanwhile.
        const nb::object items = checked(is_dict ? PyDict_Items(value.ptr()) : PySequence_Tuple(value.ptr()));
        for (const nb::handle item : items) {
            if (is_dict) made.names.push_back(&*names_.emplace(text_of(key_of(item[0])), 0).first);
            made.items.push_back(is_dict ? draft(item[1], depth + 1) : draft(item, depth + 1));
        }
        return true;
    }
    static nb::object key_of(const nb::object& key) {
        if (!PyUnicode_Check(key.ptr())) fail("the key " + std::string(nb::repr(key).c_str()) + " of an object is not a string");
        return key;
    }
    bool put_primitive(Draft& made, const nb::handle& value) {
        PyObject* const given = value.ptr();
        if (given == Py_None || given == Py_True || given == Py_False) {
            made.put(given == Py_None ? kNull : given == Py_True ? kTrue
                                                                 : kFalse,
                     nullptr, 0);
        } else if (PyLong_Check(given)) {
            int overflow = 0;
            const int64_t whole = PyLong_AsLongLongAndOverflow(given, &overflow);
            if (overflow != 0) return false;
            put_integer(made, whole);
        } else if (PyFloat_Check(given)) {
            const double number = PyFloat_AsDouble(given);
            made.put(kDouble, &number, sizeof number);
        } else if (PyUnicode_Check(given)) {
            const std::string_view text = text_of(value);
            write_text(made.bytes, kString, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
        } else if (PyBytes_Check(given)) {
            const auto bytes = nb::borrow<nb::bytes>(value);
            write_text(made.bytes, kBinary, {static_cast<const uint8_t*>(bytes.data()), bytes.size()});
        } else {
            return false;
        }
        return true;
    }

    const nb::object& other_;
    Names names_;
};

}  // namespace

nb::object variant_to_object(const RawIn& metadata, const RawIn& value, const nb::object& other) {
    return ObjectReader({metadata.data, metadata.size}, {value.data, value.size}, other).read({value.data, value.size});
}

nb::object variant_types(const RawIn& metadata, const RawIn& value) {
    return TypeReader({metadata.data, metadata.size}, {value.data, value.size}).read({value.data, value.size});
}

nb::tuple variant_of_object(const nb::object& value, const nb::object& other) {
    Writer writer(other);
    const Draft draft = writer.draft(value, 0);
    const Bytes metadata = writer.metadata();
    Bytes out;
    draft.write(out);
    return nb::make_tuple(python_bytes({chars(metadata.data()), metadata.size()}), python_bytes({chars(out.data()), out.size()}));
}

}  // namespace pyparq::variant
