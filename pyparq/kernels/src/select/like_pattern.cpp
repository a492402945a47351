// See like_pattern.hpp. What is no UTF-8 counts as characters of one byte, as Python's `surrogateescape` decodes it. Where a
// character begins follows from the four bytes around, so pieces of text, which are whole characters, are searched as bytes.
#include "select/like_pattern.hpp"

#include "base/utf8.hpp"
#include "values/checks.hpp"

namespace pyparq {

size_t character_at(const uint8_t* p, const uint8_t* end) {
    if (*p < 0x80) return 1;
    return std::max<size_t>(utf8_sequence(p, static_cast<size_t>(end - p)), 1);
}

LikePattern::LikePattern(const std::vector<Part>& parts, bool of_bytes) : of_bytes_(of_bytes) {
    open_start_ = !parts.empty() && parts.front().any;
    open_end_ = !parts.empty() && parts.back().any;
    Segment segment;
    size_t skip = 0;
    const auto end_segment = [&] {
        if (skip > 0) segment.push_back({skip, Needle("")});
        if (!segment.empty()) segments_.push_back(std::move(segment));
        segment.clear();
        skip = 0;
    };
    for (const Part& part : parts) {
        if (part.any) end_segment();
        else if (part.text.empty()) ++skip;
        else {
            segment.push_back({skip, Needle(part.text)});
            skip = 0;
        }
    }
    end_segment();
    const size_t first = open_start_ ? 0 : 1, last = segments_.size() - (open_end_ ? 0 : 1);
    for (size_t k = first; k < last && k < segments_.size(); ++k)
        for (const Piece& piece : segments_[k])
            if (piece.text.size() > must_hold_.size())
                must_hold_.assign(reinterpret_cast<const char*>(piece.text.data()), piece.text.size());
    is_contains_ = open_start_ && open_end_ && segments_.size() == 1 && segments_[0].size() == 1 && segments_[0][0].skip == 0;
    if (!open_start_ || !open_end_) must_hold_.clear();  // the ends of a value are looked at sooner
}

const uint8_t* LikePattern::skipped(const uint8_t* p, const uint8_t* end, size_t count) const {
    if (of_bytes_) return static_cast<size_t>(end - p) < count ? nullptr : p + count;
    for (; count > 0; --count) {
        if (p == end) return nullptr;
        p += character_at(p, end);
    }
    return p;
}

const uint8_t* LikePattern::stepped_back(const uint8_t* begin, const uint8_t* p) const {
    if (p == begin) return nullptr;
    if (!of_bytes_ && p[-1] >= 0x80)
        for (ptrdiff_t k = 2; k <= std::min<ptrdiff_t>(4, p - begin); ++k)
            if (utf8_sequence(p - k, static_cast<size_t>(k)) == static_cast<size_t>(k)) return p - k;
    return p - 1;
}

// The end of the pieces from `from` on where they stand at p.
const uint8_t* LikePattern::fits_at(const Segment& segment, size_t from, const uint8_t* p, const uint8_t* end) const {
    for (size_t k = from; k < segment.size(); ++k) {
        const Needle& text = segment[k].text;
        p = skipped(p, end, segment[k].skip);
        if (p == nullptr || static_cast<size_t>(end - p) < text.size() || !equal_bytes(p, text.data(), text.size()))
            return nullptr;
        p += text.size();
    }
    return p;
}

// The start of the pieces where they stand before `end`.
const uint8_t* LikePattern::fits_at_end(const Segment& segment, const uint8_t* begin, const uint8_t* end) const {
    for (size_t k = segment.size(); k-- > 0;) {
        const Needle& text = segment[k].text;
        if (static_cast<size_t>(end - begin) < text.size()) return nullptr;
        end -= text.size();
        if (!equal_bytes(end, text.data(), text.size())) return nullptr;
        for (size_t skip = segment[k].skip; skip > 0 && end != nullptr; --skip) end = stepped_back(begin, end);
        if (end == nullptr) return nullptr;
    }
    return end;
}

// The end of the first place where the pieces stand.
const uint8_t* LikePattern::found(const Segment& segment, const uint8_t* p, const uint8_t* end) const {
    const Piece& first = segment[0];
    p = skipped(p, end, first.skip);
    if (p == nullptr) return nullptr;
    while ((p = first.text.find(p, end)) != nullptr) {
        const uint8_t* const after = fits_at(segment, 1, p + first.text.size(), end);
        if (after != nullptr) return after;
        if (++p > end) break;
    }
    return nullptr;
}

bool LikePattern::fits(const uint8_t* p, const uint8_t* end) const {
    if (segments_.empty()) return open_start_ || p == end;
    size_t first = 0, last = segments_.size();
    if (!open_start_) {
        p = fits_at(segments_[first++], 0, p, end);
        if (p == nullptr) return false;
        if (first == last) return open_end_ || p == end;
    }
    if (!open_end_) {
        end = fits_at_end(segments_[--last], p, end);
        if (end == nullptr) return false;
    }
    for (; first < last; ++first) {
        p = found(segments_[first], p, end);
        if (p == nullptr) return false;
    }
    return true;
}

}  // namespace pyparq
