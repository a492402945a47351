// Dictionary codes page by page: which entries each page uses, and what these weigh together.
#include "select/calls.hpp"
#include "base/common.hpp"

#include <vector>

namespace pyparq {
namespace {

// Codes that were used, in memory that grows without being filled.
class Used {
  public:
    // Room for `more` codes behind the `size` there are.
    int32_t* reserve(size_t more) {
        if (size + more > room_) {
            room_ = std::max(size + more, 2 * room_);
            auto larger = std::make_unique_for_overwrite<int32_t[]>(room_);
            if (size > 0) std::memcpy(larger.get(), data_.get(), size * sizeof(int32_t));
            data_ = std::move(larger);
        }
        return data_.get() + size;
    }
    const int32_t* data() const { return data_.get(); }
    size_t size = 0;

  private:
    std::unique_ptr<int32_t[]> data_;
    size_t room_ = 0;
};

// The codes of one page: those that are new go to `out`. `stamps` tell which were used with the same `stamp`.
template <bool Weighed>
size_t tally_page(const int32_t* codes, size_t n, uint8_t* stamps, size_t entries, uint8_t stamp, const int32_t* weights,
                  int32_t* out, int64_t& sum) {
    size_t found = 0;
    uint32_t largest = 0;
    for (size_t k = 0; k < n; ++k) largest = std::max(largest, static_cast<uint32_t>(codes[k]));
    if (n > 0 && largest >= entries) fail("code " + str(uint64_t{largest}) + " of " + str(uint64_t{entries}) + " entries");
    for (size_t k = 0; k < n; ++k) {
        const auto code = static_cast<uint32_t>(codes[k]);
        if constexpr (Weighed) sum += weights[code];
        out[found] = codes[k];  // stays if it is new
        found += stamps[code] != stamp;
        stamps[code] = stamp;
    }
    return found;
}

}  // namespace

nb::tuple tally_codes(const In<int32_t>& codes, const In<int64_t>& edges, int64_t num_entries,
                      const Array<int32_t, false, true>& weights) {
    if (edges.size == 0) fail("edges are one more than pages");
    const size_t pages = edges.size - 1, entries = checked_count(num_entries, "num_entries");
    if (!weights.none() && weights.size != entries) fail("a weight for each entry");
    Used used;
    Fresh<int64_t> used_edges(pages + 1), sums(pages);
    {
        NoGil nogil(codes.size * 4);
        std::vector<uint8_t> stamps(entries, 0);
        uint8_t stamp = 0;
        used_edges.data[0] = 0;
        for (size_t page = 0; page < pages; ++page) {
            const int64_t first = edges.data[page], end = edges.data[page + 1];
            if (first < 0 || end < first || static_cast<uint64_t>(end) > codes.size) fail("edges outside of the codes");
            if (++stamp == 0) {
                std::fill(stamps.begin(), stamps.end(), uint8_t{0});
                stamp = 1;
            }
            const size_t n = static_cast<size_t>(end - first);
            int32_t* const out = used.reserve(std::min(n, entries) + 1);
            int64_t sum = 0;
            used.size += weights.none()
                             ? tally_page<false>(codes.data + first, n, stamps.data(), entries, stamp, nullptr, out, sum)
                             : tally_page<true>(codes.data + first, n, stamps.data(), entries, stamp, weights.data, out,
                                                sum);
            used_edges.data[page + 1] = static_cast<int64_t>(used.size);
            sums.data[page] = sum;
        }
    }
    Fresh<int32_t> all(used.size);
    if (used.size > 0) std::memcpy(all.data, used.data(), used.size * sizeof(int32_t));
    return nb::make_tuple(std::move(all.object), std::move(used_edges.object), std::move(sums.object));
}

}  // namespace pyparq
