// What page locations must fulfil before anything is read by them.
#include "thrift/calls.hpp"
#include "base/common.hpp"

namespace pyparq {
namespace {

enum Fault : int { NONE = 0,
                   ROWS = 1,
                   OUTSIDE = 2,
                   OVERLAP = 3 };

}  // namespace

// `pages` holds the offsets of n > 0 pages, then their sizes, then their first rows.
int check_page_locations(const In<int64_t>& pages, int64_t num_rows, int64_t start, int64_t end) {
    const size_t n = pages.size / 3;
    if (n == 0 || n * 3 != pages.size) fail("three numbers for each of some pages");
    const int64_t *offsets = pages.data, *sizes = offsets + n, *rows = sizes + n;
    if (rows[0] != 0) return ROWS;
    for (size_t k = 1; k < n; ++k)
        if (rows[k] < rows[k - 1]) return ROWS;  // equal: the page before holds no rows
    if (rows[n - 1] > num_rows) return ROWS;
    int64_t after = start;  // where the next page may begin; never beyond `end`
    for (size_t k = 0; k < n; ++k) {
        if (sizes[k] <= 0 || offsets[k] >= end || offsets[k] < start) return OUTSIDE;
        if (offsets[k] < after || sizes[k] > end - offsets[k]) return OVERLAP;
        after = offsets[k] + sizes[k];
    }
    return NONE;
}

}  // namespace pyparq
