// See regex_states.hpp.
#include "select/regex_states.hpp"

#include "base/utf8.hpp"

#include <algorithm>

#if PYPARQ_AVX2
#include <immintrin.h>
#endif

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

// Of UTF-8, the first byte of a character tells its group, where all that begin so are of one; those behind it are passed over.
void RegexStates::expect(bool valid) {
    const auto& edges = program_->edges;
    const auto symbol_of = [&](uint32_t c) {
        return RegexProgram::kAscii + static_cast<size_t>(std::upper_bound(edges.begin(), edges.end(), c) - edges.begin());
    };
    for (uint32_t b = 0; b < 256; ++b) {
        group_of_byte_[b] = static_cast<uint16_t>(open_group());
        if (program_->of_bytes || b < RegexProgram::kAscii) {
            group_of_byte_[b] = group_of_symbol_[b];
        } else if (valid && b < 0xc0) {
            group_of_byte_[b] = static_cast<uint16_t>(passed_group());
        } else if (valid && b < 0xf8) {
            const uint32_t bits = b < 0xe0 ? 6 : b < 0xf0 ? 12
                                                          : 18,
                           low = (b & (b < 0xe0 ? 0x1fu : b < 0xf0 ? 0x0fu
                                                                   : 0x07u))
                                 << bits;
            const size_t first = symbol_of(low), last = symbol_of(low + (1u << bits) - 1);
            bool same = true;
            for (size_t s = first; s < last; ++s) same &= group_of_symbol_[s] == group_of_symbol_[s + 1];
            if (same) group_of_byte_[b] = group_of_symbol_[first];
        }
    }
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
    num_groups_ = 3 + static_cast<size_t>(*std::max_element(group_of_symbol_.begin(), group_of_symbol_.end()));
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
    const auto [at, is_new] = numbers_.try_emplace(std::move(key), static_cast<uint32_t>(table_.size()));
    if (is_new) {
        keys_.push_back(&at->first);
        table_.resize(table_.size() + num_groups_, kOpen);
        table_[at->second + passed_group()] = at->second;
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
    if (reach(*keys_[state / num_groups_], around ? kind_of_group_[group] : Around::Other)) return table_[state + group] = kMatched;
    Key key{{}, remembered(kind_of_group_[group])};
    const uint32_t symbol = symbol_of_group_[group];
    for (const uint32_t k : takers_)
        if (program_->sets[program_->nodes[k].symbols].test(symbol)) key.nodes.push_back(program_->nodes[k].next);
    std::sort(key.nodes.begin(), key.nodes.end());
    key.nodes.erase(std::unique(key.nodes.begin(), key.nodes.end()), key.nodes.end());
    if (key.nodes.empty() && only_at_start_) return table_[state + group] = kFailed;
    if (keys_.size() >= kMostStates && numbers_.find(key) == numbers_.end()) {
        std::vector<Key> kept;
        for (size_t k = 0; in_turn_ != nullptr && k < kInTurn; ++k) kept.push_back(*keys_[in_turn_[k].state / num_groups_]);
        begin_anew();
        for (size_t k = 0; k < kept.size(); ++k) in_turn_[k].state = state_of(std::move(kept[k]));
        return state_of(std::move(key));
    }
    const uint32_t found = state_of(std::move(key));
    return table_[state + group] = found;
}

bool RegexStates::matches_at_end(uint32_t state) {
    uint8_t& known = at_end_[state / num_groups_];
    if (known == 0) known = reach(*keys_[state / num_groups_], Around::Nothing) ? 2 : 1;
    return known == 2;
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
    leaves_home_.fill(1);
    leaves_by_half_.fill(0);
    home_ = state_of({{}, remembered(Around::Other)});
    for (uint32_t b = 0; b < (program_->of_bytes ? 256u : 128u); ++b) {
        const uint32_t group = group_of_symbol_[b], next = table_[home_ + group];
        leaves_home_[b] = (next == kOpen ? follow(home_, group) : next) != home_;
        if (b < 128 && leaves_home_[b] != 0) leaves_by_half_[b % 16] |= static_cast<uint8_t>(1 << b / 16);
    }
}

#if PYPARQ_AVX2
namespace {

// The first byte that may lead out: an ASCII one that does, or any other. Or less than a block before the end.
PYPARQ_TARGET_AVX2 const uint8_t* first_leaving(const uint8_t* p, const uint8_t* end, const std::array<uint8_t, 16>& by_half) {
    const __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(by_half.data())));
    const __m256i high = _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i half = _mm256_set1_epi8(0x0f), none = _mm256_setzero_si256();
    for (; end - p >= 32; p += 32) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        const __m256i upper = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(x, 4), half));
        const __m256i both = _mm256_and_si256(_mm256_shuffle_epi8(low, x), upper);  // 0 for what is not ASCII
        const uint32_t stays = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(both, none)));
        const uint32_t stops = ~stays | static_cast<uint32_t>(_mm256_movemask_epi8(x));
        if (stops != 0) return p + std::countr_zero(stops);
    }
    return p;
}

}  // namespace
#endif

const uint8_t* RegexStates::behind_home(const uint8_t* p, const uint8_t* end) const {
    const uint8_t* const leaves = leaves_home_.data();
    for (const uint8_t* const near = end - p > 8 ? p + 8 : end; p < near; ++p)
        if (leaves[*p] != 0) return p;
#if PYPARQ_AVX2
    if (have_avx2()) p = first_leaving(p, end, leaves_by_half_);
#endif
    while (p < end && leaves[*p] == 0) ++p;
    return p;
}

// A character, which the table may not know yet. Whether that decides the answer.
bool RegexStates::step(Text& text, Answer& answer) {
    if (home_ == kOpen) fill_home();
    answer = Answer::Unknown;
    if (program_->only_ascii && *text.p >= 0x80) return true;
    const uint32_t group = group_of(text.p, text.end);
    uint32_t next = table_[text.state + group];
    if (next == kOpen) next = follow(text.state, group);
    answer = next == kMatched ? Answer::Yes : Answer::No;
    if (next >= kFirstMark) return true;
    text.state = next;
    return false;
}

// Goes on to where the table knows the next byte. Whether the text ended before.
bool RegexStates::ends(Text& text, Answer& answer) {
    while (text.p < text.end) {
        if (table_[text.state + group_of_byte_[*text.p]] < kFirstMark) return false;
        if (step(text, answer)) return true;
    }
    answer = matches_at_end(text.state) ? Answer::Yes : Answer::No;
    return true;
}

// As many bytes of each text as all of them have, up to one that the table does not know.
void RegexStates::step_in_turn(Text* texts) const {
    const uint32_t* const table = table_.data();
    const uint16_t* const groups = group_of_byte_.data();
    const uint8_t *a = texts[0].p, *b = texts[1].p, *c = texts[2].p, *d = texts[3].p;
    uint32_t of_a = texts[0].state, of_b = texts[1].state, of_c = texts[2].state, of_d = texts[3].state;
    ptrdiff_t left = std::numeric_limits<ptrdiff_t>::max();
    for (size_t k = 0; k < kInTurn; ++k) left = std::min(left, texts[k].end - texts[k].p);
    for (; left > 0; --left) {
        const uint32_t next_a = table[of_a + groups[*a]], next_b = table[of_b + groups[*b]];
        const uint32_t next_c = table[of_c + groups[*c]], next_d = table[of_d + groups[*d]];
        if ((next_a | next_b | next_c | next_d) >= kFirstMark) break;
        of_a = next_a, of_b = next_b, of_c = next_c, of_d = next_d;
        ++a, ++b, ++c, ++d;
    }
    texts[0].p = a, texts[1].p = b, texts[2].p = c, texts[3].p = d;
    texts[0].state = of_a, texts[1].state = of_b, texts[2].state = of_c, texts[3].state = of_d;
}

Answer RegexStates::finish(Text& text) {
    Answer answer = Answer::No;
    if (home_ == kOpen) fill_home();
    const uint8_t* from = text.p;
    while (text.p < text.end) {
        if (text.state == home_) {
            elsewhere_ += static_cast<uint64_t>(text.p - from);
            from = behind_home(text.p, text.end);
            at_home_ += static_cast<uint64_t>(from - text.p);
            text.p = from;
            if (from == text.end) break;
        }
        const uint32_t next = table_[text.state + group_of_byte_[*text.p]];
        if (next >= kFirstMark) {
            if (step(text, answer)) return answer;
        } else {
            text.state = next;
            ++text.p;
        }
    }
    elsewhere_ += static_cast<uint64_t>(text.p - from);
    return matches_at_end(text.state) ? Answer::Yes : Answer::No;
}

}  // namespace pyparq
