#include "encode/geospatial.hpp"

#include "index/wkb.hpp"
#include "thrift/writer.hpp"

namespace pyparq {
namespace {

// Between the vertices of a geography, edges run over a sphere or an ellipsoid, beyond the box around these: only points
// have a box. Longitudes and latitudes beyond their ranges have none.
bool has_box(const GeoBox& box, int geo) {
    if (!box.is_box()) return false;
    if (geo == kGeometry) return true;
    return box.points_alone() && box.low[0] >= -180 && box.high[0] <= 180 && box.low[1] >= -90 && box.high[1] <= 90;
}

void write_box(ThriftOut& out, const GeoBox& box, int geo) {
    const bool wraps = geo == kGeography && box.wraps();
    out.open(1);
    out.number64(1, wraps ? box.east : box.low[0]);
    out.number64(2, wraps ? box.west : box.high[0]);
    for (size_t k = 1; k < 4; ++k) {
        if (!box.has(k)) continue;
        out.number64(static_cast<int>(2 * k + 1), box.low[k]);
        out.number64(static_cast<int>(2 * k + 2), box.high[k]);
    }
    out.close();
}

void write_types(ThriftOut& out, uint32_t types) {
    out.list(2, ThriftOut::kI32, static_cast<size_t>(std::popcount(types)));
    for (int k = 0; k < 28; ++k)
        if ((types >> k & 1) != 0) out.number(k / 7 * 1000 + k % 7 + 1);
}

}  // namespace

std::string geospatial_statistics(const Values& values, int geo, int64_t& bad) {
    GeoBox box;
    bool known = true;
    for (size_t i = 0; i < values.count; ++i) {
        try {
            if (known) add_wkb(values.data + values.offset(i), values.bytes(i, i + 1), box);
        } catch (const EwkbError&) {
            bad = static_cast<int64_t>(i);
            return {};
        } catch (const KernelError&) {
            known = false;
        }
    }
    if (!known || box.types == 0) return {};
    ThriftOut out;
    out.open();
    if (has_box(box, geo)) write_box(out, box, geo);
    write_types(out, box.types);
    out.close();
    return std::move(out.bytes);
}

}  // namespace pyparq
