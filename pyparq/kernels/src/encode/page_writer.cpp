#include "encode/page_writer.hpp"

#include "base/workers.hpp"

namespace pyparq {
namespace {

// RLE bytes of `count` levels; null stands for all at the maximum. Nothing where the leaf has no such levels.
void put_levels(const uint8_t* levels, size_t count, int maximum, Room& out) {
    if (maximum == 0 || count == 0) return;
    if (levels == nullptr) {
        uint8_t run[12];
        size_t n = 0;
        for (uint64_t v = uint64_t{count} << 1;; v >>= 7) {
            run[n++] = static_cast<uint8_t>(v >= 0x80 ? v | 0x80 : v);
            if (v < 0x80) break;
        }
        run[n++] = static_cast<uint8_t>(maximum);
        return out.put(run, n);
    }
    const auto bits = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(maximum)));
    const size_t bound = hybrid_bound(count, bits);
    uint8_t* const at = out.more(bound);
    out.add(hybrid_into(levels, count, bits, at, bound));
}

}  // namespace

void put_sized_levels(const uint8_t* levels, size_t count, int maximum, Room& out) {
    if (maximum == 0) return;
    const size_t at = out.size();
    out.add((out.more(4), 4));
    put_levels(levels, count, maximum, out);
    store(out.data() + at, static_cast<uint32_t>(out.size() - at - 4));
}

void PageWriter::add_dictionary() {
    stored_.clear();
    const TextPart part = compressed({decision_.entries, decision_.entries_size});
    begin_header(kDictionaryPage, decision_.entries_size);
    store(decision_.entries_size, &part, 1, -1, [&] {
        header_.open(7);
        header_.i32(1, static_cast<int32_t>(decision_.num_entries));
        header_.i32(2, kPlain);
        header_.close();
    });
}

void PageWriter::add_pages(const Pages& pages, const std::vector<Section>& sections, size_t page, size_t end) {
    for (const Section& section : sections)
        for (; page < std::min(section.end, end); ++page) add_data(pages, page, section);
}

void PageWriter::add_data(const Pages& pages, size_t page, const Section& section) {
    if (unlocked_ != nullptr) unlocked_->tick();
    else if (stop_requested()) return;  // the result is not used then
    const auto slot = static_cast<size_t>(pages.slots[page]), value = static_cast<size_t>(pages.values[page]);
    const Extent extent{page, slot, static_cast<size_t>(pages.slots[page + 1]) - slot, value,
                        static_cast<size_t>(pages.values[page + 1]) - value, pages.rows[page + 1] - pages.rows[page]};
    const int64_t start = static_cast<int64_t>(bytes_.size()) - facts_.start;
    body_.clear(), stored_.clear();
    if (column_.file->version == 1) version_1(extent, section, made_before(extent, section));
    else version_2(extent, section, made_before(extent, section));
    facts_.pages.push_back({start, static_cast<int64_t>(bytes_.size()) - facts_.start - start, pages.rows[page]});
}

// What the page holds, where that was made when the encoding was chosen.
const StoredBody* PageWriter::made_before(const Extent& extent, const Section& section) const {
    const StoredBody& made = decision_.first_page;
    const bool same = extent.page == 0 && !section.dictionary && made.encoding == section.encoding && made.values == extent.values;
    return same ? &made : nullptr;
}

// The encoded values of a page, behind what `body_` has; or where they lie, if they are stored as they are in memory.
TextPart PageWriter::put_page_values(const Extent& extent, const Section& section) {
    const size_t before = body_.size();
    if (section.dictionary) {
        put_indices(decision_.indices + extent.value, extent.values, decision_.index_bits(), body_);
    } else {
        const Values v = leaf_.values.slice(extent.value, extent.value + extent.values);
        const bool as_it_is = section.encoding == kPlain && !v.binary() && !column_.boolean();
        if (as_it_is && (before == 0 || column_.file->version == 2)) return {v.data, v.count * v.width};
        put_values(column_, section.encoding, v, body_);
    }
    return {body_.data() + before, body_.size() - before};
}

void PageWriter::version_1(const Extent& extent, const Section& section, const StoredBody* made) {
    TextPart part{};
    size_t whole = 0;
    if (made != nullptr) {
        part = {made->stored.data(), made->stored.size()}, whole = made->size;
    } else {
        put_sized_levels(reps_at(extent.slot), extent.slots, column_.max_rep, body_);
        put_sized_levels(defs_at(extent.slot), extent.slots, column_.max_def, body_);
        const bool levels = body_.size() > 0;
        TextPart body = put_page_values(extent, section);
        if (levels) body = {body_.data(), body_.size()};
        part = compressed(body), whole = body.size;
    }
    begin_header(kDataPage, whole);
    store(whole, &part, 1, static_cast<int64_t>(extent.page), [&] {
        header_.open(5);
        header_.i32(1, static_cast<int32_t>(extent.slots));
        header_.i32(2, section.encoding);
        header_.i32(3, kRle);
        header_.i32(4, kRle);
        header_.close();
    });
}

void PageWriter::version_2(const Extent& extent, const Section& section, const StoredBody* made) {
    put_levels(reps_at(extent.slot), extent.slots, column_.max_rep, body_);
    const size_t reps = body_.size();
    put_levels(defs_at(extent.slot), extent.slots, column_.max_def, body_);
    const size_t levels = body_.size();
    TextPart values{};
    size_t size = 0;  // of the values before compression
    // Values that do not shrink are stored as they are: the reader saves the work.
    bool shrunk = made != nullptr && made->stored.size() < made->size;
    if (shrunk) {
        values = {made->stored.data(), made->stored.size()}, size = made->size;
    } else {
        const TextPart plain = put_page_values(extent, section);
        values = plain, size = plain.size;
        const TextPart smaller = compresses() && size > 0 ? compressed(plain) : plain;
        shrunk = smaller.size < size;
        if (shrunk) values = smaller;
    }
    begin_header(kDataPageV2, levels + size);
    const TextPart parts[2] = {{body_.data(), levels}, values};
    store(levels + size, parts, 2, static_cast<int64_t>(extent.page), [&] {
        header_.open(8);
        header_.i32(1, static_cast<int32_t>(extent.slots));
        header_.i32(2, static_cast<int32_t>(extent.slots - extent.values));
        header_.i32(3, static_cast<int32_t>(extent.rows));
        header_.i32(4, section.encoding);
        header_.i32(5, static_cast<int32_t>(levels - reps));
        header_.i32(6, static_cast<int32_t>(reps));
        header_.boolean(7, shrunk);
        header_.close();
    });
}

TextPart PageWriter::compressed(const TextPart& part) {
    if (!compresses()) return part;
    const size_t size = compressor_.run(part.data, part.size, stored_);
    return {stored_.data(), size};
}

void PageWriter::begin_header(int type, size_t uncompressed) {
    header_.bytes.clear();
    header_.open();
    header_.i32(1, type);
    header_.i32(2, static_cast<int32_t>(uncompressed));
}

// Appends a page; `page` is the ordinal of a data page, -1 for the dictionary page.
template <class Finish>
void PageWriter::store(size_t uncompressed, const TextPart* parts, size_t count, int64_t page, Finish&& finish) {
    const size_t before = out_.size();
    if (seal_.encrypts()) {
        const size_t size = store_sealed(uncompressed, parts, count, page, finish);
        facts_.uncompressed += static_cast<int64_t>(out_.size() - before - size + uncompressed);
        return;
    }
    size_t size = 0;
    for (size_t k = 0; k < count; ++k) size += parts[k].size;
    finish_header(uncompressed, size, parts, count, page, finish);
    out_.put(header_.bytes.data(), header_.bytes.size());
    facts_.uncompressed += static_cast<int64_t>(header_.bytes.size() + uncompressed);
    for (size_t k = 0; k < count; ++k) out_.put(parts[k].data, parts[k].size);
}

// The same of an encrypted page; returns the bytes of its body. Its header has the CRC of the body as it is stored, but
// stands before it: behind as much room as the header before this one took, the body mostly stands where it stays.
template <class Finish>
size_t PageWriter::store_sealed(size_t uncompressed, const TextPart* parts, size_t count, int64_t page, Finish&& finish) {
    const size_t begin = out_.size(), guess = sealed_.size();
    out_.add((out_.more(guess), guess));
    const size_t size = seal_.run(page < 0 ? kDictionaryModule : kDataPageModule, parts, count, page, aes_, unlocked_, out_);
    const TextPart body{out_.data() + begin + guess, size};
    finish_header(uncompressed, size, &body, 1, page, finish);
    const TextPart head{reinterpret_cast<const uint8_t*>(header_.bytes.data()), header_.bytes.size()};
    sealed_.clear();
    const size_t room = seal_.run(page < 0 ? kDictionaryHeaderModule : kDataHeaderModule, &head, 1, page, aes_, unlocked_, sealed_);
    if (room != guess) {
        if (room > guess) out_.add((out_.more(room - guess), room - guess));
        std::memmove(out_.data() + begin + room, out_.data() + begin + guess, size);
        out_.cut(begin + room + size);
    }
    std::memcpy(out_.data() + begin, sealed_.data(), room);
    return size;
}

template <class Finish>
void PageWriter::finish_header(size_t uncompressed, size_t size, const TextPart* parts, size_t count, int64_t page, Finish&& finish) {
    if (std::max(size, uncompressed) >> 31 != 0) throw Refusal{Refusal::PageTooLarge, page, 0, static_cast<int64_t>(size)};
    header_.i32(3, static_cast<int32_t>(size));
    if (column_.file->crc != nullptr) header_.i32(4, static_cast<int32_t>(crc(parts, count)));
    finish();
    header_.close();
}

uint32_t PageWriter::crc(const TextPart* parts, size_t count) {
    const Crc32& crc = *column_.file->crc;
    uint32_t found = 0;
    if (crc.native()) {
        for (size_t k = 0; k < count; ++k) found = crc.more(found, parts[k].data, parts[k].size);
        return found;
    }
    if (unlocked_ == nullptr) throw NeedsPython{};
    const Unlocked::Locked locked(*unlocked_);
    for (size_t k = 0; k < count; ++k) found = crc.more(found, parts[k].data, parts[k].size);
    return found;
}

}  // namespace pyparq
