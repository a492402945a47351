// Bounds of pages in every order (parquet.thrift, ColumnOrder).
#include "index/bounds.hpp"

#include "index/ranges.hpp"

namespace pyparq {

LeafOrder::LeafOrder(int64_t domain_, int64_t width_, bool total_, bool cut_, bool text_)
    : domain(static_cast<Domain>(domain_)), width(checked_count(width_, "width")), total(total_), cut(cut_), text(text_) {
    if (domain_ < None || domain_ > Int96) fail("there is no domain " + str(domain_));
    const bool number = domain == Int || domain == UInt || domain == Float;
    if (number && width != 1 && width != 2 && width != 4 && width != 8) fail("no number has " + str(width) + " bytes");
    if (domain == Float && width == 1) fail("no float has one byte");
    if (domain == Int96 && width != 12) fail("INT96 has 12 bytes");
}

namespace {

template <class T>
std::string_view cell(const T& v) {
    return {reinterpret_cast<const char*>(&v), sizeof(T)};
}

template <class T>
T number(std::string_view v) {
    T x{};
    std::memcpy(&x, v.data(), std::min(v.size(), sizeof(T)));
    return x;
}

// ---- floats as integers -----------------------------------------------------------------------------------------

// Their < is the total order; the mapping is its own inverse.
template <class I>
I total_key(I bits) {
    constexpr int top = 8 * sizeof(I) - 1;
    return static_cast<I>(bits ^ ((bits >> top) & std::numeric_limits<I>::max()));
}

template <class I>
constexpr I infinity_bits() {
    if constexpr (sizeof(I) == 2) return 0x7c00;
    else if constexpr (sizeof(I) == 4) return 0x7f800000;
    else return 0x7ff0000000000000;
}
template <class I>
bool nan_bits(I bits) {
    return (bits & std::numeric_limits<I>::max()) > infinity_bits<I>();
}

// Calls f with the integer type of a float's width.
template <class F>
decltype(auto) by_float(size_t width, F&& f) {
    if (width == 2) return f(int16_t{});
    if (width == 4) return f(int32_t{});
    return f(int64_t{});
}

template <class I>
void total_segments(const uint8_t* data, const int64_t* edges, size_t segments, SegmentBounds& out) {
    const auto* v = reinterpret_cast<const I*>(data);
    for (size_t k = 0; k < segments; ++k) {
        I low = std::numeric_limits<I>::max(), high = std::numeric_limits<I>::min(), nan_low = low, nan_high = high;
        int64_t nans = 0;
        for (int64_t i = edges[k]; i < edges[k + 1]; ++i) {
            const I key = total_key(v[i]);
            if (nan_bits(v[i])) ++nans, nan_low = std::min(nan_low, key), nan_high = std::max(nan_high, key);
            else low = std::min(low, key), high = std::max(high, key);
        }
        const int64_t count = edges[k + 1] - edges[k];
        out.nans.push_back(nans);
        if (count == 0) out.add_none();
        else if (nans == count) out.add(cell(total_key(nan_low)), cell(total_key(nan_high)));
        else out.add(cell(total_key(low)), cell(total_key(high)));
    }
}

// NaN is left out. The sign of a zero says nothing about which zeros there are: both bounds are widened, so that old
// readers lose neither.
template <class I>
void add_range(I low, I high, SegmentBounds& out) {
    constexpr I negative_zero = std::numeric_limits<I>::min();
    const auto zero = [](I bits) { return (bits & std::numeric_limits<I>::max()) == 0; };
    out.add(cell(zero(low) ? negative_zero : low), cell(zero(high) ? I{0} : high));
}

template <class T, class I>
void float_segments(const uint8_t* data, const int64_t* edges, size_t segments, SegmentBounds& out) {
    const auto* v = reinterpret_cast<const T*>(data);
    for (size_t k = 0; k < segments; ++k) {
        const size_t n = static_cast<size_t>(edges[k + 1] - edges[k]);
        T low, high;
        int64_t nans;
        if (have_avx2()) float_range_avx2(v + edges[k], n, low, high, nans);
        else float_range(v + edges[k], n, low, high, nans);
        out.nans.push_back(nans);
        if (static_cast<uint64_t>(nans) == n) out.add_none();
        else add_range(std::bit_cast<I>(low), std::bit_cast<I>(high), out);
    }
}

void half_segments(const uint8_t* data, const int64_t* edges, size_t segments, SegmentBounds& out) {
    const auto* v = reinterpret_cast<const int16_t*>(data);
    for (size_t k = 0; k < segments; ++k) {
        int16_t low = std::numeric_limits<int16_t>::max(), high = std::numeric_limits<int16_t>::min();
        int64_t nans = 0;
        for (int64_t i = edges[k]; i < edges[k + 1]; ++i) {
            if (nan_bits(v[i])) {
                ++nans;
                continue;
            }
            const int16_t key = total_key(v[i]);
            low = std::min(low, key), high = std::max(high, key);
        }
        out.nans.push_back(nans);
        if (nans == edges[k + 1] - edges[k]) out.add_none();
        else add_range(total_key(low), total_key(high), out);
    }
}

// ---- other numbers ----------------------------------------------------------------------------------------------

template <class T>
void int_segments(const uint8_t* data, const int64_t* edges, size_t segments, SegmentBounds& out) {
    const auto* v = reinterpret_cast<const T*>(data);
    for (size_t k = 0; k < segments; ++k) {
        const size_t n = static_cast<size_t>(edges[k + 1] - edges[k]);
        if (n == 0) {
            out.add_none();
            continue;
        }
        T low, high;
        if (have_avx2()) int_range_avx2(v + edges[k], n, low, high);
        else int_range(v + edges[k], n, low, high);
        out.add(cell(low), cell(high));
    }
}

struct Instant {
    int32_t day;
    int64_t nanos;
    auto operator<=>(const Instant&) const = default;
};
Instant instant(const char* p) { return {load<int32_t>(p + 8), load<int64_t>(p)}; }

// ---- bytes ------------------------------------------------------------------------------------------------------

std::string_view view(const Bytes& b) { return {reinterpret_cast<const char*>(b.data), b.size}; }
Bytes bytes(std::string_view v) { return {reinterpret_cast<const uint8_t*>(v.data()), v.size()}; }

// `order` compares two values; `prefix` gives a number that orders most pairs without touching their bytes.
template <class Get, class Prefix, class Order>
void byte_segments(const int64_t* edges, size_t segments, SegmentBounds& out, Get&& get, Prefix&& prefix, Order&& order) {
    for (size_t k = 0; k < segments; ++k) {
        if (edges[k] == edges[k + 1]) {
            out.add_none();
            continue;
        }
        Bytes low = get(static_cast<size_t>(edges[k])), high = low;
        uint64_t low_prefix = prefix(low), high_prefix = low_prefix;
        for (int64_t i = edges[k] + 1; i < edges[k + 1]; ++i) {
            const Bytes v = get(static_cast<size_t>(i));
            const uint64_t x = prefix(v);
            if (x < low_prefix || (x == low_prefix && order(v, low) < 0)) low = v, low_prefix = x;
            if (x > high_prefix || (x == high_prefix && order(v, high) > 0)) high = v, high_prefix = x;
        }
        out.add(view(low), view(high));
    }
}

int unsigned_order(const Bytes& a, const Bytes& b) { return compare_bytes(a.data, a.size, b.data, b.size); }

void bytes_of_any_length(bool decimal, const Values& v, const int64_t* edges, size_t segments, SegmentBounds& out) {
    const uint8_t* end = v.data + v.size;
    v.visit([&](const auto* o) {
        const auto get = [&](size_t i) { return Bytes{v.data + o[i], static_cast<size_t>(o[i + 1] - o[i])}; };
        if (decimal) byte_segments(edges, segments, out, get, [](const Bytes&) { return uint64_t{0}; }, compare_signed);
        else byte_segments(edges, segments, out, get, [&](const Bytes& b) { return order_prefix(b.data, b.size, end); }, unsigned_order);
    });
}

void bytes_of_one_length(const LeafOrder& order, const Values& v, const int64_t* edges, size_t segments, SegmentBounds& out) {
    const auto get = [&](size_t i) { return Bytes{v.data + i * v.width, v.width}; };
    if (order.domain == LeafOrder::Int96) {
        const auto compare = [&](const Bytes& a, const Bytes& b) { return order.compare(view(a), view(b)); };
        return byte_segments(edges, segments, out, get, [](const Bytes&) { return uint64_t{0}; }, compare);
    }
    const uint8_t* end = v.data + v.size;
    const uint64_t flip = order.domain == LeafOrder::Decimal ? uint64_t{1} << 63 : 0;
    // Equal prefixes have equal signs: the rest compares as unsigned bytes.
    byte_segments(edges, segments, out, get, [&](const Bytes& b) { return order_prefix(b.data, b.size, end) ^ flip; }, unsigned_order);
}

void numbers(const LeafOrder& order, const uint8_t* data, const int64_t* edges, size_t segments, SegmentBounds& out) {
    const bool is_signed = order.domain == LeafOrder::Int;
    if (order.floats() && order.total)
        return by_float(order.width, [&](auto tag) { total_segments<decltype(tag)>(data, edges, segments, out); });
    if (order.floats()) {
        if (order.width == 2) return half_segments(data, edges, segments, out);
        if (order.width == 4) return float_segments<float, int32_t>(data, edges, segments, out);
        return float_segments<double, int64_t>(data, edges, segments, out);
    }
    switch (order.width) {
        case 1: return is_signed ? int_segments<int8_t>(data, edges, segments, out) : int_segments<uint8_t>(data, edges, segments, out);
        case 2: return is_signed ? int_segments<int16_t>(data, edges, segments, out) : int_segments<uint16_t>(data, edges, segments, out);
        case 4: return is_signed ? int_segments<int32_t>(data, edges, segments, out) : int_segments<uint32_t>(data, edges, segments, out);
        default: return is_signed ? int_segments<int64_t>(data, edges, segments, out) : int_segments<uint64_t>(data, edges, segments, out);
    }
}

int sign(bool less, bool greater) { return static_cast<int>(greater) - static_cast<int>(less); }

template <class T>
int compare_numbers(std::string_view a, std::string_view b) {
    const T x = number<T>(a), y = number<T>(b);
    return sign(x<y, x> y);
}

// Halves have no type here: zeros are equal, NaN is not asked for.
template <class I>
int compare_floats(std::string_view a, std::string_view b, bool total) {
    const I x = number<I>(a), y = number<I>(b);
    const bool both_zero = ((x | y) & std::numeric_limits<I>::max()) == 0;
    if (both_zero && !total) return 0;
    return sign(total_key(x) < total_key(y), total_key(x) > total_key(y));
}

}  // namespace

int LeafOrder::compare(std::string_view a, std::string_view b) const {
    switch (domain) {
        case Int:
            if (width == 1) return compare_numbers<int8_t>(a, b);
            return width == 4 ? compare_numbers<int32_t>(a, b) : compare_numbers<int64_t>(a, b);
        case UInt:
            if (width == 1) return compare_numbers<uint8_t>(a, b);
            return width == 4 ? compare_numbers<uint32_t>(a, b) : compare_numbers<uint64_t>(a, b);
        case Float: return by_float(width, [&](auto tag) { return compare_floats<decltype(tag)>(a, b, total); });
        case Decimal: return compare_signed(bytes(a), bytes(b));
        case Int96: {
            if (a.size() < 12 || b.size() < 12) return 0;
            const Instant x = instant(a.data()), y = instant(b.data());
            return sign(x<y, x> y);
        }
        default: return unsigned_order(bytes(a), bytes(b));
    }
}

bool LeafOrder::is_nan(std::string_view v) const {
    return floats() && by_float(width, [&](auto tag) { return nan_bits(number<decltype(tag)>(v)); });
}

bool LeafOrder::is_zero(std::string_view v) const {
    return by_float(width, [&](auto tag) {
        using I = decltype(tag);
        return (number<I>(v) & std::numeric_limits<I>::max()) == 0;
    });
}

SegmentBounds segment_bounds(const LeafOrder& order, const Values& values, const int64_t* edges, size_t segments) {
    SegmentBounds out;
    out.mins.reserve(segments), out.maxs.reserve(segments), out.filled.reserve(segments);
    if (order.domain == LeafOrder::None) {
        for (size_t k = 0; k < segments; ++k) out.add_none();
    } else if (values.binary()) {
        bytes_of_any_length(order.domain == LeafOrder::Decimal, values, edges, segments, out);
    } else if (order.domain == LeafOrder::Bytes || order.domain == LeafOrder::Decimal || order.domain == LeafOrder::Int96) {
        bytes_of_one_length(order, values, edges, segments, out);
    } else {
        numbers(order, values.data, edges, segments, out);
    }
    return out;
}

}  // namespace pyparq
