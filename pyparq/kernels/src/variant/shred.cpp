// Takes Variants apart (VariantShredding.md): what fits the type of a column goes there, all else stays a Variant.
#include <memory>
#include <unordered_map>

#include "variant/calls.hpp"
#include "variant/encoding.hpp"
#include "variant/exact_number.hpp"
#include "variant/shredded_types.hpp"

namespace pyparq::variant {
namespace {

constexpr int kNothing = -1;  // no typed_value
constexpr size_t kMostNested = 500;

template <class T>
nb::object array_of(const std::vector<T>& values) {
    Fresh<T> out(values.size());
    if (!values.empty()) std::memcpy(out.data, values.data(), values.size() * sizeof(T));
    return std::move(out.object);
}

// Byte arrays, one after another.
struct Texts {
    std::vector<int64_t> edges{0};
    Bytes data;

    void add(const uint8_t* from, size_t size) {
        append(data, from, size);
        edges.push_back(static_cast<int64_t>(data.size()));
    }
    void add_nothing() { edges.push_back(edges.back()); }
};

// A column `value` and what is beside it.
class Node {
  public:
    Node(const nb::handle& given, size_t depth);

    void put(Span given, const Metadata& metadata);
    void put_missing();
    nb::tuple result() const;

  private:
    void take(const nb::tuple& given, size_t depth);
    bool put_typed(Span value, const Metadata& metadata);
    bool put_object(Span value, const Metadata& metadata);
    void put_list(Span value, const Metadata& metadata);
    bool put_primitive(Span value);
    bool put_number(const uint8_t* value);
    bool put_text(Span value);
    void put_null();
    nb::tuple typed_result() const;

    int kind_ = kNothing, digits_ = 0, scale_ = 0;
    size_t width_ = 0;  // of a primitive value
    std::vector<std::string> names_;
    std::unordered_map<std::string_view, size_t> places_;
    std::vector<std::unique_ptr<Node>> children_;
    std::vector<const uint8_t*> found_;  // the fields of the object at hand
    std::vector<size_t> sizes_;

    Texts value_, texts_;
    Bytes value_valid_, typed_valid_, fixed_;
    std::vector<int64_t> edges_{0};
    int64_t items_ = 0;
};

Node::Node(const nb::handle& given, size_t depth) {
    if (depth > kMostNested) fail("the schema of a shredded Variant nests too deeply");
    if (!given.is_none()) take(nb::cast<nb::tuple>(given), depth);
}

void Node::take(const nb::tuple& given, size_t depth) {
    kind_ = nb::cast<int>(given[0]);
    if (kind_ == kObjectKind) {
        for (const nb::handle name : nb::cast<nb::tuple>(given[1])) names_.emplace_back(text_of(name));
        for (const nb::handle child : nb::cast<nb::tuple>(given[2])) children_.push_back(std::make_unique<Node>(child, depth + 1));
        if (names_.size() != children_.size()) fail("an object has as many names as fields");
        for (size_t k = 0; k < names_.size(); ++k)
            if (!places_.emplace(names_[k], k).second) fail("an object is shredded to two fields of one name");
        found_.resize(names_.size()), sizes_.resize(names_.size());
    } else if (kind_ == kListKind) {
        children_.push_back(std::make_unique<Node>(given[1], depth + 1));
    } else {
        width_ = arrow_width(kind_);
        digits_ = nb::cast<int>(given[1]), scale_ = nb::cast<int>(given[2]);
    }
}

void Node::put(Span given, const Metadata& metadata) {
    const Span value{given.data, size_of(given.data, given.size)};
    if (kind_ != kNothing && put_typed(value, metadata)) return;
    value_.add(value.data, value.size);
    value_valid_.push_back(1);
    put_null();
}

// A field that the object does not have.
void Node::put_missing() {
    value_.add_nothing();
    value_valid_.push_back(0);
    put_null();
}

// A `typed_value` that is null.
void Node::put_null() {
    if (kind_ == kNothing) return;
    typed_valid_.push_back(0);
    if (kind_ == kObjectKind) {
        for (const auto& child : children_) child->put_missing();
    } else if (kind_ == kListKind) {
        edges_.push_back(items_);
    } else if (width_ == 0) {
        texts_.add_nothing();
    } else {
        fixed_.resize(fixed_.size() + width_);
    }
}

// False, and nothing is changed, where the value does not have the type.
bool Node::put_typed(Span value, const Metadata& metadata) {
    const uint8_t basic = value.data[0] & 3;
    if (kind_ == kObjectKind) {
        if (basic != kObject) return false;
        typed_valid_.push_back(1);
        if (put_object(value, metadata)) return true;
        value_.add_nothing();
        value_valid_.push_back(0);
        return true;
    }
    if (kind_ == kListKind) {
        if (basic != kArray) return false;
        put_list(value, metadata);
    } else if (basic == kObject || basic == kArray || !put_primitive(value)) {
        return false;
    }
    typed_valid_.push_back(1);
    value_.add_nothing();
    value_valid_.push_back(0);
    return true;
}

// Whether there are fields that have no column, which are an object in `value` then.
bool Node::put_object(Span value, const Metadata& metadata) {
    const Container found = container_of(value);
    std::fill(found_.begin(), found_.end(), nullptr);
    std::vector<ObjectField> rest;
    Bytes values;
    for (size_t k = 0; k < found.count; ++k) {
        const uint32_t id = found.id(k);
        const std::string_view name = metadata.name_of(id);
        const Span field = found.value(k);
        const auto place = places_.find(name);
        if (place == places_.end()) {
            rest.push_back({name, id, values.size(), field.size});
            append(values, field.data, field.size);
        } else {
            if (found_[place->second] != nullptr) fail("an object has the field '" + std::string(name) + "' twice");
            found_[place->second] = field.data, sizes_[place->second] = field.size;
        }
    }
    for (size_t k = 0; k < children_.size(); ++k) {
        if (found_[k] == nullptr) children_[k]->put_missing();
        else children_[k]->put({found_[k], sizes_[k]}, metadata);
    }
    if (rest.empty()) return false;
    Bytes object;
    write_object(object, rest, values);
    value_.add(object.data(), object.size());
    value_valid_.push_back(1);
    return true;
}

void Node::put_list(Span value, const Metadata& metadata) {
    const Container found = container_of(value);
    for (size_t k = 0; k < found.count; ++k) children_[0]->put(found.value(k), metadata);
    items_ += static_cast<int64_t>(found.count);
    edges_.push_back(items_);
}

bool Node::put_primitive(Span value) {
    if (width_ == 0) return put_text(value);
    if ((value.data[0] & 3) != 0) return false;
    const int held = value.data[0] >> 2;
    if (is_decimal(kind_) || is_integer(kind_)) return put_number(value.data);
    if (kind_ == kTrue) {
        if (held != kTrue && held != kFalse) return false;
        fixed_.push_back(held == kTrue ? 1 : 0);
        return true;
    }
    if (held != kind_) return false;
    append(fixed_, value.data + 1, width_);
    return true;
}

bool Node::put_number(const uint8_t* value) {
    const auto number = exact_number(value);
    if (!number) return false;
    const auto fits = rescaled(*number, is_decimal(kind_) ? scale_ : 0, is_decimal(kind_) ? digits_ : 19);
    if (!fits) return false;
    if (is_integer(kind_)) {
        const auto narrow = static_cast<int64_t>(fits->low);
        const int64_t most = std::numeric_limits<int64_t>::max() >> (64 - 8 * width_);
        if (!fits->is_int64() || narrow > most || narrow < -most - 1) return false;
    }
    append(fixed_, &fits->low, std::min<size_t>(width_, 8));
    if (width_ == 16) append(fixed_, &fits->high, 8);
    return true;
}

bool Node::put_text(Span value) {
    const uint8_t basic = value.data[0] & 3, held = value.data[0] >> 2;
    if (basic == 1) {
        if (kind_ != kString) return false;
        texts_.add(value.data + 1, held);
        return true;
    }
    if (held != kind_) return false;
    texts_.add(value.data + 5, value.size - 5);
    return true;
}

nb::tuple Node::typed_result() const {
    nb::object valid = array_of(typed_valid_);
    if (kind_ == kObjectKind) {
        nb::list inner;
        for (const auto& child : children_) inner.append(child->result());
        return nb::make_tuple(valid, nb::tuple(inner));
    }
    if (kind_ == kListKind) return nb::make_tuple(valid, array_of(edges_), children_[0]->result());
    if (width_ == 0) return nb::make_tuple(valid, array_of(texts_.edges), array_of(texts_.data));
    return nb::make_tuple(valid, array_of(fixed_));
}

nb::tuple Node::result() const {
    nb::object typed = kind_ == kNothing ? nb::none() : nb::object(typed_result());
    return nb::make_tuple(array_of(value_.edges), array_of(value_.data), array_of(value_valid_), typed);
}

Span span_at(const Offsets& offsets, const RawIn& data, size_t k) {
    return offsets.visit([&](const auto* edges) -> Span {
        return {data.data + edges[k], static_cast<size_t>(edges[k + 1] - edges[k])};
    });
}

void check_texts(const Offsets& offsets, const RawIn& data, size_t slots) {
    if (offsets.size < slots + 1) fail("a column is shorter than its Variant");
    offsets.visit([&](const auto* edges) { check_offsets(edges, slots + 1, data.size); });
}

}  // namespace

nb::tuple variant_shred(const Offsets& metadata_offsets, const RawIn& metadata, const Offsets& value_offsets,
                        const RawIn& value, const Valid& rows, size_t slots, const nb::object& schema) {
    check_texts(metadata_offsets, metadata, slots);
    check_texts(value_offsets, value, slots);
    if (rows.data != nullptr && rows.size < slots) fail("a mask is shorter than its Variant");
    Node root(schema, 0);
    {
        const NoGil nogil(slots * 16);
        Metadata names;
        for (size_t k = 0; k < slots; ++k) {
            if (rows.data != nullptr && rows.data[k] == 0) {
                root.put_missing();
                continue;
            }
            try {
                names.parse(span_at(metadata_offsets, metadata, k));
                root.put(span_at(value_offsets, value, k), names);
            } catch (const KernelError& error) {
                fail("row " + str(uint64_t{k}) + ": " + error.what());
            }
        }
    }
    return root.result();
}

}  // namespace pyparq::variant
