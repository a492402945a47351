// Dictionaries of short byte strings, laid out to be gathered from in one pass: every entry padded to whole vector
// registers, so that a value costs one load, one store and one addition, whatever its length.
#include "hybrid.hpp"
#include "values.hpp"

#include <vector>

namespace pyparq {
namespace {

constexpr size_t LONGEST = 64;
constexpr size_t BLOCK = 1024;  // indices, in the first-level cache

// Where the next value goes. There is room for every value at the longest length, and for one register more.
template <class O>
struct Place {
    O* offsets;  // the next to be written: where the next value ends
    O end;       // of the values so far
    uint8_t* out;
};

// W bytes from one place to another, in the widest registers that the calling function may use.
template <size_t W>
[[gnu::always_inline]] inline void copy(uint8_t* to, const uint8_t* from) {
#ifdef PYPARQ_AVX2
    if constexpr (W % 32 == 0) {
        typedef uint64_t Wide __attribute__((vector_size(32), aligned(1), may_alias));
        for (size_t k = 0; k < W; k += 32) *reinterpret_cast<Wide*>(to + k) = *reinterpret_cast<const Wide*>(from + k);
        return;
    }
#endif
    std::memcpy(to, from, W);
}

template <size_t W>
struct Entries {
    const uint8_t* slots;
    const uint32_t* lengths;
    size_t length;  // of every entry, where they are all alike; above LONGEST where not

    template <class O>
    void put(const uint32_t* indices, size_t n, Place<O>& at) const {
#ifdef PYPARQ_AVX2
        if constexpr (W >= 32) {
            if (have_avx2()) return put_avx2(indices, n, at);
        }
#endif
        put_plainly(indices, n, at);
    }

    // `count` values over the n slots that are present.
    template <class O>
    void put_present(const uint32_t* indices, size_t count, const uint8_t* valid, size_t n, Place<O>& at) const {
        O starts[BLOCK + 8] = {};
        starts[0] = at.end;
        Place<O> packed{starts + 1, at.end, at.out};
        put(indices, count, packed);
        spread_over_slots(starts, BLOCK + 8, valid, n, at.offsets - 1);
        at = {at.offsets + n, packed.end, packed.out};
    }

  private:
#ifdef PYPARQ_AVX2
    template <class O>
    PYPARQ_TARGET_AVX2 void put_avx2(const uint32_t* indices, size_t n, Place<O>& at) const {
        put_plainly(indices, n, at);  // inlined
    }
#endif

    template <class O>
    [[gnu::always_inline]] void put_plainly(const uint32_t* indices, size_t n, Place<O>& at) const {
        if (length <= LONGEST) return put_alike(indices, n, at);
        const auto* const from = slots;  // names of their own: the bytes written might be anything else
        const auto* const sizes = lengths;
        O* const offsets = at.offsets;
        const O base = at.end;
        uint8_t *const start = at.out, *w = start;
        for (size_t i = 0; i < n; ++i) {
            copy<W>(w, from + size_t{indices[i]} * W);
            w += sizes[indices[i]];
            offsets[i] = static_cast<O>(base + static_cast<O>(w - start));
        }
        step(at, n, w);
    }

    template <class O>
    [[gnu::always_inline]] void put_alike(const uint32_t* indices, size_t n, Place<O>& at) const {
        const auto* const from = slots;
        const size_t step_by = length;
        O* const offsets = at.offsets;
        const O base = at.end;
        for (size_t i = 0; i < n; ++i) offsets[i] = static_cast<O>(base + static_cast<O>((i + 1) * step_by));
        uint8_t* w = at.out;
        for (size_t i = 0; i < n; ++i, w += step_by) copy<W>(w, from + size_t{indices[i]} * W);
        step(at, n, w);
    }
    template <class O>
    [[gnu::always_inline]] static void step(Place<O>& at, size_t n, uint8_t* w) {
        at.end = static_cast<O>(at.end + static_cast<O>(w - at.out));
        at.offsets += n;
        at.out = w;
    }
};

class ShortDictionary {
  public:
    ShortDictionary(const Offsets& offsets, const RawIn& data) {
        offsets.visit([&](const auto* o) {
            check_offsets(o, offsets.size, data.size, "dictionary offsets");
            const size_t entries = offsets.size - 1;
            size_t shortest = LONGEST;
            lengths_.resize(entries);
            for (size_t i = 0; i < entries; ++i) {
                const size_t length = static_cast<size_t>(o[i + 1] - o[i]);
                if (length > LONGEST) fail("an entry of " + str(length) + " bytes; " + str(LONGEST) + " are the most");
                longest_ = std::max(longest_, length);
                shortest = std::min(shortest, length);
                lengths_[i] = static_cast<uint32_t>(length);
            }
            alike_ = shortest == longest_;
            width_ = longest_ <= 8 ? 8 : longest_ <= 16 ? 16 : longest_ <= 32 ? 32 : 64;
            slots_.resize(entries * width_);
            for (size_t i = 0; i < entries; ++i)
                if (lengths_[i] > 0) std::memcpy(slots_.data() + i * width_, data.data + o[i], lengths_[i]);
        });
    }

    size_t room(size_t values) const { return values * longest_ + LONGEST; }

    int64_t gather_indices(const In<int32_t>& indices, const OffsetsOut& out_offsets, int64_t base,
                           const RawOut& out_data) const {
        const size_t n = indices.size;
        NoGil nogil(n * 8);
        check_indices(indices.data, n, lengths_.size());
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
    void put_page(const E& entries, const PageRuns& page, Place<O>& at) const {
        const size_t n = page.slots();
        if (page.count == 0) {  // there may be no index at all, nor any entry
            std::fill_n(at.offsets, n, at.end);
            at.offsets += n;
            return;
        }
        IndexReader reader(page.data.data, page.data.size, lengths_.size());
        uint32_t indices[BLOCK];
        for (size_t from = 0; from < n; from += BLOCK) {
            const size_t m = std::min(BLOCK, n - from);
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
            if (static_cast<uint64_t>(base) + count * longest_ > static_cast<uint64_t>(std::numeric_limits<O>::max()))
                fail("offsets may not fit their type");
            out[0] = static_cast<O>(base);
            Place<O> at{out + 1, out[0], out_data.data};
            const size_t length = alike_ ? longest_ : LONGEST + 1;
            if (width_ == 8) f(Entries<8>{slots_.data(), lengths_.data(), length}, at);
            else if (width_ == 16) f(Entries<16>{slots_.data(), lengths_.data(), length}, at);
            else if (width_ == 32) f(Entries<32>{slots_.data(), lengths_.data(), length}, at);
            else f(Entries<64>{slots_.data(), lengths_.data(), length}, at);
            return static_cast<int64_t>(at.out - out_data.data);
        });
    }

    size_t longest_ = 0, width_ = 8;
    bool alike_ = false;
    std::vector<uint8_t> slots_;
    std::vector<uint32_t> lengths_;
};

}  // namespace
}  // namespace pyparq

void bind_gather_short(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.attr("SHORT_DICTIONARY_LONGEST") = LONGEST;
    nb::class_<ShortDictionary>(m, "ShortDictionary")
        .def(nb::init<const Offsets&, const RawIn&>(), "offsets"_a, "data"_a)
        .def("room", &ShortDictionary::room, "values"_a)
        .def("gather", &ShortDictionary::gather_indices, "indices"_a, "out_offsets"_a, "base"_a, "out_data"_a)
        .def("gather_pages", &ShortDictionary::gather_pages, "pages"_a, "out_offsets"_a, "base"_a, "out_data"_a);
}
