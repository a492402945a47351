// What Python hands to the decoder: leaves, limits, and the pieces of column chunks.
#pragma once
#include "decode/column.hpp"

#include <deque>

namespace pyparq {

// What keeps the bytes of pieces alive.
struct InputBuffers {
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

// The wanted part of one column chunk.
struct PieceSpec {
    int codec;
    int64_t num_values, num_rows;
    bool first_is_dictionary;
    nb::object data;                             // the bytes of the whole chunk; or of its dictionary page, if that is apart, and of pages
    nb::object ordinals, first_rows, page_rows;  // int64 for each of these pages; None for a whole chunk
    bool dictionary_apart;
    nb::object rows;                       // None: all; (int64 starts, ends); or a bitmap
    nb::object cipher_object, dictionary;  // the latter: (entries, offsets or None, bytes), where it is known
    const PageCipher* cipher;
};

void init_leaf(LeafSpec* self, int64_t physical, int64_t width, int64_t max_def, int64_t max_rep, int64_t slot_level,
               bool keeps_levels, bool is_text, const std::string& form, int64_t convert, bool large_offsets,
               bool codes_or_values, int64_t digits);
void init_limits(PageLimits* self, int64_t max_page, int64_t max_expansion, int64_t expansion_floor, int64_t max_values_per_byte,
                 int64_t max_column, bool check_crc, int64_t most_offset);
void init_piece(PieceSpec* self, int64_t codec, int64_t num_values, int64_t num_rows, bool first_is_dictionary, nb::object data,
                nb::object ordinals, nb::object first_rows, nb::object page_rows, bool dictionary_apart, nb::object rows,
                nb::object cipher, nb::object dictionary);

void read_piece(const PieceSpec& given, const LeafSpec& leaf, InputBuffers& held, Budget& budget, Piece& piece);

}  // namespace pyparq
