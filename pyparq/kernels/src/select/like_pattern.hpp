// LIKE: pieces of text, `_` for one character and `%` for any.
#pragma once
#include "select/needle.hpp"

namespace pyparq {

// Bytes of the character at p: of a byte that begins none, 1.
size_t character_at(const uint8_t* p, const uint8_t* end);

class LikePattern {
  public:
    // What stands for itself; an empty one is `_`, and `any` is `%`.
    struct Part {
        std::string text;
        bool any = false;
    };
    // `of_bytes`: `_` is a byte, not a character.
    LikePattern(const std::vector<Part>& parts, bool of_bytes);
    bool fits(const uint8_t* p, const uint8_t* end) const;
    // Text that all values hold which fit, and that may be anywhere in them. Empty: there is none, or other tests rule out more.
    const std::string& must_hold() const { return must_hold_; }
    // Whether what holds that fits.
    bool is_contains() const { return is_contains_; }

  private:
    struct Piece {
        size_t skip;  // so many characters, then the text
        Needle text;
    };
    using Segment = std::vector<Piece>;  // what stands between two `%`

    const uint8_t* skipped(const uint8_t* p, const uint8_t* end, size_t count) const;
    const uint8_t* stepped_back(const uint8_t* begin, const uint8_t* p) const;
    const uint8_t* fits_at(const Segment& segment, size_t from, const uint8_t* p, const uint8_t* end) const;
    const uint8_t* fits_at_end(const Segment& segment, const uint8_t* begin, const uint8_t* end) const;
    const uint8_t* found(const Segment& segment, const uint8_t* p, const uint8_t* end) const;

    bool of_bytes_;
    std::vector<Segment> segments_;
    bool open_start_ = false, open_end_ = false;
    std::string must_hold_;
    bool is_contains_ = false;
};

}  // namespace pyparq
