// See regex_program.hpp. The graph is built from its end: each function gets the number of what follows.
#include "select/regex_program.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>

namespace pyparq {
namespace {

constexpr size_t kMostNodes = 5'000, kMostSets = 500, kMostSteps = 100'000, kDeepest = 100;
constexpr uint32_t kNoLimit = 4294967295u;  // re.MAXREPEAT
constexpr int kIgnoreCase = 2, kLocale = 4, kMultiLine = 8, kDotAll = 16, kAsciiOnly = 256;

using Symbols = RegexProgram::Symbols;
using Step = RegexProgram::Step;

std::string name_of(const nb::handle& op) { return nb::cast<std::string>(nb::str(op)); }

bool is_word(uint32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
// Python: str.isspace() also knows the separators of files, groups, records and units; bytes do not.
bool is_space(uint32_t c, bool unicode) { return c == ' ' || (c >= 9 && c <= 13) || (unicode && c >= 28 && c <= 31); }
// Its spaces above 127.
constexpr std::pair<uint32_t, uint32_t> kWideSpaces[] = {{0x85, 0x85}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

// Characters above 127 that equal letters below where case is ignored.
constexpr std::pair<uint32_t, uint32_t> kFoldedToAscii[] = {{0x130, 'i'}, {0x131, 'i'}, {0x17f, 's'}, {0x212a, 'k'}};

// One class of characters while it is built.
struct Builder {
    RegexProgram& program;
    bool of_bytes;
    size_t steps = 0;

    size_t num_sets() const { return program.sets.size(); }
    size_t top() const { return of_bytes ? 256 : RegexProgram::kAscii; }

    // ---- symbols

    size_t symbol_of(uint32_t c) const {
        if (c < top()) return c;
        const auto& e = program.edges;
        return RegexProgram::kAscii + static_cast<size_t>(std::upper_bound(e.begin(), e.end(), c) - e.begin());
    }

    void add_range(Symbols& set, uint32_t low, uint32_t high) const {
        for (uint32_t c = low; c <= high && c < top(); ++c) set.set(c);
        if (of_bytes || high < top()) return;
        for (size_t s = symbol_of(std::max<uint32_t>(low, RegexProgram::kAscii)), e = symbol_of(high); s <= e; ++s) set.set(s);
    }

    void add_all(Symbols& set) const {
        for (size_t s = 0; s < program.num_symbols; ++s) set.set(s);
    }

    // ---- what a tree names: edges between characters above 127

    void add_edges(uint32_t low, uint32_t high) {
        if (of_bytes || high < RegexProgram::kAscii) return;
        program.edges.push_back(std::max<uint32_t>(low, RegexProgram::kAscii));
        program.edges.push_back(high + 1);
    }

    void gather_edges(const nb::handle& items, size_t depth) {
        if (depth > kDeepest) throw RegexProgram::Unsupported();
        for (const nb::handle item : nb::cast<nb::list>(items)) {
            const nb::object op = item[0], av = item[1];
            const std::string name = name_of(op);
            if (name == "LITERAL" || name == "NOT_LITERAL") {
                const auto c = nb::cast<uint32_t>(av);
                add_edges(c, c);
            } else if (name == "RANGE") {
                add_edges(nb::cast<uint32_t>(av[0]), nb::cast<uint32_t>(av[1]));
            } else if (name == "CATEGORY" && name_of(av).ends_with("SPACE")) {
                for (const auto& [low, high] : kWideSpaces) add_edges(low, high);
            } else if (name == "IN") {
                gather_edges(av, depth + 1);
            } else if (name == "BRANCH") {
                for (const nb::handle part : nb::cast<nb::list>(av[1])) gather_edges(part.attr("data"), depth + 1);
            } else if (name == "SUBPATTERN") {
                gather_edges(nb::object(av[3]).attr("data"), depth + 1);
            } else if (name == "MAX_REPEAT" || name == "MIN_REPEAT") {
                gather_edges(nb::object(av[2]).attr("data"), depth + 1);
            }
        }
    }

    void finish_edges(bool folds) {
        if (folds && !of_bytes)
            for (const auto& [c, _] : kFoldedToAscii) add_edges(c, c);
        auto& e = program.edges;
        std::sort(e.begin(), e.end());
        e.erase(std::unique(e.begin(), e.end()), e.end());
        program.num_symbols = of_bytes ? 256 : RegexProgram::kAscii + e.size() + 1;
        if (program.num_symbols > RegexProgram::kMostSymbols) throw RegexProgram::Unsupported();
    }

    // ---- classes of characters

    // Other characters than ASCII are in the set by rules that only Python knows.
    void unknown_beyond(int flags) {
        if (!of_bytes && (flags & kAsciiOnly) == 0) program.only_ascii = true;
    }

    void add_category(Symbols& set, const std::string& name, int flags) {
        const bool unicode = !of_bytes && (flags & kAsciiOnly) == 0;
        const bool negated = name.find("NOT_") != std::string::npos;
        const bool spaces = name.ends_with("SPACE");
        if (!spaces) unknown_beyond(flags);
        const auto within = [&](uint32_t c) {
            if (name.ends_with("DIGIT")) return c >= '0' && c <= '9';
            if (spaces) return is_space(c, unicode);
            if (name.ends_with("WORD")) return is_word(c);
            throw RegexProgram::Unsupported();
        };
        for (uint32_t c = 0; c < RegexProgram::kAscii; ++c)
            if (within(c) != negated) set.set(c);
        Symbols wide;
        if (spaces && unicode)
            for (const auto& [low, high] : kWideSpaces) add_range(wide, low, high);
        for (size_t s = top(); s < program.num_symbols; ++s)
            if (wide.test(s) != negated) set.set(s);
        for (size_t s = RegexProgram::kAscii; of_bytes && negated && s < top(); ++s) set.set(s);
    }

    // Adds what equals a member where case is ignored.
    void fold(Symbols& set, int flags) {
        const bool unicode = !of_bytes && (flags & kAsciiOnly) == 0;
        if (unicode) {
            for (const auto& [c, letter] : kFoldedToAscii)
                if (set.test(symbol_of(c))) set.set(letter);
        }
        for (uint32_t c = 'a'; c <= 'z'; ++c)
            if (set.test(c) || set.test(c - 32)) set.set(c), set.set(c - 32);
        if (!unicode) return;
        for (const auto& [c, letter] : kFoldedToAscii)
            if (set.test(letter)) set.set(symbol_of(c));
    }

    // Of members of a class. `beyond`: it names characters above 127, whose cases are not known here.
    bool beyond(uint32_t high, int flags) const { return !of_bytes && high >= RegexProgram::kAscii && (flags & kIgnoreCase) != 0; }

    uint32_t class_of(const nb::handle& items, int flags) {
        Symbols set;
        bool negated = false;
        for (const nb::handle item : nb::cast<nb::list>(items)) {
            const nb::object op = item[0], av = item[1];
            const std::string name = name_of(op);
            if (name == "NEGATE") {
                negated = true;
            } else if (name == "LITERAL" || name == "RANGE") {
                const auto low = nb::cast<uint32_t>(name == "RANGE" ? nb::object(av[0]) : av);
                const auto high = nb::cast<uint32_t>(name == "RANGE" ? nb::object(av[1]) : av);
                if (beyond(high, flags)) program.only_ascii = true;
                if (beyond(high, flags) && low < high) throw RegexProgram::Unsupported();
                add_range(set, low, high);
            } else if (name == "CATEGORY") {
                add_category(set, name_of(av), flags);
            } else {
                throw RegexProgram::Unsupported();
            }
        }
        return finish_class(set, negated, flags);
    }

    uint32_t finish_class(Symbols set, bool negated, int flags) {
        if ((flags & kIgnoreCase) != 0) fold(set, flags);
        Symbols all;
        add_all(all);
        return add_set(negated ? all & ~set : set);
    }

    uint32_t add_set(const Symbols& set) {
        for (size_t k = num_sets(); k-- > 0;)
            if (program.sets[k] == set) return static_cast<uint32_t>(k);
        if (num_sets() >= kMostSets) throw RegexProgram::Unsupported();
        program.sets.push_back(set);
        return static_cast<uint32_t>(num_sets() - 1);
    }

    uint32_t literal_class(uint32_t c, bool negated, int flags) {
        Symbols set;
        if (beyond(c, flags)) program.only_ascii = true;
        add_range(set, c, c);
        return finish_class(set, negated, flags);
    }

    uint32_t any_class(int flags) {
        Symbols set;
        add_all(set);
        if ((flags & kDotAll) == 0) set.reset('\n');
        return add_set(set);
    }

    // ---- the graph

    uint32_t add(const RegexProgram::Node& node) {
        if (program.nodes.size() >= kMostNodes) throw RegexProgram::Unsupported();
        program.nodes.push_back(node);
        return static_cast<uint32_t>(program.nodes.size() - 1);
    }

    uint32_t take(uint32_t symbols, uint32_t next) { return add({Step::Take, At::Start, next, 0, symbols}); }
    uint32_t split(uint32_t a, uint32_t b) { return add({Step::Split, At::Start, a, b, 0}); }

    uint32_t check(const std::string& name, int flags, uint32_t next) {
        program.asks_around = true;
        At at = At::Start;
        if (name == "AT_BEGINNING") at = (flags & kMultiLine) != 0 ? At::LineStart : At::Start;
        else if (name == "AT_BEGINNING_STRING") at = At::Start;
        else if (name == "AT_END") at = (flags & kMultiLine) != 0 ? At::LineEnd : At::LastLineEnd;
        else if (name == "AT_END_STRING") at = At::End;
        else if (name == "AT_BOUNDARY" || name == "AT_NON_BOUNDARY") {
            at = name == "AT_BOUNDARY" ? At::Boundary : At::NoBoundary;
            unknown_beyond(flags);
            if (at == At::NoBoundary) program.asks_inside = true;
        } else {
            throw RegexProgram::Unsupported();
        }
        program.asks_word |= at == At::Boundary || at == At::NoBoundary;
        program.asks_line |= at == At::LineStart;
        program.asks_start |= at == At::Start || program.asks_line || program.asks_word;
        if (at != At::LastLineEnd) return add({Step::Check, at, next, 0, 0});
        // Before the end, or before a newline at the end: with nothing behind, that may be taken as well.
        if (program.nodes[next].step != Step::Match) throw RegexProgram::Unsupported();
        Symbols newline;
        newline.set('\n');
        const uint32_t end = add({Step::Check, At::End, next, 0, 0});
        return split(end, take(add_set(newline), end));
    }

    uint32_t repeat(const nb::handle& av, int flags, uint32_t next, size_t depth) {
        const nb::object low = av[0], high = av[1];
        const auto least = nb::cast<uint32_t>(nb::int_(low));
        const uint32_t most = nb::cast<int64_t>(nb::int_(high)) >= kNoLimit ? kNoLimit : nb::cast<uint32_t>(nb::int_(high));
        const nb::object body = nb::object(av[2]).attr("data");
        if (most == kNoLimit) {
            const uint32_t loop = split(0, next);
            const uint32_t inside = sequence(body, flags, loop, depth);
            program.nodes[loop].next = inside;
            next = loop;
        } else {
            for (uint32_t k = least; k < most; ++k) next = split(sequence(body, flags, next, depth), next);
        }
        for (uint32_t k = 0; k < least; ++k) next = sequence(body, flags, next, depth);
        return next;
    }

    uint32_t branch(const nb::handle& parts, int flags, uint32_t next, size_t depth) {
        std::optional<uint32_t> found;
        const nb::list list = nb::cast<nb::list>(parts);
        for (size_t k = list.size(); k-- > 0;) {
            const uint32_t one = sequence(nb::object(list[k]).attr("data"), flags, next, depth);
            found = found ? split(one, *found) : one;
        }
        if (!found) throw RegexProgram::Unsupported();
        return *found;
    }

    uint32_t sequence(const nb::handle& items, int flags, uint32_t next, size_t depth) {
        if (++depth > kDeepest || ++steps > kMostSteps) throw RegexProgram::Unsupported();
        const nb::list list = nb::cast<nb::list>(items);
        for (size_t k = list.size(); k-- > 0;) {
            const nb::object item = list[k];
            const nb::object op = item[0], av = item[1];
            const std::string name = name_of(op);
            if (name == "LITERAL" || name == "NOT_LITERAL")
                next = take(literal_class(nb::cast<uint32_t>(av), name == "NOT_LITERAL", flags), next);
            else if (name == "ANY") next = take(any_class(flags), next);
            else if (name == "IN") next = take(class_of(av, flags), next);
            else if (name == "AT") next = check(name_of(av), flags, next);
            else if (name == "BRANCH") next = branch(av[1], flags, next, depth);
            else if (name == "SUBPATTERN") {
                const int inner = (flags | nb::cast<int>(av[1])) & ~nb::cast<int>(av[2]);
                next = sequence(nb::object(av[3]).attr("data"), inner, next, depth);
            } else if (name == "MAX_REPEAT" || name == "MIN_REPEAT") next = repeat(av, flags, next, depth);
            else throw RegexProgram::Unsupported();
        }
        return next;
    }

    // ---- text that every match holds

    static void put_utf8(std::string& text, uint32_t c) {
        const auto put = [&](uint32_t b) { text.push_back(static_cast<char>(b)); };
        if (c < 0x80) return put(c);
        if (c < 0x800) put(0xc0 | c >> 6);
        else if (c < 0x10000) put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f));
        else put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f));
        put(0x80 | (c & 0x3f));
    }

    void gather_text(const nb::handle& items, std::string& run, std::string& longest, bool& whole) const {
        const auto end_run = [&] {
            if (run.size() > longest.size()) longest = run;
            run.clear();
        };
        for (const nb::handle item : nb::cast<nb::list>(items)) {
            const nb::object op = item[0], av = item[1];
            const std::string name = name_of(op);
            if (name == "LITERAL") {
                const auto c = nb::cast<uint32_t>(av);
                if (c >= 0xd800 && c < 0xe000) end_run(), whole = false;  // a byte that is no UTF-8
                else if (of_bytes) run.push_back(static_cast<char>(c));
                else put_utf8(run, c);
            } else if (name == "SUBPATTERN" && nb::cast<int>(av[1]) == 0 && nb::cast<int>(av[2]) == 0) {
                gather_text(nb::object(av[3]).attr("data"), run, longest, whole);
            } else if ((name == "MAX_REPEAT" || name == "MIN_REPEAT") && nb::cast<int64_t>(nb::int_(nb::object(av[0]))) > 0) {
                end_run();
                whole = false;
                gather_text(nb::object(av[2]).attr("data"), run, longest, whole);
                end_run();
            } else {
                if (name != "AT") end_run();
                whole = false;
            }
        }
    }
};

}  // namespace

RegexProgram::RegexProgram(const nb::object& pattern, bool of_bytes_) : of_bytes(of_bytes_) {
    const nb::object tree = nb::module_::import_("re._parser").attr("parse")(pattern);
    const int flags = nb::cast<int>(nb::int_(nb::object(tree.attr("state").attr("flags"))));
    const nb::object items = tree.attr("data");
    Builder builder{*this, of_bytes};
    if ((flags & kIgnoreCase) == 0) {
        std::string run;
        bool whole = true;
        builder.gather_text(items, run, must_hold, whole);
        if (run.size() > must_hold.size()) must_hold = run;
        is_text = whole && !must_hold.empty();
    }
    if ((flags & kLocale) != 0) return;
    try {
        builder.gather_edges(items, 0);
        builder.finish_edges(true);  // parts of a pattern may ignore case, too
        start = builder.sequence(items, flags, builder.add({Step::Match}), 0);
        can_run = true;
    } catch (const Unsupported&) {
        nodes.clear();
    }
}

}  // namespace pyparq
