// Nested data: between repetition and definition levels and list offsets (README.md, "Nested Encoding").
#include "values/calls.hpp"
#include "values/checks.hpp"

namespace pyparq {
namespace {

// Levels of one leaf: one uint8 per entry, or nothing where every entry is alike (repetition 0, or definition at
// its maximum).
struct Entries {
    const uint8_t* def;
    const uint8_t* rep;
    size_t count;

    Entries(const Valid& def_levels, const Valid& rep_levels, int64_t entries) {
        count = checked_count(entries, "entries");
        if ((!def_levels.none() && def_levels.size != count) || (!rep_levels.none() && rep_levels.size != count))
            fail("levels of " + str(def_levels.size) + " and " + str(rep_levels.size) + " entries, " + str(count) +
                 " are needed");
        def = def_levels.none() ? nullptr : def_levels.data;
        rep = rep_levels.none() ? nullptr : rep_levels.data;
    }
};

struct Position {
    uint8_t rep, item;  // of the innermost list around it; 0 at the top
};

uint8_t checked_level(int64_t level) {
    if (level < 0 || level > 255) fail("level out of range: " + str(level));
    return static_cast<uint8_t>(level);
}

constexpr size_t BLOCK = 1024;

// What levels say of an entry, a bit each.
enum Says : uint8_t { START = 1,
                      ITEM = 2,
                      STRAY = 4,
                      PRESENT = 8,
                      FILLED = 16,
                      TOP = 32 };

// The lists in a position: their items' levels, and the definition level from which on a slot is not null.
struct ListLevels {
    Position at;
    uint8_t item_rep, item_def, present;
};

// All comparisons of a block at once, without a branch on the data.
void classify(const uint8_t* def, const uint8_t* rep, size_t n, const ListLevels& lists, uint8_t* says) {
    const auto [at, item_rep, item_def, present] = lists;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t r = rep[i], d = def[i];
        const uint8_t top = r <= at.rep, inside = r <= item_rep, filled = d >= item_def;
        uint8_t v = static_cast<uint8_t>(top & (d >= at.item));
        v = static_cast<uint8_t>(v | (inside & filled) << 1);
        v = static_cast<uint8_t>(v | ((top ^ 1) & inside & (filled ^ 1)) << 2);  // it goes on with a list, yet is no item
        says[i] = static_cast<uint8_t>(v | (d >= present) << 3 | filled << 4 | top << 5);
    }
}

// Calls f with what each block of entries says, after making sure that no more than `slots` start.
template <class F>
void for_each_block(const Entries& in, size_t slots, const ListLevels& lists, F&& f) {
    uint8_t says[BLOCK], zeros[BLOCK] = {}, most[BLOCK];
    std::memset(most, 255, sizeof(most));
    size_t started = 0;
    for (size_t from = 0; from < in.count; from += BLOCK) {
        const size_t n = std::min(BLOCK, in.count - from);
        classify(in.def ? in.def + from : most, in.rep ? in.rep + from : zeros, n, lists, says);
        size_t starts = 0;
        for (size_t i = 0; i < n; ++i) starts += says[i] & START;
        started += starts;
        if (started > slots) fail("the levels start more than the " + str(slots) + " slots there are");
        f(says, n);
    }
    if (started != slots) fail("the levels start " + str(started) + " slots, but there must be " + str(slots));
}

size_t checked_slots(const Entries& in, int64_t slots_) {
    const size_t slots = checked_count(slots_, "slots");
    if (slots > in.count) fail(str(in.count) + " entries cannot hold " + str(slots) + " slots");
    return slots;
}

bool goes_deeper(const Entries& in, unsigned rep) {
    unsigned most = 0;
    if (in.rep)
        for (size_t e = 0; e < in.count; ++e) most = std::max<unsigned>(most, in.rep[e]);
    return most > rep;
}

// ---- writing --------------------------------------------------------------------------------------------

struct Lists {
    const int64_t *starts, *lengths;
    size_t count;
};

struct Sizes {
    size_t items = 0, empty = 0;
    int64_t first = 0;
    bool in_a_row = true;  // the items of all lists follow each other
};

Sizes check_lists(const Lists& lists, int64_t num_items) {
    Sizes sizes;
    int64_t end = -1;
    for (size_t j = 0; j < lists.count; ++j) {
        const int64_t from = lists.starts[j], len = lists.lengths[j];
        if (from < 0 || len < 0 || from > num_items || len > num_items - from)
            fail("list " + str(uint64_t{j}) + " lies outside of its " + str(num_items) + " items");
        sizes.items += static_cast<size_t>(len);
        if (sizes.items > size_t{1} << 40) fail("too many list items");
        if (len == 0) {
            ++sizes.empty;
            continue;
        }
        if (end < 0) sizes.first = from;
        sizes.in_a_row &= end < 0 || from == end;
        end = from + len;
    }
    return sizes;
}

size_t count_live(const Valid& defs, size_t slots) {
    if (defs.none()) return slots;
    if (defs.size != slots) fail("levels are not one per slot");
    return static_cast<size_t>(std::count(defs.data, defs.data + slots, kLiveSlot));
}

}  // namespace

// Offsets and presence of the lists in a position, from the levels of any leaf below it.
nb::object list_slots(const Valid& def_levels, const Valid& rep_levels, int64_t entries, int64_t slots_, int64_t rep,
                      int64_t item, int64_t item_rep, int64_t item_def, int64_t def_level) {
    const Entries in(def_levels, rep_levels, entries);
    const size_t slots = checked_slots(in, slots_);
    const ListLevels lists{{checked_level(rep), checked_level(item)},
                           checked_level(item_rep),
                           checked_level(item_def),
                           checked_level(def_level)};
    Fresh<int64_t> offsets(slots + 1);
    Fresh<bool> valid(slots + 1);
    {
        NoGil nogil(in.count);
        int64_t items = 0;
        size_t k = 0;
        // An item may only be in a list that starts with one, and then all entries of the list are items. Entries that go on
        // with a null or empty list, and are none, say nothing: DuckDB pads null lists of a fixed size with them.
        unsigned filled = 0, stray = 0;
        for_each_block(in, slots, lists, [&](const uint8_t* says, size_t n) {
            for (size_t i = 0; i < n; ++i) {
                const unsigned v = says[i], start = v & START, item = v >> 1 & 1, top = v >> 5;
                // Written for every entry, kept where a slot starts: no branch on the data, and k <= slots.
                offsets.data[k] = items;
                valid.data[k] = (v & PRESENT) != 0;
                k += start;
                items += item;
                filled = (v >> 4 & top) | (filled & ~top);
                stray |= (item & ~filled) | (v >> 2 & filled);
            }
        });
        if (stray)
            fail("the repetition and definition levels contradict each other: an item belongs to a list that is null, empty or missing");
        offsets.data[slots] = items;
    }
    return nb::make_tuple(offsets.object, first_items(valid.object, slots + 1, slots));
}

nb::object slot_validity(const Valid& def_levels, const Valid& rep_levels, int64_t entries, int64_t slots_,
                         int64_t rep, int64_t item, int64_t def_level) {
    const Entries in(def_levels, rep_levels, entries);
    const size_t slots = checked_slots(in, slots_);
    const ListLevels lists{{checked_level(rep), checked_level(item)}, 0, 0, checked_level(def_level)};
    Fresh<bool> valid(slots + 1);
    {
        NoGil nogil(in.count);
        size_t k = 0;
        for_each_block(in, slots, lists, [&](const uint8_t* says, size_t n) {
            for (size_t i = 0; i < n; ++i) {
                valid.data[k] = (says[i] & PRESENT) != 0;
                k += says[i] & START;
            }
        });
    }
    return first_items(valid.object, slots + 1, slots);
}

// Whether two leaves below one position have the same levels for it and for what encloses it: of the entries that do not go
// on with a list further down, the repetition levels, and the definition levels as far as `def_level`.
bool levels_agree(const Valid& def_a, const Valid& rep_a, int64_t entries_a, const Valid& def_b, const Valid& rep_b,
                  int64_t entries_b, int64_t rep_, int64_t def_level_) {
    const Entries a(def_a, rep_a, entries_a), b(def_b, rep_b, entries_b);
    const unsigned rep = checked_level(rep_);
    const uint8_t level = checked_level(def_level_);
    NoGil nogil(a.count + b.count);
    const auto def_at = [level](const Entries& in, size_t e) { return in.def ? std::min(in.def[e], level) : level; };
    const auto rep_at = [](const Entries& in, size_t e) { return in.rep ? in.rep[e] : uint8_t{0}; };
    if (!goes_deeper(a, rep) && !goes_deeper(b, rep)) {
        if (a.count != b.count) return false;
        uint8_t differs = 0;
        if (a.def || b.def)
            for (size_t e = 0; e < a.count; ++e) differs = static_cast<uint8_t>(differs | (def_at(a, e) ^ def_at(b, e)));
        if (a.rep || b.rep)
            for (size_t e = 0; e < a.count; ++e) differs = static_cast<uint8_t>(differs | (rep_at(a, e) ^ rep_at(b, e)));
        return differs == 0;
    }
    const auto next = [rep, &rep_at](const Entries& in, size_t e) {
        while (e < in.count && rep_at(in, e) > rep) ++e;
        return e;
    };
    size_t i = next(a, 0), j = next(b, 0);
    while (i < a.count && j < b.count) {
        if (def_at(a, i) != def_at(b, j) || rep_at(a, i) != rep_at(b, j)) return false;
        i = next(a, i + 1);
        j = next(b, j + 1);
    }
    return i == a.count && j == b.count;
}

// One slot per list item; an empty list keeps its slot, which ends there with `empty_def`. Slots that ended stay.
nb::object expand_lists(int64_t slots_, const Valid& reps, const Valid& defs, const In<int64_t>& starts,
                        const In<int64_t>& lengths, int64_t num_items, int64_t item_rep, int64_t empty_def) {
    const size_t slots = checked_count(slots_, "slots");
    const Lists lists{starts.data, lengths.data, starts.size};
    if (!reps.none() && reps.size != slots) fail("levels are not one per slot");
    if (lengths.size != lists.count || count_live(defs, slots) != lists.count)
        fail("starts, lengths and live slots differ in number");
    const uint8_t deeper = checked_level(item_rep), ended = checked_level(empty_def);
    const Sizes sizes = check_lists(lists, num_items);
    const size_t total = slots - lists.count + sizes.items + sizes.empty;
    const bool all_live = total == sizes.items;
    Fresh<uint8_t> out_reps(total), out_defs(all_live ? 0 : total);
    Fresh<int64_t> elements(sizes.in_a_row ? 0 : sizes.items);
    {
        NoGil nogil(total * 16);
        // Most entries are alike: set all of them at once, then those that differ.
        std::memset(out_reps.data, deeper, total);
        if (!all_live) std::memset(out_defs.data, kLiveSlot, total);
        size_t t = 0, e = 0, j = 0;
        for (size_t s = 0; s < slots; ++s) {
            const uint8_t def = defs.none() ? kLiveSlot : defs.data[s];
            const bool has_list = def == kLiveSlot;
            const size_t len = has_list ? static_cast<size_t>(lists.lengths[j]) : 0;
            out_reps.data[t] = reps.none() ? 0 : reps.data[s];
            if (!all_live) out_defs.data[t] = len ? kLiveSlot : has_list ? ended
                                                                         : def;
            if (!sizes.in_a_row)
                for (size_t i = 0; i < len; ++i) elements.data[e++] = lists.starts[j] + static_cast<int64_t>(i);
            t += len ? len : 1;
            j += has_list;
        }
    }
    nb::object defs_out = all_live ? nb::none() : out_defs.object;
    nb::object elements_out = sizes.in_a_row ? nb::none() : elements.object;
    return nb::make_tuple(out_reps.object, defs_out, sizes.items, elements_out, sizes.first);
}

// Gives each live slot the level `there` or `absent`, as `present` says of the k-th of them.
nb::object settle_slots(int64_t slots_, const Valid& defs, const Valid& present, int64_t absent_, int64_t there_) {
    const size_t slots = checked_count(slots_, "slots");
    const size_t live = count_live(defs, slots);
    if (!present.none() && present.size != live) fail("presence is not one per live slot");
    const uint8_t absent = checked_level(absent_), there = checked_level(there_);
    Fresh<uint8_t> out(slots);
    {
        NoGil nogil(slots);
        if (present.none()) {
            for (size_t s = 0; s < slots; ++s) {
                const uint8_t def = defs.none() ? kLiveSlot : defs.data[s];
                out.data[s] = def == kLiveSlot ? there : def;
            }
        } else if (defs.none()) {
            for (size_t s = 0; s < slots; ++s) out.data[s] = present.data[s] ? there : absent;
        } else if (live == 0) {
            std::copy_n(defs.data, slots, out.data);
        } else {
            size_t k = 0;  // no branch on the data: behind the last live slot, its presence is read for nothing
            for (size_t s = 0; s < slots; ++s) {
                const uint8_t def = defs.data[s], level = present.data[std::min(k, live - 1)] ? there : absent;
                out.data[s] = def == kLiveSlot ? level : def;
                k += def == kLiveSlot;
            }
        }
    }
    return std::move(out.object);
}

}  // namespace pyparq
