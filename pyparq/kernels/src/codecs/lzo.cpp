// The stream is described in the Linux kernel's documentation (staging/lzo.rst): instructions, each with a distance back and a
// length, and up to three literals behind it. What a small instruction means depends on how many literals came before.
#include "codecs/lzo.hpp"

#include "codecs/hadoop_frames.hpp"
#include "codecs/overlap.hpp"

namespace pyparq {
namespace {

constexpr size_t kRun = 4;  // "literals before": a run of them

// Thrown within this file alone.
struct Malformed {};

class Block {
  public:
    Block(const uint8_t* in, size_t n, uint8_t* out, size_t room) : in_(in), in_end_(in + n), begin_(out), at_(out), end_(out + room) {}

    // How many bytes it made.
    int64_t inflate() {
        first();
        while (instruction()) {
        }
        if (in_ != in_end_) throw Malformed{};
        return at_ - begin_;
    }

  private:
    uint8_t byte() {
        if (in_ == in_end_) throw Malformed{};
        return *in_++;
    }
    size_t pair() {
        const size_t low = byte();
        return low | size_t{byte()} << 8;
    }

    // The length in the lowest bits of an instruction; where these are zeros, it goes on in the bytes behind.
    size_t length(size_t instruction, size_t bits) {
        const size_t most = (size_t{1} << bits) - 1, small = instruction & most;
        if (small != 0) return small;
        size_t found = most, next;
        while ((next = byte()) == 0) found += 255;
        return found + next;
    }

    void literals(size_t count) {
        if (count > static_cast<size_t>(in_end_ - in_) || count > static_cast<size_t>(end_ - at_)) throw Malformed{};
        if (count > 0) std::memcpy(at_, in_, count);
        in_ += count, at_ += count;
        before_ = std::min(count, kRun);
    }

    void match(size_t distance, size_t count, size_t behind) {
        if (distance > static_cast<size_t>(at_ - begin_) || count > static_cast<size_t>(end_ - at_)) throw Malformed{};
        copy_back_exactly(at_, distance, count);
        at_ += count;
        literals(behind);
    }

    // The first byte may say how many literals come first.
    void first() {
        if (in_ == in_end_ || *in_ < 18) return;
        literals(size_t{byte()} - 17);
    }

    void small(size_t code) {
        if (before_ == 0) return literals(length(code, 4) + 3);
        const size_t distance = (code >> 2) + (size_t{byte()} << 2) + 1;
        if (before_ == kRun) match(distance + 2048, 3, code & 3);
        else match(distance, 2, code & 3);
    }

    // False behind the last one.
    bool instruction() {
        const size_t code = byte();
        if (code < 16) {
            small(code);
        } else if (code >= 64) {
            match((size_t{byte()} << 3) + (code >> 2 & 7) + 1, (code >> 5) + 1, code & 3);
        } else if (code >= 32) {
            const size_t count = length(code, 5) + 2, place = pair();
            match((place >> 2) + 1, count, place & 3);
        } else {
            const size_t count = length(code, 3) + 2, place = pair();
            const size_t distance = ((code & 8) << 11) + (place >> 2);
            if (distance == 0) return false;
            match(distance + 16384, count, place & 3);
        }
        return true;
    }

    const uint8_t *in_, *const in_end_;
    uint8_t *const begin_, *at_, *const end_;
    size_t before_ = 0;
};

}  // namespace

int64_t lzo_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    try {
        return Block(in, n, out, room).inflate();
    } catch (const Malformed&) {
        return -1;
    }
}

int64_t lzo_hadoop_inflate(const uint8_t* in, size_t n, uint8_t* out, size_t room) {
    const int64_t found = hadoop_frames(in, n, out, room, lzo_inflate);
    return found == static_cast<int64_t>(room) ? found : lzo_inflate(in, n, out, room);
}

}  // namespace pyparq
