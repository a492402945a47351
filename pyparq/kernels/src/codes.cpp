// Dictionary codes page by page: which entries each page uses, and what these weigh together.
#include "common.hpp"

#include <vector>

namespace pyparq {
namespace {

nb::tuple tally_codes(const In<int32_t>& codes, const In<int64_t>& edges, const In<int32_t>& weights) {
    if (edges.size == 0) fail("edges are one more than pages");
    const size_t pages = edges.size - 1, entries = weights.size;
    std::vector<int64_t> used;
    Fresh<int64_t> used_edges(pages + 1), sums(pages);
    {
        NoGil nogil(codes.size * 4);
        if (pages >= std::numeric_limits<uint32_t>::max()) fail("too many pages: " + str(uint64_t{pages}));
        std::vector<uint32_t> last(entries, 0);  // the page that used an entry last, counted from 1
        used_edges.data[0] = 0;
        for (size_t page = 0; page < pages; ++page) {
            const int64_t first = edges.data[page], end = edges.data[page + 1];
            if (first < 0 || end < first || static_cast<uint64_t>(end) > codes.size) fail("edges outside of the codes");
            const auto stamp = static_cast<uint32_t>(page + 1);
            int64_t sum = 0;
            for (int64_t k = first; k < end; ++k) {
                const auto code = static_cast<uint32_t>(codes.data[k]);
                if (code >= entries) fail("code " + str(uint64_t{code}) + " of " + str(uint64_t{entries}) + " entries");
                sum += weights.data[code];
                if (last[code] != stamp) {
                    last[code] = stamp;
                    used.push_back(code);
                }
            }
            used_edges.data[page + 1] = static_cast<int64_t>(used.size());
            sums.data[page] = sum;
        }
    }
    Fresh<int64_t> all(used.size());
    if (!used.empty()) std::memcpy(all.data, used.data(), used.size() * sizeof(int64_t));
    return nb::make_tuple(std::move(all.object), std::move(used_edges.object), std::move(sums.object));
}

}  // namespace
}  // namespace pyparq

void bind_codes(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("tally_codes", &tally_codes, "codes"_a, "edges"_a, "weights"_a);
}
