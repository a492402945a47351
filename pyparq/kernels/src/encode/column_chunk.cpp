// One column chunk: its pages, and everything the footer and the indexes say about them.
#include "encode/chunk_pages.hpp"

namespace pyparq {

namespace {

// What the encoding_stats of the footer say: how many pages have which encoding.
void count_encodings(const ColumnRules& column, const std::vector<Section>& sections, ChunkFacts& facts) {
    const int data_page = column.file->version == 1 ? kDataPage : kDataPageV2;
    if (facts.dictionary) facts.encoding_stats.push_back({kDictionaryPage, kPlain, 1});
    size_t before = 0;
    for (const Section& section : sections) {
        if (section.end > before) facts.encoding_stats.push_back({data_page, section.encoding, static_cast<int>(section.end - before)});
        before = section.end;
    }
}

}  // namespace

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
    PageWriter writer(column, leaf, d, seal, &unlocked, out, facts);
    facts.dictionary = d.dictionary;
    if (d.dictionary) writer.add_dictionary();
    const size_t shared = share_pages(column, leaf, d, seal, pages, sections, out, facts);
    writer.add_pages(pages, sections, shared, pages.size());
    count_encodings(column, sections, facts);
    describe_pages(column, leaf, d, pages, facts);
    facts.size = static_cast<int64_t>(out.size()) - facts.start;
    facts.chose = d.chose, facts.choice = std::move(d.choice);
    facts.complete = d.dictionary && d.complete && !leaf.given;
    if (facts.complete) facts.first = std::move(d.first);
    facts.used = leaf.used;
    return facts;
}

}  // namespace pyparq
