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

namespace {

OutputForm form_of(const std::string& name, const LeafSpec& leaf) {
    if (name == "values") return leaf.form_of_values();
    if (name == "codes") return OutputForm::kCodes;
    if (name == "views") return OutputForm::kViews;
    fail("a leaf comes out as values, codes or views, not as " + name);
}

}  // namespace

void init_leaf(LeafSpec* self, int64_t physical, int64_t width, int64_t max_def, int64_t max_rep, int64_t slot_level,
               bool keeps_levels, bool is_text, const std::string& form, int64_t convert, bool large_offsets,
               bool codes_or_values, int64_t digits) {
    if (physical < 0 || physical > static_cast<int64_t>(Physical::kFixed)) fail("there is no such physical type");
    if (convert < 0 || convert > static_cast<int64_t>(Convert::kBytesDecimal32)) fail("there is no such conversion");
    if (digits < 0 || digits > kMostDigits) fail("digits out of range");
    if (max_def < 0 || max_def > 255 || max_rep < 0 || max_rep > 255) fail("levels out of range");
    LeafSpec leaf{};
    leaf.physical = static_cast<Physical>(physical), leaf.width = checked_count(width, "width");
    leaf.max_def = static_cast<int>(max_def), leaf.max_rep = static_cast<int>(max_rep);
    leaf.slot_level = static_cast<int>(slot_level), leaf.keeps_levels = keeps_levels, leaf.is_text = is_text;
    leaf.form = form_of(form, leaf), leaf.convert = static_cast<Convert>(convert);
    leaf.large_offsets = large_offsets, leaf.codes_or_values = codes_or_values, leaf.digits = static_cast<int>(digits);
    if (leaf.physical != Physical::kByteArray && leaf.width == 0) fail("a leaf of no width");
    new (self) LeafSpec(leaf);
}

void init_limits(PageLimits* self, int64_t max_page, int64_t max_expansion, int64_t expansion_floor, int64_t max_values_per_byte,
                 int64_t max_column, bool check_crc, int64_t most_offset) {
    most_offset = std::clamp<int64_t>(most_offset, 0, std::numeric_limits<int32_t>::max());
    new (self) PageLimits{max_page, max_expansion, expansion_floor, max_values_per_byte, max_column, check_crc, most_offset};
}

namespace {

// A dictionary that is known: (entries, offsets or None, bytes).
Dictionary read_known(const nb::handle& given, const LeafSpec& leaf, InputBuffers& held, Budget& budget) {
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

namespace {

// A list of single pages, and the numbers of their rows.
void read_pages(const PieceSpec& given, InputBuffers& held, Piece& piece) {
    const Py_ssize_t n = PySequence_Size(given.data.ptr());
    if (n < 0) throw nb::python_error();
    for (Py_ssize_t k = 0; k < n; ++k) {
        const nb::object part = nb::steal(PySequence_GetItem(given.data.ptr(), k));
        if (!part.is_valid()) throw nb::python_error();
        piece.parts.push_back(held.bytes(part));
    }
    piece.dictionary_apart = given.dictionary_apart;
    size_t a = 0, b = 0, c = 0;
    piece.ordinals = held.items<int64_t>(given.ordinals, a);
    piece.first_rows = held.items<int64_t>(given.first_rows, b);
    piece.page_rows = held.items<int64_t>(given.page_rows, c);
    if (piece.dictionary_apart && piece.parts.empty()) fail("no dictionary page");
    const size_t pages = piece.parts.size() - (piece.dictionary_apart ? 1 : 0);
    if (a != pages || b != pages || c != pages) fail("a number per page is due");
}

RowSelection read_rows(const nb::object& given, int64_t num_rows, InputBuffers& held) {
    RowSelection rows;
    if (given.is_none()) return rows;
    if (!PyTuple_Check(given.ptr())) {
        const Bytes bits = held.bytes(given);
        if (bits.size % 8 != 0 || static_cast<int64_t>(bits.size) * 8 < num_rows) fail("a bitmap needs a bit per row");
        rows.form = RowSelection::kBitmap, rows.bits = bits.data, rows.num_rows = num_rows;
        return rows;
    }
    size_t ends = 0;
    rows.form = RowSelection::kRanges;
    rows.starts = held.items<int64_t>(item(given, 0), rows.ranges);
    rows.ends = held.items<int64_t>(item(given, 1), ends);
    if (rows.ranges != ends) fail("ranges need as many ends as starts");
    int64_t last = 0;
    for (size_t k = 0; k < ends; ++k) {
        if (rows.starts[k] < last || rows.ends[k] < rows.starts[k]) fail("ranges must ascend");
        last = rows.ends[k];
    }
    return rows;
}

}  // namespace

void read_piece(const PieceSpec& given, const LeafSpec& leaf, InputBuffers& held, Budget& budget, Piece& piece) {
    piece.codec = given.codec, piece.num_values = given.num_values, piece.num_rows = given.num_rows;
    piece.first_is_dictionary = given.first_is_dictionary, piece.cipher = given.cipher;
    piece.whole = given.ordinals.is_none();
    if (piece.whole) piece.parts.push_back(held.bytes(given.data));
    else read_pages(given, held, piece);
    piece.rows = read_rows(given.rows, piece.num_rows, held);
    if (!given.dictionary.is_none()) piece.known = read_known(given.dictionary, leaf, held, budget);
}

void init_piece(PieceSpec* self, int64_t codec, int64_t num_values, int64_t num_rows, bool first_is_dictionary, nb::object data,
                nb::object ordinals, nb::object first_rows, nb::object page_rows, bool dictionary_apart, nb::object rows,
                nb::object cipher, nb::object dictionary) {
    const auto* const opens = cipher.is_none() ? nullptr : nb::cast<const PageCipher*>(cipher);
    new (self) PieceSpec{static_cast<int>(codec), num_values, num_rows, first_is_dictionary, std::move(data), std::move(ordinals),
                         std::move(first_rows), std::move(page_rows), dictionary_apart, std::move(rows), std::move(cipher),
                         std::move(dictionary), opens};
}

}  // namespace pyparq
