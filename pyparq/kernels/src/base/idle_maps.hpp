// Memory from the kernel that was given back: one area after another in address order, joined where they adjoin, and cut
// where less is wanted. Where no area is large enough, the pages of several are moved to one place. So a read of other sizes
// than the last one finds its memory there too.
#pragma once
#include "base/memory.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <new>

namespace pyparq {

// For one thread at a time.
class IdleMaps {
  public:
    using Release = void (*)(Area);                     // gives an area, or a part of one, back to the kernel
    using Move = bool (*)(uint8_t* from, uint8_t* to);  // moves a large page; false where it cannot be done

    IdleMaps(Release release, Move move) : release_(release), move_(move) {}
    size_t total() const { return total_; }

    // The front of the smallest area that has so many bytes; nothing where none has. `room` is a multiple of a page.
    Area take(size_t room) {
        auto best = areas_.end();
        for (auto it = areas_.begin(); it != areas_.end(); ++it)
            if (it->second.room >= room && (best == areas_.end() || it->second.room < best->second.room)) best = it;
        if (best == areas_.end()) return {};
        return cut(best, room);
    }

    // Moves idle pages into an area that is fresh and begins with a large page: from its front on, and as many as there are.
    // False where one could not be moved: the area ends before its place then.
    bool fill(Area& fresh) noexcept {
        size_t filled = 0;
        while (fresh.room - filled >= kLargePage) {
            auto best = areas_.end();
            for (auto it = areas_.begin(); it != areas_.end(); ++it)
                if (best == areas_.end() || large_pages(it).room > large_pages(best).room) best = it;
            if (best == areas_.end() || large_pages(best).room == 0) return true;
            const Area idle = large_pages(best);
            const size_t wanted = std::min(idle.room, (fresh.room - filled) / kLargePage * kLargePage);
            size_t moved = 0;
            while (moved < wanted && move_(idle.data + moved, fresh.data + filled + moved)) moved += kLargePage;
            if (moved > 0) remove(best, {idle.data, moved});
            filled += moved;
            if (moved < wanted) {
                // What is at that one place now may be somebody else's: it is left alone.
                if (const size_t behind = filled + kLargePage; fresh.room > behind)
                    release_({fresh.data + behind, fresh.room - behind});
                fresh.room = filled;
                return false;
            }
        }
        return true;
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
    bool give(Area area, uint64_t now) noexcept {
        const auto behind = areas_.lower_bound(area.data);
        const bool joins_behind = behind != areas_.end() && behind->first == area.data + area.room;
        const auto before = behind == areas_.begin() ? areas_.end() : std::prev(behind);
        total_ += area.room;
        if (before != areas_.end() && before->first + before->second.room == area.data) {
            before->second.room += area.room, before->second.given = now;
            if (joins_behind) {
                before->second.room += behind->second.room;
                areas_.erase(behind);
            }
            return true;
        }
        if (joins_behind) {
            auto joined = areas_.extract(behind);
            joined.key() = area.data, joined.mapped().room += area.room, joined.mapped().given = now;
            areas_.insert(std::move(joined));
            return true;
        }
        try {
            areas_.emplace(area.data, Waiting{area.room, now});
        } catch (const std::bad_alloc&) {
            total_ -= area.room;
            return false;
        }
        return true;
    }

    // When the area that has waited longest was given; past all times where there is none.
    uint64_t oldest() {
        return areas_.empty() ? std::numeric_limits<uint64_t>::max() : longest_waiting()->second.given;
    }
    // Lets go of the end of that area: about so many bytes, in whole large pages.
    void drop_oldest(size_t about) noexcept {
        const auto oldest = longest_waiting();
        size_t& room = oldest->second.room;
        const size_t freed = std::min(room, (about + kLargePage - 1) / kLargePage * kLargePage);
        room -= freed, total_ -= freed;
        release_({oldest->first + room, freed});
        if (room == 0) areas_.erase(oldest);
    }

  private:
    struct Waiting {
        size_t room;
        uint64_t given;  // when the last part of it was
    };
    using Areas = std::map<uint8_t*, Waiting>;

    Areas::iterator longest_waiting() {
        return std::min_element(areas_.begin(), areas_.end(),
                                [](const auto& a, const auto& b) { return a.second.given < b.second.given; });
    }

    // The whole large pages in an area.
    static Area large_pages(Areas::const_iterator area) {
        const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(area->first) % kLargePage) % kLargePage;
        if (area->second.room < before) return {};
        return {area->first + before, (area->second.room - before) / kLargePage * kLargePage};
    }

    // Pages of an area that are not there any more.
    void remove(Areas::iterator area, Area pages) noexcept {
        total_ -= pages.room;
        uint8_t* const end = area->first + area->second.room;
        const auto before = static_cast<size_t>(pages.data - area->first);
        const Waiting behind{static_cast<size_t>(end - (pages.data + pages.room)), area->second.given};
        if (before > 0) {
            area->second.room = before;
        } else {
            areas_.erase(area);
        }
        if (behind.room == 0) return;
        try {
            areas_.emplace(end - behind.room, behind);
        } catch (const std::bad_alloc&) {
            total_ -= behind.room;
            release_({end - behind.room, behind.room});
        }
    }

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
    Move move_;
    Areas areas_;
    size_t total_ = 0;
};

}  // namespace pyparq
