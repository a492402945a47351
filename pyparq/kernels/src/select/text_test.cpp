// See text_test.hpp. Where a text must be anywhere in the values, it is searched in the bytes of all of them at once.
#include "select/text_test.hpp"

#include "base/utf8.hpp"
#include "values/checks.hpp"

#include <functional>

namespace pyparq {
namespace {

constexpr size_t kFoldedAtOnce = size_t{1} << 18;  // bytes

std::string bytes_of(const nb::handle& value) {
    nb::object bytes = nb::borrow(value);
    if (PyUnicode_Check(value.ptr())) bytes = nb::steal(PyUnicode_AsUTF8String(value.ptr()));
    if (!bytes.is_valid()) throw nb::python_error();
    const auto found = nb::cast<nb::bytes>(bytes);
    return {found.c_str(), found.size()};
}

void fold_ascii(uint8_t* out, const uint8_t* p, size_t n) {
    for (size_t i = 0; i < n; ++i) out[i] = folded(p[i]);
}

// The length of a character above 127 that equals an ASCII letter where case is ignored, and the letter.
std::pair<size_t, char> folds_to_ascii(const uint8_t* p, size_t left) {
    if (left >= 2 && p[0] == 0xc4 && (p[1] == 0xb0 || p[1] == 0xb1)) return {2, 'i'};
    if (left >= 2 && p[0] == 0xc5 && p[1] == 0xbf) return {2, 's'};
    if (left >= 3 && p[0] == 0xe2 && p[1] == 0x84 && p[2] == 0xaa) return {3, 'k'};
    return {0, ' '};
}

// Whether there are such that begin before the last two bytes.
[[gnu::always_inline]] inline bool special_before_end(const uint8_t* p, size_t n) {
    uint8_t found = 0;
    for (size_t i = 0; i + 2 < n; ++i) {
        const uint8_t is_i = static_cast<uint8_t>((p[i] == 0xc4) & ((p[i + 1] & 0xfe) == 0xb0));
        const uint8_t is_s = static_cast<uint8_t>((p[i] == 0xc5) & (p[i + 1] == 0xbf));
        const uint8_t is_k = static_cast<uint8_t>((p[i] == 0xe2) & (p[i + 1] == 0x84) & (p[i + 2] == 0xaa));
        found |= is_i | is_s | is_k;
    }
    return found != 0;
}

#if PYPARQ_AVX2
PYPARQ_TARGET_AVX2 bool special_before_end_avx2(const uint8_t* p, size_t n) { return special_before_end(p, n); }
#endif

// Whether there are such. What is behind the end is not looked at, so half a character there is one of the next value.
bool holds_special(const uint8_t* p, size_t n) {
    if (n >= 2 && folds_to_ascii(p + n - 2, 2).first != 0) return true;
#if PYPARQ_AVX2
    if (have_avx2()) return special_before_end_avx2(p, n);
#endif
    return special_before_end(p, n);
}

// The value with those letters in their place, and in lower case.
void fold_special(const uint8_t* p, size_t n, std::vector<uint8_t>& out) {
    out.clear();
    for (size_t i = 0; i < n;) {
        const auto [size, letter] = p[i] < 0xc4 ? std::pair<size_t, char>(0, ' ') : folds_to_ascii(p + i, n - i);
        out.push_back(size == 0 ? folded(p[i]) : static_cast<uint8_t>(letter));
        i += std::max<size_t>(size, 1);
    }
}

// Whether all values are UTF-8.
template <class O>
bool are_valid(const O* offsets, size_t n, const uint8_t* data) {
    for (size_t i = 0; i < n; ++i)
        if (offsets[i] < offsets[n] && (data[offsets[i]] & 0xc0) == 0x80) return false;
    return utf8_valid(data + offsets[0], static_cast<size_t>(offsets[n] - offsets[0]));
}

}  // namespace

struct TextTest::Run {
    const Within& within;
    uint64_t* out;
    RegexStates* states = nullptr;
    std::vector<uint8_t> folded{};  // a value in lower case
    std::function<bool()> are_valid{};
    std::vector<size_t> open{};  // rows that Python decides

    void set(size_t row, bool passes) const {
        const uint64_t bit = uint64_t{1} << row % 64;
        out[row / 64] = passes ? out[row / 64] | bit : out[row / 64] & ~bit;
    }
    void put(size_t row, Answer answer) {
        if (answer == Answer::Unknown) {
            if (wants(row)) open.push_back(row);
        } else {
            set(row, answer == Answer::Yes);
        }
    }
    bool wants(size_t row) const { return within.none() || (within.data[row / 64] >> row % 64 & 1) != 0; }
    // The end of the rows from `first` on that are all wanted, or all not; in words of 64 rows, any of them counts.
    size_t end_of(size_t first, size_t n, bool wanted, bool in_words) const {
        if (within.none()) return wanted ? n : first;
        size_t row = first;
        if (in_words)
            for (; row < n && (within.data[row / 64] != 0) == wanted;) row += 64 - row % 64;
        else
            for (; row < n && wants(row) == wanted;) ++row;
        return std::min(row, n);
    }
};

TextTest::TextTest(const std::string& kind, const nb::object& pattern, bool is_text, nb::object ask)
    : is_text_(is_text), ask_(std::move(ask)) {
    if (kind == "starts_with" || kind == "ends_with" || kind == "contains") {
        part_ = Needle(bytes_of(pattern));
        kind_ = kind == "starts_with" ? Kind::StartsWith : kind == "ends_with" ? Kind::EndsWith
                                                                               : Kind::Contains;
        if (kind_ == Kind::Contains && part_.size() > 0) must_hold_ = std::make_unique<const Needle>(part_), is_whole_ = true;
    } else if (kind == "like" || kind == "ilike") {
        folds_ = kind == "ilike";
        read_parts(nb::cast<nb::list>(pattern));
    } else if (kind == "matches") {
        read_regex(pattern);
    } else {
        fail("there is no test " + kind);
    }
}

void TextTest::read_parts(const nb::list& parts) {
    std::vector<LikePattern::Part> read;
    bool other_letters = false;
    for (const nb::handle part : parts) {
        if (part.is_none()) {
            read.push_back({"", true});
            continue;
        }
        std::string text;
        try {
            text = bytes_of(part);
        } catch (const nb::python_error& error) {  // half a pair of UTF-16
            if (!error.matches(PyExc_UnicodeEncodeError)) throw;
            return;
        }
        auto* const p = reinterpret_cast<uint8_t*>(text.data());
        other_letters |= is_text_ && folds_ && !is_ascii(p, text.size());
        if (folds_) fold_ascii(p, p, text.size());
        read.push_back({std::move(text), false});
    }
    if (other_letters) {
        folds_ = false;
        return;
    }
    like_ = std::make_unique<const LikePattern>(read, !is_text_);
    kind_ = Kind::Like;
    is_whole_ = like_->is_contains();
    must_hold(like_->must_hold());
}

void TextTest::read_regex(const nb::object& pattern) {
    std::shared_ptr<const RegexProgram> program;
    try {
        program = std::make_shared<const RegexProgram>(pattern, !is_text_);
    } catch (nb::python_error& error) {  // another version's parser: all is asked of Python
        if (!error.matches(PyExc_Exception)) throw;
        return;
    } catch (const std::bad_cast&) {
        return;
    }
    must_hold(program->must_hold);
    is_whole_ = program->is_text;
    if (!program->can_run) return;
    program_ = std::move(program);
    kind_ = Kind::Regex;
}

void TextTest::must_hold(const std::string& text) {
    if (!text.empty()) must_hold_ = std::make_unique<const Needle>(text, folds_);
}

Answer TextTest::answer(const uint8_t* p, const uint8_t* end) const {
    const auto size = static_cast<size_t>(end - p);
    bool passes = false;
    switch (kind_) {
        case Kind::StartsWith: passes = size >= part_.size() && equal_bytes(p, part_.data(), part_.size()); break;
        case Kind::EndsWith: passes = size >= part_.size() && equal_bytes(end - part_.size(), part_.data(), part_.size()); break;
        case Kind::Contains: passes = part_.find(p, end) != nullptr; break;
        case Kind::Like: passes = like_->fits(p, end); break;
        default: return Answer::Unknown;
    }
    return passes ? Answer::Yes : Answer::No;
}

// The rows that `next` gives. Value i is at base + offsets[i].
template <class O, class Next>
void TextTest::test_some(Run& run, const O* offsets, const uint8_t* base, const Next& next) const {
    if (kind_ == Kind::Regex) {
        const auto next_text = [&](RegexStates::Text& text) {
            size_t row;
            if (!next(row)) return false;
            text = {base + offsets[row], base + offsets[row + 1], row};
            return true;
        };
        return run.states->search_all(next_text, [&](size_t row, Answer found) { run.put(row, found); }, run.are_valid);
    }
    for (size_t row; next(row);) {
        const uint8_t *p = base + offsets[row], *end = base + offsets[row + 1];
        if (folds_) {
            run.folded.resize(static_cast<size_t>(end - p) + 1);
            fold_ascii(run.folded.data(), p, static_cast<size_t>(end - p));
            end = run.folded.data() + (end - p), p = run.folded.data();
        }
        run.put(row, answer(p, end));
    }
}

template <class O>
void TextTest::test_rows(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const {
    test_some(run, offsets, base, [&](size_t& row) {
        row = first;
        return first++ < last;
    });
}

// Rows that do not hold the text fail.
template <class O>
void TextTest::search(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const {
    const uint8_t *p = base + offsets[first], *const end = base + offsets[last];
    const auto next = [&, size = must_hold_->size()](size_t& row) {
        while (p != nullptr && (p = must_hold_->find(p, end)) != nullptr) {
            const auto at = p - base;
            while (static_cast<int64_t>(offsets[first + 1]) <= at) ++first;
            p = base + offsets[first + 1];
            row = first;
            // Where it goes on in the next value, none is left in this one.
            if (p - base - at >= static_cast<ptrdiff_t>(size)) return true;
        }
        return false;
    };
    if (!is_whole_) return test_some(run, offsets, base, next);
    for (size_t row; next(row);) run.set(row, true);
}

template <class O>
void TextTest::test_any(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const {
    if (must_hold_ != nullptr) search(run, offsets, base, first, last);
    else test_rows(run, offsets, base, first, last);
}

template <class O>
void TextTest::test_folded(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const {
    for (size_t next = first; first < last; first = next) {
        while (next < last && (next == first || static_cast<size_t>(offsets[next] - offsets[first]) <= kFoldedAtOnce)) ++next;
        if (!is_text_ || !holds_special(base + offsets[first], static_cast<size_t>(offsets[next] - offsets[first]))) {
            test_any(run, offsets, base, first, next);
            continue;
        }
        for (size_t i = first; i < next; ++i) {
            fold_special(base + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]), run.folded);
            run.set(i, like_->fits(run.folded.data(), run.folded.data() + run.folded.size()));
        }
    }
}

void TextTest::ask_python(Run& run, const Offsets& offsets, const RawIn& data) const {
    if (run.open.empty()) return;
    if (ask_.is_none()) fail("nobody can tell whether a value passes");
    offsets.visit([&](const auto* o) {
        for (const size_t row : run.open) {
            const auto* const p = reinterpret_cast<const char*>(data.data) + o[row];
            const auto size = static_cast<Py_ssize_t>(o[row + 1] - o[row]);
            const nb::object value = nb::steal(is_text_ ? PyUnicode_DecodeUTF8(p, size, "surrogateescape")
                                                        : PyBytes_FromStringAndSize(p, size));
            if (!value.is_valid()) throw nb::python_error();
            run.set(row, !ask_(value).is_none());
        }
    });
}

nb::object TextTest::test(const Offsets& offsets, const RawIn& data, const Within& within) {
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    const size_t n = offsets.size - 1;
    check_within(within, n);
    Fresh<uint64_t> out(words_for(n));
    std::fill_n(out.data, words_for(n), uint64_t{0});
    std::unique_ptr<RegexStates> states;
    if (program_ != nullptr && !idle_.empty()) {
        states = std::move(idle_.back());
        idle_.pop_back();
    } else if (program_ != nullptr) {
        states = std::make_unique<RegexStates>(program_);
    }
    Run run{within, out.data, states.get()};
    {
        NoGil nogil(n * 8);
        offsets.visit([&](const auto* o) {
            check_offsets(o, offsets.size, data.size);
            run.are_valid = [&data, o, n] { return are_valid(o, n, data.data); };
            for (size_t first = 0; first < n;) {
                first = run.end_of(first, n, false, folds_);
                const size_t last = run.end_of(first, n, true, folds_);
                if (folds_) test_folded(run, o, data.data, first, last);
                else test_any(run, o, data.data, first, last);
                first = last;
            }
        });
    }
    if (states != nullptr) idle_.push_back(std::move(states));
    ask_python(run, offsets, data);
    return std::move(out.object);
}

}  // namespace pyparq
