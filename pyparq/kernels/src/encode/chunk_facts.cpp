// Histograms, bounds and counts of the pages of a chunk: its statistics and its ColumnIndex.
#include "encode/chunk_pages.hpp"

#include "encode/geospatial.hpp"
#include "values/checks.hpp"

namespace pyparq {
namespace {

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

// Counts of values and nulls, bytes of byte arrays, and histograms of levels.
PageCounts count_pages(const ColumnRules& column, const LeafValues& leaf, const PageEntries* coded, const Pages& pages, ChunkFacts& facts) {
    const bool size_statistics = column.file->size_statistics, sizes = leaf.values.binary() && size_statistics;
    PageCounts counts;
    counts.definition = histogram(leaf.defs, column.max_def, pages, facts.definition);
    counts.repetition = histogram(leaf.reps, column.max_rep, pages, facts.repetition);
    if (sizes) facts.unencoded_total = 0;
    for (size_t k = 0; k < pages.size(); ++k) {
        counts.values.push_back(pages.values[k + 1] - pages.values[k]);
        counts.nulls.push_back(pages.slots[k + 1] - pages.slots[k] - counts.values.back());
        if (!sizes) continue;
        const auto first = static_cast<size_t>(pages.values[k]), last = static_cast<size_t>(pages.values[k + 1]);
        facts.unencoded.push_back(coded != nullptr ? coded->bytes[k] : static_cast<int64_t>(leaf.values.bytes(first, last)));
        facts.unencoded_total += facts.unencoded.back();
    }
    // With one level there is nothing in the histograms that null counts do not say.
    if (!size_statistics || (column.max_def <= 1 && column.max_rep == 0)) counts.definition.clear(), counts.repetition.clear();
    if (!size_statistics) facts.definition.clear(), facts.repetition.clear();
    return counts;
}

}  // namespace

void describe_pages(const ColumnRules& column, const LeafValues& leaf, const Decision& d, const Pages& pages, ChunkFacts& facts) {
    const FileRules& file = *column.file;
    std::optional<PageEntries> coded;
    if (leaf.coded) coded.emplace(leaf, pages);
    const PageCounts counts = count_pages(column, leaf, coded ? &*coded : nullptr, pages, facts);
    if (!column.statistics) return;
    if (column.geo != kNoGeo) {
        int64_t bad = -1;
        facts.geospatial = geospatial_statistics(coded ? coded->values : leaf.values, column.geo, bad);
        if (bad >= 0) throw Refusal{Refusal::Ewkb, 0, bad, 0};
    }
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

}  // namespace pyparq
