// One block for the byte arrays of all segments of a column. Each segment has the part of it that was foreseen: nothing has to
// be put together afterwards but what was foreseen wrongly.
#pragma once
#include "decode/memory.hpp"

#include <mutex>
#include <vector>

namespace pyparq {

// Bytes that the values of a segment take.
struct Foreseen {
    size_t full = 0;  // where no value is null
    size_t most = 0;  // however many are
};

class JointBytes {
  public:
    struct Part {
        uint8_t* data = nullptr;
        size_t room = 0;
    };

    void plan(std::vector<Foreseen> segments, size_t most) {
        segments_ = std::move(segments);
        most_ = most;
        decided_ = false;
    }
    bool planned() const { return !segments_.empty(); }

    // The part of a segment; none where all of them take too much. The first segment that asks decides for all of them, by
    // its first page with values: `nulls` says whether it has nulls, too.
    Part part(size_t segment, bool nulls, Budget& budget) {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(decided_, true)) decide(nulls, budget);
        if (starts_.empty()) return {};
        return {block_.data() + starts_[segment], starts_[segment + 1] - starts_[segment]};
    }

    Block take() { return std::move(block_); }
    void clear(Budget& budget) {
        budget.give(block_.size());
        block_ = Block();
        segments_.clear();
        starts_.clear();
    }

  private:
    void decide(bool nulls, Budget& budget) {
        std::vector<size_t> starts{0};
        for (const Foreseen& segment : segments_) starts.push_back(starts.back() + (nulls ? segment.most : segment.full));
        const size_t total = starts.back();
        if (total > most_ || static_cast<int64_t>(total) > budget.left() / 4) return;
        budget.take(total);
        block_.grow(total);
        starts_ = std::move(starts);
    }

    std::mutex mutex_;
    std::vector<Foreseen> segments_;
    std::vector<size_t> starts_;
    size_t most_ = 0;
    bool decided_ = false;
    Block block_;
};

}  // namespace pyparq
