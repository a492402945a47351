// Arrow arrays of other libraries, kept until the last reference to them is gone.
#pragma once
#include "arrow/c_data.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace pyparq {

// A struct of another library's.
template <class T>
struct Owned {
    T value{};
    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
        if (value.release != nullptr) value.release(&value);
    }
};
using Owner = std::shared_ptr<Owned<ArrowArray>>;

// An array of fixed width, or of byte arrays. Its length and its last offset tell how large its buffers must be.
struct ImportedArray {
    struct Bytes {
        const uint8_t* data = nullptr;
        size_t size = 0;
    };
    Owner owner;
    int64_t length, offset, nulls;
    int64_t width;                  // of a value; 0 for bits
    int64_t offset_width;           // of byte arrays; 0 for others
    Bytes validity, first, second;  // values, or offsets and bytes

    nb::object python_validity() const;  // or None
    nb::tuple python_buffers() const;

    // Bytes that its elements take: of byte arrays with four for each offset.
    int64_t num_bytes() const {
        if (length == 0) return 0;
        if (offset_width == 0) return width == 0 ? (length + 7) / 8 : width * length;
        const auto at = [&](int64_t k) { return offset_width == 4 ? int64_t{load<int32_t>(first.data + 4 * k)} : load<int64_t>(first.data + 8 * k); };
        const int64_t begin = at(offset), end = at(offset + length);
        return 4 * length + std::max<int64_t>(end - std::max<int64_t>(begin, 0), 0);
    }
};

// Registers the type of `python_buffers`, which has the buffer protocol.
void bind_imported_buffer(nb::module_& m);

// The arrays of a stream, or one array.
class ArrowImport {
  public:
    // The capsules of `__arrow_c_array__`, or None and that of `__arrow_c_stream__`.
    ArrowImport(const nb::object& schema, const nb::object& arrays);
    ~ArrowImport();

    // None where some type is not known here: the capsules hold what they held.
    nb::object schema() const;
    // The next array, or None.
    nb::object next();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace pyparq
