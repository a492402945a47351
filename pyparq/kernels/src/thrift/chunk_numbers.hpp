// The numbers of a column chunk: their order, and what its flags mean.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyparq {

// The order of pyparq/format/chunk_numbers.py. Counts and places are -1, offsets of the file 0, where there are none.
enum ChunkNumber : size_t {
    kFlags,
    kType,
    kCodec,
    kNumValues,
    kUncompressedSize,
    kCompressedSize,
    kDataPage,
    kDictionaryPage,
    kFilterOffset,
    kFilterLength,
    kOffsetIndex,
    kOffsetIndexLength,
    kColumnIndex,
    kColumnIndexLength,
    kNullCount,
    kNanCount,
    kDataPages,
    kEncodings,
    kPageTypes,
    kMin,
    kMinSize,
    kMax,
    kMaxSize,
    kOldMin,
    kOldMinSize,
    kOldMax,
    kOldMaxSize,
    kChunkNumbers,
};

enum ChunkFlag : int64_t { kOdd = 1,
                           kAllDictionary = 2,
                           kHasStatistics = 4 };

}  // namespace pyparq
