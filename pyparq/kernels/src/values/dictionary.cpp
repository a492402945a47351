// Hash tables: dictionary building, set membership, counting distinct hashes.
#include "values/calls.hpp"
#include "encode/encoders.hpp"
#include "values/bytes_set.hpp"
#include "values/checks.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

namespace pyparq {
namespace {

// Drawn once per process, so that no file can be prepared whose values all collide. Results do not depend
// on it: entries are numbered by first appearance.
uint64_t seed() {
    static const uint64_t s = [] {
        std::random_device device;
        return uint64_t{device()} << 32 | device();
    }();
    return s;
}

constexpr uint64_t kMul1 = 0xD6E8FEB86659FD93ull, kMul2 = 0xA0761D6478BD642Full;

inline uint64_t mix(uint64_t x) {
    x *= kMul1;
    x ^= x >> 32;
    return x * kMul1;
}

inline uint64_t fold(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    const auto r = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(r) ^ static_cast<uint64_t>(r >> 64);
#else
    return mix(a ^ mix(b));
#endif
}

inline uint64_t hash_bytes(const uint8_t* p, size_t n, uint64_t s) {
    uint64_t h = s ^ n * kMul2, a = 0, b = 0;
    if (n > 16) {
        for (; n > 16; n -= 16, p += 16) h = fold(load<uint64_t>(p) ^ kMul1, load<uint64_t>(p + 8) ^ h);
        a = load<uint64_t>(p + n - 16);  // overlaps what came before
        b = load<uint64_t>(p + n - 8);
    } else if (n >= 8) {
        a = load<uint64_t>(p);
        b = load<uint64_t>(p + n - 8);
    } else if (n >= 4) {
        a = load<uint32_t>(p);
        b = load<uint32_t>(p + n - 4);
    } else if (n > 0) {
        a = uint64_t{p[0]} << 16 | uint64_t{p[n / 2]} << 8 | p[n - 1];
    }
    return mix(fold(a ^ kMul1, b ^ h) ^ h);
}

// Open addressing with linear probing, sparse: a second probe is a mispredicted branch. `Slot` holds an index (< 0 when empty).
template <class Slot>
class Table {
  public:
    explicit Table(uint64_t slots) { reset(slots); }
    uint64_t mask() const { return slots_.size() - 1; }
    uint64_t first(uint64_t hash) const { return hash >> shift_; }
    Slot& at(uint64_t slot) { return slots_[slot]; }
    const Slot& at(uint64_t slot) const { return slots_[slot]; }
    bool full(uint64_t entries) const { return entries * 2 >= slots_.size(); }

    template <class Hash>
    void grow(Hash&& hash_of) {
        std::vector<Slot> old = std::move(slots_);
        reset(old.size() * 4);
        for (const Slot& s : old) {
            if (s.index < 0) continue;
            uint64_t k = first(hash_of(s));
            while (slots_[k].index >= 0) k = (k + 1) & mask();
            slots_[k] = s;
        }
    }

  private:
    void reset(uint64_t slots) {
        slots_.assign(slots, Slot{});
        shift_ = 64 - std::countr_zero(slots);
    }
    std::vector<Slot> slots_;
    int shift_ = 0;
};

// Slots that a table begins with: few values need no more than these.
uint64_t slots_for(size_t values) { return std::clamp<uint64_t>(std::bit_ceil(2 * (uint64_t{values} + 1)), 64, 4096); }

struct Encoded {
    size_t stopped;
    std::vector<int64_t> first;
};

template <class T>
struct KeySlot {
    T key{};
    int32_t index = -1;
};

template <class T>
Encoded encode_keys(const uint8_t* values, size_t n, size_t max_entries, int32_t* indices) {
    Table<KeySlot<T>> table(slots_for(n));
    std::vector<int64_t> first;
    const uint64_t s = seed();
    const auto hash_of = [s](const KeySlot<T>& slot) { return mix(slot.key ^ s); };
    for (size_t i = 0; i < n; ++i) {
        const T key = load<T>(values + i * sizeof(T));
        uint64_t k = table.first(mix(key ^ s));
        while (table.at(k).index >= 0 && table.at(k).key != key) k = (k + 1) & table.mask();
        if (table.at(k).index < 0) {
            if (first.size() >= max_entries) return {i, std::move(first)};
            if (table.full(first.size())) {  // not before another entry comes: a table that stops at its limit stays
                table.grow(hash_of);
                for (k = table.first(mix(key ^ s)); table.at(k).index >= 0;) k = (k + 1) & table.mask();
            }
            table.at(k) = {key, static_cast<int32_t>(first.size())};
            indices[i] = static_cast<int32_t>(first.size());
            first.push_back(static_cast<int64_t>(i));
            continue;
        }
        indices[i] = table.at(k).index;
    }
    return {n, std::move(first)};
}

struct Span {
    const uint8_t* data;
    size_t size;
};

struct TagSlot {
    uint32_t tag = 0;  // the hash's upper half: enough to place it in tables of up to 2^31 slots
    int32_t index = -1;
    uint64_t hash() const { return uint64_t{tag} << 32; }
};

// `value(i)` gives pointer and length of value i; `admit(entries, length)` says whether a new entry may come.
template <class Value, class Admit>
Encoded encode_bytes(size_t n, int32_t* indices, Value&& value, Admit&& admit) {
    Table<TagSlot> table(slots_for(n));
    std::vector<int64_t> first;
    std::vector<Span> entries;  // beside each other, where the offsets of first appearances are far apart
    const uint64_t s = seed();
    for (size_t i = 0; i < n; ++i) {
        const auto [p, len] = value(i);
        const uint64_t hash = hash_bytes(p, len, s);
        const uint32_t tag = static_cast<uint32_t>(hash >> 32);
        uint64_t k = table.first(uint64_t{tag} << 32);
        int32_t found = -1;
        for (; table.at(k).index >= 0; k = (k + 1) & table.mask()) {
            if (table.at(k).tag != tag) continue;
            const Span& e = entries[static_cast<size_t>(table.at(k).index)];
            if (e.size == len && equal_bytes(p, e.data, len)) {
                found = table.at(k).index;
                break;
            }
        }
        if (found < 0) {
            if (!admit(first.size(), len)) return {i, std::move(first)};
            found = static_cast<int32_t>(first.size());
            table.at(k) = {tag, found};
            first.push_back(static_cast<int64_t>(i));
            entries.push_back({p, len});
            if (table.full(first.size())) table.grow([](const TagSlot& slot) { return slot.hash(); });
        }
        indices[i] = found;
    }
    return {n, std::move(first)};
}

nb::object result(Fresh<int32_t>&& indices, const Encoded& e) {
    Fresh<int64_t> first(e.first.size());
    std::copy(e.first.begin(), e.first.end(), first.data);
    return nb::make_tuple(first_items(indices.object, indices.size, e.stopped), first.object);
}

constexpr size_t kMaxEntries = size_t{1} << 30;

Encoded encode_fixed(const Values& v, size_t most, int32_t* indices) {
    switch (v.width) {
        case 1: return encode_keys<uint8_t>(v.data, v.count, most, indices);
        case 2: return encode_keys<uint16_t>(v.data, v.count, most, indices);
        case 4: return encode_keys<uint32_t>(v.data, v.count, most, indices);
        case 8: return encode_keys<uint64_t>(v.data, v.count, most, indices);
        default:
            return encode_bytes(
                v.count, indices, [&](size_t i) { return Span{v.data + i * v.width, v.width}; },
                [&](size_t entries, size_t) { return entries < most; });
    }
}

Encoded encode_binary(const Values& v, size_t most, int32_t* indices) {
    return v.visit([&](const auto* o) {
        size_t used = 0;
        return encode_bytes(
            v.count, indices, [&](size_t i) { return Span{v.data + o[i], static_cast<size_t>(o[i + 1] - o[i])}; },
            [&](size_t entries, size_t len) {
            if (len > most - used || 4 > most - used - len || entries >= kMaxEntries) return false;
            used += 4 + len;
            return true;
        });
    });
}

// ---- distinct hashes ------------------------------------------------------------------------------------

// Distinct values among n mixed hashes; `table` has a power of two > n slots, 0 marks an empty one.
size_t distinct_in(const uint64_t* h, size_t n, std::vector<uint64_t>& table) {
    const uint64_t slots = std::bit_ceil(uint64_t{2} * n + 2);
    if (table.size() < slots) table.resize(slots);
    std::fill_n(table.begin(), slots, 0);
    size_t count = 0, zero = 0;
    for (size_t i = 0; i < n; ++i) {
        if (h[i] == 0) {
            zero = 1;
            continue;
        }
        uint64_t k = h[i] & (slots - 1);
        while (table[k] != 0 && table[k] != h[i]) k = (k + 1) & (slots - 1);
        count += table[k] == 0;
        table[k] = h[i];
    }
    return count + zero;
}

// Scattered by their upper bits into parts whose tables stay in the cache.
size_t count_distinct(const uint64_t* h, size_t n) {
    const uint64_t s = seed();
    std::vector<uint64_t> table;
    const auto mixed = std::make_unique_for_overwrite<uint64_t[]>(n);
    const int bits = n <= 4096 ? 0 : std::min(10, static_cast<int>(std::bit_width(n >> 12)));
    std::vector<size_t> at((size_t{1} << bits) + 1, 0);
    // A bijection: distinct stays distinct.
    const auto part = [bits](uint64_t x) { return bits == 0 ? 0 : static_cast<size_t>(x >> (64 - bits)); };
    for (size_t i = 0; i < n; ++i) ++at[part(mix(h[i] ^ s)) + 1];
    for (size_t p = 1; p < at.size(); ++p) at[p] += at[p - 1];
    std::vector<size_t> next(at.begin(), at.end() - 1);
    for (size_t i = 0; i < n; ++i) {
        const uint64_t x = mix(h[i] ^ s);
        mixed[next[part(x)]++] = x;
    }
    size_t count = 0;
    for (size_t p = 0; p + 1 < at.size(); ++p) count += distinct_in(mixed.get() + at[p], at[p + 1] - at[p], table);
    return count;
}

// Linear counting: how many of so many slots stay empty when every value falls on one.
double estimate_distinct(const uint64_t* h, size_t n) {
    const uint64_t s = seed();
    const int bits = std::max(10, static_cast<int>(std::bit_width(n)) + 1);
    std::vector<uint64_t> filled(size_t{1} << (bits - 6), 0);
    for (size_t i = 0; i < n; ++i) {
        const uint64_t slot = mix(h[i] ^ s) >> (64 - bits);
        filled[slot >> 6] |= uint64_t{1} << (slot & 63);
    }
    size_t there = 0;
    for (const uint64_t word : filled) there += static_cast<size_t>(std::popcount(word));
    const double slots = std::ldexp(1.0, bits);
    return -slots * std::log1p(-static_cast<double>(there) / slots);
}

// Places of values that stand for all: half of them on their own, half in runs. Ascending.
std::vector<size_t> sampled(size_t n, size_t wanted) {
    constexpr size_t kRun = 32;
    std::vector<size_t> places;
    places.reserve(wanted);
    uint64_t x = 0;
    const auto next = [&](size_t below) { return static_cast<size_t>(mix(x += kMul2) % below); };
    while (places.size() < wanted / 2) places.push_back(next(n));
    while (places.size() < wanted) {
        const size_t start = next(n - kRun);
        for (size_t k = 0; k < kRun; ++k) places.push_back(start + k);
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
}

}  // namespace

void draw_seed() { seed(); }

nb::object dict_encode_fixed(const RawIn& values, int64_t width_, int64_t max_entries) {
    Values v;
    v.width = checked_value_width(width_), v.count = checked_items(values.size, v.width, "values");
    v.data = values.data, v.size = values.size;
    const size_t most = std::min(checked_count(max_entries, "max_entries"), kMaxEntries);
    Fresh<int32_t> indices(v.count);
    Encoded e;
    {
        NoGil nogil(values.size);
        e = encode_fixed(v, most, indices.data);
    }
    return result(std::move(indices), e);
}

nb::object dict_encode_binary(const Offsets& offsets, const RawIn& data, int64_t max_bytes) {
    const size_t most = checked_count(max_bytes, "max_bytes");
    const Values v = byte_arrays(offsets, data);
    Fresh<int32_t> indices(v.count);
    Encoded e;
    {
        NoGil nogil(offsets.size * 8);
        e = encode_binary(v, most, indices.data);
    }
    return result(std::move(indices), e);
}

constexpr size_t kBatch = 64;  // values hashed before the first is looked up: what they need comes from memory meanwhile

// A bit for each of the hashes, eight or more bits per string, is asked first: it rules out most values, and a nearer cache
// holds it. `tags` are upper halves of hashes.
struct BytesSet::Built {
    std::vector<int64_t> ends;
    std::vector<uint8_t> bytes;
    std::vector<uint64_t> filter;
    int shift = 0;
    Table<TagSlot> table;

    Built(std::vector<int64_t> o, const uint8_t* p)
        : ends(std::move(o)), bytes(p + ends.front(), p + ends.back()), table(std::bit_ceil(uint64_t{2} * ends.size() + 256)) {
        const size_t m = ends.size() - 1;
        const int64_t from = ends.front();
        for (int64_t& end : ends) end -= from;
        const size_t bits = std::bit_ceil(std::max<size_t>(8 * m, size_t{1} << 12));
        filter.assign(bits / 64, 0);
        shift = 64 - std::countr_zero(bits);
        const uint64_t s = seed();
        uint64_t hashes[kBatch];
        for (size_t start = 0; start < m; start += kBatch) {
            const size_t count = std::min(kBatch, m - start);
            for (size_t i = 0; i < count; ++i) {
                const Span x = member(start + i);
                hashes[i] = hash_bytes(x.data, x.size, s);
                prefetch(&filter[place_of(hashes[i]) / 64]);
                prefetch(&table.at(table.first(tag_of(hashes[i]))));
            }
            for (size_t i = 0; i < count; ++i) {
                const uint64_t place = place_of(hashes[i]);
                const Span x = member(start + i);
                filter[place / 64] |= uint64_t{1} << place % 64;
                TagSlot& slot = table.at(slot_of(hashes[i], x.data, x.size));
                if (slot.index < 0) slot = {static_cast<uint32_t>(hashes[i] >> 32), static_cast<int32_t>(start + i)};
            }
        }
    }
    // The table goes by the upper bits, so the filter takes others.
    uint64_t place_of(uint64_t hash) const { return hash * kMul2 >> shift; }
    Span member(size_t i) const { return {bytes.data() + ends[i], static_cast<size_t>(ends[i + 1] - ends[i])}; }

    bool may_hold(uint64_t hash) const {
        const uint64_t place = place_of(hash);
        return (filter[place / 64] >> place % 64 & 1) != 0;
    }
    static uint64_t tag_of(uint64_t hash) { return hash >> 32 << 32; }
    // Where the string stands, or the empty slot where it would.
    uint64_t slot_of(uint64_t hash, const uint8_t* p, size_t size) const {
        const auto tag = static_cast<uint32_t>(hash >> 32);
        uint64_t k = table.first(tag_of(hash));
        for (; table.at(k).index >= 0; k = (k + 1) & table.mask()) {
            if (table.at(k).tag != tag) continue;
            const Span x = member(static_cast<size_t>(table.at(k).index));
            if (x.size == size && equal_bytes(x.data, p, size)) break;
        }
        return k;
    }
};

BytesSet::BytesSet(const Offsets& offsets, const RawIn& data) {
    offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size, "set offsets");
        if (offsets.size - 1 > kMaxEntries) fail("set too large");
        const NoGil nogil(offsets.size * 8);
        built_ = std::make_shared<const Built>(std::vector<int64_t>(o, o + offsets.size), data.data);
    });
}

nb::object BytesSet::test(const Offsets& offsets, const RawIn& data, const Array<uint64_t, false, true>& within) const {
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    const size_t n = offsets.size - 1, words = (n + 63) / 64;
    if (!within.none() && within.size != words) fail("a bitmap of " + str(n) + " bits has " + str(within.size) + " words of 64");
    Fresh<uint64_t> out(words);
    const NoGil nogil(n * 8);
    offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        const uint64_t s = seed();
        uint64_t hashes[kBatch];
        for (size_t w = 0; w < words; ++w) {
            const size_t from = 64 * w, count = std::min<size_t>(64, n - from);
            uint64_t maybe = 0;
            out.data[w] = 0;
            if (!within.none() && within.data[w] == 0) continue;
            for (size_t i = 0; i < count; ++i)
                hashes[i] = hash_bytes(data.data + o[from + i], static_cast<size_t>(o[from + i + 1] - o[from + i]), s);
            for (size_t i = 0; i < count; ++i) maybe |= static_cast<uint64_t>(built_->may_hold(hashes[i])) << i;
            if (!within.none()) maybe &= within.data[w];
            const auto& table = built_->table;
            for (uint64_t left = maybe; left != 0; left &= left - 1)
                prefetch(&table.at(table.first(Built::tag_of(hashes[std::countr_zero(left)]))));
            for (; maybe != 0; maybe &= maybe - 1) {
                const auto i = static_cast<size_t>(std::countr_zero(maybe));
                const auto* const at = o + from + i;
                const uint64_t slot = built_->slot_of(hashes[i], data.data + at[0], static_cast<size_t>(at[1] - at[0]));
                out.data[w] |= static_cast<uint64_t>(table.at(slot).index >= 0) << i;
            }
        }
    });
    return std::move(out.object);
}

size_t count_distinct_u64(const In<uint64_t>& hashes) {
    NoGil nogil(hashes.size * 8);
    return count_distinct(hashes.data, hashes.size);
}

double estimate_distinct_u64(const In<uint64_t>& hashes) {
    if (hashes.size > size_t{1} << 40) fail("too many values");
    NoGil nogil(hashes.size * 8);
    return estimate_distinct(hashes.data, hashes.size);
}

bool may_repeat(const Values& v, size_t most) {
    constexpr size_t kSample = 4096;
    constexpr double kClearly = 0.25;  // share of the repetitions that there would have to be
    if (v.count < 4 * kSample) return true;
    const double each = static_cast<double>(v.plain_size()) / static_cast<double>(v.count);
    // A dictionary holds the first values only, where all are too many.
    const size_t n = std::min(v.count, static_cast<size_t>(2 * static_cast<double>(most) / each) + 1);
    if (n < 4 * kSample) return true;
    const std::vector<size_t> places = sampled(n, kSample);
    std::vector<uint64_t> hashes, table;
    hashes.reserve(places.size());
    const uint64_t s = seed();
    if (v.binary()) {
        v.visit([&](const auto* o) {
            for (const size_t k : places) hashes.push_back(hash_bytes(v.data + o[k], static_cast<size_t>(o[k + 1] - o[k]), s));
        });
    } else {
        for (const size_t k : places) hashes.push_back(hash_bytes(v.data + k * v.width, v.width, s));
    }
    // The most entries with which a dictionary is not larger than the values, and how many pairs would be equal then.
    const double share = 1 - static_cast<double>(std::bit_width(n)) / (8 * each);
    if (share <= 0) return true;
    const double m = static_cast<double>(places.size()), expected = m * m / (2 * share * static_cast<double>(n));
    return static_cast<double>(places.size() - distinct_in(hashes.data(), hashes.size(), table)) >= kClearly * expected;
}

size_t dictionary_of(const Values& v, size_t most, int32_t* indices, std::vector<int64_t>& first) {
    Encoded e = v.binary() ? encode_binary(v, most, indices)
                           : encode_fixed(v, std::min(std::max(most / v.width, size_t{1}), kMaxEntries), indices);
    first = std::move(e.first);
    return e.stopped;
}

}  // namespace pyparq
