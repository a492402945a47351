// Arrow arrays of other libraries (Arrow C data and stream interfaces), taken over with all their children by one call.
#include "arrow/import.hpp"

#include "base/bits.hpp"

#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

namespace pyparq {
namespace {

constexpr int64_t kMost = int64_t{1} << 48;  // elements of an array: more are in no memory, and sums of them stay small

// ---- types --------------------------------------------------------------------------------------------------------

// What the buffers of a type are ("Physical Memory Layout" of the Arrow columnar format).
enum class Buffers { None,
                     Validity,
                     Bits,
                     Values,
                     Bytes,
                     Offsets,
                     Views,
                     Ranges };

struct Layout {
    Buffers buffers;
    int64_t width = 0;  // of a value, of an offset, or of a range's number
};

int64_t number(std::string_view text) {
    int64_t v = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    return error == std::errc() && end == text.data() + text.size() && v >= 0 && v < (int64_t{1} << 31) ? v : -1;
}

// A type whose format is one letter. Empty for one that is not known here; likewise below.
std::optional<Layout> layout_of_letter(char letter) {
    switch (letter) {
        case 'n': return Layout{Buffers::None};
        case 'b': return Layout{Buffers::Bits};
        case 'c':
        case 'C': return Layout{Buffers::Values, 1};
        case 's':
        case 'S':
        case 'e': return Layout{Buffers::Values, 2};
        case 'i':
        case 'I':
        case 'f': return Layout{Buffers::Values, 4};
        case 'l':
        case 'L':
        case 'g': return Layout{Buffers::Values, 8};
        case 'u':
        case 'z': return Layout{Buffers::Bytes, 4};
        case 'U':
        case 'Z': return Layout{Buffers::Bytes, 8};
        default: return {};
    }
}

std::optional<Layout> layout_of_time(std::string_view f) {
    if (f == "tdD" || f == "tts" || f == "ttm" || f == "tiM") return Layout{Buffers::Values, 4};
    if (f == "tdm" || f == "ttu" || f == "ttn" || f == "tiD") return Layout{Buffers::Values, 8};
    if (f == "tDs" || f == "tDm" || f == "tDu" || f == "tDn") return Layout{Buffers::Values, 8};
    if (f == "tin") return Layout{Buffers::Values, 16};
    if (f.size() >= 4 && f.starts_with("ts") && f[3] == ':' && std::string_view("smun").find(f[2]) != f.npos)
        return Layout{Buffers::Values, 8};
    return {};
}

std::optional<Layout> layout_of_nested(std::string_view f) {
    if (f == "+s" || f.starts_with("+w:")) return Layout{Buffers::Validity};
    if (f == "+l" || f == "+m") return Layout{Buffers::Offsets, 4};
    if (f == "+L") return Layout{Buffers::Offsets, 8};
    if (f == "+vl") return Layout{Buffers::Ranges, 4};
    if (f == "+vL") return Layout{Buffers::Ranges, 8};
    if (f == "+r") return Layout{Buffers::None};
    return {};
}

std::optional<Layout> layout_of(std::string_view f) {
    if (f.size() == 1) return layout_of_letter(f[0]);
    if (f == "vu" || f == "vz") return Layout{Buffers::Views};
    if (f.starts_with('t')) return layout_of_time(f);
    if (f == "_pli128" || f == "_plu128") return Layout{Buffers::Values, 16};  // integers of polars
    if (f.starts_with('+')) return layout_of_nested(f);
    if (f.starts_with("w:")) {
        const int64_t width = number(f.substr(2));
        return width >= 0 ? std::optional(Layout{Buffers::Values, width}) : std::nullopt;
    }
    if (!f.starts_with("d:")) return {};
    const size_t first = f.find(','), second = first == f.npos ? f.npos : f.find(',', first + 1);
    const int64_t bits = second == f.npos ? 128 : number(f.substr(second + 1));
    if (first == f.npos || (bits != 32 && bits != 64 && bits != 128 && bits != 256)) return {};
    return Layout{Buffers::Values, bits / 8};
}

// A type and those below it.
struct Type {
    Layout layout;
    bool null = false;
    std::vector<Type> children;
    std::unique_ptr<Type> dictionary;
};

constexpr int kMostLevels = 200;  // levels of nesting

// False where some type is not known.
bool read_type(const ArrowSchema& schema, Type& out, int depth = 0) {
    if (depth > kMostLevels || schema.format == nullptr) return false;
    const std::optional<Layout> layout = layout_of(schema.format);
    if (!layout) return false;
    out.layout = *layout;
    out.null = std::strcmp(schema.format, "n") == 0;
    if (schema.n_children < 0 || (schema.n_children > 0 && schema.children == nullptr)) return false;
    out.children.resize(static_cast<size_t>(schema.n_children));
    for (size_t k = 0; k < out.children.size(); ++k)
        if (schema.children[k] == nullptr || !read_type(*schema.children[k], out.children[k], depth + 1)) return false;
    if (schema.dictionary == nullptr) return true;
    out.dictionary = std::make_unique<Type>();
    return out.layout.buffers == Buffers::Values && read_type(*schema.dictionary, *out.dictionary, depth + 1);
}

// None, or a dict of bytes: an int32 count, and for each key and value an int32 length and the bytes.
nb::object metadata_of(const char* at) {
    if (at == nullptr) return nb::none();
    const auto size = [&at] {
        const int32_t n = load<int32_t>(at);
        if (n < 0) fail("the schema's metadata have a negative length");
        at += 4;
        return n;
    };
    const auto bytes = [&] {
        const int32_t n = size();
        nb::bytes found(at, static_cast<size_t>(n));
        at += n;
        return found;
    };
    nb::dict found;
    for (int32_t left = size(); left > 0; --left) {
        const nb::bytes key = bytes();
        found[key] = bytes();
    }
    return found;
}

nb::object text_of(const char* text) {
    if (text == nullptr) return nb::none();
    nb::object found = nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "surrogateescape"));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

// (format, name, metadata, flags, children, dictionary)
nb::object described(const ArrowSchema& schema) {
    nb::object children = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(schema.n_children)));
    if (!children.is_valid()) throw nb::python_error();
    for (int64_t k = 0; k < schema.n_children; ++k)
        PyTuple_SetItem(children.ptr(), static_cast<Py_ssize_t>(k), described(*schema.children[k]).release().ptr());
    nb::object dictionary = schema.dictionary == nullptr ? nb::object(nb::none()) : described(*schema.dictionary);
    return nb::make_tuple(text_of(schema.format), text_of(schema.name), metadata_of(schema.metadata), schema.flags, children, dictionary);
}

// ---- arrays -------------------------------------------------------------------------------------------------------

// Some bytes of an array, by Python's buffer protocol.
struct ImportedBuffer {
    Owner owner;
    void* data;
    size_t size;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    const ImportedBuffer& found = *nb::inst_ptr<ImportedBuffer>(self);
    return PyBuffer_FillInfo(view, self, found.data, static_cast<Py_ssize_t>(found.size), 1, flags);
}

PyType_Slot kBufferSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

nb::object python_buffer(const Owner& owner, const ImportedArray::Bytes& bytes) {
    static uint8_t nothing;
    void* const data = bytes.size > 0 ? const_cast<uint8_t*>(bytes.data) : &nothing;
    return nb::cast(new ImportedBuffer{owner, data, bytes.size}, nb::rv_policy::take_ownership);
}

class Importer {
  public:
    explicit Importer(Owner owner) : owner_(std::move(owner)) {}

    // An ImportedArray, or (length, offset, null count, validity or None, buffers, children, dictionary).
    nb::object column(const ArrowArray& array, const Type& type) const {
        const int64_t length = array.length, offset = array.offset;
        if (length < 0 || offset < 0 || length > kMost || offset > kMost)
            fail("the array says that it has " + str(length) + " elements behind " + str(offset));
        if (array.n_children != static_cast<int64_t>(type.children.size())) fail("the array has " + str(array.n_children) + " children, its type " + str(static_cast<int64_t>(type.children.size())));
        const bool has_validity = type.layout.buffers != Buffers::None && buffer(array, 0) != nullptr && offset + length > 0;
        int64_t nulls = type.null ? length : 0;
        if (has_validity) nulls = array.null_count >= 0 ? array.null_count : count_nulls(array);
        const Bytes validity = has_validity ? bytes(array, 0, (offset + length + 7) / 8) : Bytes{};
        const Buffers kind = type.layout.buffers;
        if (type.dictionary == nullptr && type.children.empty() && (kind == Buffers::Bits || kind == Buffers::Values || kind == Buffers::Bytes)) {
            const Bytes first = kind == Buffers::Bytes ? offsets(array, type.layout.width) : values(array, type.layout);
            const Bytes second = kind == Buffers::Bytes ? bytes(array, 2, last_offset(array, type.layout.width)) : Bytes{};
            const bool arrays = kind == Buffers::Bytes;
            return nb::cast(new ImportedArray{owner_, length, offset, nulls, arrays ? 0 : type.layout.width, arrays ? type.layout.width : 0, validity, first, second},
                            nb::rv_policy::take_ownership);
        }
        return nb::make_tuple(length, offset, nulls, has_validity ? made(validity) : nb::none(), buffers(array, type), children(array, type),
                              dictionary(array, type));
    }

  private:
    using Bytes = ImportedArray::Bytes;

    Bytes values(const ArrowArray& array, const Layout& layout) const {
        const int64_t count = array.offset + array.length;
        return bytes(array, 1, layout.buffers == Buffers::Bits ? (count + 7) / 8 : size(count, layout.width));
    }

    nb::object buffers(const ArrowArray& array, const Type& type) const {
        const int64_t count = array.offset + array.length, width = type.layout.width;
        switch (type.layout.buffers) {
            case Buffers::None:
            case Buffers::Validity: return nb::make_tuple();
            case Buffers::Bits:
            case Buffers::Values: return nb::make_tuple(made(values(array, type.layout)));
            case Buffers::Offsets: return nb::make_tuple(made(offsets(array, width)));
            case Buffers::Ranges: return nb::make_tuple(made(bytes(array, 1, size(count, width))), made(bytes(array, 2, size(count, width))));
            case Buffers::Bytes: return nb::make_tuple(made(offsets(array, width)), made(bytes(array, 2, last_offset(array, width))));
            case Buffers::Views: break;
        }
        // Views, the buffers that they point into, and the sizes of these.
        const int64_t buffers = array.n_buffers - 3;
        if (buffers < 0) fail("an array of views has " + str(array.n_buffers) + " buffers");
        nb::list all;
        all.append(made(bytes(array, 1, size(count, 16))));
        const void* const sizes = buffer(array, array.n_buffers - 1);
        if (buffers > 0 && sizes == nullptr) fail("an array of views does not say how large its buffers are");
        for (int64_t k = 0; k < buffers; ++k) all.append(made(bytes(array, k + 2, load<int64_t>(static_cast<const char*>(sizes) + 8 * k))));
        all.append(made(bytes(array, array.n_buffers - 1, size(buffers, 8))));
        return nb::tuple(all);
    }

    nb::object children(const ArrowArray& array, const Type& type) const {
        if (type.children.empty()) return nb::make_tuple();
        nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(type.children.size())));
        if (!all.is_valid()) throw nb::python_error();
        if (array.children == nullptr) fail("the array has no children");
        for (size_t k = 0; k < type.children.size(); ++k) {
            if (array.children[k] == nullptr) fail("the array has no child " + str(static_cast<uint64_t>(k)));
            PyTuple_SetItem(all.ptr(), static_cast<Py_ssize_t>(k), column(*array.children[k], type.children[k]).release().ptr());
        }
        return all;
    }

    nb::object dictionary(const ArrowArray& array, const Type& type) const {
        if (type.dictionary == nullptr) return nb::none();
        if (array.dictionary == nullptr) fail("the array is dictionary-encoded, but has no dictionary");
        return column(*array.dictionary, *type.dictionary);
    }

    // Arrow lets an empty array leave its offsets out.
    Bytes offsets(const ArrowArray& array, int64_t width) const {
        const bool left_out = array.length + array.offset == 0 && buffer(array, 1) == nullptr;
        return bytes(array, 1, left_out ? 0 : size(array.offset + array.length + 1, width));
    }
    static int64_t last_offset(const ArrowArray& array, int64_t width) {
        const auto* const all = static_cast<const char*>(buffer(array, 1));
        if (all == nullptr) return 0;
        const int64_t at = array.offset + array.length;
        const int64_t last = width == 4 ? load<int32_t>(all + 4 * at) : load<int64_t>(all + 8 * at);
        if (last < 0) fail("the array's offsets are negative");
        return last;
    }

    static int64_t size(int64_t count, int64_t width) {
        if (width > 0 && count > (int64_t{1} << 62) / width) fail("the array says that it has too many bytes");
        return count * width;
    }
    static const void* buffer(const ArrowArray& array, int64_t k) {
        if (array.buffers == nullptr || k >= array.n_buffers) fail("the array has " + str(array.n_buffers) + " buffers");
        return array.buffers[k];
    }
    Bytes bytes(const ArrowArray& array, int64_t k, int64_t size) const {
        const void* const data = buffer(array, k);
        if (size < 0 || (data == nullptr && size > 0)) fail("buffer " + str(k) + " of the array is not there");
        return {static_cast<const uint8_t*>(size > 0 ? data : nullptr), static_cast<size_t>(size)};
    }
    nb::object made(const Bytes& bytes) const { return python_buffer(owner_, bytes); }
    static int64_t count_nulls(const ArrowArray& array) {
        const auto* const bits = static_cast<const uint8_t*>(array.buffers[0]);
        const auto size = static_cast<size_t>((array.offset + array.length + 7) / 8);
        int64_t nulls = array.length;
        for (int64_t i = 0; i < array.length; i += 64) {
            const auto n = static_cast<size_t>(std::min<int64_t>(array.length - i, 64));
            nulls -= std::popcount(load_bits(bits, size, static_cast<size_t>(array.offset + i)) & low_bits(n));
        }
        return nulls;
    }

    Owner owner_;
};

// Takes over what a capsule holds.
template <class T>
void take(const nb::object& capsule, const char* name, T& out) {
    auto* const found = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (found == nullptr) throw nb::python_error();
    if (found->release == nullptr) fail(std::string("another consumer has taken over the ") + name + " already");
    out = *found;
    found->release = nullptr;
}

}  // namespace

void bind_imported_buffer(nb::module_& m) {
    nb::class_<ImportedBuffer>(m, "ImportedBuffer", nb::type_slots(kBufferSlots));
}

nb::object ImportedArray::python_validity() const {
    return validity.data == nullptr ? nb::object(nb::none()) : python_buffer(owner, validity);
}

nb::tuple ImportedArray::python_buffers() const {
    const nb::object values = python_buffer(owner, first);
    return offset_width > 0 ? nb::make_tuple(values, python_buffer(owner, second)) : nb::make_tuple(values);
}

struct ArrowImport::State {
    State(const nb::object& schema, const nb::object& arrays) : capsule_(arrays), single_(!schema.is_none()) {
        if (single_) {
            take(schema, kSchemaCapsule, schema_.value);
            known_ = read_type(schema_.value, type_);
            if (known_) take_array(arrays);
            else give_back(schema, kSchemaCapsule, schema_.value);
            return;
        }
        take(arrays, kStreamCapsule, stream_.value);
        int failed = 0;
        {
            const NoGil nogil;
            failed = stream_.value.get_schema(&stream_.value, &schema_.value);
        }
        if (failed != 0) throw_last(failed);
        known_ = read_type(schema_.value, type_);
        if (!known_) give_back(arrays, kStreamCapsule, stream_.value);
    }

    nb::object schema() const { return known_ ? described(schema_.value) : nb::object(nb::none()); }

    nb::object next() {
        if (!known_) fail("a type of the arrays is not known");
        auto owner = std::make_shared<Owned<ArrowArray>>();
        if (single_) {
            std::swap(owner->value, array_.value);
        } else if (stream_.value.release != nullptr) {
            int failed = 0;
            {
                const NoGil nogil;
                failed = stream_.value.get_next(&stream_.value, &owner->value);
            }
            if (failed != 0) {
                owner->value.release = nullptr;
                throw_last(failed);
            }
        }
        if (owner->value.release == nullptr) return nb::none();
        return Importer(owner).column(owner->value, type_);
    }

  private:
    void take_array(const nb::object& arrays) { take(arrays, kArrayCapsule, array_.value); }

    template <class T>
    static void give_back(const nb::object& capsule, const char* name, T& value) {
        auto* const found = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
        if (found == nullptr) throw nb::python_error();
        *found = value;
        value.release = nullptr;
    }

    [[noreturn]] void throw_last(int code) {
        const char* const said = stream_.value.get_last_error == nullptr ? nullptr : stream_.value.get_last_error(&stream_.value);
        fail(said != nullptr && *said != '\0' ? std::string(said) : "error " + str(int64_t{code}));
    }

    nb::object capsule_;
    bool single_, known_ = false;
    Owned<ArrowSchema> schema_;
    Owned<ArrowArrayStream> stream_;
    Owned<ArrowArray> array_;
    Type type_;
};

ArrowImport::ArrowImport(const nb::object& schema, const nb::object& arrays) : state_(std::make_unique<State>(schema, arrays)) {}
ArrowImport::~ArrowImport() = default;
nb::object ArrowImport::schema() const { return state_->schema(); }
nb::object ArrowImport::next() { return state_->next(); }

}  // namespace pyparq
