// Puts shredded Variants together again (VariantShredding.md): one unshredded value per row.
#include <memory>
#include <unordered_set>

#include "variant/calls.hpp"
#include "variant/encoding.hpp"
#include "variant/shredded_types.hpp"

namespace pyparq::variant {
namespace {

struct Texts {
    Offsets offsets;
    RawIn data;

    Span at(size_t k) const {
        return offsets.visit([&](const auto* edges) -> Span {
            const auto begin = edges[k], end = edges[k + 1];
            if (begin < 0 || end < begin || static_cast<size_t>(end) > data.size) fail("offsets lie outside of their data");
            return {data.data + begin, static_cast<size_t>(end - begin)};
        });
    }
    void check(size_t slots) const {
        if (offsets.size < slots + 1) fail("a column is shorter than its Variant");
    }
};

bool is_present(const Valid& valid, size_t k) { return valid.data == nullptr || valid.data[k] != 0; }

void check_valid(const Valid& valid, size_t slots) {
    if (valid.data != nullptr && valid.size < slots) fail("a mask is shorter than its Variant");
}

template <class T>
T taken(const nb::handle& from, const char* what) {
    T made;
    if (!made.load(from.ptr())) fail(std::string(what) + " is not an array of the expected type");
    return made;
}

// One Variant of the schema: the column `value`, and what `typed_value` is.
struct Node {
    bool has_value = false, has_typed = false;
    Texts value;
    Valid value_valid, typed_valid;
    int kind = 0;
    uint8_t scale = 0;
    Texts texts;
    RawIn fixed;
    Offsets edges;
    std::vector<std::string> names;
    std::unordered_set<std::string_view> distinct;
    std::vector<std::unique_ptr<Node>> children;

    Node(const nb::tuple& given, size_t slots);

  private:
    void take_typed(const nb::tuple& given, size_t slots);
};

Node::Node(const nb::tuple& given, size_t slots) {
    if (!given[0].is_none()) {
        const auto parts = nb::cast<nb::tuple>(given[0]);
        value.offsets = taken<Offsets>(parts[0], "offsets");
        value.data = taken<RawIn>(parts[1], "data");
        value_valid = taken<Valid>(parts[2], "a mask");
        value.check(slots);
        check_valid(value_valid, slots);
        has_value = true;
    }
    if (!given[1].is_none()) take_typed(nb::cast<nb::tuple>(given[1]), slots);
}

void Node::take_typed(const nb::tuple& given, size_t slots) {
    has_typed = true;
    kind = nb::cast<int>(given[0]);
    scale = nb::cast<uint8_t>(given[1]);
    typed_valid = taken<Valid>(given[2], "a mask");
    check_valid(typed_valid, slots);
    if (kind == kObjectKind) {
        for (const nb::handle name : nb::cast<nb::tuple>(given[3])) names.emplace_back(text_of(name));
        for (const nb::handle child : nb::cast<nb::tuple>(given[4]))
            children.push_back(std::make_unique<Node>(nb::cast<nb::tuple>(child), slots));
        if (names.size() != children.size()) fail("an object has as many names as fields");
        distinct.insert(names.begin(), names.end());
    } else if (kind == kListKind) {
        edges = taken<Offsets>(given[3], "offsets");
        if (edges.size < slots + 1) fail("a list is shorter than its Variant");
        const int64_t items = edges.visit([&](const auto* at) {
            for (size_t k = 0; k < slots; ++k)
                if (at[k] < 0 || at[k + 1] < at[k]) fail("the offsets of a list are wrong");
            return static_cast<int64_t>(at[slots]);
        });
        children.push_back(std::make_unique<Node>(nb::cast<nb::tuple>(given[4]), static_cast<size_t>(items)));
    } else if (kind == kString || kind == kBinary) {
        texts.offsets = taken<Offsets>(given[3], "offsets");
        texts.data = taken<RawIn>(given[4], "data");
        texts.check(slots);
    } else {
        fixed = taken<RawIn>(given[3], "values");
        if (fixed.size / arrow_width(kind) < slots) fail("a column is shorter than its Variant");
    }
}

class Rebuilder {
  public:
    // Appends the value of slot k. False where it is missing.
    bool put(const Node& node, size_t k, Bytes& out) {
        const bool has_value = node.has_value && is_present(node.value_valid, k);
        if (!node.has_typed || !is_present(node.typed_valid, k)) {
            if (!has_value) return false;
            const Span value = node.value.at(k);
            const size_t size = size_of(value.data, value.size);
            append(out, value.data, size);
            return true;
        }
        if (node.kind == kObjectKind) {
            put_object(node, k, has_value ? node.value.at(k) : Span{}, out);
            return true;
        }
        if (has_value) fail("value and typed_value are both there, and the value is no object");
        if (node.kind == kListKind) put_list(node, k, out);
        else put_primitive(node, k, out);
        return true;
    }

    Metadata metadata;

  private:
    void put_object(const Node& node, size_t k, Span rest, Bytes& out) {
        Bytes values;
        std::vector<ObjectField> fields;
        for (size_t n = 0; n < node.children.size(); ++n) {
            const size_t begin = values.size();
            if (put(*node.children[n], k, values))
                fields.push_back({node.names[n], metadata.id_of(node.names[n]), begin, values.size() - begin});
        }
        if (rest.data != nullptr) take_rest(node, rest, fields, values);
        write_object(out, fields, values);
    }

    // The fields of a partly shredded object that are not shredded. Columns count where both have a field.
    void take_rest(const Node& node, Span rest, std::vector<ObjectField>& fields, Bytes& values) {
        if (rest.size == 0 || (rest.data[0] & 3) != kObject)
            fail("fields are shredded of a value that is no object");
        const Container found = container_of(rest);
        for (size_t n = 0; n < found.count; ++n) {
            const uint32_t id = found.id(n);
            const std::string_view name = metadata.name_of(id);
            if (node.distinct.contains(name)) continue;
            const Span value = found.value(n);
            fields.push_back({name, id, values.size(), value.size});
            append(values, value.data, value.size);
        }
    }

    void put_list(const Node& node, size_t k, Bytes& out) {
        Bytes values;
        const auto [begin, end] = node.edges.visit(
            [&](const auto* at) { return std::pair{static_cast<size_t>(at[k]), static_cast<size_t>(at[k + 1])}; });
        std::vector<size_t> edges{0};
        edges.reserve(end - begin + 1);
        for (size_t n = begin; n < end; ++n) {
            if (!put(*node.children[0], n, values)) values.push_back(kNull);
            edges.push_back(values.size());
        }
        write_array(out, edges, values);
    }

    static void put_primitive(const Node& node, size_t k, Bytes& out) {
        const int kind = node.kind;
        if (kind == kString || kind == kBinary) return write_text(out, static_cast<Primitive>(kind), node.texts.at(k));
        const size_t width = arrow_width(kind);
        const uint8_t* const at = node.fixed.data + k * width;
        if (kind == kTrue) return out.push_back(static_cast<uint8_t>((*at != 0 ? kTrue : kFalse) << 2));
        out.push_back(static_cast<uint8_t>(kind << 2));
        if (is_decimal(kind)) out.push_back(node.scale);
        append(out, at, kind == kDecimal4 ? 4 : kind == kDecimal8 ? 8
                                                                  : width);
    }
};

}  // namespace

nb::tuple variant_unshred(const nb::tuple& metadata_parts, const nb::tuple& tree, const Valid& rows, size_t slots) {
    Texts metadata;
    metadata.offsets = taken<Offsets>(metadata_parts[0], "offsets");
    metadata.data = taken<RawIn>(metadata_parts[1], "data");
    metadata.check(slots);
    check_valid(rows, slots);
    const Node root(tree, slots);
    Fresh<int64_t> offsets(slots + 1);
    Bytes out;
    {
        NoGil nogil(slots * 16);
        Rebuilder rebuilder;
        offsets.data[0] = 0;
        for (size_t k = 0; k < slots; ++k) {
            if (is_present(rows, k)) {
                try {
                    rebuilder.metadata.parse(metadata.at(k));
                    if (!rebuilder.put(root, k, out)) out.push_back(kNull);
                } catch (const KernelError& error) {
                    fail("row " + str(uint64_t{k}) + ": " + error.what());
                }
            }
            offsets.data[k + 1] = static_cast<int64_t>(out.size());
        }
    }
    Fresh<uint8_t> data(out.size());
    if (!out.empty()) std::memcpy(data.data, out.data(), out.size());
    return nb::make_tuple(std::move(offsets.object), std::move(data.object));
}

}  // namespace pyparq::variant
