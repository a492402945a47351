// What Python hands to the decoder: leaves, limits, and the pieces of column chunks.
#pragma once
#include "decode/column.hpp"

#include <deque>

namespace pyparq {

// What keeps the bytes of pieces alive.
struct Held {
    std::deque<Buffer> buffers;

    Bytes bytes(const nb::handle& source) {
        Buffer& buffer = buffers.emplace_back();
        if (!buffer.acquire(source.ptr(), PyBUF_SIMPLE)) fail("pages must be bytes-like");
        return {static_cast<const uint8_t*>(buffer.view().buf), static_cast<size_t>(buffer.view().len)};
    }
    template <class T>
    const T* items(const nb::handle& source, size_t& n) {
        const Bytes found = bytes(source);
        n = found.size / sizeof(T);
        if (reinterpret_cast<uintptr_t>(found.data) % alignof(T) != 0) fail("an array is not aligned");
        return reinterpret_cast<const T*>(found.data);
    }
};

// Item k of a tuple.
nb::handle item(const nb::handle& tuple, Py_ssize_t k);
int64_t number(const nb::handle& tuple, Py_ssize_t k);

PageLimits limits_of(const nb::handle& given);
LeafSpec leaf_of(const nb::handle& given);

// (codec, values, rows, first page is a dictionary, whole, parts or bytes, ordinals, first rows, rows of pages,
//  dictionary apart, selection, (decryption, key, AADs, by CTR) or None, known dictionary)
void read_piece(const nb::handle& given, const LeafSpec& leaf, Held& held, Budget& budget, Piece& piece);

}  // namespace pyparq
