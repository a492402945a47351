// The decoder of column chunks: bytes in, Arrow buffers out, on threads of its own and without Python in between.
#include "decode/calls.hpp"
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

}  // namespace

void set_libraries(nb::object crc_function, nb::object decoders) {
    if (libraries == nullptr) libraries = new Libraries;
    libraries->crc.emplace(std::move(crc_function), true);
    libraries->decoders = std::move(decoders);
}

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
    found.is_binary = leaf.is_binary(), found.wide = job.binary.wide;
    if (found.is_binary) {
        found.offsets = job.binary.offsets.share((job.slots + 1) * job.binary.offset_width());
        found.values = job.binary.bytes.share(job.binary.bytes_used);
    } else {
        const bool bits = leaf.physical == Physical::kBoolean && leaf.is_values();
        found.values = job.values.share(bits ? (job.slots + 7) / 8 : job.slots * leaf.out_width());
    }
    if (job.valid) found.validity = job.bits.share((job.slots + 7) / 8);
    if (job.def) found.def = job.def->share(job.in_place() ? job.slots : job.levels);
    if (!job.in_place()) found.rep = job.rep.share(job.levels);
    return found;
}

nb::object result_of(ColumnJob& job) {
    if (job.misfit) return nb::none();
    if (job.leaf.is_values()) return nb::cast(column_of(job));
    nb::list beside;
    if (job.leaf.is_codes()) {
        for (Piece& piece : job.pieces)
            beside.append(dictionary_of(piece.known ? *piece.known : piece.dictionary, job.leaf));
    } else {
        for (ViewBuffer& buffer : job.views.all) beside.append(buffer.bytes.share(buffer.used).array<uint8_t>());
    }
    return nb::make_tuple(column_of(job), beside);
}

namespace {

nb::object facts_of(const std::deque<ColumnJob>& jobs) {
    nb::list all;
    for (const ColumnJob& job : jobs)
        for (const Piece& piece : job.pieces)
            all.append(nb::cast(PieceFacts{piece.end, piece.pages_read, piece.dictionary_read ? 1 : 0}));
    return all;
}

}  // namespace

nb::object refusal_of(Faults& faults) {
    for (PyObject* const error : faults.lost_) Py_DECREF(error);
    faults.lost_.clear();
    const Fault& fault = faults.first;
    if (!fault.any) return nb::none();
    const nb::object error = fault.error == nullptr ? nb::none() : nb::steal(std::exchange(faults.first.error, nullptr));
    const auto& text = fault.refused.text;
    return nb::cast(DecodeRefusal{fault.refused.name, fault.refused.a, fault.refused.b, fault.refused.c,
                                  nb::bytes(text.data(), text.size()), fault.job, fault.place.piece, fault.place.page, error});
}

nb::tuple decode_columns(const nb::list& given, const PageLimits& limits, size_t threads, int64_t room) {
    InputBuffers held;
    Decoder decoder(limits, std::max<size_t>(threads, 1), room);
    const Py_ssize_t count = PyList_Size(given.ptr());
    try {
        for (Py_ssize_t j = 0; j < count; ++j) {
            const nb::handle one = PyList_GetItem(given.ptr(), j);
            ColumnJob& job = decoder.jobs.emplace_back();
            job.leaf = nb::cast<const LeafSpec&>(item(one, 0));
            const nb::handle pieces = item(one, 1);
            const Py_ssize_t n = PyList_Size(pieces.ptr());
            job.pieces.resize(static_cast<size_t>(n));
            for (Py_ssize_t p = 0; p < n; ++p)
                read_piece(nb::cast<const PieceSpec&>(nb::handle(PyList_GetItem(pieces.ptr(), p))), job.leaf, held, decoder.budget,
                           job.pieces[static_cast<size_t>(p)]);
        }
        decoder.run();
    } catch (const PageRefusal& refused) {
        decoder.faults.note(decoder.jobs.empty() ? 0 : decoder.jobs.size() - 1, {}, refused);
    }
    if (stop_requested()) fail("the task was stopped");
    const nb::object refusal = refusal_of(decoder.faults);
    if (!refusal.is_none()) return nb::make_tuple(nb::none(), nb::none(), refusal);
    nb::list results;
    for (ColumnJob& job : decoder.jobs) results.append(result_of(job));
    return nb::make_tuple(results, facts_of(decoder.jobs), nb::none());
}

}  // namespace pyparq
