// Which slots of a page are wanted, and their levels.
#pragma once
#include "decode/column.hpp"
#include "decode/values.hpp"

namespace pyparq {

// What is wanted of a page, apart from its values.
struct PageSlots {
    PageValues values;
    size_t slots = 0;
    const uint8_t* valid = nullptr;  // one byte per slot; null: all present
    size_t levels = 0;
    const uint8_t *def = nullptr, *rep = nullptr;  // of the entries that are kept
};

// Of a leaf outside of lists: a slot is a row.
void flat_slots(const LeafSpec& leaf, const RowSelection& rows, const ListedPage& listed, const OpenPage& page,
                PageScratch& scratch, Budget& budget, PageSlots& found);

// Of a leaf in lists; `row` is the row that the next entry of repetition level 0 starts, less one where it goes on.
void list_entries(const LeafSpec& leaf, const RowSelection& rows, const ListedPage& listed, const OpenPage& page,
                  int64_t& row, PageScratch& scratch, Budget& budget, PageSlots& found);

// Whether the beginning of a page can be inflated without the rest: Snappy and LZ4_RAW, whose decoders are ours.
inline bool inflates_in_part(int codec) { return codec == 1 || codec == 7; }

// How many values of a page to inflate, nulls included: -1 for all of them.
int64_t values_needed(const LeafSpec& leaf, const Piece& piece, const ListedPage& page);

}  // namespace pyparq
