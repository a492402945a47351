// Memory from the kernel that was given back: one area after another in address order, joined where they adjoin, and cut
// where less is wanted. So a read of other sizes than the last one finds its memory there too.
#pragma once
#include "base/memory.hpp"

#include <algorithm>
#include <map>
#include <new>

namespace pyparq {

// For one thread at a time.
class IdleMaps {
  public:
    using Release = void (*)(Area);  // gives an area, or a part of one, back to the kernel

    explicit IdleMaps(Release release) : release_(release) {}
    size_t total() const { return total_; }

    // The front of the smallest area that has so many bytes; nothing where none has. `room` is a multiple of a page.
    Area take(size_t room) {
        auto best = areas_.end();
        for (auto it = areas_.begin(); it != areas_.end(); ++it)
            if (it->second.room >= room && (best == areas_.end() || it->second.room < best->second.room)) best = it;
        if (best == areas_.end()) return {};
        return cut(best, room);
    }

    // Lengthens an area that is in use to `room` bytes, if what lies behind it is idle.
    bool extend(Area& area, size_t room) {
        const auto behind = areas_.find(area.data + area.room);
        if (behind == areas_.end() || behind->second.room < room - area.room) return false;
        cut(behind, room - area.room);
        area.room = room;
        return true;
    }

    // False where there is no memory to note it.
    bool give(Area area) noexcept {
        const auto behind = areas_.lower_bound(area.data);
        const bool joins_behind = behind != areas_.end() && behind->first == area.data + area.room;
        const auto before = behind == areas_.begin() ? areas_.end() : std::prev(behind);
        total_ += area.room;
        if (before != areas_.end() && before->first + before->second.room == area.data) {
            before->second.room += area.room, before->second.given = ++gifts_;
            if (joins_behind) {
                before->second.room += behind->second.room;
                areas_.erase(behind);
            }
            return true;
        }
        if (joins_behind) {
            auto joined = areas_.extract(behind);
            joined.key() = area.data, joined.mapped().room += area.room, joined.mapped().given = ++gifts_;
            areas_.insert(std::move(joined));
            return true;
        }
        try {
            areas_.emplace(area.data, Waiting{area.room, ++gifts_});
        } catch (const std::bad_alloc&) {
            total_ -= area.room;
            return false;
        }
        return true;
    }

    // Lets go of the ends of the areas that have waited longest until no more than so many bytes are left. One that was
    // given just now will be wanted again; those before it may all have been too small for it.
    void drop(size_t most) noexcept {
        while (total_ > most) {
            const auto oldest = std::min_element(areas_.begin(), areas_.end(), [](const auto& a, const auto& b) {
                return a.second.given < b.second.given;
            });
            size_t& room = oldest->second.room;
            // In whole large pages: the kernel would have to take one apart.
            const size_t wanted = (total_ - most + kLargePage - 1) / kLargePage * kLargePage;
            const size_t freed = std::min(room, wanted);
            room -= freed, total_ -= freed;
            release_({oldest->first + room, freed});
            if (room == 0) areas_.erase(oldest);
        }
    }

  private:
    struct Waiting {
        size_t room;
        uint64_t given;  // the number of the last gift that is a part of it
    };
    using Areas = std::map<uint8_t*, Waiting>;

    Area cut(Areas::iterator area, size_t room) {
        const Area front{area->first, room};
        auto rest = areas_.extract(area);
        if (rest.mapped().room > room) {
            rest.key() += room, rest.mapped().room -= room;
            areas_.insert(std::move(rest));
        }
        total_ -= room;
        return front;
    }

    Release release_;
    Areas areas_;
    size_t total_ = 0;
    uint64_t gifts_ = 0;  // so far
};

}  // namespace pyparq
