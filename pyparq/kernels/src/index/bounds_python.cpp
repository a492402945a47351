// Bounds as Python has them: lists of bytes, None where there is none.
#include "index/calls.hpp"
#include "index/bounds.hpp"
#include "values/checks.hpp"

namespace pyparq {
namespace {

nb::list cells(const std::vector<std::string>& all, const std::vector<uint8_t>& filled) {
    nb::list out;
    for (size_t k = 0; k < all.size(); ++k) {
        if (filled[k]) out.append(python_bytes(all[k]));
        else out.append(nb::none());
    }
    return out;
}

std::string_view text(PyObject* bytes) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0) throw nb::python_error();
    return {data, static_cast<size_t>(size)};
}

std::vector<int64_t> numbers(const nb::sequence& all) {
    std::vector<int64_t> out;
    for (const nb::handle v : all) out.push_back(nb::cast<int64_t>(v));
    return out;
}

SegmentBounds from_python(const LeafOrder& order, const nb::sequence& mins, const nb::sequence& maxs) {
    SegmentBounds out;
    if (nb::len(mins) != nb::len(maxs)) fail("there are not as many lower bounds as upper ones");
    for (size_t k = 0; k < nb::len(mins); ++k) {
        const nb::object low = mins[k], high = maxs[k];
        if (low.is_none() || high.is_none()) {
            out.add_none();
            continue;
        }
        out.add(text(low.ptr()), text(high.ptr()));
        if (order.width != 0 && (out.mins.back().size() != order.width || out.maxs.back().size() != order.width))
            fail("a bound is not of its type's " + str(order.width) + " bytes");
    }
    return out;
}

// (mins, maxs, NaN counts or None) of the segments between `edges`.
nb::object bounds_of(const LeafOrder& order, const SegmentBounds& found) {
    nb::object nans = nb::none();
    if (order.floats()) {
        Fresh<int64_t> counts(found.size());
        std::copy(found.nans.begin(), found.nans.end(), counts.data);
        nans = counts.object;
    }
    return nb::make_tuple(cells(found.mins, found.filled), cells(found.maxs, found.filled), nans);
}

nb::object segments(const LeafOrder& order, const Values& values, const In<int64_t>& edges) {
    check_offsets(edges.data, edges.size, values.count, "edges");
    SegmentBounds found;
    {
        NoGil nogil(values.count * 8);
        found = segment_bounds(order, values, edges.data, edges.size - 1);
    }
    return bounds_of(order, found);
}

}  // namespace

nb::object segments_fixed(const LeafOrder& order, const RawIn& data, const In<int64_t>& edges) {
    Values v;
    v.width = checked_value_width(static_cast<int64_t>(order.width)), v.count = checked_items(data.size, v.width, "values");
    v.data = data.data, v.size = data.size;
    std::vector<uint64_t> aligned;
    if (v.width <= 8 && std::has_single_bit(v.width) && reinterpret_cast<uintptr_t>(v.data) % v.width != 0) {
        aligned.resize(v.size / 8 + 1);
        std::memcpy(aligned.data(), v.data, v.size);
        v.data = reinterpret_cast<const uint8_t*>(aligned.data());
    }
    return segments(order, v, edges);
}

nb::object segments_binary(const LeafOrder& order, const Offsets& offsets, const RawIn& data, const In<int64_t>& edges) {
    return segments(order, byte_arrays(offsets, data), edges);
}

nb::bytes shorter_min_python(const LeafOrder& order, const nb::bytes& value, int64_t length) {
    return python_bytes(shorter_min(order, text(value.ptr()), length));
}

nb::bytes shorter_max_python(const LeafOrder& order, const nb::bytes& value, int64_t length) {
    return python_bytes(shorter_max(order, text(value.ptr()), length));
}

nb::bytes statistics(const LeafOrder& order, const nb::sequence& mins, const nb::sequence& maxs, int64_t null_count,
                     int64_t nan_count, int64_t distinct_count, int64_t truncate) {
    SegmentBounds pages = from_python(order, mins, maxs);
    pages.nans = {nan_count};
    StatisticsOptions options;
    options.null_count = null_count, options.distinct_count = distinct_count, options.truncate = truncate;
    ThriftOut out;
    write_statistics(out, order, pages, options);
    return python_bytes(out.bytes);
}

nb::object index_of_pages(const LeafOrder& order, const nb::sequence& mins, const nb::sequence& maxs, const nb::sequence& null_counts,
                          const nb::sequence& value_counts, const nb::sequence& nan_counts, const nb::sequence& definition,
                          const nb::sequence& repetition, int64_t truncate, int64_t longest) {
    SegmentBounds pages = from_python(order, mins, maxs);
    pages.nans = numbers(nan_counts);
    PageCounts counts{numbers(null_counts), numbers(value_counts), numbers(repetition), numbers(definition)};
    if (counts.nulls.size() != pages.size() || counts.values.size() != pages.size() || pages.nans.size() != pages.size())
        fail("there are not as many counts as pages");
    const auto found = column_index(order, pages, counts, truncate, longest);
    return found ? nb::object(python_bytes(*found)) : nb::object(nb::none());
}

}  // namespace pyparq
