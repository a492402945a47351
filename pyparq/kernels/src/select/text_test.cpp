// See text_test.hpp. Where a text must be anywhere in the values, it is searched in the bytes of all of them at once.
#include "select/text_test.hpp"

#include "base/utf8.hpp"
#include "values/checks.hpp"

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
    for (size_t i = 0; i < n; ++i) {
        const uint8_t is_capital = static_cast<uint8_t>(static_cast<uint8_t>(p[i] - 'A') < 26);
        out[i] = static_cast<uint8_t>(p[i] | is_capital << 5);
    }
}

// The length of a character above 127 that equals an ASCII letter where case is ignored, and the letter.
std::pair<size_t, char> folds_to_ascii(const uint8_t* p, size_t left) {
    if (left >= 2 && p[0] == 0xc4 && (p[1] == 0xb0 || p[1] == 0xb1)) return {2, 'i'};
    if (left >= 2 && p[0] == 0xc5 && p[1] == 0xbf) return {2, 's'};
    if (left >= 3 && p[0] == 0xe2 && p[1] == 0x84 && p[2] == 0xaa) return {3, 'k'};
    return {0, ' '};
}

// The value with those letters in their place, and in lower case. Empty if it has none.
bool fold_special(const uint8_t* p, size_t n, std::string& out) {
    out.clear();
    size_t from = 0;
    for (size_t i = 0; i < n; ++i) {
        if (i + 8 <= n && (load<uint64_t>(p + i) & 0x8080808080808080ull) == 0) i += 8;
        if (i == n || p[i] < 0xc4) continue;
        const auto [size, letter] = folds_to_ascii(p + i, n - i);
        if (size == 0) continue;
        out.append(reinterpret_cast<const char*>(p + from), i - from).push_back(letter);
        from = i + size;
        i = from - 1;
    }
    if (from == 0) return false;
    out.append(reinterpret_cast<const char*>(p + from), n - from);
    fold_ascii(reinterpret_cast<uint8_t*>(out.data()), reinterpret_cast<const uint8_t*>(out.data()), out.size());
    return true;
}

}  // namespace

struct TextTest::Run {
    const Within& within;
    uint64_t* out;
    RegexStates* states = nullptr;
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
    if (!text.empty()) must_hold_ = std::make_unique<const Needle>(text);
}

Answer TextTest::answer(const uint8_t* p, const uint8_t* end, RegexStates* states) const {
    const auto size = static_cast<size_t>(end - p);
    bool passes = false;
    switch (kind_) {
        case Kind::StartsWith: passes = size >= part_.size() && equal_bytes(p, part_.data(), part_.size()); break;
        case Kind::EndsWith: passes = size >= part_.size() && equal_bytes(end - part_.size(), part_.data(), part_.size()); break;
        case Kind::Contains: passes = part_.find(p, end) != nullptr; break;
        case Kind::Like: passes = like_->fits(p, end); break;
        case Kind::Regex: return states->search(p, end);
        default: return Answer::Unknown;
    }
    return passes ? Answer::Yes : Answer::No;
}

// Value i is at base + offsets[i].
template <class O>
void TextTest::test_rows(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const {
    for (size_t i = first; i < last; ++i) run.put(i, answer(base + offsets[i], base + offsets[i + 1], run.states));
}

// Rows that do not hold the text fail.
template <class O>
void TextTest::search(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const {
    const uint8_t *p = base + offsets[first], *const end = base + offsets[last];
    const size_t size = must_hold_->size();
    for (size_t row = first; (p = must_hold_->find(p, end)) != nullptr;) {
        const auto at = p - base;
        while (static_cast<int64_t>(offsets[row + 1]) <= at) ++row;
        // Where it goes on in the next value, none is left in this one.
        if (static_cast<int64_t>(offsets[row + 1]) - at >= static_cast<int64_t>(size))
            run.put(row, is_whole_ ? Answer::Yes : answer(base + offsets[row], base + offsets[row + 1], run.states));
        p = base + offsets[row + 1];
    }
}

template <class O>
void TextTest::test_folded(Run& run, const O* offsets, const uint8_t* data, size_t first, size_t last) const {
    std::vector<uint8_t> folded;
    std::string special;
    while (first < last) {
        size_t next = first + 1;
        while (next < last && static_cast<size_t>(offsets[next + 1] - offsets[first]) <= kFoldedAtOnce) ++next;
        const auto from = static_cast<size_t>(offsets[first]), size = static_cast<size_t>(offsets[next]) - from;
        folded.resize(size + 1);
        fold_ascii(folded.data(), data + from, size);
        std::vector<int64_t> places(next - first + 1);
        for (size_t i = first; i <= next; ++i) places[i - first] = static_cast<int64_t>(offsets[i]) - static_cast<int64_t>(from);
        std::vector<uint64_t> words(words_for(next - first), 0);
        const Within all{};
        Run part{all, words.data()};
        if (must_hold_ != nullptr) search(part, places.data(), folded.data(), 0, next - first);
        else test_rows(part, places.data(), folded.data(), 0, next - first);
        const bool looks_closer = is_text_ && !is_ascii(folded.data(), size);
        for (size_t i = first; i < next; ++i) {
            bool passes = (words[(i - first) / 64] >> (i - first) % 64 & 1) != 0;
            if (looks_closer && fold_special(data + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]), special)) {
                const auto* const p = reinterpret_cast<const uint8_t*>(special.data());
                passes = like_->fits(p, p + special.size());
            }
            if (passes) run.set(i, true);
        }
        first = next;
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
            for (size_t first = 0; first < n;) {
                first = run.end_of(first, n, false, folds_);
                const size_t last = run.end_of(first, n, true, folds_);
                if (folds_) test_folded(run, o, data.data, first, last);
                else if (must_hold_ != nullptr) search(run, o, data.data, first, last);
                else test_rows(run, o, data.data, first, last);
                first = last;
            }
        });
    }
    if (states != nullptr) idle_.push_back(std::move(states));
    ask_python(run, offsets, data);
    return std::move(out.object);
}

}  // namespace pyparq
