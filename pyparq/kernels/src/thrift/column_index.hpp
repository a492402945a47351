// A ColumnIndex as arrays: what the rules have checked is read without an object per page.
#pragma once

#include "index/stored_numbers.hpp"
#include "thrift/wire.hpp"

namespace pyparq {

// Fields of a ColumnIndex by their ids.
struct ColumnIndexFields {
    std::vector<uint8_t> null_pages;
    std::vector<std::pair<const uint8_t*, size_t>> bounds[2];  // min_values, max_values
    int64_t order = 0;
    std::vector<int64_t> numbers[4];  // null_counts, repetition and definition histograms, nan_counts
    bool there[4] = {};
};

inline ColumnIndexFields read_column_index(Cursor& c) {
    ColumnIndexFields found;
    const auto list_of = [&](uint8_t due, auto&& take) {
        uint8_t element;
        for (size_t n = c.list(element), k = 0; k < n; ++k) {
            if (element == kFalse) element = kTrue;
            if (element != due) c.fail("a list of another type");
            take(k, n);
        }
    };
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id == 4 && type == kI32) {
            found.order = c.number(32);
        } else if (type != kList || id < 1 || id == 4 || id > 8) {
            skip_field(c, type, 2);
        } else if (id == 1) {
            list_of(kTrue, [&](size_t, size_t) { found.null_pages.push_back(c.byte() == 1); });
        } else if (id <= 3) {
            list_of(kBinary, [&](size_t, size_t) {
                const size_t size = c.varint(32);
                const uint8_t* const start = c.p;
                c.advance(size);
                found.bounds[id - 2].emplace_back(start, size);
            });
        } else {
            found.there[id - 5] = true;
            list_of(kI64, [&](size_t, size_t) { found.numbers[id - 5].push_back(c.number(64)); });
        }
    }
    return found;
}

// A ColumnIndex for Python: an array per field, None for a list that is absent. Bounds of numbers are (64-bit numbers, where
// they can be used), others a list of bytes.
struct ColumnIndexArrays {
    nb::object null_pages, lower, upper;
    int64_t order = 0;
    nb::object null_counts, repetition_histograms, definition_histograms, nan_counts;
};

// The ColumnIndex at the start of `data`. `width`: bytes of a number of `number_kind`; 0 for bounds that are bytes.
template <class Rules>
ColumnIndexArrays column_index(const Rules& rules, const RawIn& data, size_t kind, size_t width, int number_kind) {
    if (width != 0) check_stored_numbers(width, number_kind);
    Cursor checked = cursor(data, 0);
    rules.check(checked, kind);
    Cursor c = cursor(data, 0);
    const ColumnIndexFields found = read_column_index(c);
    Fresh<bool> null_pages(found.null_pages.size());
    std::copy(found.null_pages.begin(), found.null_pages.end(), null_pages.data);
    nb::object bounds[2];
    for (size_t side = 0; side < 2; ++side) {
        const auto& stored = found.bounds[side];
        if (width == 0) {
            nb::list all;
            for (const auto& [start, size] : stored) all.append(nb::bytes(reinterpret_cast<const char*>(start), size));
            bounds[side] = std::move(all);
            continue;
        }
        Fresh<int64_t> values(stored.size());
        Fresh<bool> usable(stored.size());
        for (size_t k = 0; k < stored.size(); ++k) {
            values.data[k] = 0;
            usable.data[k] = stored[k].second == width && widen(stored[k].first, width, number_kind, values.data[k]);
        }
        bounds[side] = nb::make_tuple(std::move(values.object), std::move(usable.object));
    }
    const auto listed = [&](size_t k) { return found.there[k] ? int64_array(found.numbers[k]) : nb::none(); };
    return {std::move(null_pages.object), std::move(bounds[0]), std::move(bounds[1]), found.order, listed(0), listed(1),
            listed(2), listed(3)};
}

}  // namespace pyparq
