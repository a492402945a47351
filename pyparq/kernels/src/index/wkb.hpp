// Well-known binary, ISO's: geometry types and the box around the coordinates (Geospatial.md).
#pragma once

#include "base/common.hpp"

#include <array>

namespace pyparq {

// A value that is EWKB, PostGIS's other form, which the format does not allow.
struct EwkbError : KernelError {
    using KernelError::KernelError;
};

// Smallest and largest coordinate of each dimension: x, y, z, m. NaN counts nowhere.
struct GeoBox {
    std::array<double, 4> low, high;
    double west, east;   // the largest x below zero, and the smallest from zero on: what is between may be left out
    uint32_t types = 0;  // a bit for each of the 28: 7 * dimensions + type - 1

    GeoBox() {
        constexpr double kMost = std::numeric_limits<double>::infinity();
        low.fill(kMost), high.fill(-kMost);
        west = -kMost, east = kMost;
    }
    bool has(size_t dimension) const { return low[dimension] <= high[dimension]; }
    bool is_box() const { return has(0) && has(1); }
    // Longitudes that are nearer to each other across the antimeridian: from `east` on to `west`.
    bool wraps() const { return low[0] < 0 && high[0] >= 0 && west - east + 360 < high[0] - low[0]; }
    // Points alone, in any dimensions.
    bool points_alone() const { return (types & ~uint32_t{0x00204081}) == 0; }
};

// Adds one value to the box. Throws EwkbError, and KernelError for what is not WKB of one of the seven types.
void add_wkb(const uint8_t* data, size_t size, GeoBox& box);

}  // namespace pyparq
