// See regex_states.hpp.
#include "select/regex_states.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace pyparq {
namespace {

Around kind_of(uint32_t symbol) {
    if (symbol == '\n') return Around::Newline;
    const bool word = (symbol >= '0' && symbol <= '9') || (symbol >= 'a' && symbol <= 'z') || (symbol >= 'A' && symbol <= 'Z') || symbol == '_';
    return word ? Around::Word : Around::Other;
}

uint32_t code_point(const uint8_t* p, size_t size) {
    if (size == 2) return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    if (size == 3) return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    return (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
}

}  // namespace

RegexStates::RegexStates(std::shared_ptr<const RegexProgram> program)
    : program_(std::move(program)), seen_(program_->nodes.size(), 0) {
    group_symbols();
    only_at_start_ = begins_at_start();
    begin_anew();
}

// What need be known of the character before.
Around RegexStates::remembered(Around before) const {
    if (!program_->asks_start) return Around::Nothing;
    if (program_->asks_word) return before;
    return program_->asks_line && before == Around::Newline ? before : Around::Other;
}

bool RegexStates::begins_at_start() {
    if (!program_->asks_start) return false;
    for (const Around before : {Around::Newline, Around::Word, Around::Other})
        for (const Around after : {Around::Nothing, Around::Newline, Around::Word, Around::Other})
            if (reach({{}, before}, after) || !takers_.empty()) return false;
    return true;
}

void RegexStates::group_symbols() {
    std::map<std::pair<uint8_t, uint8_t>, uint8_t> parts;
    group_of_symbol_.assign(program_->num_symbols, 0);
    const auto refine = [&](const auto& key) {
        parts.clear();
        for (uint32_t s = 0; s < program_->num_symbols; ++s) {
            const auto [at, _] = parts.try_emplace({group_of_symbol_[s], static_cast<uint8_t>(key(s))}, static_cast<uint8_t>(parts.size()));
            group_of_symbol_[s] = at->second;
        }
    };
    for (const auto& set : program_->sets) refine([&](uint32_t s) { return set.test(s); });
    if (program_->asks_around) refine([](uint32_t s) { return static_cast<int>(kind_of(s)); });
    num_groups_ = 1 + static_cast<size_t>(*std::max_element(group_of_symbol_.begin(), group_of_symbol_.end()));
    symbol_of_group_.assign(num_groups_, 0);
    kind_of_group_.assign(num_groups_, Around::Other);
    for (uint32_t s = 0; s < program_->num_symbols; ++s) {
        symbol_of_group_[group_of_symbol_[s]] = s;
        kind_of_group_[group_of_symbol_[s]] = kind_of(s);
    }
}

void RegexStates::begin_anew() {
    numbers_.clear();
    keys_.clear();
    table_.clear();
    at_end_.clear();
    home_ = kOpen;
    state_of({{}, Around::Nothing});
}

uint32_t RegexStates::state_of(Key key) {
    const auto [at, is_new] = numbers_.try_emplace(std::move(key), static_cast<uint32_t>(keys_.size()));
    if (is_new) {
        keys_.push_back(&at->first);
        table_.resize(table_.size() + num_groups_, kOpen);
        at_end_.push_back(0);
    }
    return at->second;
}

bool RegexStates::holds(At at, Around before, Around after) {
    switch (at) {
        case At::Start: return before == Around::Nothing;
        case At::LineStart: return before == Around::Nothing || before == Around::Newline;
        case At::End: return after == Around::Nothing;
        case At::LineEnd: return after == Around::Nothing || after == Around::Newline;
        case At::Boundary: return (before == Around::Word) != (after == Around::Word);
        case At::NoBoundary: return (before == Around::Word) == (after == Around::Word);
        default: return false;
    }
}

// Gathers the nodes that take the next character. Whether a match is met.
bool RegexStates::reach(const Key& key, Around after) {
    ++round_;
    takers_.clear();
    stack_.assign(key.nodes.begin(), key.nodes.end());
    stack_.push_back(program_->start);  // a match may begin anywhere
    while (!stack_.empty()) {
        const uint32_t k = stack_.back();
        stack_.pop_back();
        if (seen_[k] == round_) continue;
        seen_[k] = round_;
        const RegexProgram::Node& node = program_->nodes[k];
        switch (node.step) {
            case RegexProgram::Step::Match: return true;
            case RegexProgram::Step::Take: takers_.push_back(k); break;
            case RegexProgram::Step::Split:
                stack_.push_back(node.other);
                stack_.push_back(node.next);
                break;
            case RegexProgram::Step::Check:
                if (holds(node.at, key.before, after)) stack_.push_back(node.next);
                break;
        }
    }
    return false;
}

uint32_t RegexStates::follow(uint32_t state, uint32_t group) {
    const bool around = program_->asks_around;
    if (reach(*keys_[state], around ? kind_of_group_[group] : Around::Other))
        return table_[state * num_groups_ + group] = kMatched;
    Key key{{}, remembered(kind_of_group_[group])};
    const uint32_t symbol = symbol_of_group_[group];
    for (const uint32_t k : takers_)
        if (program_->sets[program_->nodes[k].symbols].test(symbol)) key.nodes.push_back(program_->nodes[k].next);
    std::sort(key.nodes.begin(), key.nodes.end());
    key.nodes.erase(std::unique(key.nodes.begin(), key.nodes.end()), key.nodes.end());
    if (key.nodes.empty() && only_at_start_) return table_[state * num_groups_ + group] = kFailed;
    if (keys_.size() >= kMostStates && numbers_.find(key) == numbers_.end()) {
        begin_anew();
        return state_of(std::move(key));
    }
    const uint32_t found = state_of(std::move(key));
    return table_[state * num_groups_ + group] = found;
}

bool RegexStates::matches_at_end(uint32_t state) {
    if (at_end_[state] == 0) at_end_[state] = reach(*keys_[state], Around::Nothing) ? 2 : 1;
    return at_end_[state] == 2;
}

uint32_t RegexStates::group_of(const uint8_t*& p, const uint8_t* end) const {
    if (program_->of_bytes || *p < 0x80) return group_of_symbol_[*p++];
    const size_t size = utf8_sequence(p, static_cast<size_t>(end - p));
    const uint32_t c = size == 0 ? 0xdc00u + *p : code_point(p, size);
    p += std::max<size_t>(size, 1);
    const auto& edges = program_->edges;
    return group_of_symbol_[RegexProgram::kAscii +
                            static_cast<size_t>(std::upper_bound(edges.begin(), edges.end(), c) - edges.begin())];
}

// Most texts stay for long in the state where no match has begun.
void RegexStates::fill_home() {
    leaves_home_.assign(256, 1);
    home_ = state_of({{}, remembered(Around::Other)});
    for (uint32_t b = 0; b < (program_->of_bytes ? 256u : 128u); ++b) {
        const uint32_t group = group_of_symbol_[b], next = table_[home_ * num_groups_ + group];
        leaves_home_[b] = (next == kOpen ? follow(home_, group) : next) != home_;
    }
}

Answer RegexStates::search(const uint8_t* p, const uint8_t* end) {
    if (program_->asks_inside && p == end) return Answer::Unknown;
    const bool only_ascii = program_->only_ascii;
    uint32_t state = 0;
    if (home_ == kOpen) fill_home();
    const uint8_t* const leaves = leaves_home_.data();
    while (p < end) {
        if (state == home_) {
            while (p < end && leaves[*p] == 0) ++p;
            if (p == end) break;
        }
        if (only_ascii && *p >= 0x80) return Answer::Unknown;
        const uint32_t group = group_of(p, end);
        uint32_t next = table_[state * num_groups_ + group];
        if (next == kOpen) {
            next = follow(state, group);
            if (home_ == kOpen) fill_home();  // all states were forgotten, but for the next
        }
        if (next == kMatched) return Answer::Yes;
        if (next == kFailed) return Answer::No;
        state = next;
    }
    return matches_at_end(state) ? Answer::Yes : Answer::No;
}

}  // namespace pyparq
