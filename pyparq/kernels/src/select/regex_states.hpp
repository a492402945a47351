// Runs a RegexProgram over texts: states are made when a text first needs them, then a byte is one look into a table.
#pragma once
#include "select/regex_program.hpp"

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
    // Whether it matches anywhere in the text. Unknown where characters decide that the program does not know.
    Answer search(const uint8_t* p, const uint8_t* end);

  private:
    struct Key {
        std::vector<uint32_t> nodes;  // that take the next character, or come before such
        Around before;
        auto operator<=>(const Key&) const = default;
    };
    // Marks instead of the numbers of states.
    static constexpr uint32_t kOpen = 0xffffffff, kMatched = 0xfffffffe, kFailed = 0xfffffffd, kMostStates = 2'000;

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
    void fill_home();

    std::shared_ptr<const RegexProgram> program_;
    std::vector<uint8_t> group_of_symbol_;  // symbols that no set tells apart are one group
    std::vector<uint32_t> symbol_of_group_;
    std::vector<Around> kind_of_group_;
    size_t num_groups_ = 0;

    std::map<Key, uint32_t> numbers_;
    std::vector<const Key*> keys_;
    std::vector<uint32_t> table_;       // state after state, a place for each group
    std::vector<uint8_t> at_end_;       // 0: not known yet; 1: no match; 2: match
    std::vector<uint8_t> leaves_home_;  // of each byte: whether it leads out of the state where no match has begun
    uint32_t home_ = kOpen;
    bool only_at_start_ = false;  // a match begins with the text

    std::vector<uint32_t> stack_, takers_;
    std::vector<uint32_t> seen_;  // by node: the round in which it was met
    uint32_t round_ = 0;
};

}  // namespace pyparq
