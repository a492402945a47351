// Column chunks, and parts of them, decoded into one output column.
#include "engine_column.hpp"

#include "engine_values.hpp"
#include "workers.hpp"

#include <string_view>

namespace pyparq {
namespace {

// ---- listing --------------------------------------------------------------------------------------------

// Bytes that the first `needed` entries of a dictionary may take: a guess where they are not of fixed width.
int64_t size_of_entries(const LeafSpec& leaf, const PageHead& head, int64_t needed) {
    if (leaf.physical != Physical::kByteArray) {
        const auto width = static_cast<int64_t>(leaf.width);
        return head.size / width < head.count ? head.size : needed * width;
    }
    const double share = static_cast<double>(needed) / static_cast<double>(head.count);
    return std::min(head.size, static_cast<int64_t>(static_cast<double>(head.size) * share) + head.size / 16 + 1024);
}

// The header at data[at] and its body; moves `at` behind the body.
PageHead next_head(const Piece& piece, const Bytes& data, size_t& at, int64_t ordinal, const PageLimits& limits,
                   PageScratch& scratch, Budget& budget, Bytes& body) {
    PageHead head;
    if (piece.cipher) {
        size_t end = at, used = 0;
        const Bytes plain = piece.cipher->header(data, at, ordinal, scratch, budget, end);
        try {
            head = parse_page_head(plain.data, plain.size, used);
        } catch (const KernelError& error) {
            throw Refused{"page_header", 0, 0, 0, error.what()};
        }
        at = end;
        check_page_head(head, data.size - at, piece.codec, limits);
    } else {
        head = read_page_head(data, at, piece.codec, limits);
    }
    body = {data.data + at, static_cast<size_t>(head.stored)};
    at += body.size;
    return head;
}

// Of the entries the first `needed` at least; `uses` values will be looked up.
void read_dictionary(const LeafSpec& leaf, Piece& piece, const PageHead& head, const Bytes& body, size_t uses,
                     int64_t needed, const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    const int64_t due = needed < head.count ? size_of_entries(leaf, head, needed) : head.size;
    const Bytes plain = open_dictionary_page(head, body, piece.codec, piece.cipher ? &*piece.cipher : nullptr, due, limits,
                                             scratch, budget);
    piece.dictionary_read = true;
    if (due == head.size) return piece.dictionary.load(plain, head.count, head.count, leaf, uses, budget);
    try {
        piece.dictionary.load(plain, head.count, needed, leaf, uses, budget);
    } catch (const NeedsAll&) {
        read_dictionary(leaf, piece, head, body, uses, head.count, limits, scratch, budget);
    }
}

void read_dictionary_apart(const LeafSpec& leaf, Piece& piece, const PageLimits& limits, PageScratch& scratch,
                           Budget& budget);

// Codes are for columns of one piece, all of whose pages have them.
void settle_kind(LeafSpec& leaf, const Piece& piece) {
    if (leaf.kind != OutputKind::kCodes || !leaf.or_values || piece.known) return;
    const bool all = std::all_of(piece.pages.begin(), piece.pages.end(), [](const ListedPage& page) {
        return is_dictionary(static_cast<int>(page.head.encoding));
    });
    if (!all) leaf.kind = OutputKind::kValues;
}

void list_whole(LeafSpec& leaf, Piece& piece, const PageLimits& limits, PageScratch& scratch,
                Budget& budget, Place& at) {
    const Bytes& data = piece.parts.at(0);
    int64_t seen = 0, ordinal = 0;
    PageHead dictionary;
    Bytes dictionary_body;
    bool has_dictionary = false;
    while (piece.num_values > seen) {
        at.page = ordinal;
        if (piece.end >= data.size) {
            at.page = -1;
            throw Refused{"pages_end", piece.num_values, seen};
        }
        const int64_t stated = piece.end == 0 && piece.first_is_dictionary ? kDictionaryPage : ordinal;
        Bytes body;
        const PageHead head = next_head(piece, data, piece.end, stated, limits, scratch, budget, body);
        if (head.type == PageHead::kDictionary) {
            if (seen > 0 || has_dictionary) throw Refused{"dictionary_not_first"};
            has_dictionary = true, dictionary = head, dictionary_body = body;
            continue;
        }
        if (!head.is_data()) continue;
        const int64_t count = declared_values(head);
        ListedPage page{head, body, ordinal};
        if (leaf.max_rep == 0) page.first_row = seen;
        budget.take(2 * sizeof(ListedPage));  // a vector that grows has room to spare
        piece.pages.push_back(page);
        piece.inflated += head.size;
        seen += count;
        ++ordinal;
    }
    at.page = -1;
    if (seen > piece.num_values) throw Refused{"pages_hold_more", piece.num_values, seen};
    settle_kind(leaf, piece);
    if (has_dictionary && !piece.known) {
        at.page = kDictionaryPage;
        read_dictionary(leaf, piece, dictionary, dictionary_body, static_cast<size_t>(seen), dictionary.count, limits,
                        scratch, budget);
        at.page = -1;
    }
}

void list_planned(LeafSpec& leaf, Piece& piece, const PageLimits& limits, PageScratch& scratch,
                  Budget& budget, Place& at) {
    const size_t first = piece.dictionary_apart ? 1 : 0, count = piece.parts.size() - first;
    int64_t seen = 0;
    piece.pages.reserve(count);
    for (size_t k = 0; k < count; ++k) {
        at.page = piece.ordinals[k];
        size_t start = 0;
        Bytes body;
        const PageHead head = next_head(piece, piece.parts[first + k], start, at.page, limits, scratch, budget, body);
        const int64_t values = declared_values(head);
        seen += values;
        if (seen > piece.num_values) throw Refused{"more_than_declared", piece.num_values};
        if (leaf.max_rep == 0 && values != piece.page_rows[k]) throw Refused{"page_rows", values, piece.page_rows[k]};
        piece.pages.push_back({head, body, at.page, piece.first_rows[k], piece.page_rows[k]});
        piece.inflated += head.size;
    }
    settle_kind(leaf, piece);
    if (piece.dictionary_apart && !piece.known) {
        at.page = kDictionaryPage;
        read_dictionary_apart(leaf, piece, limits, scratch, budget);
    }
    at.page = -1;
}

// ---- levels ---------------------------------------------------------------------------------------------

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
    auto* const places = scratch.places.items<uint32_t>(static_cast<size_t>(listed.wanted) + 1, budget);
    const size_t m = rows.places(listed.first_row, listed.first_row + page.count, places);
    found.slots = found.levels = m;
    found.values.picks = places;
    found.values.picked = m;
    if (def == nullptr) return;
    // Places of values instead of rows, and the levels and validity of the rows that are left.
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

// Of a leaf in lists; `row` is the row that the next entry of repetition level 0 starts, less one where it goes on.
void list_entries(const LeafSpec& leaf, const RowSelection& rows, const ListedPage& listed, const OpenPage& page,
                  int64_t& row, PageScratch& scratch, Budget& budget, PageSlots& found) {
    const size_t n = static_cast<size_t>(page.count);
    uint8_t *rep, *def = nullptr;
    read_page_levels(page.rep, page.rep_encoding, n, leaf.max_rep, false, scratch.rep, budget, rep);
    size_t present = n;
    if (leaf.max_def > 0)
        present = read_page_levels(page.def, page.def_encoding, n, leaf.max_def, false, scratch.def, budget, def);
    const size_t starts = count_equal(rep, n, 0);
    if (listed.expected_rows >= 0) {
        if (starts > 0 && rep[0] != 0) throw Refused{"mid_row"};
        if (static_cast<int64_t>(starts) != listed.expected_rows)
            throw Refused{"page_rows", static_cast<int64_t>(starts), listed.expected_rows};
    }
    if (listed.first_row >= 0) row = listed.first_row;
    if (row == 0 && n > 0 && rep[0] != 0) throw Refused{"first_repetition", rep[0]};
    found.values = {page.encoding, page.values, present};
    found.levels = n;
    if (!rows.all()) {
        // Keep the entries of wanted rows, in place.
        auto* const picks = scratch.places.items<uint32_t>(n + 1, budget);
        const int64_t last = row + static_cast<int64_t>(starts);
        auto* const wanted = scratch.ranks.items<uint32_t>(starts + 2, budget);
        const size_t count = rows.places(row - 1 < 0 ? 0 : row - 1, last, wanted);
        const int64_t base = row - 1 < 0 ? 0 : row - 1;
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
        found.values.picks = picks;
        found.values.picked = picked;
        found.levels = kept;
        present = picked;
    }
    row += static_cast<int64_t>(starts);
    found.rep = rep, found.def = def;
    found.slots = found.levels;
    if (def == nullptr) return;
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

void append_bytes(Block& block, size_t used, const uint8_t* data, uint8_t fill, size_t n, Budget& budget) {
    if (used + n > block.size()) {
        const size_t room = std::max(used + n, block.size() * 2);
        budget.take(room - block.size());
        block.grow(room);
    }
    if (n == 0) return;
    if (data != nullptr) std::memcpy(block.data() + used, data, n);
    else std::memset(block.data() + used, fill, n);
}

// Notes validity and levels of a page whose values have been appended.
void keep(ColumnJob& job, Segment& segment, const PageSlots& found, size_t slot, Budget& budget) {
    const size_t present = found.values.wanted();
    segment.nulls += found.slots - present;
    const bool nulls = present != found.slots;
    if (job.in_place()) {
        if (nulls) std::memcpy(job.valid_bytes(budget) + segment.slot + slot, found.valid, found.slots);
        if (job.leaf.keeps_levels && found.def != nullptr)
            std::memcpy(job.def_bytes(budget) + segment.slot + slot, found.def, found.slots);
        return;
    }
    if (nulls && !segment.has_valid) {
        append_bytes(segment.valid, 0, nullptr, 1, slot, budget);
        segment.has_valid = true;
    }
    if (segment.has_valid) append_bytes(segment.valid, slot, nulls ? found.valid : nullptr, 1, found.slots, budget);
    append_bytes(segment.rep, segment.levels, found.rep, 0, found.levels, budget);
    if (found.def != nullptr) {
        append_bytes(segment.def, segment.levels, found.def, 0, found.levels, budget);
        segment.has_def = true;
    }
    segment.levels += found.levels;
}

constexpr int kSnappy = 1, kLz4Raw = 7;

bool is_limit(const Refused& refused) {
    const std::string_view name = refused.name;
    return name == "memory" || name == "max_column";
}

// How many values of a page to inflate, nulls included: -1 for all of them.
int64_t values_needed(const LeafSpec& leaf, const Piece& piece, const ListedPage& page) {
    if (leaf.max_rep > 0) return -1;
    if (page.wanted < 0 || page.first_row < 0 || page.head.count == 0 || (piece.codec != kSnappy && piece.codec != kLz4Raw)) return -1;
    if (page.wanted == page.head.count) return -1;
    const int64_t needed = piece.rows.last_of(page.first_row, page.first_row + page.head.count) - page.first_row + 1;
    return needed * 8 > page.head.count * 7 ? -1 : needed;
}

// How many entries of its dictionary the rows that are wanted of a piece look at; all of them where it would not pay to
// find out, or something is wrong, which is said when the pages are decoded.
int64_t entries_needed(const LeafSpec& leaf, const Piece& piece, const PageHead& dictionary, int64_t wanted,
                       const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    constexpr int64_t kLarge = int64_t{32} << 10, kFewRows = 64;
    constexpr size_t kFewPages = 4;
    const bool in_part = piece.codec == kSnappy || piece.codec == kLz4Raw;
    if (!in_part || piece.cipher || leaf.max_rep > 0 || leaf.kind != OutputKind::kValues || dictionary.size < kLarge ||
        dictionary.count <= 0 || wanted > kFewRows || piece.pages.size() > kFewPages)
        return dictionary.count;
    int64_t needed = 0;
    try {
        for (ListedPage page : piece.pages) {
            page.wanted = piece.rows.count(page.first_row, page.first_row + page.head.count);
            if (page.wanted == 0 || !is_dictionary(static_cast<int>(page.head.encoding))) continue;
            scratch.into = nullptr;
            const OpenPage open = open_data_page(page.head, page.body, page.ordinal, piece.codec, leaf.max_def, 0, nullptr,
                                                 values_needed(leaf, piece, page), limits, scratch, budget);
            PageSlots found;
            flat_slots(leaf, piece.rows, page, open, scratch, budget, found);
            each_block(found.values, found.valid, found.slots, static_cast<size_t>(dictionary.count), scratch, budget,
                       [&](const uint32_t* block, size_t values, const uint8_t*, size_t) {
                for (size_t k = 0; k < values; ++k) needed = std::max(needed, int64_t{block[k]} + 1);
            });
        }
    } catch (const NeedsAll&) {
        return dictionary.count;
    } catch (const Refused&) {
        return dictionary.count;
    } catch (const KernelError&) {
        return dictionary.count;
    }
    return std::min(needed, dictionary.count);
}

void read_dictionary_apart(const LeafSpec& leaf, Piece& piece, const PageLimits& limits, PageScratch& scratch,
                           Budget& budget) {
    size_t start = 0;
    Bytes body;
    const PageHead head = next_head(piece, piece.parts[0], start, kDictionaryPage, limits, scratch, budget, body);
    if (head.type != PageHead::kDictionary) return;
    int64_t uses = 0;
    for (const ListedPage& page : piece.pages)
        uses += leaf.max_rep > 0 ? page.head.count : piece.rows.count(page.first_row, page.first_row + page.head.count);
    const int64_t needed = entries_needed(leaf, piece, head, uses, limits, scratch, budget);
    read_dictionary(leaf, piece, head, body, static_cast<size_t>(uses), needed, limits, scratch, budget);
}

void decode_page(ColumnJob& job, Segment& segment, Piece& piece, const ListedPage& listed, int64_t& row, int64_t limit,
                 const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    const LeafSpec& leaf = job.leaf;
    const bool all = piece.rows.all() || listed.wanted == listed.head.count;
    scratch.into = all ? segment.sink->page_room(listed.head, budget) : nullptr;
    const OpenPage page = open_data_page(listed.head, listed.body, listed.ordinal, piece.codec, leaf.max_def, leaf.max_rep,
                                         piece.cipher ? &*piece.cipher : nullptr, limit, limits, scratch, budget);
    PageSlots found;
    int64_t next = row;
    if (leaf.max_rep == 0) flat_slots(leaf, piece.rows, listed, page, scratch, budget, found);
    else list_entries(leaf, piece.rows, listed, page, next, scratch, budget, found);
    const size_t slot = segment.sink->slots;
    segment.sink->append(found.values, found.valid, found.slots, piece.entries(), scratch, budget);
    keep(job, segment, found, slot, budget);
    row = next;
}

// About how many bytes the values of a page take that has indices.
int64_t spelled_out(int64_t values, const Dictionary& entries) {
    if (entries.count == 0) return 32;
    const auto mean = static_cast<double>(entries.bytes_used) / static_cast<double>(entries.count);
    return static_cast<int64_t>(std::min(static_cast<double>(values) * (mean + mean / 16) + 4096, 1e12));
}

std::unique_ptr<Sink> make_sink(ColumnJob& job, Segment& segment, const PageLimits& limits, Budget& budget) {
    const LeafSpec& leaf = job.leaf;
    const bool binary = leaf.is_binary();
    uint8_t* const values = job.in_place() && !binary ? job.values.data() + segment.slot * leaf.out_width() : nullptr;
    if (!binary && !leaf.is_views()) return std::make_unique<FixedSink>(leaf, values, segment.room, limits);
    size_t expected = 64;
    for (const Segment::Part& part : segment.parts)
        for (size_t k = part.from; k < part.to; ++k) {
            const ListedPage& page = job.pieces[part.piece].pages[k];
            const bool by_index = is_dictionary(static_cast<int>(page.head.encoding));
            if (!binary && by_index) continue;
            const int64_t size = by_index ? spelled_out(page.head.count, job.pieces[part.piece].entries()) : page.head.size + 32;
            expected += static_cast<size_t>(page.wanted < 0 ? size : size * page.wanted / std::max<int64_t>(page.head.count, 1));
        }
    expected = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(expected), std::max<int64_t>(budget.left() / 4, 64)));
    expected = std::min(expected, static_cast<size_t>(std::max<int64_t>(limits.max_column, 64)));  // from there on it is held
    if (!binary) return std::make_unique<ViewSink>(leaf, values, segment.room, expected, job.views, limits);
    if (job.wide) {
        auto* const place = job.in_place() ? job.offsets.as<int64_t>() + segment.slot + 1 : nullptr;
        return std::make_unique<BinarySink<int64_t>>(leaf, place, segment.room, expected, budget, limits);
    }
    auto* const place = job.in_place() ? job.offsets.as<int32_t>() + segment.slot + 1 : nullptr;
    return std::make_unique<BinarySink<int32_t>>(leaf, place, segment.room, expected, budget, limits);
}

}  // namespace

uint8_t* ColumnJob::valid_bytes(Budget& budget) {
    const std::lock_guard lock(growing);
    if (!has_valid) {
        budget.take(slots);
        valid.grow(slots);
        std::memset(valid.data(), 1, slots);
        has_valid = true;
    }
    return valid.data();
}

uint8_t* ColumnJob::def_bytes(Budget& budget) {
    const std::lock_guard lock(growing);
    if (!has_def) {
        budget.take(slots);
        def.grow(slots);
        std::memset(def.data(), leaf.max_def, slots);
        has_def = true;
    }
    return def.data();
}

namespace {

// A header that makes no sense may follow a page that was changed: its CRC tells then.
void check_crcs(const Piece& piece, const PageLimits& limits, Place& at) {
    for (const ListedPage& page : piece.pages) {
        at.page = page.ordinal;
        check_page_crc(page.head, page.body, piece.cipher ? &*piece.cipher : nullptr, limits);
    }
}

// Views look at the entries of a dictionary where they lie, unless few of the rows would keep all of them alive.
void lend_dictionary(Piece& piece, ViewBuffers& buffers) {
    constexpr int64_t kFew = 4;
    Dictionary& dictionary = piece.known ? *piece.known : piece.dictionary;
    if (!dictionary.there || !dictionary.any_long) return;
    dictionary.is_copied = !piece.rows.all() && piece.rows.count(0, piece.num_rows) * kFew <= piece.num_rows;
    if (!dictionary.is_copied) dictionary.lend(buffers);
}

}  // namespace

void list_pages(ColumnJob& job, Piece& piece, const PageLimits& limits, PageScratch& scratch, Budget& budget, Place& at) {
    LeafSpec& leaf = job.leaf;
    try {
        if (piece.whole) list_whole(leaf, piece, limits, scratch, budget, at);
        else list_planned(leaf, piece, limits, scratch, budget, at);
    } catch (const Refused&) {
        const Place found = at;
        check_crcs(piece, limits, at);
        at = found;
        throw;
    }
    if (leaf.is_views()) lend_dictionary(piece, job.views);
    if (leaf.max_rep != 0) {
        if (piece.rows.all()) return;
        for (ListedPage& page : piece.pages)
            if (page.first_row >= 0) page.wanted = piece.rows.count(page.first_row, page.first_row + page.expected_rows);
        return;
    }
    for (ListedPage& page : piece.pages) {
        page.wanted = piece.rows.count(page.first_row, page.first_row + page.head.count);
        piece.slots += page.wanted;
    }
}

void plan_segments(ColumnJob& job, int64_t target, bool split, const PageLimits& limits, Budget& budget) {
    for (const Segment& segment : job.segments) {  // of a first attempt
        budget.give(segment.valid.size() + segment.def.size() + segment.rep.size());
        if (segment.sink) budget.give(segment.sink->held());
    }
    job.segments.clear();
    job.slots = 0;
    for (size_t p = 0; p < job.pieces.size(); ++p) {
        const Piece& piece = job.pieces[p];
        // Only the levels before tell which row a page of a whole chunk starts with.
        const bool parts = split && (job.in_place() || piece.rows.all() || !piece.whole);
        for (size_t k = 0; k < piece.pages.size();) {
            const bool room = !job.segments.empty() && job.segments.back().bytes < target;
            if (!room) {
                job.segments.emplace_back();
                job.segments.back().slot = job.slots;
            }
            Segment& segment = job.segments.back();
            segment.parts.push_back({p, k, k});
            while (k < piece.pages.size() && (segment.bytes < target || !parts)) {
                const ListedPage& page = piece.pages[k];
                segment.bytes += page.head.size + page.head.count / 8;
                if (job.in_place()) {
                    segment.room += static_cast<size_t>(page.wanted);
                    job.slots += static_cast<size_t>(page.wanted);
                }
                segment.parts.back().to = ++k;
            }
        }
    }
    if (!job.in_place()) return;
    const size_t width = job.leaf.is_binary() ? (job.wide ? 8 : 4) : job.leaf.out_width();
    const size_t size = checked_mul(job.slots + (job.leaf.is_binary() ? 1 : 0), width);
    if (static_cast<double>(size) > static_cast<double>(limits.max_column))
        throw Refused{"max_column", static_cast<int64_t>(size), limits.max_column};
    Block& block = job.leaf.is_binary() ? job.offsets : job.values;
    if (size > block.size()) {
        budget.take(size - block.size());
        block.grow(size);
    }
}

void decode_segment(ColumnJob& job, Segment& segment, const PageLimits& limits, PageScratch& scratch, Budget& budget,
                    Place& at) {
    segment.sink = make_sink(job, segment, limits, budget);
    segment.levels = segment.nulls = 0;
    segment.has_valid = segment.has_def = false;
    for (const Segment::Part& part : segment.parts) {
        Piece& piece = job.pieces[part.piece];
        at.piece = static_cast<int64_t>(part.piece);
        int64_t row = 0, read = 0;
        if (part.from > 0) row = 1;  // not the first of its chunk: it may go on with a row
        for (size_t k = part.from; k < part.to; ++k) {
            if (stop_requested()) return;
            const ListedPage& page = piece.pages[k];
            if (page.wanted == 0 && !piece.rows.all()) continue;
            at.page = page.ordinal;
            ++read;
            const int64_t limit = values_needed(job.leaf, piece, page);
            if (limit >= 0) {
                try {
                    decode_page(job, segment, piece, page, row, limit, limits, scratch, budget);
                    continue;
                } catch (const NeedsAll&) {
                } catch (const Refused& refused) {  // perhaps only because the page ends early
                    if (is_limit(refused)) throw;
                } catch (const KernelError&) {
                }
            }
            decode_page(job, segment, piece, page, row, -1, limits, scratch, budget);
        }
        at.page = -1;
        {
            const std::lock_guard lock(job.growing);
            piece.pages_read += read;
        }
        if (job.leaf.max_rep > 0 && !piece.rows.all() && piece.whole && row != piece.num_rows)
            throw Refused{"rows_held", row, piece.num_rows};
    }
}

namespace {

template <class O>
void join_binary(ColumnJob& job, const PageLimits& limits, Budget& budget) {
    size_t total = 0;
    for (Segment& segment : job.segments) total += static_cast<BinarySink<O>&>(*segment.sink).used;
    const bool grows = sizeof(O) == 4 && total > static_cast<size_t>(limits.most_offset);
    if (job.segments.size() == 1) {
        auto& only = static_cast<BinarySink<O>&>(*job.segments[0].sink);
        job.bytes = std::move(only.bytes);
        if (!job.in_place()) {  // offsets grew from the first one behind slot 0: move them by one
            const size_t size = (job.slots + 1) * sizeof(O);
            budget.take(size);
            job.offsets.grow(size);
            if (job.slots > 0) std::memcpy(job.offsets.as<O>() + 1, only.own.data(), job.slots * sizeof(O));
        }
        job.offsets.as<O>()[0] = 0;
        job.bytes_used = total;
        return;
    }
    Block wide;
    if (grows || !job.in_place()) {
        const size_t size = (job.slots + 1) * (grows ? 8 : sizeof(O));
        budget.take(size);
        wide.grow(size);
    }
    if (total > job.bytes.size()) {
        budget.take(total);
        job.bytes.grow(total);
    }
    size_t at = 0, slot = 0;
    for (Segment& segment : job.segments) {
        auto& sink = static_cast<BinarySink<O>&>(*segment.sink);
        if (sink.used > 0) std::memcpy(job.bytes.data() + at, sink.bytes.data(), sink.used);
        const O* const from = job.in_place() ? job.offsets.as<O>() + 1 + slot : sink.own.template as<O>();
        const size_t n = sink.slots;
        if (grows) {
            int64_t* const to = wide.as<int64_t>() + 1 + slot;
            for (size_t i = 0; i < n; ++i) to[i] = static_cast<int64_t>(at) + from[i];
        } else {
            O* const to = (job.in_place() ? job.offsets.as<O>() : wide.as<O>()) + 1 + slot;
            const O base = static_cast<O>(at);
            for (size_t i = 0; i < n; ++i) to[i] = static_cast<O>(base + from[i]);
        }
        at += sink.used;
        slot += n;
        budget.give(sink.bytes.size());
        sink.bytes = Block();
    }
    if (grows || !job.in_place()) job.offsets = std::move(wide);
    job.wide = job.wide || grows;
    if (job.wide) job.offsets.as<int64_t>()[0] = 0;
    else job.offsets.as<int32_t>()[0] = 0;
    job.bytes_used = total;
}

// Room was made for more bytes than there are: offsets of 32 bits do.
void narrow_offsets(ColumnJob& job, Budget& budget) {
    Block narrow;
    budget.take((job.slots + 1) * 4);
    narrow.grow((job.slots + 1) * 4);
    for (size_t i = 0; i <= job.slots; ++i) narrow.as<int32_t>()[i] = static_cast<int32_t>(job.offsets.as<int64_t>()[i]);
    job.offsets = std::move(narrow);
    job.wide = false;
}

void join_fixed(ColumnJob& job, Budget& budget) {
    if (job.in_place()) return;
    const size_t width = job.leaf.out_width();
    if (job.segments.size() == 1) {
        job.values = std::move(static_cast<FixedSink&>(*job.segments[0].sink).own);
        return;
    }
    budget.take(job.slots * width);
    job.values.grow(job.slots * width);
    size_t at = 0;
    for (Segment& segment : job.segments) {
        auto& sink = static_cast<FixedSink&>(*segment.sink);
        if (sink.slots > 0) std::memcpy(job.values.data() + at, sink.own.data(), sink.slots * width);
        at += sink.slots * width;
        budget.give(sink.own.size());
        sink.own = Block();
    }
}

// One array of what all segments have; `fill` stands for those that have none.
void join_levels(ColumnJob& job, Block Segment::* part, bool Segment::* has, size_t (*size)(const Segment&), uint8_t fill,
                 Block& out, Budget& budget) {
    if (job.segments.size() == 1) {
        out = std::move(job.segments[0].*part);
        return;
    }
    size_t total = 0;
    for (const Segment& segment : job.segments) total += size(segment);
    budget.take(total);
    out.grow(total);
    size_t at = 0;
    for (Segment& segment : job.segments) {
        const size_t n = size(segment);
        if (n > 0 && (has == nullptr || segment.*has)) std::memcpy(out.data() + at, (segment.*part).data(), n);
        else if (n > 0) std::memset(out.data() + at, fill, n);
        budget.give((segment.*part).size());
        segment.*part = Block();
        at += n;
    }
}

// A byte per slot to Arrow's bitmap, 1 for every byte that is not 0.
void pack_bits(const uint8_t* bytes, size_t n, Block& out, Budget& budget) {
    const size_t size = (n + 7) / 8;
    if (size > out.size()) {
        budget.take(size - out.size());
        out.grow(size);
    }
    size_t i = 0;
    uint8_t* w = out.data();
    for (; i + 8 <= n; i += 8) *w++ = static_cast<uint8_t>(ones_of_eight(load<uint64_t>(bytes + i)) * 0x0102040810204080ull >> 56);
    if (i < n) {
        uint8_t last = 0;
        for (size_t k = 0; i + k < n; ++k) last = static_cast<uint8_t>(last | (bytes[i + k] != 0) << k);
        *w = last;
    }
}

}  // namespace

void finish_column(ColumnJob& job, const PageLimits& limits, Budget& budget) {
    job.nulls = job.levels = 0;
    bool any_valid = false, any_def = false;
    if (!job.in_place()) job.slots = 0;
    for (const Segment& segment : job.segments) {
        job.nulls += segment.nulls;
        job.levels += segment.levels;
        any_valid |= segment.has_valid;
        any_def |= segment.has_def;
        if (!job.in_place()) job.slots += segment.sink->slots;
    }
    if (job.leaf.is_binary()) {
        if (job.segments.empty()) {
            job.offsets.grow(8);
            std::memset(job.offsets.data(), 0, 8);
        } else if (job.wide) {
            join_binary<int64_t>(job, limits, budget);
            if (!job.leaf.is_large && job.bytes_used <= static_cast<size_t>(limits.most_offset)) narrow_offsets(job, budget);
        } else {
            join_binary<int32_t>(job, limits, budget);
        }
    } else if (!job.segments.empty()) {
        join_fixed(job, budget);
    }
    job.has_rep = !job.in_place();
    if (!job.in_place() && !job.segments.empty()) {
        const auto levels = [](const Segment& s) { return s.levels; };
        join_levels(job, &Segment::rep, nullptr, levels, 0, job.rep, budget);
        if (any_def) {
            join_levels(job, &Segment::def, &Segment::has_def, levels, static_cast<uint8_t>(job.leaf.max_def), job.def, budget);
            job.has_def = true;
        }
        if (any_valid) {
            const auto slots = [](const Segment& s) { return s.sink->slots; };
            join_levels(job, &Segment::valid, &Segment::has_valid, slots, 1, job.valid, budget);
            job.has_valid = true;
        }
    }
    if (job.has_valid && job.nulls > 0) pack_bits(job.valid.data(), job.slots, job.bits, budget);
    else job.has_valid = false;
    if (job.leaf.physical == Physical::kBoolean && job.leaf.kind == OutputKind::kValues && job.slots > 0) {
        Block packed;
        pack_bits(job.values.data(), job.slots, packed, budget);
        job.values = std::move(packed);
    }
    for (Segment& segment : job.segments) segment.sink.reset();
}

}  // namespace pyparq
