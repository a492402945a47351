// One column chunk: its pages, and everything the footer and the indexes say about them (README.md, "Data Pages").
#include "encode/column.hpp"

#include "base/workers.hpp"
#include "codecs/codecs.hpp"
#include "values/checks.hpp"

#include <cstdio>
#include <mutex>

namespace pyparq {
namespace {

constexpr size_t kQuick = size_t{4} << 20;    // more is given to Python's codecs, which can be stopped
constexpr size_t kShared = size_t{1} << 20;   // from so many bytes on, the pages of a chunk are shared out to threads
constexpr size_t kShare = size_t{256} << 10;  // bytes of values that a thread takes at a time, about

enum PageType : int { kDataPage = 0,
                      kDictionaryPage = 2,
                      kDataPageV2 = 3 };
using Part = TextPart;

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

// The pages of one chunk, one after another.
class PageWriter {
  public:
    PageWriter(const ColumnRules& column, const LeafValues& leaf, PageSeal& seal, Compressor& compressor, Unlocked* unlocked,
               ChunkBytes& bytes, ChunkFacts& facts)
        : column_(column), leaf_(leaf), seal_(seal), compressor_(compressor), unlocked_(unlocked), bytes_(bytes), out_(bytes.room), facts_(facts) {}

    void add_dictionary(const Decision& d) {
        stored_.clear();
        const size_t size = compressed(d.entries, d.entries_size);
        begin(kDictionaryPage, d.entries_size);
        const auto finish = [&] {
            header_.open(7);
            header_.i32(1, static_cast<int32_t>(d.num_entries));
            header_.i32(2, kPlain);
            header_.close();
        };
        const Part part{column_.codec == kUncompressed ? d.entries : stored_.data(), size};
        store(d.entries_size, &part, 1, -1, finish);
    }

    // `put` puts the encoded values at the end of a Room. `made`: what the page holds, where that was made before.
    template <class Put>
    void add_data(const Pages& pages, size_t page, int encoding, const StoredBody* made, Put&& put) {
        if (unlocked_ != nullptr) unlocked_->tick();
        else if (stop_requested()) return;  // the result is not used then
        const auto first = static_cast<size_t>(pages.slots[page]), last = static_cast<size_t>(pages.slots[page + 1]);
        const int64_t rows = pages.rows[page + 1] - pages.rows[page], values = pages.values[page + 1] - pages.values[page];
        const int64_t start = static_cast<int64_t>(bytes_.size()) - facts_.start;
        body_.clear(), stored_.clear();
        if (column_.file->version == 1) version_1(first, last, page, encoding, made, put);
        else version_2(first, last, page, encoding, rows, static_cast<int64_t>(last - first) - values, made, put);
        facts_.pages.push_back({start, static_cast<int64_t>(bytes_.size()) - facts_.start - start, pages.rows[page]});
    }

  private:
    template <class Put>
    void version_1(size_t first, size_t last, size_t page, int encoding, const StoredBody* made, Put& put) {
        size_t whole = 0;
        Part part{};
        if (made != nullptr) {
            whole = made->size;
            part = {made->stored.data(), made->stored.size()};
        } else {
            put_sized_levels(leaf_.reps == nullptr ? nullptr : leaf_.reps + first, last - first, column_.max_rep, body_);
            put_sized_levels(leaf_.defs == nullptr ? nullptr : leaf_.defs + first, last - first, column_.max_def, body_);
            const Part body = put(body_);
            whole = body.size;
            part.size = compressed(body.data, body.size);
            part.data = column_.codec == kUncompressed ? body.data : stored_.data();
        }
        const auto finish = [&] {
            header_.open(5);
            header_.i32(1, static_cast<int32_t>(last - first));
            header_.i32(2, encoding);
            header_.i32(3, kRle);
            header_.i32(4, kRle);
            header_.close();
        };
        begin(kDataPage, whole);
        store(whole, &part, 1, static_cast<int64_t>(page), finish);
    }

    template <class Put>
    void version_2(size_t first, size_t last, size_t page, int encoding, int64_t rows, int64_t nulls, const StoredBody* made, Put& put) {
        put_levels(leaf_.reps == nullptr ? nullptr : leaf_.reps + first, last - first, column_.max_rep, body_);
        const size_t reps = body_.size();
        put_levels(leaf_.defs == nullptr ? nullptr : leaf_.defs + first, last - first, column_.max_def, body_);
        const size_t levels = body_.size();
        Part values{};
        size_t size = 0;
        // Values that do not shrink are stored as they are: the reader saves the work.
        const bool is_made = made != nullptr && made->stored.size() < made->size;
        if (is_made) {
            values.size = made->size;
            size = made->stored.size();
        } else {
            values = put(body_);
            if (values.data == body_.data()) values.data += levels, values.size -= levels;  // they stand behind the levels
            size = values.size > 0 ? compressed(values.data, values.size) : 0;
        }
        const bool shrunk = column_.codec != kUncompressed && size < values.size;
        const auto finish = [&] {
            header_.open(8);
            header_.i32(1, static_cast<int32_t>(last - first));
            header_.i32(2, static_cast<int32_t>(nulls));
            header_.i32(3, static_cast<int32_t>(rows));
            header_.i32(4, encoding);
            header_.i32(5, static_cast<int32_t>(levels - reps));
            header_.i32(6, static_cast<int32_t>(reps));
            header_.boolean(7, shrunk);
            header_.close();
        };
        begin(kDataPageV2, levels + values.size);
        const Part parts[2] = {{body_.data(), levels}, shrunk ? Part{is_made ? made->stored.data() : stored_.data(), size} : values};
        store(levels + values.size, parts, 2, static_cast<int64_t>(page), finish);
    }

    size_t compressed(const uint8_t* data, size_t size) {
        return column_.codec == kUncompressed ? size : compressor_.run(data, size, stored_);
    }

    void begin(int type, size_t uncompressed) {
        header_.bytes.clear();
        header_.open();
        header_.i32(1, type);
        header_.i32(2, static_cast<int32_t>(uncompressed));
    }

    // Appends a page; `page` is the ordinal of a data page, -1 for the dictionary page.
    template <class Finish>
    void store(size_t uncompressed, const Part* parts, size_t count, int64_t page, Finish&& finish) {
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
    size_t store_sealed(size_t uncompressed, const Part* parts, size_t count, int64_t page, Finish&& finish) {
        const size_t begin = out_.size(), guess = sealed_.size();
        out_.add((out_.more(guess), guess));
        const size_t size = seal_.run(page < 0 ? kDictionaryModule : kDataPageModule, parts, count, page, aes_, unlocked_, out_);
        const Part body{out_.data() + begin + guess, size};
        finish_header(uncompressed, size, &body, 1, page, finish);
        const Part head{reinterpret_cast<const uint8_t*>(header_.bytes.data()), header_.bytes.size()};
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
    void finish_header(size_t uncompressed, size_t size, const Part* parts, size_t count, int64_t page, Finish&& finish) {
        if (std::max(size, uncompressed) >> 31 != 0) throw Refusal{Refusal::PageTooLarge, page, 0, static_cast<int64_t>(size)};
        header_.i32(3, static_cast<int32_t>(size));
        if (column_.file->crc != nullptr) header_.i32(4, static_cast<int32_t>(crc(parts, count)));
        finish();
        header_.close();
    }

    uint32_t crc(const Part* parts, size_t count) {
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

    const ColumnRules& column_;
    const LeafValues& leaf_;
    PageSeal& seal_;
    Compressor& compressor_;
    Unlocked* unlocked_;
    ChunkBytes& bytes_;
    Room& out_;  // of `bytes_`
    ChunkFacts& facts_;
    Room body_, stored_;
    Room sealed_;  // the last header
    AesContext aes_;
    ThriftOut header_;
};

// A stretch of pages in one encoding: up to page `end`.
struct Section {
    bool dictionary;
    int encoding;
    size_t end;
};

std::vector<Section> paginate(const ColumnRules& column, const LeafValues& leaf, Decision& d, Cutter& cutter) {
    std::vector<Section> sections;
    if (d.dictionary) {
        const size_t last = d.complete ? leaf.rows : cutter.row_before_value(d.covered);
        if (last > 0) {
            cutter.cut(last, Cost{d.index_bits(), nullptr});
            sections.push_back({true, kRleDictionary, cutter.pages.size()});
        } else {
            d.dictionary = false;  // no page has it
        }
    }
    if (!d.dictionary || !d.complete) {
        const Values& v = leaf.values;
        cutter.cut(leaf.rows, column.boolean() ? Cost{1, nullptr} : v.binary() ? Cost{32, &v}
                                                                               : Cost{8 * v.width, nullptr});
        sections.push_back({false, d.encoding, cutter.pages.size()});
    }
    return sections;
}

// The pages from `page` to `end`.
void write_pages(PageWriter& writer, const ColumnRules& column, const Values& all, const Decision& d, const Pages& pages,
                 const std::vector<Section>& sections, size_t page, size_t end) {
    for (const Section& section : sections) {
        for (; page < std::min(section.end, end); ++page) {
            const auto first = static_cast<size_t>(pages.values[page]), last = static_cast<size_t>(pages.values[page + 1]);
            const bool is_made = page == 0 && !section.dictionary && d.first_page.encoding == section.encoding && d.first_page.values == last;
            writer.add_data(pages, page, section.encoding, is_made ? &d.first_page : nullptr, [&](Room& body) -> Part {
                const Values v = section.dictionary ? Values{} : all.slice(first, last);
                // What is stored as it is in memory need not move.
                const bool as_it_is = !section.dictionary && section.encoding == kPlain && !v.binary() && !column.boolean();
                if (as_it_is && (body.size() == 0 || column.file->version == 2)) return {v.data, v.count * v.width};
                if (section.dictionary) put_indices(d.indices + first, last - first, d.index_bits(), body);
                else put_values(column, section.encoding, v, body);
                return {body.data(), body.size()};
            });
        }
    }
}

// Some pages of a chunk that a thread has made.
struct Share {
    ChunkBytes bytes;
    ChunkFacts facts;
    bool made = false;
};

void add_share(Share& share, ChunkBytes& out, ChunkFacts& facts) {
    const int64_t base = static_cast<int64_t>(out.size()) - facts.start;
    for (const PagePlace& page : share.facts.pages) facts.pages.push_back({base + page.offset, page.size, page.first_row});
    facts.uncompressed += share.facts.uncompressed;
    out.append(share.bytes.room);
    share.facts = {};
}

// Has threads make the pages of a large chunk. Returns how many pages are there then: none where the chunk is not large, not
// all where one needs Python.
size_t share_pages(const ColumnRules& column, const LeafValues& leaf, PageSeal& seal, const Decision& d, const Pages& pages,
                   const std::vector<Section>& sections, ChunkBytes& out, ChunkFacts& facts) {
    const FileRules& file = *column.file;
    const size_t size = leaf.coded ? leaf.slots : leaf.values.plain_size() + leaf.slots / 8;
    if (file.threads < 2 || size < kShared || pages.size() < 2 || (seal.encrypts() && !seal.native())) return 0;
    if (column.codec != kUncompressed && (column.level == kNotNative || !codec_writes_native(column.codec))) return 0;
    if (file.crc != nullptr && !file.crc->native()) return 0;
    const size_t each = std::max<size_t>(pages.size() * kShare / size, 1);
    std::vector<Share> shares((pages.size() + each - 1) / each);
    std::mutex adding;
    size_t added = 0;
    try {
        run_parallel(shares.size(), static_cast<size_t>(file.threads), [&](size_t k) {
            Share& share = shares[k];
            Compressor compressor(column, nullptr);
            PageWriter writer(column, leaf, seal, compressor, nullptr, share.bytes, share.facts);
            const size_t first = k * each;
            write_pages(writer, column, leaf.values, d, pages, sections, first, std::min(first + each, pages.size()));
            if (stop_requested()) return;  // the last pages may be missing
            const std::lock_guard lock(adding);
            share.made = true;
            for (; added < shares.size() && shares[added].made; ++added) add_share(shares[added], out, facts);
        });
    } catch (const NeedsPython&) {
    }
    return std::min(added * each, pages.size());
}

// How often each level occurs on each page, and in all; one count per level and page.
std::vector<int64_t> histogram(const uint8_t* levels, int maximum, const Pages& pages, std::vector<int64_t>& total) {
    if (maximum == 0) return {};
    const auto kinds = static_cast<size_t>(maximum) + 1;
    std::vector<int64_t> counts(kinds * pages.size());
    total.assign(kinds, 0);
    for (size_t page = 0; page < pages.size(); ++page) {
        int64_t* const of_page = counts.data() + page * kinds;
        const auto first = static_cast<size_t>(pages.slots[page]), n = static_cast<size_t>(pages.slots[page + 1]) - first;
        if (levels == nullptr) {
            of_page[maximum] = static_cast<int64_t>(n);
        } else if (maximum <= 12) {  // comparing with each level takes less time than counting
            int64_t rest = static_cast<int64_t>(n);
            for (int level = 1; level <= maximum; ++level)
                rest -= of_page[level] = static_cast<int64_t>(count_equal(levels + first, n, static_cast<uint8_t>(level)));
            of_page[0] = rest;
        } else {
            for (size_t i = first; i < first + n; ++i) ++of_page[levels[i]];
        }
        for (size_t level = 0; level < kinds; ++level) total[level] += of_page[level];
    }
    return counts;
}

// The entries that the pages of a coded leaf use: as values, each once for each page.
struct PageEntries {
    Values values;
    std::vector<int64_t> edges{0}, bytes;  // where each page's begin; bytes of all values of each page

    PageEntries(const LeafValues& leaf, const Pages& pages) {
        const Values& entries = leaf.entry_values;
        std::vector<uint32_t> seen(entries.count);
        offsets_.push_back(0);
        for (size_t page = 0; page < pages.size(); ++page) {
            int64_t total = 0;
            for (auto i = static_cast<size_t>(pages.values[page]); i < static_cast<size_t>(pages.values[page + 1]); ++i) {
                const auto k = static_cast<size_t>(leaf.indices[i]);
                total += entries.wide[k + 1] - entries.wide[k];
                if (seen[k] == page + 1) continue;
                seen[k] = static_cast<uint32_t>(page + 1);
                data_.put(entries.data + entries.wide[k], entries.bytes(k, k + 1));
                offsets_.push_back(static_cast<int64_t>(data_.size()));
            }
            edges.push_back(static_cast<int64_t>(offsets_.size()) - 1);
            bytes.push_back(total);
        }
        values.data = data_.data(), values.size = data_.size(), values.wide = offsets_.data(), values.count = offsets_.size() - 1;
    }

  private:
    std::vector<int64_t> offsets_;
    Room data_;
};

void describe_pages(const ColumnRules& column, const LeafValues& leaf, const Decision& d, const Pages& pages, ChunkFacts& facts) {
    const FileRules& file = *column.file;
    PageCounts counts;
    counts.definition = histogram(leaf.defs, column.max_def, pages, facts.definition);
    counts.repetition = histogram(leaf.reps, column.max_rep, pages, facts.repetition);
    std::optional<PageEntries> coded;
    if (leaf.coded) coded.emplace(leaf, pages);
    const bool sizes = leaf.values.binary() && file.size_statistics;
    if (sizes) facts.unencoded_total = 0;
    for (size_t k = 0; k < pages.size(); ++k) {
        counts.values.push_back(pages.values[k + 1] - pages.values[k]);
        counts.nulls.push_back(pages.slots[k + 1] - pages.slots[k] - counts.values.back());
        if (!sizes) continue;
        facts.unencoded.push_back(coded ? coded->bytes[k]
                                        : static_cast<int64_t>(leaf.values.bytes(static_cast<size_t>(pages.values[k]), static_cast<size_t>(pages.values[k + 1]))));
        facts.unencoded_total += facts.unencoded.back();
    }
    // With one level there is nothing in the histograms that null counts do not say.
    if (!file.size_statistics || (column.max_def <= 1 && column.max_rep == 0)) counts.definition.clear(), counts.repetition.clear();
    if (!file.size_statistics) facts.definition.clear(), facts.repetition.clear();
    if (!column.statistics) return;
    const SegmentBounds bounds = coded ? segment_bounds(*column.order, coded->values, coded->edges.data(), pages.size())
                                       : segment_bounds(*column.order, leaf.values, pages.values.data(), pages.size());
    StatisticsOptions options;
    options.null_count = static_cast<int64_t>(leaf.slots - leaf.values.count);
    // Entries differ in their bits: for floats that is not the same as distinct values.
    options.distinct_count = column.order->floats() ? -1 : d.distinct;
    options.truncate = file.statistics_truncate;
    ThriftOut out;
    write_statistics(out, *column.order, bounds, options);
    facts.statistics = std::move(out.bytes);
    if (file.page_index) facts.column_index = column_index(*column.order, bounds, counts, file.index_truncate, file.longest_bound);
}

std::string record_of(const Choice& choice) {
    std::vector<std::pair<int, double>> order = choice.sizes;
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        return std::make_pair(a.first != choice.encoding, a.first) < std::make_pair(b.first != choice.encoding, b.first);
    });
    std::string text;
    for (const auto& [encoding, size] : order) {
        char item[48];
        std::snprintf(item, sizeof(item), "%s%d=%.3g", text.empty() ? "" : " ", encoding, size);
        text += item;
    }
    return text;
}

// The fields of a ColumnMetaData; `bare`: those that a reader needs to step over the chunk.
void write_metadata(ThriftOut& out, const ChunkFacts& chunk, int64_t base, bool bare) {
    const ColumnRules& column = *chunk.column;
    const int64_t start = base + chunk.start;
    out.i32(1, column.physical);
    std::vector<int> used;
    used.reserve(chunk.encoding_stats.size() + 1);
    for (const auto& stats : chunk.encoding_stats) used.push_back(stats[1]);
    if (column.max_def > 0 || column.max_rep > 0) used.push_back(kRle);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    out.list(2, ThriftOut::kI32, used.size());
    for (const int encoding : used) out.number(encoding);
    out.list(3, ThriftOut::kBinary, column.path.size());
    for (const std::string& name : column.path) out.text(name);
    out.i32(4, column.codec);
    out.i64(5, chunk.slots);
    out.i64(6, chunk.uncompressed);
    out.i64(7, chunk.size);
    const bool recorded = chunk.chose && !chunk.choice.sizes.empty();
    if (!bare && (recorded || !column.key_values.empty())) {
        out.list(8, ThriftOut::kStruct, column.key_values.size() + recorded);
        for (const std::string& pair : column.key_values) out.bytes += pair;
        if (recorded) {
            out.open();
            out.binary(1, column.file->record_key);
            out.binary(2, record_of(chunk.choice));
            out.close();
        }
    }
    out.i64(9, start + chunk.pages.front().offset);
    if (chunk.dictionary) out.i64(11, start);
    if (bare) return;
    if (!chunk.statistics.empty()) out.raw_struct(12, chunk.statistics);
    out.list(13, ThriftOut::kStruct, chunk.encoding_stats.size());
    for (const auto& stats : chunk.encoding_stats) {
        out.open();
        for (int k = 0; k < 3; ++k) out.i32(k + 1, stats[static_cast<size_t>(k)]);
        out.close();
    }
    if (chunk.bloom_at >= 0) {
        out.i64(14, chunk.bloom_at);
        out.i32(15, static_cast<int32_t>(chunk.bloom_size));
    }
    if (chunk.unencoded_total >= 0 || !chunk.repetition.empty() || !chunk.definition.empty()) {
        out.open(16);
        if (chunk.unencoded_total >= 0) out.i64(1, chunk.unencoded_total);
        if (!chunk.repetition.empty()) out.i64s(2, chunk.repetition);
        if (!chunk.definition.empty()) out.i64s(3, chunk.definition);
        out.close();
    }
}

}  // namespace

size_t Compressor::run(const uint8_t* data, size_t size, Room& out) {
    if (column_.codec == kUncompressed) {
        out.put(data, size);
        return size;
    }
    if (column_.level != kNotNative && size <= kQuick) {
        const size_t room = deflate_bound(column_.codec, size);
        const int64_t stored = deflate_native(column_.codec, column_.level, data, size, out.more(room), room);
        if (stored >= 0) {
            out.add(static_cast<size_t>(stored));
            return static_cast<size_t>(stored);
        }
    }
    if (unlocked_ == nullptr) throw NeedsPython{};
    const Unlocked::Locked locked(*unlocked_);
    const nb::object stored = column_.compress(passing_view(data, size));
    RawIn bytes;
    if (!bytes.load(stored.ptr())) fail("what a codec returns must be bytes-like");
    out.put(bytes.data, bytes.size);
    return bytes.size;
}

void PageSeal::draw(size_t pages, Unlocked& unlocked) {
    if (!native()) return;
    const Unlocked::Locked locked(unlocked);
    seal_.native->draw(2 * pages, nonces_);
}

size_t PageSeal::run(int module, const TextPart* parts, size_t count, int64_t page, AesContext& aes, Unlocked* unlocked, Room& out) {
    if (native()) {
        size_t size = 0;
        for (size_t k = 0; k < count; ++k) size += parts[k].size;
        const size_t stored = seal_.native->stored_size(module, size);
        if (seal_.native->seal(module, parts, count, size, page, nonces_, aes, out.more(stored))) {
            out.add(stored);
            return stored;
        }
    }
    if (unlocked == nullptr) throw NeedsPython{};
    const Unlocked::Locked locked(*unlocked);
    nb::list views;
    for (size_t k = 0; k < count; ++k) views.append(passing_view(parts[k].data, parts[k].size));
    const nb::object sealed = nb::borrow(seal_.otherwise)(module, views, page);
    size_t total = 0;
    for (const nb::handle part : nb::cast<nb::list>(sealed)) {
        RawIn bytes;
        if (!bytes.load(part.ptr())) fail("a sealed module must be bytes-like");
        out.put(bytes.data, bytes.size);
        total += bytes.size;
    }
    return total;
}

void put_sized_levels(const uint8_t* levels, size_t count, int maximum, Room& out) {
    if (maximum == 0) return;
    const size_t at = out.size();
    out.add((out.more(4), 4));
    put_levels(levels, count, maximum, out);
    store(out.data() + at, static_cast<uint32_t>(out.size() - at - 4));
}

ChunkFacts encode_chunk(const ColumnRules& column, const LeafValues& leaf, const ChunkSeal& seal_with, Unlocked& unlocked, ChunkBytes& out) {
    ChunkFacts facts;
    facts.column = &column;
    facts.start = static_cast<int64_t>(out.size());
    facts.slots = static_cast<int64_t>(leaf.slots);
    Compressor compressor(column, &unlocked);
    PageSeal seal(seal_with);
    Decision d = decide(column, leaf, compressor);
    Cutter cutter(column, leaf);
    const std::vector<Section> sections = paginate(column, leaf, d, cutter);
    const Pages& pages = cutter.pages;
    seal.draw(pages.size() + d.dictionary, unlocked);
    PageWriter writer(column, leaf, seal, compressor, &unlocked, out, facts);
    const int data_page = column.file->version == 1 ? kDataPage : kDataPageV2;
    facts.dictionary = d.dictionary;
    if (d.dictionary) {
        writer.add_dictionary(d);
        facts.encoding_stats.push_back({kDictionaryPage, kPlain, 1});
    }
    const size_t shared = share_pages(column, leaf, seal, d, pages, sections, out, facts);
    write_pages(writer, column, leaf.values, d, pages, sections, shared, pages.size());
    size_t before = 0;
    for (const Section& section : sections) {
        if (section.end > before) facts.encoding_stats.push_back({data_page, section.encoding, static_cast<int>(section.end - before)});
        before = section.end;
    }
    describe_pages(column, leaf, d, pages, facts);
    facts.size = static_cast<int64_t>(out.size()) - facts.start;
    facts.chose = d.chose, facts.choice = std::move(d.choice);
    facts.complete = d.dictionary && d.complete && !leaf.given;
    if (facts.complete) facts.first = std::move(d.first);
    facts.used = leaf.used;
    return facts;
}

std::string offset_index_of(const ChunkFacts& chunk, int64_t base) {
    ThriftOut out;
    out.open();
    out.list(1, ThriftOut::kStruct, chunk.pages.size());
    for (const PagePlace& page : chunk.pages) {
        out.open();
        out.i64(1, base + chunk.start + page.offset);
        out.i32(2, static_cast<int32_t>(page.size));
        out.i64(3, page.first_row);
        out.close();
    }
    if (!chunk.unencoded.empty()) out.i64s(2, chunk.unencoded);
    out.close();
    return std::move(out.bytes);
}

std::string column_metadata_of(const ChunkFacts& chunk, int64_t base) {
    ThriftOut out;
    out.open();
    write_metadata(out, chunk, base, false);
    out.close();
    return std::move(out.bytes);
}

std::string column_chunk_of(const ChunkFacts& chunk, int64_t base, const StoredMetadata& stored) {
    ThriftOut out;
    out.open();
    out.i64(2, 0);
    if (stored.sealed.empty() || stored.bare) {
        out.open(3);
        write_metadata(out, chunk, base, !stored.sealed.empty());
        out.close();
    }
    if (chunk.offset_index_at >= 0) {
        out.i64(4, chunk.offset_index_at);
        out.i32(5, static_cast<int32_t>(chunk.offset_index_size));
    }
    if (chunk.column_index_at >= 0) {
        out.i64(6, chunk.column_index_at);
        out.i32(7, static_cast<int32_t>(chunk.column_index_size));
    }
    if (!stored.crypto.empty()) out.raw_struct(8, stored.crypto);
    if (!stored.sealed.empty()) out.binary(9, stored.sealed);
    out.close();
    return std::move(out.bytes);
}

}  // namespace pyparq
