#include "base/memory.hpp"

#include "base/calls.hpp"
#include "base/idle_maps.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <new>

#ifndef _WIN32
#include <pthread.h>
#include <sys/mman.h>
#endif

namespace pyparq {

// Not in the headers of the stable ABI.
extern "C" int PyTraceMalloc_Track(unsigned int domain, uintptr_t address, size_t size);
extern "C" int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t address);

namespace {

#if defined(__linux__) && !defined(PYPARQ_SANITIZE)
constexpr bool kOwnMaps = true;
#elif defined(__linux__)
// A sanitizer sees the borders of what malloc gives. The code here is checked by a run that has it do its work.
const bool kOwnMaps = std::getenv("PYPARQ_OWN_MAPS") != nullptr;
#else
constexpr bool kOwnMaps = false;
#endif

constexpr size_t kSmallest = size_t{32} << 10;  // below this many bytes the C library is quick enough
constexpr size_t kMapped = kLargePage;          // from this many bytes on, memory comes from the kernel directly
constexpr unsigned kNumpyDomain = 389047;       // numpy.lib.tracemalloc_domain

size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

// The requested size, rounded up by at most an eighth, so that few sizes are kept. Untouched bytes take no memory.
size_t room_for(size_t size) {
    if (size < kSmallest) return std::max<size_t>(size, 1);
    if (size > std::numeric_limits<size_t>::max() / 2) throw std::bad_alloc();
    const size_t step = std::bit_floor(size - 1) / 8;
    return round_up(size, size >= kMapped ? std::max(step, kLargePage) : step);
}

#if defined(__linux__)
// Large pages where whole ones fit, small pages for the rest; small pages exist only once they are touched. The advice is
// for the whole area or not given: an area that the kernel has split in two cannot be moved.
void want_large_pages(Area area) { madvise(area.data, area.room, MADV_HUGEPAGE); }

Area map(size_t room) {
    const size_t whole = room + kLargePage;
    void* const found = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) throw std::bad_alloc();
    const auto begin = reinterpret_cast<uintptr_t>(found), aligned = round_up(begin, kLargePage);
    if (aligned > begin) munmap(found, aligned - begin);
    auto* const data = static_cast<uint8_t*>(found) + (aligned - begin);
    if (aligned + room < begin + whole) munmap(data + room, begin + whole - aligned - room);
    want_large_pages({data, room});
    return {data, room};
}

// False where it cannot be done.
bool remap(Area& area, size_t room) {
    void* const found = mremap(area.data, area.room, room, MREMAP_MAYMOVE);
    if (found == MAP_FAILED) return false;
    area = {static_cast<uint8_t*>(found), room};
    return true;
}

void unmap(Area area) { munmap(area.data, area.room); }

// What was at that place is gone, perhaps also where it is false. One page at a time: of several, the kernel might see those
// as parts of different areas.
bool move_page(uint8_t* from, uint8_t* to) {
    return mremap(from, kLargePage, kLargePage, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}
#else
Area map(size_t) { throw std::bad_alloc(); }
bool remap(Area&, size_t) { return false; }
void unmap(Area) {}
bool move_page(uint8_t*, uint8_t*) { return false; }
#endif

bool mapped(size_t room) { return kOwnMaps && room >= kMapped; }

Area fresh(size_t size, size_t room) {
    if (mapped(room)) return map(room);
    void* const found = std::malloc(kOwnMaps ? room : std::max<size_t>(size, 1));
    if (found == nullptr) throw std::bad_alloc();
    return {static_cast<uint8_t*>(found), kOwnMaps ? room : std::max<size_t>(size, 1)};
}

void release(Area area) noexcept {
    if (mapped(area.room)) {
        unmap(area);
    } else {
        std::free(area.data);
    }
}

// Areas of the C library that were given back, by size.
class IdleBlocks {
  public:
    size_t total() const { return total_; }
    // One of just this size, or none. The last one given is the likeliest to be in a cache.
    Area take(size_t room) {
        const auto found = places_.find(room);
        if (found == places_.end() || found->second.empty()) return {};
        const auto place = found->second.back();
        found->second.pop_back();
        const Area area = place->area;
        by_age_.erase(place);
        total_ -= area.room;
        return area;
    }
    // False where there is no memory to note it.
    bool give(Area area, uint64_t now) noexcept {
        try {
            auto& places = places_[area.room];
            places.push_back(by_age_.end());
            try {
                places.back() = by_age_.insert(by_age_.end(), {area, now});
            } catch (...) {
                places.pop_back();
                throw;
            }
        } catch (const std::bad_alloc&) {
            return false;
        }
        total_ += area.room;
        return true;
    }
    // When the oldest was given; past all times where there is none.
    uint64_t oldest() const { return by_age_.empty() ? std::numeric_limits<uint64_t>::max() : by_age_.front().given; }
    void drop_oldest() noexcept {
        const Area oldest = by_age_.front().area;
        places_.find(oldest.room)->second.pop_front();
        by_age_.pop_front();
        total_ -= oldest.room;
        release(oldest);
    }

  private:
    struct Waiting {
        Area area;
        uint64_t given;
    };
    std::list<Waiting> by_age_;                                          // the oldest first
    std::map<size_t, std::deque<std::list<Waiting>::iterator>> places_;  // by size, and by age
    size_t total_ = 0;
};

// What was given back and may be used again.
class Idle {
  public:
    void set_most(size_t most) {
        const std::lock_guard guard(lock_);
        most_ = most;
        drop(most);
    }
    size_t total() {
        const std::lock_guard guard(lock_);
        return blocks_.total() + maps_.total();
    }
    // An area of so many bytes, or none.
    Area take(size_t room) {
        const std::lock_guard guard(lock_);
        return mapped(room) ? maps_.take(room) : blocks_.take(room);
    }
    bool extend(Area& area, size_t room) {
        const std::lock_guard guard(lock_);
        return maps_.extend(area, room);
    }
    bool fill(Area& fresh) noexcept {
        const std::lock_guard guard(lock_);
        return maps_.fill(fresh);
    }
    // Keeps it, and lets go of others where it is too much then; false where it is too much alone.
    bool give(Area area) noexcept {
        const std::lock_guard guard(lock_);
        if (area.room > most_) return false;
        drop(most_ - area.room);
        return mapped(area.room) ? maps_.give(area, ++now_) : blocks_.give(area, ++now_);
    }
    // The same for the end of an area of the kernel's, however small.
    bool give_end(Area area) noexcept {
        const std::lock_guard guard(lock_);
        if (area.room > most_) return false;
        drop(most_ - area.room);
        return maps_.give(area, ++now_);
    }
    void clear() {
        const std::lock_guard guard(lock_);
        drop(0);
    }
    std::mutex& lock() { return lock_; }

  private:
    // Lets go of what has waited longest until no more than so many bytes are left. What was given just now will be wanted
    // again; all before it may have been too small.
    void drop(size_t most) noexcept {
        while (blocks_.total() + maps_.total() > most) {
            if (blocks_.oldest() < maps_.oldest()) {
                blocks_.drop_oldest();
            } else {
                maps_.drop_oldest(blocks_.total() + maps_.total() - most);
            }
        }
    }

    std::mutex lock_;
    IdleBlocks blocks_;
    IdleMaps maps_{unmap, move_page};
    size_t most_ = 0;
    uint64_t now_ = 0;  // gifts so far
};

// Never freed: threads may outlive what C++ frees when the process ends.
Idle* idle = nullptr;

void give_owned(void* held) noexcept {
    const std::unique_ptr<Area> area(static_cast<Area*>(held));
    PyTraceMalloc_Untrack(kNumpyDomain, reinterpret_cast<uintptr_t>(area->data));
    give_area(*area);
}

}  // namespace

namespace {

void give_part(Area area) noexcept {
    if (area.room > 0 && !idle->give_end(area)) unmap(area);
}

// To move idle pages takes a hundredth of the time that the kernel needs for fresh ones.
Area fresh_with_idle_pages(size_t size, size_t room) {
    Area found = fresh(size, room);
    if (mapped(room) && !idle->fill(found)) {
        give_part(found);
        throw std::bad_alloc();
    }
    return found;
}

bool remap_with_idle_pages(Area& area, size_t room) {
    const size_t before = area.room;
    if (!remap(area, room)) return false;
    Area more{area.data + before, room - before};
    if (reinterpret_cast<uintptr_t>(more.data) % kLargePage == 0 && !idle->fill(more)) {
        area.room = before + more.room;
        throw std::bad_alloc();
    }
    return true;
}

}  // namespace

Area take_area(size_t size) {
    const size_t room = room_for(size);
    if (room >= kSmallest) {
        if (const Area found = idle->take(room); found.data != nullptr) return found;
    }
    try {
        return fresh_with_idle_pages(size, room);
    } catch (const std::bad_alloc&) {
        idle->clear();
    }
    return fresh(size, room);
}

void grow_area(Area& area, size_t used, size_t size) {
    if (size <= area.room) return;
    const size_t room = room_for(size);
    if (area.data != nullptr && mapped(area.room) && (idle->extend(area, room) || remap_with_idle_pages(area, room))) return;
    const Area found = take_area(size);
    if (used > 0) std::memcpy(found.data, area.data, used);
    give_area(area);
    area = found;
}

void trim_area(Area& area, size_t used) {
    const size_t room = room_for(used);
    // A guess that was nearly right will be made again, so the area is kept at its size. Its untouched part takes no
    // memory.
    if (!mapped(area.room) || !mapped(room) || room >= area.room - area.room / 4) return;
    const Area end{area.data + room, area.room - room};
    give_part(end);
    area.room = room;
}

void give_area(Area area) noexcept {
    if (area.data == nullptr) return;
    if (!kOwnMaps || area.room < kSmallest || !idle->give(area)) release(area);
}

nb::capsule owner_of(Area area, size_t used) {
    auto held = std::make_unique<Area>(area);
    nb::capsule owner(held.get(), give_owned);
    static_cast<void>(held.release());  // the capsule has it
    PyTraceMalloc_Track(kNumpyDomain, reinterpret_cast<uintptr_t>(area.data), used);
    return owner;
}

void begin_memory() {
    idle = new Idle;
#ifndef _WIN32
    pthread_atfork([] { idle->lock().lock(); }, [] { idle->lock().unlock(); }, [] { idle->lock().unlock(); });
#endif
}

Area take_area_for_python(size_t size) {
    try {
        return take_area(size);
    } catch (const std::bad_alloc&) {  // other modules may have their own ideas of what that is in Python
        PyErr_NoMemory();
        throw nb::python_error();
    }
}

nb::object take_memory(int64_t size) {
    const size_t n = checked_count(size, "size");
    const Area area = take_area_for_python(n);
    return nb::cast(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(area.data, {n}, owner_of(area, n)));
}

size_t idle_memory() { return idle->total(); }

void release_idle_memory() { idle->clear(); }

void keep_idle_memory(int64_t most) { idle->set_most(checked_count(most, "most")); }

}  // namespace pyparq
