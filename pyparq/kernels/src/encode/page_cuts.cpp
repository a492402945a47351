// Cuts a column chunk into pages: at row boundaries, by rows and by bytes (parquet.thrift, OffsetIndex).
#include "encode/column.hpp"

#include "values/checks.hpp"

namespace pyparq {
namespace {

constexpr size_t kMaxPage = (size_t{1} << 31) - (size_t{1} << 20);  // sizes in headers are signed, compression may add some

}  // namespace

Cutter::Cutter(const ColumnRules& column, const LeafValues& leaf) : column_(column), leaf_(leaf) {
    level_bits_ = leaf.defs == nullptr ? 0 : static_cast<size_t>(std::bit_width(static_cast<unsigned>(column.max_def)));
    if (leaf.reps == nullptr) return;
    level_bits_ += static_cast<size_t>(std::bit_width(static_cast<unsigned>(column.max_rep)));
    starts_.reserve(leaf.rows + 1);
    for (size_t i = 0; i < leaf.slots; ++i)
        if (leaf.reps[i] == 0) starts_.push_back(static_cast<int64_t>(i));
    if (starts_.size() != leaf.rows) fail("there are " + str(starts_.size()) + " rows in the levels, not " + str(leaf.rows));
    starts_.push_back(static_cast<int64_t>(leaf.slots));
}

size_t Cutter::values_in(size_t first, size_t last) const {
    if (leaf_.defs == nullptr) return last - first;
    return count_equal(leaf_.defs + first, last - first, static_cast<uint8_t>(column_.max_def));
}

size_t Cutter::row_before_value(size_t value) const {
    size_t slot = value;
    if (leaf_.defs != nullptr) {
        slot = 0;
        for (size_t seen = 0;; ++slot)
            if (leaf_.defs[slot] == column_.max_def && seen++ == value) break;
    }
    if (starts_.empty()) return slot;
    return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), static_cast<int64_t>(slot)) - starts_.begin()) - 1;
}

// The last row boundary up to `end` at which a page that starts at `row` is not too large; one row at least.
size_t Cutter::end_of_page(size_t row, size_t end, const Cost& cost) const {
    const size_t first_slot = slot_of_row(row), first_value = static_cast<size_t>(pages.values.back());
    size_t slot = first_slot, values = 0, at = row;
    while (at < end) {
        const size_t next = slot_of_row(at + 1);
        size_t more = next - slot;
        if (leaf_.defs != nullptr) {
            more = 0;
            for (size_t i = slot; i < next; ++i) more += leaf_.defs[i] == column_.max_def;
        }
        const size_t size = cost.of(first_value, values + more) + (next - first_slot) * level_bits_ / 8;
        if (size > static_cast<size_t>(column_.file->page_size)) break;
        slot = next, values += more, ++at;
    }
    return std::max(at, row + 1);
}

void Cutter::cut(size_t last, const Cost& cost) {
    const auto page_size = static_cast<size_t>(column_.file->page_size);
    for (auto row = static_cast<size_t>(pages.rows.back()); row < last;) {
        const auto first_slot = static_cast<size_t>(pages.slots.back()), first_value = static_cast<size_t>(pages.values.back());
        size_t end = std::min(row + static_cast<size_t>(column_.file->max_rows), last), slot = 0, count = 0, size = 0;
        const auto measure = [&] {
            slot = slot_of_row(end), count = values_in(first_slot, slot);
            size = cost.of(first_value, count) + (slot - first_slot) * level_bits_ / 8;
        };
        measure();
        if (size > page_size && end - row > 1) {
            end = end_of_page(row, end, cost);
            measure();
        }
        if (size > kMaxPage)
            throw Refusal{Refusal::RowTooLarge, static_cast<int64_t>(pages.size()), static_cast<int64_t>(row), static_cast<int64_t>(size)};
        pages.rows.push_back(static_cast<int64_t>(end));
        pages.slots.push_back(static_cast<int64_t>(slot));
        pages.values.push_back(static_cast<int64_t>(first_value + count));
        row = end;
    }
}

}  // namespace pyparq
