// One byte string searched in others. Blocks of 32 places are ruled out by the two bytes of it that are rarest in text. Where
// many places pass that and then differ, a search that never looks at a byte twice takes over, so the time is linear. A needle that
// folds is in lower case and stands where ASCII letters of any case do.
#pragma once
#include "base/common.hpp"

#include <string>
#include <vector>

namespace pyparq {

inline uint8_t folded(uint8_t b) { return static_cast<uint8_t>(b | (static_cast<uint8_t>(b - 'A') < 26) << 5); }

class Needle {
  public:
    explicit Needle(std::string bytes, bool folds = false);
    size_t size() const { return bytes_.size(); }
    const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(bytes_.data()); }
    // The first place in [p, end) where it stands, nullptr if there is none.
    const uint8_t* find(const uint8_t* p, const uint8_t* end) const;

  private:
    uint8_t seen(uint8_t b) const { return folds_ ? folded(b) : b; }
    // The bits in which a byte may differ from one of the needle.
    uint8_t differs(size_t at) const { return folds_ && data()[at] >= 'a' && data()[at] <= 'z' ? 0x20 : 0; }

    struct Cursor {
        const uint8_t* start;
        size_t wasted = 0;  // bytes that were compared for nothing
    };
    bool stands_at(const uint8_t* p, Cursor& cursor) const;
    bool is_slow(const uint8_t* p, const Cursor& cursor) const;
    const uint8_t* find_in_blocks(const uint8_t*& p, const uint8_t* last, Cursor& cursor) const;
    const uint8_t* find_linearly(const uint8_t* p, const uint8_t* end) const;

    std::string bytes_;
    bool folds_;
    size_t first_ = 0, second_ = 0;  // places of the rarest bytes
    std::vector<uint32_t> borders_;  // of each prefix: the longest shorter one that it also ends with
};

}  // namespace pyparq
