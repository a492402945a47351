// Which pages a chunk has, in which encodings, and the making of them: on several threads where the chunk is large.
#pragma once

#include "encode/page_writer.hpp"

namespace pyparq {

// Cuts the chunk into pages; a dictionary that no page would use is dropped from the decision.
std::vector<Section> paginate(const ColumnRules& column, const LeafValues& leaf, Decision& d, Cutter& cutter);

// Has threads make the pages of a large chunk. Returns how many pages are there then: none where the chunk is not large, not
// all where one needs Python.
size_t share_pages(const ColumnRules& column, const LeafValues& leaf, const Decision& d, PageSeal& seal, const Pages& pages,
                   const std::vector<Section>& sections, ChunkBytes& out, ChunkFacts& facts);

// Adds what the statistics and indexes say about the pages: histograms, bounds, counts.
void describe_pages(const ColumnRules& column, const LeafValues& leaf, const Decision& d, const Pages& pages, ChunkFacts& facts);

}  // namespace pyparq
