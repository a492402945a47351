// Column chunks, and parts of them, decoded into one output column.
#pragma once
#include "decode/column_output.hpp"
#include "decode/selected_rows.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace pyparq {

// A page whose header has been read.
struct ListedPage {
    PageHead head;
    Bytes body;
    int64_t ordinal = 0;
    int64_t first_row = -1;      // -1: only the levels before it tell
    int64_t expected_rows = -1;  // as the OffsetIndex says
    int64_t wanted = -1;         // rows of it; -1: only its levels tell
};

// Where something is wrong.
struct Place {
    int64_t piece = -1, page = -1;
};

// The wanted part of one column chunk: the chunk as a whole, or a list of single pages.
struct Piece {
    // As Python gives it.
    int codec = 0;
    int64_t num_values = 0, num_rows = 0;
    bool whole = true, first_is_dictionary = false, dictionary_apart = false;
    std::vector<Bytes> parts;                                                        // the whole chunk; or the dictionary page, where it is apart, and data pages
    const int64_t *ordinals = nullptr, *first_rows = nullptr, *page_rows = nullptr;  // of the data pages
    RowSelection rows;
    const PageCipher* cipher = nullptr;  // null: in the clear
    std::optional<Dictionary> known;

    // As it is found.
    std::vector<ListedPage> pages;
    Dictionary dictionary;
    bool dictionary_read = false;
    size_t end = 0;  // of the pages, in a whole chunk
    int64_t pages_read = 0;
    int64_t slots = 0;     // rows wanted, where nothing repeats
    int64_t inflated = 0;  // bytes of all pages

    // A dictionary that is read when the first of its pages is decoded, so that its entries are in the cache then, and that
    // is released behind the last: of many chunks, only those that are being decoded hold theirs. Null: it is read already,
    // or there is none.
    std::unique_ptr<std::once_flag> unread;
    size_t users = 0;  // segments with pages of the piece that are not decoded yet
    PageHead dictionary_head;
    Bytes dictionary_body;

    const Dictionary& entries() const { return known ? *known : dictionary; }
};

// Some pages of one or several pieces, decoded one after another into a sink of their own.
struct Segment {
    struct Part {
        size_t piece, from, to;
    };
    std::vector<Part> parts;
    int64_t bytes = 0;
    size_t slot = 0, room = 0;  // where its slots begin in the column, and how many there are; known where nothing repeats

    std::unique_ptr<Sink> sink;
    std::optional<Block> valid, def, rep;  // of a leaf in lists; none: all present, all at the maximum
    size_t levels = 0, nulls = 0;

    // Bytes that it holds.
    size_t held() const {
        size_t found = sink ? sink->held() : 0;
        for (const auto* block : {&valid, &def, &rep}) found += *block ? (*block)->size() : 0;
        return found;
    }
};

// The byte arrays of a column.
struct BinaryOutput {
    Block offsets, bytes;
    size_t bytes_used = 0;
    bool wide = false;  // offsets of 64 bits
    JointBytes joint;   // of several segments

    size_t offset_width() const { return wide ? 8 : 4; }
};

// One output column.
struct ColumnJob {
    LeafSpec leaf;
    std::vector<Piece> pieces;
    std::vector<Segment> segments;
    std::atomic<bool> misfit = false;   // it cannot come out in its form: see OtherForm
    std::atomic<size_t> undecoded = 0;  // segments

    // The output, as leaf.form says: byte arrays are in `binary`; slots of fixed width, codes and views in `values`, and what
    // views look at in `views`.
    size_t slots = 0, levels = 0, nulls = 0;
    Block values;
    BinaryOutput binary;
    ViewBuffers views;
    std::optional<Block> valid, def;  // a byte per slot or level; none: all present, all at the maximum
    Block rep;                        // of a leaf in lists
    Block bits;                       // `valid` as Arrow's bitmap
    std::mutex growing;

    bool in_place() const { return leaf.max_rep == 0; }
    // `valid` or `def` of a leaf outside of lists, for all segments. Each byte is `fill` at first.
    uint8_t* bytes_of_slots(std::optional<Block>& block, int fill, Budget& budget);
};

// What has been found so far in the pages of a whole chunk.
struct PageWalk {
    int64_t values = 0;
    bool has_dictionary = false;
    PageHead dictionary;
    Bytes dictionary_body;
};

// Reads the header at `piece.end`, which moves behind the page. A data page is listed; kinds from the future are passed over.
void next_page(const LeafSpec& leaf, Piece& piece, PageWalk& walk, const PageLimits& limits, PageScratch& scratch,
               Budget& budget);

// Reads the page headers of a piece and its dictionary, if that is not left for later.
void list_pages(ColumnJob& job, Piece& piece, const PageLimits& limits, PageScratch& scratch, Budget& budget, Place& at);

// Reads the dictionary that was left for later. Several threads may need it.
void read_unread_dictionary(const ColumnJob& job, Piece& piece, const PageLimits& limits, PageScratch& scratch, Budget& budget,
                            Place& at);

// Lets go of a dictionary that was left for later, for the last who needs it.
void release_dictionary(Piece& piece, PageScratch& scratch, Budget& budget);

// Cuts a column into segments of about `target` bytes and allocates what has a known size. With `split`, a piece may be in
// several segments.
void plan_segments(ColumnJob& job, int64_t target, bool split, const PageLimits& limits, PageScratch& scratch, Budget& budget);

void decode_segment(ColumnJob& job, Segment& segment, const PageLimits& limits, PageScratch& scratch, Budget& budget,
                    Place& at);

// Puts the segments together.
void finish_column(ColumnJob& job, const PageLimits& limits, Budget& budget);

}  // namespace pyparq
