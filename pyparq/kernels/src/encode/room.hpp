// What the writer of column chunks stands on: memory that grows, and the GIL, which it holds only to call Python.
#pragma once

#include "base/memory.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

namespace pyparq {

// Bytes that grow at their end. Growing large ones moves pages, not bytes.
class Room {
  public:
    Room() = default;
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    Room(Room&& other) noexcept : area_(std::exchange(other.area_, {})), size_(std::exchange(other.size_, 0)) {}
    Room& operator=(Room&& other) noexcept {
        if (this == &other) return *this;
        give_area(area_);
        area_ = std::exchange(other.area_, {}), size_ = std::exchange(other.size_, 0);
        return *this;
    }
    ~Room() { give_area(area_); }

    uint8_t* data() const { return area_.data; }
    size_t size() const { return size_; }
    void clear() { size_ = 0; }
    // Forgets what is behind the first `size` bytes.
    void cut(size_t size) { size_ = std::min(size_, size); }

    // Where `n` bytes may be written; add() says how many were.
    uint8_t* more(size_t n) {
        if (n > area_.room - size_) grow_area(area_, size_, std::max(size_ + n, area_.room + area_.room / 2));
        return area_.data + size_;
    }
    void add(size_t n) { size_ += n; }
    void put(const void* bytes, size_t n) {
        if (n == 0) return;
        std::memcpy(more(n), bytes, n);
        add(n);
    }
    // Gives the memory away, cut to its size.
    Area release() {
        trim_area(area_, std::exchange(size_, 0));
        return std::exchange(area_, {});
    }

  private:
    Area area_;
    size_t size_ = 0;
};

// The bytes of chunks, one after another: in areas that are finished, which another thread may take away already, and behind
// them in a Room, to which more is added.
class ChunkBytes {
  public:
    struct Part {
        Area area;
        size_t size;
    };

    ChunkBytes() = default;
    ChunkBytes(const ChunkBytes&) = delete;
    ChunkBytes& operator=(const ChunkBytes&) = delete;
    ~ChunkBytes() {
        for (const Part& part : parts_) give_area(part.area);
    }

    Room room;
    // All that there have been, taken away or not.
    size_t size() const { return before_ + room.size(); }

    // Appends what a Room has. Little is copied: parts are to be worth a call of their own.
    void append(Room& more) {
        constexpr size_t kWorthIt = size_t{32} << 10;
        if (more.size() < kWorthIt) {
            room.put(more.data(), more.size());
            more = Room();
            if (room.size() >= kWorthIt) finish_part(room);
            return;
        }
        finish_part(room);
        finish_part(more);
    }
    // The finished areas so far. With `all`, the unfinished one too: no other thread may add anything during that call.
    std::vector<Part> take(bool all) {
        if (all) finish_part(room);
        const std::lock_guard lock(mutex_);
        return std::exchange(parts_, {});
    }

  private:
    void finish_part(Room& from) {
        const size_t size = from.size();
        if (size == 0) return;
        const std::lock_guard lock(mutex_);
        parts_.reserve(parts_.size() + 1);
        parts_.push_back({from.release(), size});
        before_ += size;
    }

    std::mutex mutex_;
    std::vector<Part> parts_;
    size_t before_ = 0;
};

// Without the GIL, until it goes. A Locked has it for its lifetime: calls of Python, and every Python object, belong in one.
class Unlocked {
  public:
    explicit Unlocked(const nb::object& check) : check_(check), state_(PyEval_SaveThread()) {}
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;
    ~Unlocked() { take_gil(state_); }

    class Locked {
      public:
        explicit Locked(Unlocked& from) : from_(from) { take_gil(from_.state_); }
        Locked(const Locked&) = delete;
        Locked& operator=(const Locked&) = delete;
        ~Locked() { from_.state_ = PyEval_SaveThread(); }

      private:
        Unlocked& from_;
    };

    // To be called often. Every 50 ms it handles signals and calls `check`, which raises if the work is no longer wanted.
    void tick() {
        const auto now = std::chrono::steady_clock::now();
        if (now - seen_ < std::chrono::milliseconds(50)) return;
        seen_ = now;
        const Locked locked(*this);
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        check_();
    }

  private:
    const nb::object& check_;
    PyThreadState* state_;
    std::chrono::steady_clock::time_point seen_ = std::chrono::steady_clock::now();
};

}  // namespace pyparq
