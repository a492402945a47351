// String views of other libraries laid out as offsets and bytes (Arrow columnar format, "Variable-size Binary View Layout").
#include "arrow/calls.hpp"
#include "values/checks.hpp"

#include <vector>

namespace pyparq {
namespace {

constexpr size_t kView = 16;         // bytes of a view: length, then the value itself or (prefix, buffer, offset)
constexpr int32_t kMostInside = 12;  // longest value that a view holds itself

struct Source {
    const uint8_t *begin, *end;
};

// Where the bytes of a view are.
Source source_of(const uint8_t* view, int32_t length, const Source& views, const std::vector<Source>& buffers) {
    if (length <= kMostInside) return {view + 4, views.end};
    const auto buffer = load<int32_t>(view + 8), offset = load<int32_t>(view + 12);
    if (buffer < 0 || static_cast<size_t>(buffer) >= buffers.size()) fail("a string view points into a buffer that does not exist");
    const Source& found = buffers[static_cast<size_t>(buffer)];
    if (offset < 0 || int64_t{offset} + length > found.end - found.begin) fail("a string view points outside of its buffer");
    return {found.begin + offset, found.end};
}

}  // namespace

nb::object lay_out_views(const RawIn& views, const Valid& valid, const nb::list& given) {
    if (views.size % kView != 0) fail("views of " + str(views.size) + " bytes are not whole ones");
    const size_t n = views.size / kView;
    if (!valid.none() && valid.size != n) fail(str(n) + " views but " + str(valid.size) + " validity bytes");
    std::vector<RawIn> held(nb::len(given));
    std::vector<Source> buffers;
    for (size_t k = 0; k < held.size(); ++k) {
        if (!held[k].load(given[k].ptr())) fail("buffers must be contiguous");
        buffers.push_back({held[k].data, held[k].data + held[k].size});
    }
    const Source all{views.data, views.data + views.size};
    Fresh<int64_t> offsets(n + 1);
    {
        NoGil nogil(views.size);
        int64_t at = 0;
        for (size_t i = 0; i < n; ++i) {
            offsets.data[i] = at;
            if (!valid.none() && valid.data[i] == 0) continue;
            const uint8_t* const view = views.data + kView * i;
            const auto length = load<int32_t>(view);
            if (length < 0) fail("a string view has a negative length");
            source_of(view, length, all, buffers);
            at += length;
        }
        offsets.data[n] = at;
    }
    const auto total = static_cast<size_t>(offsets.data[n]);
    Fresh<uint8_t> data(total);
    {
        NoGil nogil(views.size + total);
        const uint8_t* const end = data.data + total;
        for (size_t i = 0; i < n; ++i) {
            const int64_t length = offsets.data[i + 1] - offsets.data[i];
            if (length == 0) continue;
            const Source from = source_of(views.data + kView * i, static_cast<int32_t>(length), all, buffers);
            copy_short(data.data + offsets.data[i], end, from.begin, from.end, static_cast<size_t>(length));
        }
    }
    return nb::make_tuple(offsets.object, data.object);
}

}  // namespace pyparq
