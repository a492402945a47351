// How often each entry of a dictionary is used by a page: its bounds, nulls and hashes follow without decoding values.
#include "decode/rle_bitpacked.hpp"

#include <array>

namespace pyparq {
namespace {

nb::object count_indices(const RawIn& data, int64_t count_, const Out<int64_t>& counts) {
    const size_t count = checked_count(count_, "count");
    std::vector<int64_t> used;
    if (count > 0) {
        NoGil nogil(count);
        IndexReader reader(data.data, data.size, counts.size);
        std::array<uint32_t, 2048> piece;
        for (size_t left = count; left > 0;) {
            const size_t n = std::min(left, piece.size());
            reader.read(n, piece.data());
            for (size_t i = 0; i < n; ++i) {
                if (counts.data[piece[i]]++ == 0) used.push_back(piece[i]);
            }
            left -= n;
        }
    }
    Fresh<int64_t> out(used.size());
    if (!used.empty()) std::memcpy(out.data, used.data(), used.size() * sizeof(int64_t));
    return std::move(out.object);
}

}  // namespace
}  // namespace pyparq

void bind_count_indices(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("count_indices", &count_indices, "data"_a, "count"_a, "counts"_a);
}
