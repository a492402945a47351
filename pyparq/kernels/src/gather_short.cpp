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
template <size_t W, class O>
uint64_t gather(const uint8_t* slots, const uint32_t* lengths, const In<int32_t>& indices, O* offsets, uint64_t base,
                uint8_t* out) {
    uint8_t* w = out;
    offsets[0] = static_cast<O>(base);
    for (size_t i = 0; i < indices.size; ++i) {
        const size_t e = static_cast<size_t>(indices.data[i]);
        store(w, load<Block<W>>(slots + e * W));
        w += lengths[e];
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

    int64_t gather_into(const In<int32_t>& indices, const OffsetsOut& out_offsets, int64_t base,
                        const RawOut& out_data) const {
        const size_t n = indices.size;
        if (out_offsets.size != n + 1) fail("out_offsets must have one item more than there are indices");
        if (base < 0 || base > std::numeric_limits<int64_t>::max() / 4) fail("base is out of range: " + str(base));
        if (n > (size_t{1} << 40) || out_data.size < room(n)) fail("out_data is too small for the longest values");
        NoGil nogil(n * 8);
        check_indices(indices.data, n, lengths_.size());
        return out_offsets.visit([&](auto* out) {
            using O = std::remove_pointer_t<decltype(out)>;
            const uint64_t b = static_cast<uint64_t>(base);
            if (b + n * longest_ > static_cast<uint64_t>(std::numeric_limits<O>::max()))
                fail("offsets may not fit their type");
            const uint8_t* slots = slots_.data();
            const uint32_t* lengths = lengths_.data();
            return static_cast<int64_t>(width_ == 16   ? gather<16>(slots, lengths, indices, out, b, out_data.data)
                                        : width_ == 32 ? gather<32>(slots, lengths, indices, out, b, out_data.data)
                                                       : gather<64>(slots, lengths, indices, out, b, out_data.data));
        });
    }

  private:
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
        .def("gather", &ShortDictionary::gather_into, "indices"_a, "out_offsets"_a, "base"_a, "out_data"_a);
}
