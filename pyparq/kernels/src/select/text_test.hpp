// Tests of texts: a part at their start, end or anywhere, LIKE with and without case, regular expressions.
#pragma once
#include "select/like_pattern.hpp"
#include "select/match.hpp"
#include "select/regex_states.hpp"

namespace pyparq {

// Bytes of a row that passes; what a test cannot tell is asked of Python, value by value.
class TextTest {
  public:
    // `pattern`: bytes for starts_with, ends_with and contains; a list of texts for like and ilike, where None is `%` and an
    // empty one `_`; for matches a text, or bytes if `is_text` is false. `ask`: whether one value passes.
    TextTest(const std::string& kind, const nb::object& pattern, bool is_text, nb::object ask);
    TextTest(const TextTest&) = delete;
    TextTest& operator=(const TextTest&) = delete;
    nb::object test(const Offsets& offsets, const RawIn& data, const Within& within);

  private:
    enum class Kind : uint8_t { StartsWith,
                                EndsWith,
                                Contains,
                                Like,
                                Regex,
                                Ask };
    struct Run;  // one call of `test`

    void read_parts(const nb::list& parts);
    void read_regex(const nb::object& pattern);
    void must_hold(const std::string& text);
    Answer answer(const uint8_t* p, const uint8_t* end) const;
    template <class O, class Next>
    void test_some(Run& run, const O* offsets, const uint8_t* base, const Next& next) const;
    template <class O>
    void search(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const;
    template <class O>
    void test_rows(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const;
    template <class O>
    void test_any(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const;
    template <class O>
    void test_folded(Run& run, const O* offsets, const uint8_t* base, size_t first, size_t last) const;
    void ask_python(Run& run, const Offsets& offsets, const RawIn& data) const;

    Kind kind_ = Kind::Ask;
    bool is_text_, folds_ = false;
    Needle part_{""};                          // of the first three kinds
    std::unique_ptr<const Needle> must_hold_;  // searched first
    bool is_whole_ = false;                    // a row that holds it passes
    std::unique_ptr<const LikePattern> like_;
    std::shared_ptr<const RegexProgram> program_;
    std::vector<std::unique_ptr<RegexStates>> idle_;  // guarded by the GIL
    nb::object ask_;
};

}  // namespace pyparq
