// Dictionaries of short byte strings, for those who look into pages one by one (verification).
#include "decode/short_entries.hpp"

namespace pyparq {
namespace {

class ShortDictionary {
  public:
    ShortDictionary(const Offsets& offsets, const RawIn& data) {
        offsets.visit([&](const auto* o) {
            check_offsets(o, offsets.size, data.size, "dictionary offsets");
            if (!entries_.load(o, offsets.size - 1, data.data))
                fail("an entry is too long; " + str(kLongestShort) + " bytes are the most");
        });
    }

    size_t room(size_t values) const { return entries_.room(values); }

    int64_t gather_indices(const In<int32_t>& indices, const OffsetsOut& out_offsets, int64_t base,
                           const RawOut& out_data) const {
        const size_t n = indices.size;
        NoGil nogil(n * 8);
        check_indices(indices.data, n, entries_.size());
        return write(n, n, out_offsets, base, out_data, [&](const auto& entries, auto& at) {
            entries.put(reinterpret_cast<const uint32_t*>(indices.data), n, at);
        });
    }

    int64_t gather_pages(const nb::list& pages_, const OffsetsOut& out_offsets, int64_t base,
                         const RawOut& out_data) const {
        const std::vector<PageRuns> pages = page_runs(pages_);
        const size_t n = total_slots(pages);
        size_t count = 0;
        for (const PageRuns& page : pages) count += page.count;  // no more than slots, whose sum was checked
        NoGil nogil(n * 8);
        for (const PageRuns& page : pages)
            if (!page.valid.none()) check_present(page.valid, page.count);
        return write(count, n, out_offsets, base, out_data, [&](const auto& entries, auto& at) {
            for (const PageRuns& page : pages) put_page(entries, page, at);
        });
    }

  private:
    template <class E, class O>
    void put_page(const E& entries, const PageRuns& page, Spot<O>& at) const {
        const size_t n = page.slots();
        if (page.count == 0) {  // there may be no index at all, nor any entry
            std::fill_n(at.offsets, n, at.end);
            at.offsets += n;
            return;
        }
        IndexReader reader(page.data.data, page.data.size, entries_.size());
        uint32_t indices[kIndexBlock];
        for (size_t from = 0; from < n; from += kIndexBlock) {
            const size_t m = std::min(kIndexBlock, n - from);
            const uint8_t* present = page.valid.none() ? nullptr : page.valid.data + from;
            const size_t values = present == nullptr ? m : count_set(present, m);
            reader.read(values, indices);
            if (values == m) entries.put(indices, m, at);
            else entries.put_present(indices, values, present, m, at);
        }
    }

    // Calls f with the entries and the place of the first of `slots` values, of which `count` are present.
    template <class F>
    int64_t write(size_t count, size_t slots, const OffsetsOut& out_offsets, int64_t base, const RawOut& out_data,
                  F&& f) const {
        if (out_offsets.size != slots + 1) fail("out_offsets must have one item more than there are values");
        if (base < 0 || base > std::numeric_limits<int64_t>::max() / 4) fail("base is out of range: " + str(base));
        if (count > (size_t{1} << 40) || out_data.size < room(count)) fail("out_data is too small for the longest values");
        return out_offsets.visit([&](auto* out) {
            using O = std::remove_pointer_t<decltype(out)>;
            if (static_cast<uint64_t>(base) + count * entries_.longest() > static_cast<uint64_t>(std::numeric_limits<O>::max()))
                fail("offsets may not fit their type");
            out[0] = static_cast<O>(base);
            Spot<O> at{out + 1, out[0], out_data.data};
            entries_.visit([&](const auto& entries) { f(entries, at); });
            return static_cast<int64_t>(at.out - out_data.data);
        });
    }

    ShortEntries entries_;
};

}  // namespace
}  // namespace pyparq

void bind_gather_short(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.attr("SHORT_DICTIONARY_LONGEST") = kLongestShort;
    nb::class_<ShortDictionary>(m, "ShortDictionary")
        .def(nb::init<const Offsets&, const RawIn&>(), "offsets"_a, "data"_a)
        .def("room", &ShortDictionary::room, "values"_a)
        .def("gather", &ShortDictionary::gather_indices, "indices"_a, "out_offsets"_a, "base"_a, "out_data"_a)
        .def("gather_pages", &ShortDictionary::gather_pages, "pages"_a, "out_offsets"_a, "base"_a, "out_data"_a);
}
