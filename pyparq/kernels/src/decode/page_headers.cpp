// Headers of the pages of a column chunk, and its dictionary.
#include "codecs/codecs.hpp"
#include "decode/levels.hpp"

namespace pyparq {
namespace {

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
            throw PageRefusal{"page_header", 0, 0, 0, error.what()};
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
    const Bytes plain = open_dictionary_page(head, body, piece.codec, piece.cipher, due, limits,
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
    if (!leaf.is_codes() || !leaf.codes_or_values || piece.known) return;
    const bool all = std::all_of(piece.pages.begin(), piece.pages.end(), [](const ListedPage& page) {
        return is_dictionary(static_cast<int>(page.head.encoding));
    });
    if (!all) leaf.form = leaf.form_of_values();
}

void list_whole(LeafSpec& leaf, Piece& piece, const PageLimits& limits, PageScratch& scratch,
                Budget& budget, Place& at) {
    PageWalk walk;
    while (piece.num_values > walk.values) {
        if (piece.end >= piece.parts.at(0).size) {
            at.page = -1;
            throw PageRefusal{"pages_end", piece.num_values, walk.values};
        }
        at.page = static_cast<int64_t>(piece.pages.size());
        next_page(leaf, piece, walk, limits, scratch, budget);
    }
    at.page = -1;
    if (walk.values > piece.num_values) throw PageRefusal{"pages_hold_more", piece.num_values, walk.values};
    settle_kind(leaf, piece);
    if (walk.has_dictionary && !piece.known) {
        piece.dictionary_head = walk.dictionary, piece.dictionary_body = walk.dictionary_body;
        // Who waits for another thread must not wait for Python too.
        const bool alone = !piece.cipher && codec_is_native(piece.codec);
        if (alone && leaf.is_values()) {
            piece.unread = std::make_unique<std::once_flag>();
            return;
        }
        at.page = kDictionaryPage;
        read_dictionary(leaf, piece, walk.dictionary, walk.dictionary_body, static_cast<size_t>(walk.values),
                        walk.dictionary.count, limits, scratch, budget);
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
        if (seen > piece.num_values) throw PageRefusal{"more_than_declared", piece.num_values};
        if (leaf.max_rep == 0 && values != piece.page_rows[k]) throw PageRefusal{"page_rows", values, piece.page_rows[k]};
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

// How many entries of its dictionary, from the first one on, the wanted rows of a piece use. All of them where finding out
// would cost more than it saves, or the pages are damaged: decoding them raises the error.
int64_t entries_needed(const LeafSpec& leaf, const Piece& piece, const PageHead& dictionary, int64_t wanted,
                       const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    constexpr int64_t kLarge = int64_t{32} << 10, kFewRows = 64;
    constexpr size_t kFewPages = 4;
    if (!inflates_in_part(piece.codec) || piece.cipher || leaf.max_rep > 0 || !leaf.is_values() || dictionary.size < kLarge ||
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
    } catch (const PageRefusal&) {
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

// A header that makes no sense may follow a page that was changed: its CRC tells then.
void check_crcs(const Piece& piece, const PageLimits& limits, Place& at) {
    for (const ListedPage& page : piece.pages) {
        at.page = page.ordinal;
        check_page_crc(page.head, page.body, piece.cipher, limits);
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

void next_page(const LeafSpec& leaf, Piece& piece, PageWalk& walk, const PageLimits& limits, PageScratch& scratch,
               Budget& budget) {
    const auto ordinal = static_cast<int64_t>(piece.pages.size());
    const int64_t stated = piece.end == 0 && piece.first_is_dictionary ? kDictionaryPage : ordinal;
    size_t end = piece.end;
    Bytes body;
    const PageHead head = next_head(piece, piece.parts.at(0), end, stated, limits, scratch, budget, body);
    if (head.type == PageHead::kDictionary) {
        if (walk.values > 0 || walk.has_dictionary) throw PageRefusal{"dictionary_not_first"};
        walk.has_dictionary = true, walk.dictionary = head, walk.dictionary_body = body;
    } else if (head.is_data()) {
        const int64_t count = declared_values(head);
        ListedPage page{head, body, ordinal};
        if (leaf.max_rep == 0) page.first_row = walk.values;
        budget.take(2 * sizeof(ListedPage));  // a vector that grows has room to spare
        piece.pages.push_back(page);
        piece.inflated += head.size;
        walk.values += count;
    }
    piece.end = end;
}

void read_unread_dictionary(const ColumnJob& job, Piece& piece, const PageLimits& limits, PageScratch& scratch, Budget& budget,
                            Place& at) {
    if (!piece.unread) return;
    at.page = kDictionaryPage;
    std::call_once(*piece.unread, [&] {
        const PageHead& head = piece.dictionary_head;
        piece.dictionary.fixed = std::move(scratch.entries);
        read_dictionary(job.leaf, piece, head, piece.dictionary_body, static_cast<size_t>(piece.num_values), head.count, limits,
                        scratch, budget);
    });
    at.page = -1;
}

void release_dictionary(Piece& piece, PageScratch& scratch, Budget& budget) {
    if (!piece.unread) return;
    budget.give(piece.dictionary.held);
    scratch.entries = std::move(piece.dictionary.fixed);
    piece.dictionary = Dictionary();
}

void list_pages(ColumnJob& job, Piece& piece, const PageLimits& limits, PageScratch& scratch, Budget& budget, Place& at) {
    LeafSpec& leaf = job.leaf;
    try {
        if (piece.whole) list_whole(leaf, piece, limits, scratch, budget, at);
        else list_planned(leaf, piece, limits, scratch, budget, at);
    } catch (const PageRefusal&) {
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

}  // namespace pyparq
