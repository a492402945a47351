// Columns and schemas on the way out: structs of Arrow's C data interface over the buffers of pyparq's columns, a whole
// batch in one call. Nothing is copied.
#include "arrow/calls.hpp"
#include "arrow/export.hpp"

#include "base/bits.hpp"
#include "decode/decoded_column.hpp"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>

namespace pyparq {

// ---- arrays ---------------------------------------------------------------------------------------------

void ArrayParts::place(const void* data) {
    if (count_ < kFew) {
        few_[count_] = data;
    } else {
        if (count_ == kFew) many_.assign(few_.begin(), few_.end());
        many_.push_back(data);
    }
    ++count_;
}

void ArrayParts::add(const void* data, std::shared_ptr<const void> owner) {
    if (owner) {
        if (shared_count_ == kFew) fail("an array of too many shared buffers");
        shared_[shared_count_++] = std::move(owner);
    }
    place(data);
}

void ArrayParts::add(const void* data, const nb::object& owner) {
    objects_.push_back(owner.ptr());
    Py_INCREF(owner.ptr());
    place(data);
}

ArrayParts::~ArrayParts() {
    for (ArrowArray& child : children)
        if (child.release != nullptr) child.release(&child);
    if (dictionary && dictionary->release != nullptr) dictionary->release(dictionary.get());
    if (objects_.empty()) return;
    const Visit visit;
    if (!visit) return;  // what the objects hold goes with the process
    const nb::gil_scoped_acquire gil;
    nb::error_scope outer;  // the caller may be handling an error of its own
    for (PyObject* const object : objects_) Py_DECREF(object);
}

ArrowArray ArrayParts::finish(std::unique_ptr<ArrayParts> parts, int64_t length, int64_t nulls, int64_t offset) {
    parts->child_places_.reserve(parts->children.size());
    for (ArrowArray& child : parts->children) parts->child_places_.push_back(&child);
    ArrowArray made{};
    made.length = length, made.null_count = nulls, made.offset = offset;
    made.n_buffers = static_cast<int64_t>(parts->count_);
    made.buffers = parts->count_ > kFew ? parts->many_.data() : parts->few_.data();
    made.n_children = static_cast<int64_t>(parts->children.size());
    made.children = parts->child_places_.empty() ? nullptr : parts->child_places_.data();
    made.dictionary = parts->dictionary.get();
    made.release = [](ArrowArray* array) {
        delete static_cast<ArrayParts*>(array->private_data);
        array->release = nullptr;
    };
    made.private_data = parts.release();
    return made;
}

namespace {

const int64_t kNoOffsets = 0;  // Arrow lets an empty array leave its offsets out, but many read the first of them

// Attribute names, made once: never freed, the interpreter may be gone before static destructors run.
struct Names {
    PyObject* of(const char* text) { return PyUnicode_InternFromString(text); }
    PyObject *native = of("native"), *type = of("type"), *length = of("length"), *validity = of("validity"),
             *buffers = of("buffers"), *null_count = of("null_count"), *children = of("children"),
             *dictionary = of("dictionary"), *offset = of("offset"), *format = of("format"), *name = of("name"),
             *ordered = of("ordered"), *nullable = of("nullable"), *metadata = of("metadata");
};
Names* names = nullptr;

nb::object get(const nb::handle& object, PyObject* name) {
    PyObject* const found = PyObject_GetAttr(object.ptr(), name);
    if (found == nullptr) throw nb::python_error();
    return nb::steal(found);
}

int64_t integer(const nb::handle& object, PyObject* name) {
    const nb::object found = get(object, name);
    const long long value = PyLong_AsLongLong(found.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return value;
}

bool truth(const nb::handle& object, PyObject* name) {
    const int found = PyObject_IsTrue(get(object, name).ptr());
    if (found < 0) throw nb::python_error();
    return found != 0;
}

std::string_view text(const nb::handle& object) {
    Py_ssize_t size = 0;
    const char* const found = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (found == nullptr) throw nb::python_error();
    return {found, static_cast<size_t>(size)};
}

// The items of a tuple or list.
class Items {
  public:
    explicit Items(const nb::handle& given) : items_(nb::steal(PySequence_Tuple(given.ptr()))) {
        if (!items_.is_valid()) throw nb::python_error();
    }
    size_t size() const { return static_cast<size_t>(PyTuple_Size(items_.ptr())); }
    nb::handle operator[](size_t k) const { return PyTuple_GetItem(items_.ptr(), static_cast<Py_ssize_t>(k)); }

  private:
    nb::object items_;
};

int64_t count_unset(const uint8_t* bits, size_t size, int64_t offset, int64_t length) {
    if (offset < 0 || length < 0 || (offset + length + 7) / 8 > static_cast<int64_t>(size)) fail("a validity that is too short");
    int64_t set = 0;
    for (int64_t k = offset; k < offset + length;) {
        if (k % 8 == 0 && offset + length - k >= 64) {
            set += std::popcount(load<uint64_t>(bits + k / 8));
            k += 64;
        } else {
            set += bits[k / 8] >> (k % 8) & 1;
            ++k;
        }
    }
    return length - set;
}

struct Part {
    const uint8_t* data = nullptr;
    size_t size = 0;
};

Part part_of(const nb::handle& buffer) {
    Buffer held;
    if (!held.acquire(buffer.ptr(), PyBUF_SIMPLE)) fail("the buffers of a column must be contiguous arrays");
    return {static_cast<const uint8_t*>(held.view().buf), static_cast<size_t>(held.view().len)};
}

ArrowArray export_native(const DecodedColumn& column) {
    auto parts = std::make_unique<ArrayParts>();
    parts->add(column.validity.data(), column.validity.owner());
    if (column.is_binary) parts->add(column.offsets.data(), column.offsets.owner());
    parts->add(column.values.data(), column.values.owner());
    return ArrayParts::finish(std::move(parts), column.length, column.nulls, 0);
}

bool has_offsets(std::string_view format) {
    return format == "u" || format == "U" || format == "z" || format == "Z" || format == "+l" || format == "+L" || format == "+m";
}

ArrowArray export_column(const nb::handle& column, int depth);

// Views have the sizes of their data buffers as the last buffer.
void add_views(ArrayParts& parts, const Items& buffers) {
    auto sizes = std::make_shared<std::vector<int64_t>>();
    for (size_t k = 0; k + 1 < buffers.size(); ++k) {
        const Part part = part_of(buffers[k]);
        parts.add(part.data, nb::borrow(buffers[k]));
        if (k > 0) sizes->push_back(static_cast<int64_t>(part.size));
    }
    if (sizes->empty()) sizes->reserve(1);  // some address
    const void* const data = sizes->data();
    parts.add(data, std::move(sizes));
}

ArrowArray export_made(const nb::handle& column, int depth) {
    const nb::object type = get(column, names->type), format_object = get(type, names->format);
    const std::string_view format = text(format_object);
    const int64_t length = integer(column, names->length), offset = integer(column, names->offset);
    int64_t nulls = integer(column, names->null_count);
    auto parts = std::make_unique<ArrayParts>();
    if (format == "n") {
        nulls = length;
    } else if (format != "+r") {
        const nb::object validity = get(column, names->validity);
        if (validity.is_none()) {
            parts->add(nullptr, std::shared_ptr<const void>());
            nulls = 0;
        } else {
            const Part bits = part_of(validity);
            if (nulls < 0) nulls = count_unset(bits.data, bits.size, offset, length);
            parts->add(bits.data, validity);
        }
        const Items buffers(get(column, names->buffers));
        if (format == "vu" || format == "vz") {
            add_views(*parts, buffers);
        } else {
            for (size_t k = 0; k < buffers.size(); ++k) {
                const Part part = part_of(buffers[k]);
                if (k == 0 && part.size == 0 && has_offsets(format)) parts->add(&kNoOffsets, std::shared_ptr<const void>());
                else parts->add(part.data, nb::borrow(buffers[k]));
            }
        }
    } else {
        nulls = 0;
    }
    const Items children(get(column, names->children));
    parts->children.reserve(children.size());
    for (size_t k = 0; k < children.size(); ++k) parts->children.push_back(export_column(children[k], depth + 1));
    if (!get(type, names->dictionary).is_none()) {
        const nb::object entries = get(column, names->dictionary);
        if (entries.is_none()) fail("a dictionary column without a dictionary");
        parts->dictionary = std::make_unique<ArrowArray>(export_column(entries, depth + 1));
    }
    return ArrayParts::finish(std::move(parts), length, nulls, offset);
}

constexpr int kDeepest = 1000;

ArrowArray export_column(const nb::handle& column, int depth) {
    if (depth > kDeepest) fail("a column that nests too deeply");
    const nb::object native = get(column, names->native);
    return native.is_none() ? export_made(column, depth) : export_native(nb::cast<const DecodedColumn&>(native));
}

// A column, or (columns, number of rows) for a record batch.
ArrowArray export_array(const nb::handle& given) {
    if (!PyTuple_Check(given.ptr())) return export_column(given, 0);
    const Items pair(nb::borrow(given));
    if (pair.size() != 2) fail("a batch is its columns and its number of rows");
    const Items columns(nb::borrow(pair[0]));
    const int64_t rows = PyLong_AsLongLong(pair[1].ptr());
    if (rows == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    auto parts = std::make_unique<ArrayParts>();
    parts->add(nullptr, std::shared_ptr<const void>());
    parts->children.reserve(columns.size());
    for (size_t k = 0; k < columns.size(); ++k) parts->children.push_back(export_column(columns[k], 1));
    return ArrayParts::finish(std::move(parts), rows, 0, 0);
}

// ---- schemas --------------------------------------------------------------------------------------------

constexpr int64_t kOrdered = 1, kNullable = 2, kKeysSorted = 4;

}  // namespace

struct SchemaNode {
    std::string format, name;
    std::optional<std::string> metadata;
    int64_t flags = 0;
    std::vector<SchemaNode> children;
    std::unique_ptr<SchemaNode> dictionary;
};

namespace {

// Keys and values as the C data interface has them: their number, then the size and the bytes of each.
std::optional<std::string> encoded(const nb::handle& metadata) {
    const Py_ssize_t count = PyObject_Size(metadata.ptr());
    if (count < 0) throw nb::python_error();
    if (count == 0) return std::nullopt;
    std::string out;
    const auto put = [&](size_t number) {
        if (number > static_cast<size_t>(std::numeric_limits<int32_t>::max())) fail("metadata of more than 2 GiB");
        const auto n = static_cast<int32_t>(number);
        out.append(reinterpret_cast<const char*>(&n), sizeof(n));
    };
    const nb::object pairs = nb::steal(PyMapping_Items(metadata.ptr()));
    if (!pairs.is_valid()) throw nb::python_error();
    const Items items(pairs);
    put(items.size());
    for (size_t k = 0; k < items.size(); ++k) {
        const Items pair(nb::borrow(items[k]));
        for (size_t side = 0; side < 2; ++side) {
            const nb::handle part = pair[side];
            if (PyUnicode_Check(part.ptr())) {
                const std::string_view found = text(part);
                put(found.size());
                out.append(found);
                continue;
            }
            Buffer held;
            if (!held.acquire(part.ptr(), PyBUF_SIMPLE)) fail("keys and values of metadata must be bytes");
            put(static_cast<size_t>(held.view().len));
            out.append(static_cast<const char*>(held.view().buf), static_cast<size_t>(held.view().len));
        }
    }
    return out;
}

void fill_type(SchemaNode& node, const nb::handle& type, int depth);

void fill_field(SchemaNode& node, const nb::handle& field, int depth) {
    if (depth > kDeepest) fail("a schema that nests too deeply");
    node.name = text(get(field, names->name));
    node.flags = truth(field, names->nullable) ? kNullable : 0;
    node.metadata = encoded(get(field, names->metadata));
    fill_type(node, get(field, names->type), depth);
}

void fill_type(SchemaNode& node, const nb::handle& type, int depth) {
    node.format = text(get(type, names->format));
    const Items children(get(type, names->children));
    node.children.resize(children.size());
    for (size_t k = 0; k < children.size(); ++k) fill_field(node.children[k], children[k], depth + 1);
    const nb::object dictionary = get(type, names->dictionary);
    const bool ordered = truth(type, names->ordered);
    if (!dictionary.is_none()) {
        node.dictionary = std::make_unique<SchemaNode>();
        node.dictionary->flags = kNullable;
        if (depth > kDeepest) fail("a schema that nests too deeply");
        fill_type(*node.dictionary, dictionary, depth + 1);
        if (ordered) node.flags |= kOrdered;
    } else if (ordered && node.format == "+m") {
        node.flags |= kKeysSorted;
    }
}

// What a schema that was given away keeps alive.
struct SchemaParts {
    std::shared_ptr<const SchemaNode> root;
    std::vector<ArrowSchema> children;
    std::vector<ArrowSchema*> places;
    ArrowSchema dictionary{};
};

ArrowSchema given(const std::shared_ptr<const SchemaNode>& root, const SchemaNode& node) {
    auto parts = std::make_unique<SchemaParts>();
    parts->root = root;
    parts->children.reserve(node.children.size());
    for (const SchemaNode& child : node.children) parts->children.push_back(given(root, child));
    for (ArrowSchema& child : parts->children) parts->places.push_back(&child);
    if (node.dictionary) parts->dictionary = given(root, *node.dictionary);
    ArrowSchema made{};
    made.format = node.format.c_str(), made.name = node.name.c_str();
    made.metadata = node.metadata ? node.metadata->data() : nullptr;
    made.flags = node.flags;
    made.n_children = static_cast<int64_t>(parts->children.size());
    made.children = parts->places.empty() ? nullptr : parts->places.data();
    made.dictionary = node.dictionary ? &parts->dictionary : nullptr;
    made.release = [](ArrowSchema* schema) {
        const std::unique_ptr<SchemaParts> own(static_cast<SchemaParts*>(schema->private_data));
        for (ArrowSchema& child : own->children)
            if (child.release != nullptr) child.release(&child);
        if (own->dictionary.release != nullptr) own->dictionary.release(&own->dictionary);
        schema->release = nullptr;
    };
    made.private_data = parts.release();
    return made;
}

}  // namespace

ArrowField::ArrowField(const nb::object& field) {
    auto made = std::make_shared<SchemaNode>();
    fill_field(*made, field, 0);
    root = std::move(made);
}

nb::object ArrowField::capsule() const { return capsule_of(given(root, *root), kSchemaCapsule); }

namespace {

// ---- streams --------------------------------------------------------------------------------------------

// Arrays that are there already, given out one after another.
struct ArrayQueue {
    std::shared_ptr<const SchemaNode> schema;
    std::vector<ArrowArray> arrays;
    size_t next = 0;

    ArrayQueue() = default;
    ArrayQueue(const ArrayQueue&) = delete;
    ArrayQueue& operator=(const ArrayQueue&) = delete;
    ~ArrayQueue() {
        for (; next < arrays.size(); ++next) arrays[next].release(&arrays[next]);
    }
};

ArrayQueue* queue_of(ArrowArrayStream* stream) { return static_cast<ArrayQueue*>(stream->private_data); }

}  // namespace

nb::object arrow_arrays(const ArrowField& field, const nb::object& arrays) {
    auto queue = std::make_unique<ArrayQueue>();
    queue->schema = field.root;
    const Items items(arrays);
    queue->arrays.reserve(items.size());
    for (size_t k = 0; k < items.size(); ++k) queue->arrays.push_back(export_array(items[k]));
    ArrowArrayStream stream{};
    stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
        const std::shared_ptr<const SchemaNode>& root = queue_of(self)->schema;
        try {
            *out = given(root, *root);
        } catch (const std::bad_alloc&) {
            return 12;  // ENOMEM
        }
        return 0;
    };
    stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
        ArrayQueue& own = *queue_of(self);
        if (own.next == own.arrays.size()) out->release = nullptr;
        else *out = own.arrays[own.next++];
        return 0;
    };
    stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
    stream.release = [](ArrowArrayStream* self) {
        delete queue_of(self);
        self->release = nullptr;
    };
    stream.private_data = queue.release();
    return capsule_of(ArrowArrayStream{stream}, kStreamCapsule);
}

nb::object arrow_array(const nb::object& array) { return capsule_of(export_array(array), kArrayCapsule); }

void begin_export() { names = new Names; }

}  // namespace pyparq
