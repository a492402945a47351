// Dictionaries of short byte strings, laid out to be gathered from in one pass: every entry padded to whole vector
// registers, so that a value costs one load, one store and one addition, whatever its length.
#include "values.hpp"

#include <vector>

namespace pyparq {
namespace {

constexpr size_t LONGEST = 64;

template <size_t W>
struct Block { uint64_t v[W / 8]; };

// `out` has room for every value at the longest length, and for one register more.
template <size_t W, bool Nulls, class O>
uint64_t gather(const uint8_t* slots, const uint32_t* lengths, const int32_t* indices, size_t have,
                const uint8_t* valid, size_t n, O* offsets, uint64_t base, uint8_t* out) {
    uint8_t* w = out;
    size_t k = 0;
    for (size_t i = 0; i < n; ++i) {
        // Behind the last value only absent slots are left: they look at it once more and add nothing.
        const size_t e = static_cast<size_t>(indices[Nulls ? std::min(k, have - 1) : i]);
        store(w, load<Block<W>>(slots + e * W));
        const uint32_t present = Nulls ? valid[i] != 0 : 1;
        w += lengths[e] & (0u - present);
        k += present;
        offsets[i + 1] = static_cast<O>(base + static_cast<uint64_t>(w - out));
    }
    return static_cast<uint64_t>(w - out);
}

class ShortDictionary {
  public:
    ShortDictionary(const Offsets& offsets, const RawIn& data) {
        offsets.visit([&](const auto* o) {
            check_offsets(o, offsets.size, data.size, "dictionary offsets");
            const size_t entries = offsets.size - 1;
            for (size_t i = 0; i < entries; ++i) longest_ = std::max(longest_, static_cast<size_t>(o[i + 1] - o[i]));
            if (longest_ > LONGEST) fail("an entry of " + str(longest_) + " bytes; " + str(LONGEST) + " are the most");
            width_ = longest_ <= 16 ? 16 : longest_ <= 32 ? 32 : 64;
            lengths_.resize(entries);
            slots_.resize(entries * width_);
            for (size_t i = 0; i < entries; ++i) {
                lengths_[i] = static_cast<uint32_t>(o[i + 1] - o[i]);
                if (lengths_[i] > 0) std::memcpy(slots_.data() + i * width_, data.data + o[i], lengths_[i]);
            }
        });
    }

    size_t room(size_t values) const { return values * longest_ + LONGEST; }

    int64_t gather_into(const In<int32_t>& indices, const Valid& valid, const OffsetsOut& out_offsets, int64_t base,
                        const RawOut& out_data) const {
        const size_t have = indices.size, n = valid.none() ? have : valid.size;
        if (out_offsets.size != n + 1) fail("out_offsets must have one item more than there are slots");
        if (base < 0 || base > std::numeric_limits<int64_t>::max() / 4) fail("base is out of range: " + str(base));
        if (have > (size_t{1} << 40) || out_data.size < room(have))
            fail("out_data is too small for the longest values");
        NoGil nogil(n * 8);
        if (!valid.none() && count_set(valid.data, n) != have)
            fail("the slots present are not as many as the " + str(have) + " indices");
        check_indices(indices.data, have, lengths_.size());
        return out_offsets.visit([&](auto* out) {
            using O = std::remove_pointer_t<decltype(out)>;
            const uint64_t b = static_cast<uint64_t>(base);
            if (b + have * longest_ > static_cast<uint64_t>(std::numeric_limits<O>::max()))
                fail("offsets may not fit their type");
            std::fill(out, out + (have == 0 ? n + 1 : 1), static_cast<O>(b));
            if (have == 0) return int64_t{0};
            return static_cast<int64_t>(width_ == 16   ? run<16>(indices, valid, n, out, b, out_data.data)
                                        : width_ == 32 ? run<32>(indices, valid, n, out, b, out_data.data)
                                                       : run<64>(indices, valid, n, out, b, out_data.data));
        });
    }

  private:
    template <size_t W, class O>
    uint64_t run(const In<int32_t>& indices, const Valid& valid, size_t n, O* out, uint64_t base, uint8_t* data) const {
        const uint8_t* slots = slots_.data();
        const uint32_t* lengths = lengths_.data();
        return valid.none() ? gather<W, false>(slots, lengths, indices.data, indices.size, nullptr, n, out, base, data)
                            : gather<W, true>(slots, lengths, indices.data, indices.size, valid.data, n, out, base, data);
    }

    size_t longest_ = 0, width_ = 16;
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
        .def("gather", &ShortDictionary::gather_into, "indices"_a, "valid"_a.none(), "out_offsets"_a, "base"_a,
             "out_data"_a);
}
