// Bounds of pages and chunks, in every order that the format defines, and their stored forms: Statistics, ColumnIndex.
#pragma once

#include "encode/encoders.hpp"
#include "thrift/writer.hpp"

#include <optional>

namespace pyparq {

// How the values of a leaf compare; pyparq.format.order says which leaf has which.
struct LeafOrder {
    enum Domain : uint8_t { None,
                            Int,
                            UInt,
                            Float,
                            Bytes,
                            Decimal,
                            Int96 };

    LeafOrder(int64_t domain, int64_t width, bool total, bool cut, bool text);

    Domain domain;
    size_t width;  // bytes of a value, 0: any number
    bool total;    // floats under IEEE_754_TOTAL_ORDER
    bool cut;      // bounds may be shortened
    bool text;     // to UTF-8

    bool floats() const { return domain == Float; }
    // Stored bounds of the leaf's width: negative, zero or positive.
    int compare(std::string_view a, std::string_view b) const;
    // Whether NaN is in them.
    bool is_nan(std::string_view v) const;
    bool is_zero(std::string_view v) const;
};

// Smallest and largest value of consecutive segments (pages). Not filled: no value could be a bound.
struct SegmentBounds {
    std::vector<std::string> mins, maxs;
    std::vector<uint8_t> filled;
    std::vector<int64_t> nans;  // of floats

    size_t size() const { return filled.size(); }
    void add(std::string_view low, std::string_view high) {
        mins.emplace_back(low), maxs.emplace_back(high), filled.push_back(1);
    }
    void add_none() { mins.emplace_back(), maxs.emplace_back(), filled.push_back(0); }
};

// Of values[edges[k]] to values[edges[k + 1]]; numbers must be aligned.
SegmentBounds segment_bounds(const LeafOrder& order, const Values& values, const int64_t* edges, size_t segments);

// At most `length` bytes where that is valid and possible; below 0: whole.
std::string shorter_min(const LeafOrder& order, std::string_view value, int64_t length);
std::string shorter_max(const LeafOrder& order, std::string_view value, int64_t length);

struct StatisticsOptions {
    int64_t null_count = 0, distinct_count = -1, truncate = -1;
};

// The struct, open() to close().
void write_statistics(ThriftOut& out, const LeafOrder& order, const SegmentBounds& pages, const StatisticsOptions& options);

struct PageCounts {
    std::vector<int64_t> nulls, values, repetition, definition;  // the histograms of all pages, or nothing
};

// The serialized ColumnIndex; nothing where the format allows none, or a bound is longer than `longest`.
std::optional<std::string> column_index(const LeafOrder& order, const SegmentBounds& pages, const PageCounts& counts,
                                        int64_t truncate, int64_t longest);

}  // namespace pyparq
