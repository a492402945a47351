// A regular expression of Python's module `re` as a graph of characters and branches, made from the tree that Python's own
// parser makes. Only whether a match exists is asked, so greed and groups do not matter.
#pragma once
#include "base/common.hpp"

#include <array>
#include <bitset>
#include <string>
#include <vector>

namespace pyparq {

// Conditions that take no character, by what stands before and after.
enum class At : uint8_t { Start,
                          LineStart,
                          End,
                          LastLineEnd,  // before the end, or a newline that is last
                          LineEnd,
                          Boundary,
                          NoBoundary };

// Kinds of what stands before or after a place.
enum class Around : uint8_t { Nothing,
                              Newline,
                              Word,
                              Other };

struct RegexProgram {
    // Characters above 127 are told apart by the `edges` alone: number k lies from edges[k - 1] up to edges[k].
    static constexpr size_t kAscii = 128, kMostSymbols = 256;
    using Symbols = std::bitset<kMostSymbols>;

    enum class Step : uint8_t { Take,
                                Split,
                                Check,
                                Match };
    struct Node {
        Step step;
        At at = At::Start;
        uint32_t next = 0, other = 0;
        uint32_t symbols = 0;  // number in `sets`
    };

    std::vector<Node> nodes;
    std::vector<Symbols> sets;
    std::vector<uint32_t> edges;
    uint32_t start = 0;
    size_t num_symbols = kAscii;
    bool of_bytes = false;     // every byte is a symbol
    bool only_ascii = false;   // it is not known what other characters mean
    bool asks_around = false;  // there are conditions
    // Whether conditions ask what stands before: nothing, a newline, a letter.
    bool asks_start = false, asks_line = false, asks_word = false;
    bool asks_inside = false;  // NoBoundary, whose answer for an empty text depends on the version of Python
    std::string must_hold;     // text that every match holds
    bool is_text = false;      // `must_hold` is all of it
    bool can_run = false;      // false for what is no regular language, and for programs that are too large

    RegexProgram(const nb::object& pattern, bool of_bytes);
    struct Unsupported {};
};

}  // namespace pyparq
