// How often each entry of a dictionary is used by a page: its bounds, nulls and hashes follow without decoding values.
#include "hybrid.hpp"

#include <array>

namespace pyparq {
namespace {

void count_indices(const RawIn& data, int64_t count_, const Out<int64_t>& counts) {
    const size_t count = checked_count(count_, "count");
    if (count == 0) return;
    NoGil nogil(count);
    IndexReader reader(data.data, data.size, counts.size);
    std::array<uint32_t, 2048> piece;
    for (size_t left = count; left > 0;) {
        const size_t n = std::min(left, piece.size());
        reader.read(n, piece.data());
        for (size_t i = 0; i < n; ++i) ++counts.data[piece[i]];
        left -= n;
    }
}

}  // namespace
}  // namespace pyparq

void bind_count_indices(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("count_indices", &count_indices, "data"_a, "count"_a, "counts"_a);
}
