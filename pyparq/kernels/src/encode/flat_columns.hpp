// Columns that are leaves themselves, straight from Arrow's buffers (Arrow columnar format, "Physical Memory Layout").
#pragma once

#include "base/memory.hpp"
#include "encode/column.hpp"

#include <vector>

namespace pyparq {

// How an array's values become physical ones; pyparq.write.flat_columns has the same numbers.
enum FlatForm : int {
    kSame = 0,  // of the width that the leaf has
    kBits,
    kInt8,
    kUInt8,
    kInt16,
    kUInt16,
    kOffsets32,
    kOffsets64,
    kDecimal32,
    kDecimal64,
    kDecimal128,
    kCodes,  // of a dictionary: int32
};

// One array of the column: what its buffers hold from element `offset` on.
struct FlatPart {
    int form = kSame;
    size_t length = 0, offset = 0;
    const uint8_t* validity = nullptr;  // null: nothing is
    size_t validity_size = 0;
    const uint8_t *first = nullptr, *second = nullptr;  // values, or offsets and bytes
    size_t first_size = 0, second_size = 0;
};

// Memory of a leaf that could not stay where it was.
class FlatMemory {
  public:
    FlatMemory() = default;
    FlatMemory(const FlatMemory&) = delete;
    FlatMemory& operator=(const FlatMemory&) = delete;
    ~FlatMemory() {
        for (const Area& area : areas_) give_area(area);
    }
    uint8_t* take(size_t size) {
        areas_.reserve(areas_.size() + 1);
        areas_.push_back(take_area(size));
        return areas_.back().data;
    }

  private:
    std::vector<Area> areas_;
};

// The dictionary that codes are of: its page has each entry once.
struct FlatDictionary {
    const uint8_t* plain = nullptr;  // the entries in PLAIN
    size_t size = 0, count = 0;
    const int32_t* places = nullptr;  // where each code's entry is among them; null: codes are places
    size_t codes = 0;                 // how many codes there are
};

// Sets levels, values and dictionary of a leaf whose parts are codes, as flatten() does. Of byte arrays the values are not
// laid out: the leaf is coded.
bool flatten_codes(const ColumnRules& column, const std::vector<FlatPart>& parts, const FlatDictionary& dictionary, FlatMemory& memory,
                   LeafValues& leaf);

// Sets levels and values of a leaf whose rows are those of the parts. False where they are not what the leaf may hold: nulls
// in a required column, text that is not UTF-8, decimals with too many digits. Throws KernelError for buffers that are too short.
bool flatten(const ColumnRules& column, const std::vector<FlatPart>& parts, FlatMemory& memory, LeafValues& leaf);

}  // namespace pyparq
