// Memory of the decoder: results that numpy arrays take over, and how many bytes a read may hold.
#pragma once
#include "decode/decoded_column.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

namespace pyparq {

// What is wrong with a file, for Python to put into words (pyparq/read/decode/decoder.py): a name and its numbers.
struct PageRefusal {
    const char* name;
    int64_t a = 0, b = 0, c = 0;
    std::string text = {};
};

// Bytes that a read may still hold, counted before they are allocated.
class Budget {
  public:
    // Asked for `missing` bytes that are not there: gives how many it adds, and how many could follow. Throws where there are
    // none.
    using More = std::function<std::pair<int64_t, int64_t>(int64_t missing)>;

    explicit Budget(int64_t room) : room_(room), left_(room) {}
    void take(size_t size) {
        const auto needed = static_cast<int64_t>(std::min(size, size_t{1} << 62));
        int64_t left = left_.load();
        do {
            while (left < needed) {
                if (!more_) throw PageRefusal{"memory", needed, room_ - left};
                const auto [added, beyond] = more_(needed - left);
                room_ += added;
                left = left_.fetch_add(added) + added;
                beyond_ = beyond;
            }
        } while (!left_.compare_exchange_weak(left, left - needed));
    }
    void give(size_t size) { left_.fetch_add(static_cast<int64_t>(size)); }
    int64_t left() const { return left_.load() + beyond_; }
    int64_t held() const { return room_ - left_.load(); }
    // From now on, more is asked for where it is missing; `beyond`: how much there is. For one thread.
    void ask(More more, int64_t beyond) { more_ = std::move(more), beyond_ = beyond; }

  private:
    int64_t room_;
    std::atomic<int64_t> left_;
    int64_t beyond_ = 0;
    More more_;
};

// Bytes for what grows from `size` to `needed` or more: twice as many as before where there is memory for them.
inline size_t grown(size_t size, size_t needed, const Budget& budget) {
    const size_t room = std::max(needed, 2 * size);
    return static_cast<int64_t>(room - size) > budget.left() ? needed : room;
}

// Bytes that are taken for as long as this is here.
class Hold {
  public:
    Hold(Budget& budget, size_t size) : budget_(budget), size_(size) { budget.take(size); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { budget_.give(size_); }

  private:
    Budget& budget_;
    size_t size_;
};

// Bytes that grow, and that an array may take over in the end.
class Block {
  public:
    Block() = default;
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    Block(Block&& other) noexcept { swap(other); }
    Block& operator=(Block&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Block() { give_area(area_); }

    uint8_t* data() const { return area_.data; }
    size_t size() const { return size_; }
    template <class T>
    T* as() const { return reinterpret_cast<T*>(area_.data); }

    // At least `size` bytes, the first ones as they were.
    void grow(size_t size) {
        if (size <= size_) return;
        if (size > area_.room) grow_area(area_, size_, size);
        size_ = size;
    }

    // Gives the first n bytes away. Needs the GIL. The block is empty afterwards.
    SharedBytes share(size_t n);

  private:
    void swap(Block& other) noexcept {
        std::swap(area_, other.area_);
        std::swap(size_, other.size_);
    }

    Area area_;
    size_t size_ = 0;
};

// Memory for passing use: grows, and keeps nothing of what it held.
class Passing {
  public:
    Passing() = default;
    Passing(const Passing&) = delete;
    Passing& operator=(const Passing&) = delete;
    ~Passing() { give_area(area_); }

    uint8_t* take(size_t size, Budget& budget) {
        if (size + 64 > area_.room) {
            const size_t room = std::max(size + 64, area_.room * 3 / 2);
            budget.take(room - area_.room);
            give_area(std::exchange(area_, {}));
            area_ = take_area(room);
        }
        return area_.data;
    }
    template <class T>
    T* items(size_t n, Budget& budget) { return reinterpret_cast<T*>(take(n * sizeof(T), budget)); }

  private:
    Area area_;
};

}  // namespace pyparq
