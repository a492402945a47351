// The decoder of column chunks: bytes in, Arrow buffers out, on threads of its own and without Python in between.
#include "codecs/crc.hpp"
#include "codecs/codecs.hpp"
#include "decode/decoder.hpp"
#include "decode/libraries.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <deque>

namespace pyparq {

SharedBytes Block::share(size_t n) {
    constexpr size_t kSmall = 4096;  // to have room to spare costs more than to copy so much
    trim_area(area_, n);
    if (area_.data == nullptr || (n <= kSmall && area_.room > n + n / 4 + 64)) {
        const Area exact = take_area(std::max<size_t>(n, 1));
        if (n > 0) std::memcpy(exact.data, area_.data, n);
        give_area(std::exchange(area_, exact));
    }
    size_ = 0;
    return {std::exchange(area_, {}), n};
}

namespace {

// ---- libraries ------------------------------------------------------------------------------------------

struct Libraries {
    std::optional<Crc32> crc;
    nb::object decoders;  // decode(codec, stored, out) -> bytes written
};
Libraries* libraries = nullptr;  // never freed: threads may outlive the module

void set_libraries(nb::object crc_function, nb::object decoders) {
    if (libraries == nullptr) libraries = new Libraries;
    libraries->crc.emplace(std::move(crc_function), true);
    libraries->decoders = std::move(decoders);
}

}  // namespace

uint32_t crc32_of(const uint8_t* data, size_t size) {
    if (libraries == nullptr || !libraries->crc) fail("the decoder has no CRC-32");
    if (libraries->crc->native()) return libraries->crc->of(data, size);
    const nb::gil_scoped_acquire gil;
    return libraries->crc->of(data, size);
}

int64_t inflate_page(int codec, const uint8_t* in, size_t n, uint8_t* out, size_t size, size_t wanted) {
    if (codec_is_native(codec)) return inflate_native(codec, in, n, out, size, wanted);
    const nb::gil_scoped_acquire gil;
    const nb::object target =
        nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(out), static_cast<Py_ssize_t>(size), PyBUF_WRITE));
    if (!target.is_valid()) throw nb::python_error();
    return nb::cast<int64_t>(libraries->decoders(codec, passing_view(in, n), target));
}

namespace {

// ---- arguments ------------------------------------------------------------------------------------------

// What keeps the bytes of all pieces alive during a call.
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

}  // namespace

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
    leaf.kind = static_cast<OutputKind>(number(given, 7));
    leaf.convert = static_cast<Convert>(number(given, 8));
    leaf.is_large = number(given, 9) != 0;
    leaf.or_values = number(given, 10) != 0;
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

// (codec, values, rows, first page is a dictionary, whole, parts or bytes, ordinals, first rows, rows of pages,
//  dictionary apart, selection, (decryption, key, AADs, by CTR) or None, known dictionary)
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

// ---- results --------------------------------------------------------------------------------------------

template <class T>
nb::object array_of(const std::vector<T>& values) {
    Fresh<T> out(values.size());
    if (!values.empty()) std::memcpy(out.data, values.data(), values.size() * sizeof(T));
    return std::move(out.object);
}

// (count, offsets or None, bytes) of a dictionary, byte arrays or values of fixed width as they are stored.
nb::object dictionary_of(Dictionary& dictionary, const LeafSpec& leaf) {
    if (!dictionary.there) return nb::none();
    const bool binary = leaf.physical == Physical::kByteArray;
    return nb::make_tuple(dictionary.count, binary ? array_of(dictionary.offsets) : nb::none(),
                          dictionary.bytes.share(dictionary.bytes_used).array<uint8_t>());
}

}  // namespace

DecodedColumn column_of(ColumnJob& job) {
    const LeafSpec& leaf = job.leaf;
    DecodedColumn found;
    found.length = static_cast<int64_t>(job.slots), found.nulls = static_cast<int64_t>(job.nulls);
    found.is_binary = leaf.is_binary(), found.wide = job.wide;
    if (found.is_binary) {
        found.offsets = job.offsets.share((job.slots + 1) * (job.wide ? 8 : 4));
        found.values = job.bytes.share(job.bytes_used);
    } else {
        const bool bits = leaf.physical == Physical::kBoolean && leaf.kind == OutputKind::kValues;
        found.values = job.values.share(bits ? (job.slots + 7) / 8 : job.slots * leaf.out_width());
    }
    if (job.has_valid) found.validity = job.bits.share((job.slots + 7) / 8);
    if (job.has_def) found.def = job.def.share(job.in_place() ? job.slots : job.levels);
    if (job.has_rep) found.rep = job.rep.share(job.levels);
    return found;
}

namespace {

// The column; for codes (column, dictionaries of its pieces), for views (column, the bytes that they look at). None where it
// cannot come out as what was asked for.
nb::object result_of(ColumnJob& job) {
    if (job.give_up) return nb::none();
    if (job.leaf.kind == OutputKind::kValues) return nb::cast(column_of(job));
    nb::list beside;
    if (job.leaf.kind == OutputKind::kCodes) {
        for (Piece& piece : job.pieces)
            beside.append(dictionary_of(piece.known ? *piece.known : piece.dictionary, job.leaf));
    } else {
        for (ViewBuffer& buffer : job.views.all) beside.append(buffer.bytes.share(buffer.used).array<uint8_t>());
    }
    return nb::make_tuple(column_of(job), beside);
}

// What each piece has read: where its pages end, data pages, dictionary pages.
nb::object facts_of(const std::deque<ColumnJob>& jobs) {
    nb::list all;
    for (const ColumnJob& job : jobs)
        for (const Piece& piece : job.pieces)
            all.append(nb::make_tuple(piece.end, piece.pages_read, piece.dictionary_read ? 1 : 0));
    return all;
}

}  // namespace

PageLimits limits_of(const nb::handle& given) {
    return {number(given, 0), number(given, 1), number(given, 2), number(given, 3), number(given, 4), number(given, 5) != 0,
            std::clamp<int64_t>(number(given, 6), 0, std::numeric_limits<int32_t>::max())};
}

nb::object refusal_of(Faults& faults) {
    for (PyObject* const error : faults.lost_) Py_DECREF(error);
    faults.lost_.clear();
    const Fault& fault = faults.first;
    if (!fault.any) return nb::none();
    const nb::object error = fault.error == nullptr ? nb::none() : nb::steal(std::exchange(faults.first.error, nullptr));
    const auto& text = fault.refused.text;
    return nb::make_tuple(fault.refused.name, fault.refused.a, fault.refused.b, fault.refused.c,
                          nb::bytes(text.data(), text.size()), fault.job, fault.place.piece, fault.place.page, error);
}

namespace {

// jobs: (leaf, pieces) each. limits: as PageLimits. Returns (results, facts, None), or (None, None, what is wrong).
nb::tuple decode_columns(const nb::list& given, const nb::tuple& limits, size_t threads, int64_t room) {
    Held held;
    Decoder decoder(limits_of(limits), std::max<size_t>(threads, 1), room);
    const Py_ssize_t count = PyList_Size(given.ptr());
    try {
        for (Py_ssize_t j = 0; j < count; ++j) {
            const nb::handle one = PyList_GetItem(given.ptr(), j);
            ColumnJob& job = decoder.jobs.emplace_back();
            job.leaf = leaf_of(item(one, 0));
            const nb::handle pieces = item(one, 1);
            const Py_ssize_t n = PyList_Size(pieces.ptr());
            job.pieces.resize(static_cast<size_t>(n));
            for (Py_ssize_t p = 0; p < n; ++p)
                read_piece(PyList_GetItem(pieces.ptr(), p), job.leaf, held, decoder.budget, job.pieces[static_cast<size_t>(p)]);
        }
        decoder.run();
    } catch (const Refused& refused) {
        decoder.faults.note(decoder.jobs.empty() ? 0 : decoder.jobs.size() - 1, {}, refused);
    }
    if (stop_requested()) fail("the task was stopped");
    const nb::object refusal = refusal_of(decoder.faults);
    if (!refusal.is_none()) return nb::make_tuple(nb::none(), nb::none(), refusal);
    nb::list results;
    for (ColumnJob& job : decoder.jobs) results.append(result_of(job));
    return nb::make_tuple(results, facts_of(decoder.jobs), nb::none());
}

}  // namespace
}  // namespace pyparq

void bind_engine(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("set_libraries", &set_libraries, "crc32"_a, "decode"_a);
    m.def("decode_columns", &decode_columns, "jobs"_a, "limits"_a, "threads"_a, "room"_a);
}
