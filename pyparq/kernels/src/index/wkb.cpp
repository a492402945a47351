#include "index/wkb.hpp"

#include "values/checks.hpp"

namespace pyparq {
namespace {

constexpr int kDeepest = 32;  // collections in collections
enum Type : uint32_t { kPoint = 1,
                       kLine,
                       kPolygon,
                       kMultiPoint,
                       kMultiLine,
                       kMultiPolygon,
                       kCollection };

class Reader {
  public:
    Reader(const uint8_t* data, size_t size, GeoBox& box) : at_(data), end_(data + size), box_(box) {}

    void value() {
        geometry(0, 0);
        if (at_ != end_) fail("there are " + str(static_cast<uint64_t>(end_ - at_)) + " bytes behind the geometry");
    }

  private:
    uint8_t byte() {
        if (at_ == end_) ends();
        return *at_++;
    }
    uint32_t number() {
        if (end_ - at_ < 4) ends();
        const auto v = load<uint32_t>(at_);
        at_ += 4;
        return swapped_ ? static_cast<uint32_t>(byteswap(v) >> 32) : v;
    }
    double coordinate() {
        const auto v = load<uint64_t>(at_);
        at_ += 8;
        return std::bit_cast<double>(swapped_ ? byteswap(v) : v);
    }
    [[noreturn]] void ends() const { fail("the WKB value ends early"); }

    // `within`: the type of what this is a part of, whose parts are of one type; 0: of any.
    void geometry(uint32_t within, int depth) {
        if (depth > kDeepest) fail("the WKB value has more than " + str(int64_t{kDeepest}) + " collections in each other");
        const uint8_t order = byte();
        if (order > 1) fail("the byte order of the WKB value is " + str(uint64_t{order}));
        swapped_ = order == 0;
        const uint32_t code = number();
        if ((code & 0xe0000000u) != 0)
            throw EwkbError("the value is EWKB, as PostGIS writes it: Parquet has ISO WKB (ST_AsBinary)");
        const uint32_t type = code % 1000, kind = code / 1000;
        if (type < kPoint || type > kCollection || kind > 3) fail("geometry type " + str(uint64_t{code}) + " is not known");
        if (within != 0 && type != within) fail("a part of the WKB value has type " + str(uint64_t{code}));
        if (depth == 0) box_.types |= uint32_t{1} << (7 * kind + type - 1);
        body(type, kind, depth);
    }

    void body(uint32_t type, uint32_t kind, int depth) {
        switch (type) {
            case kPoint: return points(1, kind);
            case kLine: return points(number(), kind);
            case kPolygon:
                for (uint32_t rings = number(); rings > 0; --rings) points(number(), kind);
                return;
            default:
                for (uint32_t parts = number(); parts > 0; --parts) geometry(type == kCollection ? 0 : type - 3, depth + 1);
        }
    }

    void points(uint32_t count, uint32_t kind) {
        const size_t dimensions = 2 + (kind == 1 || kind == 2 ? 1 : kind == 3 ? 2
                                                                              : 0);
        if (count > static_cast<size_t>(end_ - at_) / (8 * dimensions)) ends();
        for (; count > 0; --count) {
            const double x = coordinate();
            add(0, x);
            if (x < 0 && x > box_.west) box_.west = x;
            if (x >= 0 && x < box_.east) box_.east = x;
            add(1, coordinate());
            if (kind == 1 || kind == 3) add(2, coordinate());
            if (kind >= 2) add(3, coordinate());
        }
    }

    void add(size_t dimension, double v) {
        if (v < box_.low[dimension]) box_.low[dimension] = v;
        if (v > box_.high[dimension]) box_.high[dimension] = v;
    }

    const uint8_t *at_, *end_;
    bool swapped_ = false;
    GeoBox& box_;
};

}  // namespace

void add_wkb(const uint8_t* data, size_t size, GeoBox& box) { Reader(data, size, box).value(); }

}  // namespace pyparq
