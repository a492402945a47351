// What the writer of column chunks stands on: memory that grows, and the GIL, which it holds only to call Python.
#pragma once

#include "memory.hpp"

#include <algorithm>
#include <chrono>

namespace pyparq {

// Bytes at the end of which more are put. Growing large ones moves pages, not bytes.
class Room {
  public:
    Room() = default;
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    Room(Room&& other) noexcept : area_(std::exchange(other.area_, {})), size_(std::exchange(other.size_, 0)) {}
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

    // To be called often: every 50 ms it sees to signals, and calls `check`, which raises where the work is not wanted.
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
