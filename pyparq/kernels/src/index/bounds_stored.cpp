// The stored forms of bounds: as Statistics of a chunk and as its ColumnIndex, shortened where they may be.
#include "index/bounds.hpp"

#include "base/utf8.hpp"

namespace pyparq {
namespace {

// ---- shorter bounds that stay valid (PageIndex.md: bounds need not occur in the page) ------------------------------

// The last place at or before `length` where a UTF-8 character starts.
size_t character_edge(std::string_view value, size_t length) {
    // Four continuation bytes in a row are no UTF-8: such a value is cut where asked.
    for (size_t edge = length, tries = 0; tries < 4; --edge, ++tries) {
        if ((static_cast<uint8_t>(value[edge]) & 0xc0) != 0x80) return edge;
        if (edge == 0) break;
    }
    return length;
}

// The smallest byte string above everything that starts with `prefix`, if there is one.
std::optional<std::string> next_bytes(std::string_view prefix) {
    size_t n = prefix.size();
    while (n > 0 && static_cast<uint8_t>(prefix[n - 1]) == 0xff) --n;
    if (n == 0) return std::nullopt;
    std::string grown(prefix.substr(0, n));
    grown[n - 1] = static_cast<char>(static_cast<uint8_t>(grown[n - 1]) + 1);
    return grown;
}

uint32_t code_point(const char* p, size_t n) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(p[i])); };
    if (n == 1) return byte(0);
    uint32_t code = byte(0) & (0x7fu >> n);
    for (size_t i = 1; i < n; ++i) code = code << 6 | (byte(i) & 0x3f);
    return code;
}

void append_code_point(std::string& text, uint32_t code) {
    const auto put = [&](uint32_t b) { text.push_back(static_cast<char>(b)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) return put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
    if (code < 0x10000) return put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
}

// As next_bytes, valid UTF-8 and not longer than `length`.
std::optional<std::string> next_text(std::string_view prefix, size_t length) {
    if (!utf8_valid(reinterpret_cast<const uint8_t*>(prefix.data()), prefix.size())) return next_bytes(prefix);
    for (size_t n = prefix.size(); n > 0;) {
        size_t start = n - 1;
        while ((static_cast<uint8_t>(prefix[start]) & 0xc0) == 0x80) --start;
        uint32_t code = code_point(prefix.data() + start, n - start) + 1;
        if (code == 0xd800) code = 0xe000;  // surrogates are no characters
        n = start;
        if (code > 0x10ffff) continue;
        std::string grown(prefix.substr(0, n));
        append_code_point(grown, code);
        if (grown.size() <= length) return grown;
    }
    return std::nullopt;
}

bool stays_whole(const LeafOrder& order, std::string_view value, int64_t length) {
    return length < 0 || !order.cut || value.size() <= static_cast<size_t>(length);
}

// ---- the bounds of a chunk ------------------------------------------------------------------------------------------

// The smallest or largest of the bounds that are there; NaN only where nothing else is. Below 0: none.
int64_t extreme(const LeafOrder& order, const SegmentBounds& pages, const std::vector<std::string>& all, int wanted) {
    int64_t best = -1;
    bool best_nan = false;
    for (size_t k = 0; k < pages.size(); ++k) {
        if (!pages.filled[k]) continue;
        const bool nan = order.is_nan(all[k]);
        const bool first = best < 0 || (best_nan && !nan);
        if (first || (nan == best_nan && order.compare(all[k], all[static_cast<size_t>(best)]) * wanted > 0))
            best = static_cast<int64_t>(k), best_nan = nan;
    }
    return best;
}

// The next float below (or, of -infinity, above), by its bits.
template <class I>
I next_float(I bits, bool up) {
    const auto key = [](I v) { return static_cast<I>(v ^ ((v >> (8 * sizeof(I) - 1)) & std::numeric_limits<I>::max())); };
    if ((bits & std::numeric_limits<I>::max()) == 0) bits = up ? I{0} : std::numeric_limits<I>::min();
    return key(static_cast<I>(key(bits) + (up ? 1 : -1)));
}

template <class I>
void widen(std::string& low, bool& low_exact, std::string& high, bool& high_exact) {
    constexpr I infinity = sizeof(I) == 2 ? I{0x7c00} : sizeof(I) == 4 ? static_cast<I>(0x7f800000)
                                                                       : static_cast<I>(0x7ff0000000000000);
    I bits;
    std::memcpy(&bits, low.data(), sizeof(I));
    const bool lowest = bits == static_cast<I>(infinity | std::numeric_limits<I>::min());
    const I next = next_float(bits, lowest);
    (lowest ? high : low).assign(reinterpret_cast<const char*>(&next), sizeof(I));
    (lowest ? high_exact : low_exact) = false;
}

struct StoredBounds {
    std::string low, high;
    bool low_exact, high_exact;
};

StoredBounds stored_bounds(const LeafOrder& order, const std::string& low, const std::string& high, int64_t truncate, bool nans) {
    StoredBounds b{low, high, true, true};
    if (order.floats() && !order.total) {
        // A zero's sign is chosen for safety (parquet.thrift, ColumnOrder): it may not be the one that occurs.
        b.low_exact = !order.is_zero(low), b.high_exact = !order.is_zero(high);
        if (!b.low_exact) b.low.assign(order.width, '\0'), b.low.back() = '\x80';
        if (!b.high_exact) b.high.assign(order.width, '\0');
    } else {
        b.low = shorter_min(order, low, truncate), b.high = shorter_max(order, high, truncate);
        b.low_exact = b.low == low, b.high_exact = b.high == high;
    }
    // Equal bounds of floats beside NaN are widened by one step: DataFusion (55) takes a column whose bounds are equal for
    // constant and shows its NaN as that number.
    if (nans && b.low == b.high && !order.is_nan(b.low)) {
        if (order.width == 2) widen<int16_t>(b.low, b.low_exact, b.high, b.high_exact);
        else if (order.width == 4) widen<int32_t>(b.low, b.low_exact, b.high, b.high_exact);
        else widen<int64_t>(b.low, b.low_exact, b.high, b.high_exact);
    }
    return b;
}

// ---- ColumnIndex ----------------------------------------------------------------------------------------------------

constexpr int kUnordered = 0, kAscending = 1, kDescending = 2;

int boundary_order(const LeafOrder& order, const SegmentBounds& pages) {
    bool rises = true, falls = true;
    int64_t last = -1;
    for (size_t k = 0; k < pages.size() && (rises || falls); ++k) {
        if (!pages.filled[k]) continue;
        if (last >= 0) {
            const auto before = static_cast<size_t>(last);
            const int low = order.compare(pages.mins[before], pages.mins[k]), high = order.compare(pages.maxs[before], pages.maxs[k]);
            rises = rises && low <= 0 && high <= 0;
            falls = falls && low >= 0 && high >= 0;
        }
        last = static_cast<int64_t>(k);
    }
    return rises ? kAscending : falls ? kDescending
                                      : kUnordered;
}

}  // namespace

std::string shorter_min(const LeafOrder& order, std::string_view value, int64_t length) {
    if (stays_whole(order, value, length)) return std::string(value);
    const auto most = static_cast<size_t>(length);
    return std::string(value.substr(0, order.text ? character_edge(value, most) : most));
}

std::string shorter_max(const LeafOrder& order, std::string_view value, int64_t length) {
    if (stays_whole(order, value, length)) return std::string(value);
    const auto most = static_cast<size_t>(length);
    const auto found = order.text ? next_text(value.substr(0, character_edge(value, most)), most) : next_bytes(value.substr(0, most));
    return found ? *found : std::string(value);
}

void write_statistics(ThriftOut& out, const LeafOrder& order, const SegmentBounds& pages, const StatisticsOptions& options) {
    int64_t nans = 0;
    for (const int64_t n : pages.nans) nans += n;
    out.open();
    out.i64(3, options.null_count);
    if (options.distinct_count >= 0) out.i64(4, options.distinct_count);
    const int64_t low = extreme(order, pages, pages.mins, -1), high = extreme(order, pages, pages.maxs, 1);
    if (low >= 0 && high >= 0) {
        const StoredBounds b = stored_bounds(order, pages.mins[static_cast<size_t>(low)], pages.maxs[static_cast<size_t>(high)],
                                             options.truncate, nans > 0);
        out.binary(5, b.high);
        out.binary(6, b.low);
        out.boolean(7, b.high_exact);
        out.boolean(8, b.low_exact);
    }
    if (order.floats()) out.i64(9, nans);
    out.close();
}

std::optional<std::string> column_index(const LeafOrder& order, const SegmentBounds& whole, const PageCounts& counts,
                                        int64_t truncate, int64_t longest) {
    if (order.domain == LeafOrder::None) return std::nullopt;
    const size_t pages = whole.size();
    SegmentBounds cut;
    for (size_t k = 0; k < pages; ++k) {
        if (counts.values[k] > 0 && !whole.filled[k]) return std::nullopt;  // all NaN: the lists must hold something valid
        if (counts.values[k] == 0) {
            cut.add_none();
            continue;
        }
        cut.add(shorter_min(order, whole.mins[k], truncate), shorter_max(order, whole.maxs[k], truncate));
        const size_t size = std::max(cut.mins.back().size(), cut.maxs.back().size());
        if (truncate >= 0 && size > static_cast<size_t>(std::max(truncate, longest))) return std::nullopt;
    }
    ThriftOut out;
    out.open();
    out.list(1, ThriftOut::kTrue, pages);
    for (size_t k = 0; k < pages; ++k) out.flag(counts.values[k] == 0);
    out.list(2, ThriftOut::kBinary, pages);
    for (const std::string& v : cut.mins) out.text(v);
    out.list(3, ThriftOut::kBinary, pages);
    for (const std::string& v : cut.maxs) out.text(v);
    out.i32(4, boundary_order(order, cut));
    out.i64s(5, counts.nulls);
    if (!counts.repetition.empty()) out.i64s(6, counts.repetition);
    if (!counts.definition.empty()) out.i64s(7, counts.definition);
    if (order.floats()) out.i64s(8, whole.nans);
    out.close();
    return out.bytes;
}

}  // namespace pyparq
