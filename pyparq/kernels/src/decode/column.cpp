// Segments of a column: their pages decoded, with validity and levels beside the values.
#include "decode/column.hpp"

#include "base/workers.hpp"
#include "codecs/codecs.hpp"
#include "decode/levels.hpp"

#include <string_view>

namespace pyparq {
namespace {

constexpr int64_t kIndicesDecodedTwice = 32;  // at most this part of a column, to know how many bytes its text takes

void append_bytes(Block& block, size_t used, const uint8_t* data, uint8_t fill, size_t n, Budget& budget) {
    if (used + n > block.size()) {
        const size_t room = grown(block.size(), used + n, budget);
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
        if (nulls) std::memcpy(job.bytes_of_slots(job.valid, 1, budget) + segment.slot + slot, found.valid, found.slots);
        if (job.leaf.keeps_levels && found.def != nullptr)
            std::memcpy(job.bytes_of_slots(job.def, job.leaf.max_def, budget) + segment.slot + slot, found.def, found.slots);
        return;
    }
    if (nulls && !segment.valid) append_bytes(segment.valid.emplace(), 0, nullptr, 1, slot, budget);
    if (segment.valid) append_bytes(*segment.valid, slot, nulls ? found.valid : nullptr, 1, found.slots, budget);
    if (!segment.rep) segment.rep.emplace();
    append_bytes(*segment.rep, segment.levels, found.rep, 0, found.levels, budget);
    if (found.def != nullptr) {
        if (!segment.def) segment.def.emplace();
        append_bytes(*segment.def, segment.levels, found.def, 0, found.levels, budget);
    }
    segment.levels += found.levels;
}

bool is_limit(const PageRefusal& refused) {
    const std::string_view name = refused.name;
    return name == "memory" || name == "max_column";
}

void decode_page(ColumnJob& job, Segment& segment, Piece& piece, const ListedPage& listed, int64_t& row, int64_t limit,
                 const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    const LeafSpec& leaf = job.leaf;
    const bool all = piece.rows.all() || listed.wanted == listed.head.count;
    scratch.into = all ? segment.sink->page_room(listed.head, budget) : nullptr;
    const OpenPage page = open_data_page(listed.head, listed.body, listed.ordinal, piece.codec, leaf.max_def, leaf.max_rep,
                                         piece.cipher, limit, limits, scratch, budget);
    PageSlots found;
    int64_t next = row;
    if (leaf.max_rep == 0) flat_slots(leaf, piece.rows, listed, page, scratch, budget, found);
    else list_entries(leaf, piece.rows, listed, page, next, scratch, budget, found);
    const size_t slot = segment.sink->slots;
    segment.sink->append(found.values, found.valid, found.slots, piece.entries(), scratch, budget);
    keep(job, segment, found, slot, budget);
    row = next;
}

// Decodes a page after inflating only its beginning. False where the whole page is needed.
bool decode_beginning(ColumnJob& job, Segment& segment, Piece& piece, const ListedPage& page, int64_t& row,
                      const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    const int64_t limit = values_needed(job.leaf, piece, page);
    if (limit < 0) return false;
    try {
        decode_page(job, segment, piece, page, row, limit, limits, scratch, budget);
        return true;
    } catch (const NeedsAll&) {
    } catch (const PageRefusal& refused) {  // perhaps only because the page ends early
        if (is_limit(refused)) throw;
    } catch (const KernelError&) {
    }
    return false;
}

// About how many bytes the values of a page take that has indices.
int64_t spelled_out(int64_t values, const Piece& piece) {
    double mean = 0;
    if (piece.unread) {
        const PageHead& head = piece.dictionary_head;
        if (head.count <= 0) return 32;
        mean = std::max(static_cast<double>(head.size) / static_cast<double>(head.count) - 4, 0.0);  // 4: of its length
    } else {
        const Dictionary& entries = piece.entries();
        if (entries.count == 0) return 32;
        mean = static_cast<double>(entries.bytes_used) / static_cast<double>(entries.count);
    }
    return static_cast<int64_t>(std::min(static_cast<double>(values) * (mean + mean / 16) + 4096, 1e12));
}

// About how many bytes the byte arrays of a segment take.
size_t bytes_expected(const ColumnJob& job, const Segment& segment) {
    const bool binary = job.leaf.is_binary();
    size_t expected = 64;
    for (const Segment::Part& part : segment.parts)
        for (size_t k = part.from; k < part.to; ++k) {
            const ListedPage& page = job.pieces[part.piece].pages[k];
            const bool by_index = is_dictionary(static_cast<int>(page.head.encoding));
            if (!binary && by_index) continue;
            const int64_t size = by_index ? spelled_out(page.head.count, job.pieces[part.piece]) : page.head.size + 32;
            expected += static_cast<size_t>(page.wanted < 0 ? size : size * page.wanted / std::max<int64_t>(page.head.count, 1));
        }
    return expected;
}

// Bytes of levels before the values of a page without nulls.
int64_t level_bytes(const LeafSpec& leaf, const PageHead& head) {
    if (head.is_v2()) return head.def + head.rep;
    if (leaf.max_def == 0) return 0;
    return 4 + (std::bit_width(static_cast<uint64_t>(head.count) << 1) + 6) / 7 + 1;  // one run
}

// What the byte arrays of a page of indices take: only decoding it tells.
size_t bytes_of_indices(const ColumnJob& job, Piece& piece, const ListedPage& listed, const PageLimits& limits,
                        PageScratch& scratch, Budget& budget) {
    const LeafSpec& leaf = job.leaf;
    Place at;
    read_unread_dictionary(job, piece, limits, scratch, budget, at);
    const OpenPage page = open_data_page(listed.head, listed.body, listed.ordinal, piece.codec, leaf.max_def, leaf.max_rep,
                                         piece.cipher, -1, limits, scratch, budget);
    PageSlots found;
    flat_slots(leaf, piece.rows, listed, page, scratch, budget, found);
    BinarySink<int64_t> sink(leaf, nullptr, 0, 0, budget, limits);
    sink.append(found.values, found.valid, found.slots, piece.entries(), scratch, budget);
    budget.give(sink.held());
    return sink.used;
}

// Are there few pages of indices, or none, and can they be opened without Python?
bool may_decode_indices(const ColumnJob& job, int64_t most) {
    int64_t guess = 0;
    for (const Piece& piece : job.pieces)
        for (const ListedPage& page : piece.pages) {
            if (!is_dictionary(static_cast<int>(page.head.encoding))) continue;
            if (piece.cipher || !codec_is_native(piece.codec)) return false;
            guess += spelled_out(page.head.count, piece);
        }
    return guess <= most;
}

// What the byte arrays of a segment take; nothing where its pages do not tell, or not all of their values are wanted.
std::optional<Foreseen> foreseen(ColumnJob& job, const Segment& segment, const PageLimits& limits,
                                 PageScratch& scratch, Budget& budget) {
    Foreseen found;
    for (const Segment::Part& part : segment.parts) {
        Piece& piece = job.pieces[part.piece];
        if (!piece.rows.all()) return {};
        for (size_t k = part.from; k < part.to; ++k) {
            const PageHead& head = piece.pages[k].head;
            const auto size = static_cast<size_t>(head.size);
            if (head.encoding == kPlain) {
                const int64_t full = head.size - level_bytes(job.leaf, head) - 4 * head.count;
                found.full += static_cast<size_t>(std::max<int64_t>(full, 0));
                found.most += size + 32;
            } else if (head.encoding == kDeltaLength) {
                found.full += size;
                found.most += size + 32;
            } else if (is_dictionary(static_cast<int>(head.encoding))) {
                const size_t bytes = bytes_of_indices(job, piece, piece.pages[k], limits, scratch, budget);
                found.full += bytes;
                found.most += bytes;
            } else {
                return {};
            }
        }
    }
    return found;
}

// Puts the bytes of all segments side by side into one block, where their sizes are known before they are decoded.
void plan_joint(ColumnJob& job, const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    job.binary.joint.clear(budget);
    if (!job.leaf.is_binary() || !job.in_place() || job.segments.size() < 2) return;
    int64_t all = 0;
    for (const Segment& segment : job.segments) all += segment.bytes;
    if (!may_decode_indices(job, all / kIndicesDecodedTwice)) return;
    std::vector<Foreseen> segments;
    try {
        for (const Segment& segment : job.segments) {
            const std::optional<Foreseen> found = foreseen(job, segment, limits, scratch, budget);
            if (!found) return;
            segments.push_back(*found);
        }
    } catch (const PageRefusal&) {  // it will be found again, and told, when its page's turn comes
        return;
    } catch (const KernelError&) {
        return;
    }
    job.binary.joint.plan(std::move(segments), static_cast<size_t>(limits.max_column));
}

template <class O>
std::unique_ptr<Sink> binary_sink(ColumnJob& job, Segment& segment, size_t expected, const PageLimits& limits, Budget& budget) {
    O* const place = job.in_place() ? job.binary.offsets.as<O>() + segment.slot + 1 : nullptr;
    auto sink = std::make_unique<BinarySink<O>>(job.leaf, place, segment.room, expected, budget, limits);
    if (job.binary.joint.planned()) sink->share(job.binary.joint, static_cast<size_t>(&segment - job.segments.data()));
    return sink;
}

std::unique_ptr<Sink> make_sink(ColumnJob& job, Segment& segment, const PageLimits& limits, Budget& budget) {
    const LeafSpec& leaf = job.leaf;
    const bool binary = leaf.is_binary();
    uint8_t* const values = job.in_place() && !binary ? job.values.data() + segment.slot * leaf.out_width() : nullptr;
    if (!binary && !leaf.is_views()) return std::make_unique<FixedSink>(leaf, values, segment.room, limits);
    size_t expected = bytes_expected(job, segment);
    if (binary && &segment == &job.segments.front())  // it is going to hold those of all segments
        for (size_t k = 1; k < job.segments.size(); ++k) expected += bytes_expected(job, job.segments[k]);
    expected = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(expected), std::max<int64_t>(budget.left() / 4, 64)));
    expected = std::min(expected, static_cast<size_t>(std::max<int64_t>(limits.max_column, 64)));  // from there on it is held
    if (!binary) return std::make_unique<ViewSink>(leaf, values, segment.room, expected, job.views, limits);
    if (job.binary.wide) return binary_sink<int64_t>(job, segment, expected, limits, budget);
    return binary_sink<int32_t>(job, segment, expected, limits, budget);
}

// Puts the pages of piece number p into segments.
void add_piece(ColumnJob& job, size_t p, int64_t target, bool split) {
    Piece& piece = job.pieces[p];
    piece.users = 0;
    if (piece.unread && !piece.dictionary.there) piece.unread = std::make_unique<std::once_flag>();  // of a first attempt
    // Only the levels before tell which row a page of a whole chunk starts with.
    const bool parts = split && (job.in_place() || piece.rows.all() || !piece.whole);
    for (size_t k = 0; k < piece.pages.size();) {
        const bool room = !job.segments.empty() && job.segments.back().bytes < target;
        if (!room) job.segments.emplace_back().slot = job.slots;
        Segment& segment = job.segments.back();
        segment.parts.push_back({p, k, k});
        ++piece.users;
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

}  // namespace

uint8_t* ColumnJob::bytes_of_slots(std::optional<Block>& block, int fill, Budget& budget) {
    const std::lock_guard lock(growing);
    if (!block) {
        budget.take(slots);
        block.emplace().grow(slots);
        std::memset(block->data(), fill, slots);
    }
    return block->data();
}

void plan_segments(ColumnJob& job, int64_t target, bool split, const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    for (const Segment& segment : job.segments) budget.give(segment.held());  // of a first attempt
    job.segments.clear();
    job.slots = 0;
    for (size_t p = 0; p < job.pieces.size(); ++p) add_piece(job, p, target, split);
    plan_joint(job, limits, scratch, budget);
    if (!job.in_place()) return;
    const size_t width = job.leaf.is_binary() ? job.binary.offset_width() : job.leaf.out_width();
    const size_t size = checked_mul(job.slots + (job.leaf.is_binary() ? 1 : 0), width);
    if (static_cast<double>(size) > static_cast<double>(limits.max_column))
        throw PageRefusal{"max_column", static_cast<int64_t>(size), limits.max_column};
    Block& block = job.leaf.is_binary() ? job.binary.offsets : job.values;
    if (size > block.size()) {
        budget.take(size - block.size());
        block.grow(size);
    }
}

void decode_segment(ColumnJob& job, Segment& segment, const PageLimits& limits, PageScratch& scratch, Budget& budget,
                    Place& at) {
    segment.sink = make_sink(job, segment, limits, budget);
    for (const Segment::Part& part : segment.parts) {
        Piece& piece = job.pieces[part.piece];
        at.piece = static_cast<int64_t>(part.piece);
        read_unread_dictionary(job, piece, limits, scratch, budget, at);
        int64_t row = 0, read = 0;
        if (part.from > 0) row = 1;  // not the first of its chunk: it may go on with a row
        for (size_t k = part.from; k < part.to; ++k) {
            if (stop_requested()) return;
            const ListedPage& page = piece.pages[k];
            if (page.wanted == 0 && !piece.rows.all()) continue;
            at.page = page.ordinal;
            ++read;
            if (!decode_beginning(job, segment, piece, page, row, limits, scratch, budget))
                decode_page(job, segment, piece, page, row, -1, limits, scratch, budget);
        }
        at.page = -1;
        {
            const std::lock_guard lock(job.growing);
            piece.pages_read += read;
            if (--piece.users == 0) release_dictionary(piece, scratch, budget);
        }
        if (job.leaf.max_rep > 0 && !piece.rows.all() && piece.whole && row != piece.num_rows)
            throw PageRefusal{"rows_held", row, piece.num_rows};
    }
}

}  // namespace pyparq
