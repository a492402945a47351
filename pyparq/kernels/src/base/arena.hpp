// Memory that pages go into, several at a time.
#pragma once
#include "base/common.hpp"

#include <algorithm>

namespace pyparq {

// Bytes from..to of a memoryview, as one that keeps alive what it looks at.
inline nb::object part(const nb::object& view, size_t from, size_t to) {
    return view[nb::slice(nb::int_(from), nb::int_(to), nb::int_(1))];
}

// Gives out parts of one buffer, which stay until they are cleared.
class Arena {
  public:
    // `more(size)` gives a writable buffer of at least so many bytes.
    explicit Arena(nb::object more) : more_(std::move(more)) {}

    // A writable memoryview of `size` bytes.
    nb::object take(size_t size) {
        if (size > room_ - used_ || view_.is_none()) grow(size);
        const size_t start = used_;
        used_ = std::min(room_, start + (size + 63) / 64 * 64);
        return part(view_, start, start + size);
    }
    // All that was taken may be given out again.
    void clear() { used_ = 0; }

  private:
    // Views keep the buffer before alive. This one has room for more, which is where the next will go.
    void grow(size_t size) {
        constexpr size_t kLeast = size_t{1} << 16, kMostAhead = size_t{4} << 20;
        const size_t room = std::max({size, std::min(2 * room_, kMostAhead), kLeast});
        nb::object view = nb::steal(PyMemoryView_FromObject(nb::object(more_(room)).ptr()));
        if (!view.is_valid()) throw nb::python_error();
        Out<uint8_t> found;
        if (!found.load(view.ptr()) || found.size < room)
            fail("an arena needs " + str(uint64_t{room}) + " bytes to write to");
        view_ = std::move(view), room_ = found.size, used_ = 0;
    }

    nb::object more_, view_ = nb::none();
    size_t room_ = 0, used_ = 0;
};

}  // namespace pyparq
