// Memory of results, and of what is fetched for them: used again when it is given back, in large pages where the system
// has these.
//
// Fresh memory comes from the kernel page by page, each cleared when it is first touched. For a large column of text that
// takes longer than to decode it.
#pragma once
#include "base/common.hpp"

#include <memory>
#include <new>
#include <utility>

namespace pyparq {

constexpr size_t kLargePage = size_t{2} << 20;  // bytes of a large page of the common processors

// Some memory. The owner gives it back, or hands it to an array that does.
struct Area {
    uint8_t* data = nullptr;
    size_t room = 0;  // bytes that it has, at least as many as were asked for
};

// All may be called from any thread, with the GIL or without it.

// At least `size` bytes of anything, aligned for every type. Throws std::bad_alloc.
Area take_area(size_t size);

// The same where Python waits for the memory: with the GIL, and its MemoryError.
Area take_area_for_python(size_t size);

// Grows to at least `size` bytes and keeps the first `used`. The old memory of `area` is freed. Where it throws
// std::bad_alloc, all is as before.
void grow_area(Area& area, size_t used, size_t size);

// Frees the memory behind the first `used` bytes, where that is worth it.
void trim_area(Area& area, size_t used);

void give_area(Area area) noexcept;

// For vectors whose new items are all written at once: they begin with anything, not with zeros.
template <class T>
struct Unset : std::allocator<T> {
    template <class U>
    struct rebind {
        using other = Unset<U>;
    };
    template <class U>
    void construct(U* place) noexcept { ::new (static_cast<void*>(place)) U; }
    template <class U, class... Values>
    void construct(U* place, Values&&... values) { ::new (static_cast<void*>(place)) U(std::forward<Values>(values)...); }
};

// An object of Python's that gives the area back when the last reference to it is gone: the base of numpy's arrays. Needs
// the GIL. Python's account of memory (tracemalloc) has its first `used` bytes as an array of numpy's.
nb::capsule owner_of(Area area, size_t used);

}  // namespace pyparq
