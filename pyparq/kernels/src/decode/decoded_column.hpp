// A decoded column as it leaves the decoder. Arrays of numpy and of Arrow share its memory. They are made on demand.
#pragma once
#include "base/memory.hpp"

#include <memory>

namespace pyparq {

// Bytes with a reference count. The last reference may go on any thread, with the GIL or without it.
class SharedBytes {
  public:
    SharedBytes() = default;
    // Takes over an area whose first `size` bytes are in use. Needs the GIL.
    SharedBytes(Area area, size_t size);

    explicit operator bool() const { return owner_ != nullptr; }
    const uint8_t* data() const { return data_; }
    size_t size() const { return size_; }
    const std::shared_ptr<const void>& owner() const { return owner_; }

    // An array over these bytes, of uint8, int32 or int64.
    template <class T>
    nb::object array() const;

  private:
    std::shared_ptr<const void> owner_;
    const uint8_t* data_ = nullptr;
    size_t size_ = 0;
};

// A column of fixed width, or of byte arrays.
struct DecodedColumn {
    int64_t length = 0, nulls = 0;
    bool is_binary = false, wide = false;  // wide: offsets of 64 bits
    SharedBytes validity;                  // none where nothing is null
    SharedBytes values, offsets;           // the bytes of byte arrays are their values
    SharedBytes def, rep;                  // a byte per entry
    nb::object python_offsets() const;     // or None
    size_t buffer_size() const { return validity.size() + values.size() + offsets.size(); }
    size_t size() const { return buffer_size() + def.size() + rep.size(); }
};

}  // namespace pyparq
