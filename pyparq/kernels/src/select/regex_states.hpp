// Runs a RegexProgram over texts: states are made when a text first needs them, then a byte is one look into a table.
#pragma once
#include "select/regex_program.hpp"

#include <array>
#include <map>
#include <memory>

namespace pyparq {

enum class Answer : uint8_t { No,
                              Yes,
                              Unknown };

// Not for two threads at a time.
class RegexStates {
  public:
    explicit RegexStates(std::shared_ptr<const RegexProgram> program);
    // A text, of which [p, end) is left, and the number of its row.
    struct Text {
        const uint8_t *p, *end;
        size_t row;
        uint32_t state = 0;
    };
    // Whether it matches anywhere in the texts that `next` gives (false: there are no more). `put` takes the answers: Unknown where
    // characters decide that the program does not know. Where each byte is a look into the table, several texts are looked at in
    // turn, so that none waits for what is looked up for another. `are_valid`: whether all that there are are UTF-8.
    template <class Next, class Put, class AreValid>
    void search_all(const Next& next, const Put& put, const AreValid& are_valid);

  private:
    struct Key {
        std::vector<uint32_t> nodes;  // that take the next character, or come before such
        Around before;
        auto operator<=>(const Key&) const = default;
    };
    // Marks instead of the numbers of states.
    static constexpr uint32_t kOpen = 0xffffffff, kMatched = 0xfffffffe, kFailed = 0xfffffffd, kFirstMark = 0x80000000;
    static constexpr uint32_t kMostStates = 2'000;
    static constexpr size_t kInTurn = 4;  // texts

    void group_symbols();
    void begin_anew();
    uint32_t state_of(Key key);
    uint32_t follow(uint32_t state, uint32_t group);
    bool matches_at_end(uint32_t state);
    bool reach(const Key& key, Around after);
    static bool holds(At at, Around before, Around after);
    uint32_t group_of(const uint8_t*& p, const uint8_t* end) const;
    Around remembered(Around before) const;
    bool begins_at_start();
    void expect(bool valid);
    void fill_home();
    const uint8_t* behind_home(const uint8_t* p, const uint8_t* end) const;
    bool is_decided(const Text& text) const { return program_->asks_inside && text.p == text.end; }
    Answer finish(Text& text);
    bool step(Text& text, Answer& answer);
    bool ends(Text& text, Answer& answer);
    void step_in_turn(Text* texts) const;

    std::shared_ptr<const RegexProgram> program_;
    std::vector<uint8_t> group_of_symbol_;  // symbols that no set tells apart are one group
    std::vector<uint32_t> symbol_of_group_;
    std::vector<Around> kind_of_group_;
    std::array<uint16_t, 256> group_of_byte_{};
    size_t num_groups_ = 0;
    // The last groups are those of bytes of longer characters. Of an open one no state knows what follows; one that is passed over
    // leads from each state to the same.
    size_t open_group() const { return num_groups_ - 2; }
    size_t passed_group() const { return num_groups_ - 1; }

    std::map<Key, uint32_t> numbers_;
    std::vector<const Key*> keys_;
    std::vector<uint32_t> table_;  // state after state, a place for each group; a state is the place of its first
    std::vector<uint8_t> at_end_;  // 0: not known yet; 1: no match; 2: match
    // Of each byte, whether it leads out of the state where no match has begun; by the lower half of an ASCII one, the upper ones.
    std::array<uint8_t, 256> leaves_home_{};
    std::array<uint8_t, 16> leaves_by_half_{};
    uint64_t at_home_ = 0, elsewhere_ = 0;  // bytes that were looked at
    Text* in_turn_ = nullptr;               // the texts that are looked at in turn, while they are
    uint32_t home_ = kOpen;
    bool only_at_start_ = false;  // a match begins with the text

    std::vector<uint32_t> stack_, takers_;
    std::vector<uint32_t> seen_;  // by node: the round in which it was met
    uint32_t round_ = 0;
};

template <class Next, class Put, class AreValid>
void RegexStates::search_all(const Next& next, const Put& put, const AreValid& are_valid) {
    constexpr size_t kSeen = 64;  // texts that tell whether most bytes are passed over
    Text texts[kInTurn];
    Answer answer = Answer::No;
    size_t count = 0, seen = 0;
    const auto take = [&](Text& text) {
        while (next(text)) {
            text.state = 0;
            if (!is_decided(text)) return true;
            put(text.row, Answer::Unknown);
        }
        return false;
    };
    expect(false);
    while ((seen < kSeen || at_home_ > 2 * elsewhere_) && take(texts[0])) put(texts[0].row, finish(texts[0])), ++seen;
    while (count < kInTurn && take(texts[count])) ++count;
    if (count == kInTurn && !program_->of_bytes && !program_->only_ascii) expect(are_valid());
    while (count == kInTurn) {
        step_in_turn(texts);
        in_turn_ = texts;
        for (size_t k = 0; k < count;) {
            if (!ends(texts[k], answer)) {
                ++k;
                continue;
            }
            put(texts[k].row, answer);
            if (!take(texts[k])) texts[k] = texts[--count];
        }
        in_turn_ = nullptr;
    }
    for (size_t k = 0; k < count; ++k) put(texts[k].row, finish(texts[k]));
}

}  // namespace pyparq
