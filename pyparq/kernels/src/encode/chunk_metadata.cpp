// What the footer and the OffsetIndex hold about a chunk, serialized (parquet.thrift: ColumnChunk, ColumnMetaData,
// OffsetIndex).
#include "encode/column.hpp"

#include <algorithm>
#include <cstdio>

namespace pyparq {
namespace {

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

// RLE is that of levels.
void write_encodings(ThriftOut& out, const ChunkFacts& chunk) {
    std::vector<int> used;
    used.reserve(chunk.encoding_stats.size() + 1);
    for (const auto& stats : chunk.encoding_stats) used.push_back(stats[1]);
    if (chunk.column->max_def > 0 || chunk.column->max_rep > 0) used.push_back(kRle);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    out.list(2, ThriftOut::kI32, used.size());
    for (const int encoding : used) out.number(encoding);
}

void write_key_values(ThriftOut& out, const ChunkFacts& chunk) {
    const ColumnRules& column = *chunk.column;
    const bool recorded = chunk.chose && !chunk.choice.sizes.empty();
    if (!recorded && column.key_values.empty()) return;
    out.list(8, ThriftOut::kStruct, column.key_values.size() + recorded);
    for (const std::string& pair : column.key_values) out.bytes += pair;
    if (!recorded) return;
    out.open();
    out.binary(1, column.file->record_key);
    out.binary(2, record_of(chunk.choice));
    out.close();
}

void write_encoding_stats(ThriftOut& out, const ChunkFacts& chunk) {
    out.list(13, ThriftOut::kStruct, chunk.encoding_stats.size());
    for (const auto& stats : chunk.encoding_stats) {
        out.open();
        for (int k = 0; k < 3; ++k) out.i32(k + 1, stats[static_cast<size_t>(k)]);
        out.close();
    }
}

void write_size_statistics(ThriftOut& out, const ChunkFacts& chunk) {
    if (chunk.unencoded_total < 0 && chunk.repetition.empty() && chunk.definition.empty()) return;
    out.open(16);
    if (chunk.unencoded_total >= 0) out.i64(1, chunk.unencoded_total);
    if (!chunk.repetition.empty()) out.i64s(2, chunk.repetition);
    if (!chunk.definition.empty()) out.i64s(3, chunk.definition);
    out.close();
}

// The fields of a ColumnMetaData; `bare`: those that a reader needs to step over the chunk.
void write_metadata(ThriftOut& out, const ChunkFacts& chunk, int64_t base, bool bare) {
    const ColumnRules& column = *chunk.column;
    const int64_t start = base + chunk.start;
    out.i32(1, column.physical);
    write_encodings(out, chunk);
    out.list(3, ThriftOut::kBinary, column.path.size());
    for (const std::string& name : column.path) out.text(name);
    out.i32(4, column.codec);
    out.i64(5, chunk.slots);
    out.i64(6, chunk.uncompressed);
    out.i64(7, chunk.size);
    if (!bare) write_key_values(out, chunk);
    out.i64(9, start + chunk.pages.front().offset);
    if (chunk.dictionary) out.i64(11, start);
    if (bare) return;
    if (!chunk.statistics.empty()) out.raw_struct(12, chunk.statistics);
    write_encoding_stats(out, chunk);
    if (chunk.bloom_at >= 0) {
        out.i64(14, chunk.bloom_at);
        out.i32(15, static_cast<int32_t>(chunk.bloom_size));
    }
    write_size_statistics(out, chunk);
    if (!chunk.geospatial.empty()) out.raw_struct(17, chunk.geospatial);
}

}  // namespace

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
