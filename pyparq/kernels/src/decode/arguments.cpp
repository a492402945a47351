// What Python hands to the decoder.
#include "decode/arguments.hpp"

#include <algorithm>
#include <limits>

namespace pyparq {

nb::handle item(const nb::handle& tuple, Py_ssize_t k) {
    PyObject* const found = PyTuple_GetItem(tuple.ptr(), k);
    if (found == nullptr) throw nb::python_error();
    return found;
}

int64_t number(const nb::handle& tuple, Py_ssize_t k) {
    const long long found = PyLong_AsLongLong(item(tuple, k).ptr());
    if (found == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return found;
}

LeafSpec leaf_of(const nb::handle& given) {
    LeafSpec leaf{};
    leaf.physical = static_cast<Physical>(number(given, 0));
    leaf.width = static_cast<size_t>(number(given, 1));
    leaf.max_def = static_cast<int>(number(given, 2));
    leaf.max_rep = static_cast<int>(number(given, 3));
    leaf.slot_level = static_cast<int>(number(given, 4));
    leaf.keeps_levels = number(given, 5) != 0;
    leaf.is_text = number(given, 6) != 0;
    const int64_t form = number(given, 7);  // values, codes or views
    leaf.form = form == 1 ? OutputForm::kCodes : form == 2 ? OutputForm::kViews
                                                           : leaf.form_of_values();
    leaf.convert = static_cast<Convert>(number(given, 8));
    leaf.large_offsets = number(given, 9) != 0;
    leaf.codes_or_values = number(given, 10) != 0;
    leaf.digits = static_cast<int>(number(given, 11));
    if (leaf.digits < 0 || leaf.digits > kMostDigits) fail("digits out of range");
    if (leaf.max_def < 0 || leaf.max_def > 255 || leaf.max_rep < 0 || leaf.max_rep > 255) fail("levels out of range");
    if (leaf.physical != Physical::kByteArray && leaf.width == 0) fail("a leaf of no width");
    return leaf;
}

namespace {

// A dictionary that is known: (entries, offsets or None, bytes).
Dictionary read_known(const nb::handle& given, const LeafSpec& leaf, Held& held, Budget& budget) {
    Dictionary dictionary;
    const auto count = number(given, 0);
    if (count < 0) fail("a dictionary of a negative size");
    const Bytes data = held.bytes(item(given, 2));
    if (item(given, 1).is_none()) {
        if (leaf.physical == Physical::kBoolean) {
            dictionary.there = true, dictionary.count = static_cast<size_t>(count);
            dictionary.fixed.assign(data.data, data.data + data.size);
            if (data.size < dictionary.count) fail("a dictionary that is too short");
            return dictionary;
        }
        dictionary.load(data, count, count, leaf, 0, budget);
        return dictionary;
    }
    size_t n;
    const int64_t* const offsets = held.items<int64_t>(item(given, 1), n);
    if (n != static_cast<size_t>(count) + 1) fail("a dictionary needs an offset more than it has entries");
    check_offsets(offsets, n, data.size);
    std::vector<uint8_t> plain;
    for (size_t i = 0; i + 1 < n; ++i) {
        const auto length = static_cast<uint32_t>(offsets[i + 1] - offsets[i]);
        const auto* const p = reinterpret_cast<const uint8_t*>(&length);
        plain.insert(plain.end(), p, p + 4);
        plain.insert(plain.end(), data.data + offsets[i], data.data + offsets[i + 1]);
    }
    dictionary.load({plain.data(), plain.size()}, count, count, leaf, plain.size(), budget);
    return dictionary;
}

}  // namespace

void read_piece(const nb::handle& given, const LeafSpec& leaf, Held& held, Budget& budget, Piece& piece) {
    piece.codec = static_cast<int>(number(given, 0));
    piece.num_values = number(given, 1);
    piece.num_rows = number(given, 2);
    piece.first_is_dictionary = number(given, 3) != 0;
    piece.whole = number(given, 4) != 0;
    const nb::handle parts = item(given, 5);
    if (piece.whole) {
        piece.parts.push_back(held.bytes(parts));
    } else {
        const Py_ssize_t n = PySequence_Size(parts.ptr());
        if (n < 0) throw nb::python_error();
        for (Py_ssize_t k = 0; k < n; ++k) {
            const nb::object part = nb::steal(PySequence_GetItem(parts.ptr(), k));
            piece.parts.push_back(held.bytes(part));
        }
        piece.dictionary_apart = number(given, 9) != 0;
        size_t a = 0, b = 0, c = 0;
        piece.ordinals = held.items<int64_t>(item(given, 6), a);
        piece.first_rows = held.items<int64_t>(item(given, 7), b);
        piece.page_rows = held.items<int64_t>(item(given, 8), c);
        const size_t pages = piece.parts.size() - (piece.dictionary_apart ? 1 : 0);
        if (piece.dictionary_apart && piece.parts.empty()) fail("no dictionary page");
        if (a != pages || b != pages || c != pages) fail("a number per page is due");
    }
    const nb::handle rows = item(given, 10);
    if (PyTuple_Check(rows.ptr())) {
        size_t a = 0, b = 0;
        piece.rows.form = RowSelection::kRanges;
        piece.rows.starts = held.items<int64_t>(item(rows, 0), a);
        piece.rows.ends = held.items<int64_t>(item(rows, 1), b);
        if (a != b) fail("ranges need as many ends as starts");
        int64_t last = 0;
        for (size_t k = 0; k < a; ++k) {
            if (piece.rows.starts[k] < last || piece.rows.ends[k] < piece.rows.starts[k]) fail("ranges must ascend");
            last = piece.rows.ends[k];
        }
        piece.rows.ranges = a;
    } else if (!rows.is_none()) {
        const Bytes bits = held.bytes(rows);
        if (bits.size % 8 != 0 || static_cast<int64_t>(bits.size) * 8 < piece.num_rows) fail("a bitmap needs a bit per row");
        piece.rows.form = RowSelection::kBitmap;
        piece.rows.bits = bits.data;
        piece.rows.num_rows = piece.num_rows;
    }
    if (const nb::handle cipher = item(given, 11); !cipher.is_none())
        piece.cipher.emplace(nb::borrow(item(cipher, 0)), nb::borrow(item(cipher, 1)), item(cipher, 2), number(cipher, 3) != 0);
    if (!item(given, 12).is_none()) piece.known = read_known(item(given, 12), leaf, held, budget);
}

PageLimits limits_of(const nb::handle& given) {
    return {number(given, 0), number(given, 1), number(given, 2), number(given, 3), number(given, 4), number(given, 5) != 0,
            std::clamp<int64_t>(number(given, 6), 0, std::numeric_limits<int32_t>::max())};
}

}  // namespace pyparq
