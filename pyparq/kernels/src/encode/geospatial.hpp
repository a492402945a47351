// The GeospatialStatistics of a chunk (Geospatial.md, "Statistics").
#pragma once

#include "encode/encoders.hpp"

#include <string>

namespace pyparq {

enum Geo : int { kNoGeo = 0,
                 kGeometry,
                 kGeography };

// Serialized, or nothing where a value is no WKB that we know. `bad` becomes the number of a value that is EWKB.
std::string geospatial_statistics(const Values& values, int geo, int64_t& bad);

}  // namespace pyparq
