#include "decode/levels.hpp"

namespace pyparq {
namespace {

// Leaves of a flat page the rows of the first m `places`: their levels and validity, and places of values instead of rows.
void keep_rows(const uint8_t* def, uint32_t* places, size_t m, PageScratch& scratch, Budget& budget, PageSlots& found) {
    const size_t needed = m == 0 ? 0 : size_t{places[m - 1]} + 1;
    auto* const before = scratch.ranks.items<uint32_t>(needed + 1, budget);
    uint32_t k = 0;
    const uint8_t* const set = found.valid;
    for (size_t i = 0; i < needed; ++i) {
        before[i] = k;
        k += set[i] != 0;
    }
    uint8_t* const kept = scratch.rep.take(2 * m + 1, budget);
    uint8_t* const kept_valid = kept + m;
    size_t picked = 0;
    for (size_t j = 0; j < m; ++j) {
        const uint32_t row = places[j];
        kept[j] = def[row];
        kept_valid[j] = set[row];
        places[picked] = before[row];
        picked += set[row] != 0;
    }
    found.def = kept, found.valid = kept_valid, found.values.picked = picked;
}

// Keeps the entries of wanted rows, in place; `row` is as for list_entries, and `starts` rows start in the page.
void keep_entries(const LeafSpec& leaf, const RowSelection& rows, int64_t row, size_t starts, uint8_t* rep, uint8_t* def,
                  PageScratch& scratch, Budget& budget, PageSlots& found) {
    const size_t n = found.levels;
    auto* const picks = scratch.places.items<uint32_t>(n + 1, budget);
    auto* const wanted = scratch.ranks.items<uint32_t>(starts + 9, budget);
    const int64_t base = row - 1 < 0 ? 0 : row - 1;
    const size_t count = rows.places(base, row + static_cast<int64_t>(starts), wanted);
    const auto top = static_cast<uint8_t>(leaf.max_def);
    int64_t at = row - 1;
    size_t w = 0, kept = 0, picked = 0;
    uint32_t value = 0;
    for (size_t e = 0; e < n; ++e) {
        at += rep[e] == 0;
        while (w < count && base + wanted[w] < at) ++w;
        const bool keep = w < count && base + wanted[w] == at;
        const bool set = def == nullptr || def[e] == top;
        picks[picked] = value;
        picked += keep && set;
        value += set;
        rep[kept] = rep[e];
        if (def != nullptr) def[kept] = def[e];
        kept += keep;
    }
    found.values.picks = picks, found.values.picked = picked;
    found.levels = kept;
}

// Throws PageRefusal where the entries of a page do not begin the rows that they should; `starts` begin in it.
void check_starts(const ListedPage& listed, const uint8_t* rep, size_t starts, int64_t row) {
    if (listed.expected_rows >= 0) {
        if (starts > 0 && rep[0] != 0) throw PageRefusal{"mid_row"};
        if (static_cast<int64_t>(starts) != listed.expected_rows)
            throw PageRefusal{"page_rows", static_cast<int64_t>(starts), listed.expected_rows};
    }
    if (row == 0 && listed.head.count > 0 && rep[0] != 0) throw PageRefusal{"first_repetition", rep[0]};
}

// Which entries are slots, and which of these are there: `present` of them.
void slots_of_entries(const LeafSpec& leaf, const uint8_t* def, size_t present, PageScratch& scratch, Budget& budget,
                      PageSlots& found) {
    uint8_t* const valid = scratch.valid.take(found.levels + 1, budget);
    const auto top = static_cast<uint8_t>(leaf.max_def), from = static_cast<uint8_t>(leaf.slot_level);
    size_t slots = 0;
    for (size_t e = 0; e < found.levels; ++e) {
        valid[slots] = def[e] == top;
        slots += def[e] >= from;
    }
    found.slots = slots;
    found.valid = slots == present ? nullptr : valid;
}

}  // namespace

void flat_slots(const LeafSpec& leaf, const RowSelection& rows, const ListedPage& listed, const OpenPage& page,
                PageScratch& scratch, Budget& budget, PageSlots& found) {
    const size_t n = static_cast<size_t>(page.count);
    uint8_t* def = nullptr;
    size_t present = n;
    if (leaf.max_def > 0)
        present = read_page_levels(page.def, page.def_encoding, n, leaf.max_def, true, scratch.def, budget, def);
    if (present == n) def = nullptr;
    found.values = {page.encoding, page.values, present};
    found.values.partly = page.partly;
    found.slots = found.levels = n;
    found.def = def;
    const auto top = static_cast<uint8_t>(leaf.max_def);
    if (def != nullptr) {
        if (leaf.max_def == 1) {
            found.valid = def;
        } else {
            uint8_t* const valid = scratch.valid.take(n, budget);
            for (size_t i = 0; i < n; ++i) valid[i] = def[i] == top;
            found.valid = valid;
        }
    }
    if (listed.wanted == static_cast<int64_t>(n)) return;
    auto* const places = scratch.places.items<uint32_t>(static_cast<size_t>(listed.wanted) + 8, budget);
    const size_t m = rows.places(listed.first_row, listed.first_row + page.count, places);
    found.slots = found.levels = m;
    found.values.picks = places;
    found.values.picked = m;
    if (def != nullptr) keep_rows(def, places, m, scratch, budget, found);
}

void list_entries(const LeafSpec& leaf, const RowSelection& rows, const ListedPage& listed, const OpenPage& page,
                  int64_t& row, PageScratch& scratch, Budget& budget, PageSlots& found) {
    const size_t n = static_cast<size_t>(page.count);
    uint8_t *rep, *def = nullptr;
    read_page_levels(page.rep, page.rep_encoding, n, leaf.max_rep, false, scratch.rep, budget, rep);
    size_t present = n;
    if (leaf.max_def > 0)
        present = read_page_levels(page.def, page.def_encoding, n, leaf.max_def, false, scratch.def, budget, def);
    const size_t starts = count_equal(rep, n, 0);
    if (listed.first_row >= 0) row = listed.first_row;
    check_starts(listed, rep, starts, row);
    found.values = {page.encoding, page.values, present};
    found.levels = n;
    if (!rows.all()) {
        keep_entries(leaf, rows, row, starts, rep, def, scratch, budget, found);
        present = found.values.picked;
    }
    row += static_cast<int64_t>(starts);
    found.rep = rep, found.def = def;
    found.slots = found.levels;
    if (def != nullptr) slots_of_entries(leaf, def, present, scratch, budget, found);
}

int64_t values_needed(const LeafSpec& leaf, const Piece& piece, const ListedPage& page) {
    if (leaf.max_rep > 0) return -1;
    if (page.wanted < 0 || page.first_row < 0 || page.head.count == 0 || !inflates_in_part(piece.codec)) return -1;
    if (page.wanted == page.head.count) return -1;
    const int64_t needed = piece.rows.last_of(page.first_row, page.first_row + page.head.count) - page.first_row + 1;
    return needed * 8 > page.head.count * 7 ? -1 : needed;
}

}  // namespace pyparq
