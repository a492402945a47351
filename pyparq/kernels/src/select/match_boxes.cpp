// Geometries against a box.
#include "index/wkb.hpp"
#include "select/calls.hpp"

namespace pyparq {
namespace {

struct Span {
    double from, to;  // of longitudes, `from` may be the larger: across the antimeridian
    bool wraps() const { return from > to; }
};

bool meet(const Span& a, const Span& b) {
    if (a.wraps() && b.wraps()) return true;
    if (a.wraps()) return b.to >= a.from || b.from <= a.to;
    if (b.wraps()) return meet(b, a);
    return a.from <= b.to && b.from <= a.to;
}

bool intersects(const GeoBox& box, const double* wanted, bool round) {
    if (!box.is_box() || box.high[1] < wanted[1] || box.low[1] > wanted[3]) return false;
    const Span own = round && box.wraps() ? Span{box.east, box.west} : Span{box.low[0], box.high[0]};
    return meet(own, {wanted[0], wanted[2]});
}

}  // namespace

nb::object match_boxes(const Offsets& offsets, const RawIn& data, const In<double>& box, bool round, bool wanted, const Within& within) {
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    if (box.size != 4) fail("a box has four numbers");
    const size_t n = offsets.size - 1;
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    NoGil nogil(n * 64);
    offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        fill_one_by_one(n, within, out.data, [&](size_t i) {
            if (o[i] == o[i + 1]) return !wanted;  // a null
            GeoBox own;
            try {
                add_wkb(data.data + o[i], static_cast<size_t>(o[i + 1] - o[i]), own);
            } catch (const KernelError& error) {
                fail("value " + str(i) + ": " + error.what());
            }
            return intersects(own, box.data, round) == wanted;
        });
    });
    return std::move(out.object);
}

}  // namespace pyparq
