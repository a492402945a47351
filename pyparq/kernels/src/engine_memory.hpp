// Memory of the decoder: results that numpy arrays take over, and how many bytes a read may hold.
#pragma once
#include "common.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace pyparq {

// What is wrong with a file, for Python to put into words (pyparq/read/refusals.py): a name and its numbers.
struct Refused {
    const char* name;
    int64_t a = 0, b = 0, c = 0;
    std::string text = {};
};

// Bytes that a read may still hold, counted before they are allocated.
class Budget {
  public:
    explicit Budget(int64_t room) : left_(room) {}
    void take(size_t size) {
        if (size > size_t{1} << 62 || left_.fetch_sub(static_cast<int64_t>(size)) < static_cast<int64_t>(size)) {
            if (size <= size_t{1} << 62) left_.fetch_add(static_cast<int64_t>(size));
            throw Refused{"memory", static_cast<int64_t>(std::min(size, size_t{1} << 62))};
        }
    }
    void give(size_t size) { left_.fetch_add(static_cast<int64_t>(size)); }
    int64_t left() const { return left_.load(); }

  private:
    std::atomic<int64_t> left_;
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
    ~Block() { std::free(data_); }

    uint8_t* data() const { return data_; }
    size_t size() const { return size_; }
    template <class T>
    T* as() const { return reinterpret_cast<T*>(data_); }

    // At least `size` bytes, the first ones as they were.
    void grow(size_t size) {
        if (size <= size_) return;
        void* const found = std::realloc(data_, size);
        if (found == nullptr) throw std::bad_alloc();
        data_ = static_cast<uint8_t*>(found), size_ = size;
    }

    // The first n items (uint8, int32 or int64) as a numpy array. Needs the GIL; nothing is here afterwards.
    template <class T>
    nb::object array(size_t n) {
        constexpr size_t kCopied = 4096;
        if (n * sizeof(T) <= kCopied) {
            Fresh<T> out(n);
            if (n > 0) std::memcpy(out.data, data_, n * sizeof(T));
            return std::move(out.object);
        }
        return taken(n, std::is_signed_v<T>, sizeof(T));
    }

  private:
    void swap(Block& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    nb::object taken(size_t n, bool is_signed, size_t itemsize);

    uint8_t* data_ = nullptr;
    size_t size_ = 0;
};

// Memory for passing use: grows, and keeps nothing of what it held.
class Passing {
  public:
    uint8_t* take(size_t size, Budget& budget) {
        if (size > size_) {
            const size_t room = std::max(size + 64, size_ * 3 / 2);
            budget.take(room - size_);
            memory_.reset();
            memory_ = std::make_unique_for_overwrite<uint8_t[]>(room);
            size_ = room;
        }
        return memory_.get();
    }
    template <class T>
    T* items(size_t n, Budget& budget) { return reinterpret_cast<T*>(take(n * sizeof(T), budget)); }

  private:
    std::unique_ptr<uint8_t[]> memory_;
    size_t size_ = 0;
};

}  // namespace pyparq
