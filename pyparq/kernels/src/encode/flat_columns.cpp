#include "encode/flat_columns.hpp"

#include "base/bits.hpp"
#include "base/workers.hpp"
#include "values/checks.hpp"

#include <atomic>

namespace pyparq {
namespace {

constexpr size_t kMost = size_t{1} << 48;  // elements of an array: what is beyond cannot be in memory, and sums stay small

void need(size_t have, size_t wanted, const char* what) {
    if (have < wanted) fail(std::string("the array's ") + what + " have " + str(have) + " bytes, but need " + str(wanted));
}

// ---- levels -------------------------------------------------------------------------------------------------------

// A byte for each of eight bits, 0 or 1.
inline uint64_t bytes_of(uint64_t bits) {
    const uint64_t spread = ((bits & 0xff) * 0x0101010101010101ull) & 0x8040201008040201ull;
    return (spread + 0x7f7f7f7f7f7f7f7full) >> 7 & 0x0101010101010101ull;
}

constexpr size_t kPadding = 64;  // bytes behind the last one that expand_bits may write

// Returns how many are set.
size_t expand_bits(const uint8_t* bits, size_t size, size_t at, size_t n, uint8_t* out) {
    size_t set = 0;
    for (size_t i = 0; i < n; i += 64) {
        uint64_t word = load_bits(bits, size, at + i);
        if (n - i < 64) word &= low_bits(n - i);
        set += static_cast<size_t>(std::popcount(word));
        for (size_t k = 0; k < 8; ++k) store(out + i + 8 * k, bytes_of(word >> 8 * k));
    }
    return set;
}

size_t count_nulls(const FlatPart& part) {
    size_t set = 0;
    for (size_t i = 0; i < part.length; i += 64) {
        const size_t n = std::min<size_t>(part.length - i, 64);
        set += static_cast<size_t>(std::popcount(load_bits(part.validity, part.validity_size, part.offset + i) & low_bits(n)));
    }
    return part.length - set;
}

// ---- values -------------------------------------------------------------------------------------------------------

// out[k] = at(i) for every element that is there; one more than those may be written. Returns the end.
template <class T, class At>
T* place(const uint8_t* defs, size_t n, T* out, At&& at) {
    if (defs == nullptr) {
        for (size_t i = 0; i < n; ++i) out[i] = at(i);
        return out + n;
    }
    for (size_t i = 0; i < n; ++i) {
        *out = at(i);
        out += defs[i];
    }
    return out;
}

template <class T>
uint8_t* place_same(const uint8_t* values, const uint8_t* defs, size_t n, uint8_t* out) {
    if (defs == nullptr) {
        if (n > 0) std::memcpy(out, values, n * sizeof(T));
        return out + n * sizeof(T);
    }
    return reinterpret_cast<uint8_t*>(
        place(defs, n, reinterpret_cast<T*>(out), [&](size_t i) { return load<T>(values + i * sizeof(T)); }));
}

uint8_t* place_wide(const uint8_t* values, size_t width, const uint8_t* defs, size_t n, uint8_t* out) {
    for (size_t i = 0; i < n; ++i) {
        if (defs != nullptr && defs[i] == 0) continue;
        std::memcpy(out, values + i * width, width);
        out += width;
    }
    return out;
}

template <class T>
uint8_t* place_small(const uint8_t* values, const uint8_t* defs, size_t n, uint8_t* out) {
    return reinterpret_cast<uint8_t*>(place(defs, n, reinterpret_cast<int32_t*>(out),
                                            [&](size_t i) { return static_cast<int32_t>(load<T>(values + i * sizeof(T))); }));
}

// ---- decimals -----------------------------------------------------------------------------------------------------

// A number of 128 bits, two's complement.
struct Wide {
    uint64_t low;
    int64_t high;
    bool operator<(const Wide& other) const { return high != other.high ? high < other.high : low < other.low; }
};

Wide operator-(const Wide& v) { return {~v.low + 1, static_cast<int64_t>(~static_cast<uint64_t>(v.high) + (v.low == 0))}; }

Wide power_of_ten(int64_t digits) {
    Wide v{1, 0};
    for (int64_t k = 0; k < digits; ++k) {
        const uint64_t low = v.low, high = static_cast<uint64_t>(v.high);
        const uint64_t twice = low << 1, eight = low << 3, sum = twice + eight;
        v = {sum, static_cast<int64_t>((high << 1 | low >> 63) + (high << 3 | low >> 61) + (sum < eight))};
    }
    return v;
}

template <class T>
Wide widened(T v) {
    return {static_cast<uint64_t>(int64_t{v}), v < 0 ? -1 : 0};
}
inline Wide decimal_at(const uint8_t* values, size_t width, size_t i) {
    if (width == 4) return widened(load<int32_t>(values + 4 * i));
    if (width == 8) return widened(load<int64_t>(values + 8 * i));
    return {load<uint64_t>(values + 16 * i), load<int64_t>(values + 16 * i + 8)};
}

// How many digits a decimal of so many bytes holds whatever it is.
int64_t digits_of_width(size_t width) { return width == 4 ? 10 : width == 8 ? 19
                                                                            : 39; }

bool place_decimals(const ColumnRules& column, const uint8_t* values, size_t width, const uint8_t* defs, size_t n, uint8_t*& out) {
    const bool checked = column.precision < digits_of_width(width);
    const Wide limit = power_of_ten(checked ? column.precision : 0), lowest = -limit;
    bool fit = true;
    const auto at = [&](size_t i) {
        const Wide v = decimal_at(values, width, i);
        if (checked) fit &= (defs != nullptr && defs[i] == 0) || (lowest < v && v < limit);
        return v;
    };
    if (column.physical == 1) {
        out = reinterpret_cast<uint8_t*>(
            place(defs, n, reinterpret_cast<int32_t*>(out), [&](size_t i) { return static_cast<int32_t>(at(i).low); }));
    } else if (column.physical == 2) {
        out = reinterpret_cast<uint8_t*>(
            place(defs, n, reinterpret_cast<int64_t*>(out), [&](size_t i) { return static_cast<int64_t>(at(i).low); }));
    } else {  // big-endian bytes, the sign in front
        for (size_t i = 0; i < n; ++i) {
            const Wide v = at(i);
            if (defs != nullptr && defs[i] == 0) continue;
            uint8_t bytes[16];
            store(bytes, byteswap(static_cast<uint64_t>(v.high)));
            store(bytes + 8, byteswap(v.low));
            const size_t sign = column.width > 16 ? column.width - 16 : 0, rest = column.width - sign;
            std::memset(out, v.high < 0 ? 0xff : 0, sign);
            std::memcpy(out + sign, bytes + 16 - rest, rest);
            out += column.width;
        }
    }
    return fit;
}

size_t width_of(const ColumnRules& column, int form) {
    switch (form) {
        case kSame: return column.width;
        case kInt8:
        case kUInt8: return 1;
        case kInt16:
        case kUInt16: return 2;
        case kDecimal32: return 4;
        case kDecimal64: return 8;
        case kDecimal128: return 16;
        default: fail("there is no form " + str(int64_t{form}) + " of values of fixed width");
    }
}

// What a form makes must be what the leaf holds.
void check_form(const ColumnRules& column, int form) {
    const bool bytes = form == kOffsets32 || form == kOffsets64, small = form >= kInt8 && form <= kUInt16;
    const bool decimal = form >= kDecimal32 && form <= kDecimal128;
    const bool fits = bytes ? column.width == 0 : form == kBits ? column.boolean()
                                              : small           ? column.physical == 1
                                              : decimal         ? column.physical == 1 || column.physical == 2 || column.physical == 7
                                                                : form == kSame && column.width > 0;
    if (!fits) fail("the leaf holds nothing of form " + str(int64_t{form}));
}

// Appends the booleans of a part, a byte each.
uint8_t* place_booleans(const FlatPart& part, const uint8_t* defs, uint8_t* out) {
    const size_t n = part.length;
    if (defs == nullptr) {
        expand_bits(part.first, part.first_size, part.offset, n, out);
        return out + n;
    }
    FlatMemory passing;
    uint8_t* const all = passing.take(n + kPadding);
    expand_bits(part.first, part.first_size, part.offset, n, all);
    return place(defs, n, out, [&](size_t i) { return all[i]; });
}

// Appends the values of a part to `out`. False where one has too many digits.
bool place_part(const ColumnRules& column, const FlatPart& part, const uint8_t* defs, uint8_t*& out) {
    const size_t n = part.length, width = part.form == kBits ? 0 : width_of(column, part.form);
    const uint8_t* const from = part.form == kBits ? nullptr : part.first + part.offset * width;
    switch (part.form) {
        case kBits: out = place_booleans(part, defs, out); break;
        case kInt8: out = place_small<int8_t>(from, defs, n, out); break;
        case kUInt8: out = place_small<uint8_t>(from, defs, n, out); break;
        case kInt16: out = place_small<int16_t>(from, defs, n, out); break;
        case kUInt16: out = place_small<uint16_t>(from, defs, n, out); break;
        case kSame:
            if (width == 4) out = place_same<uint32_t>(from, defs, n, out);
            else if (width == 8) out = place_same<uint64_t>(from, defs, n, out);
            else out = place_wide(from, width, defs, n, out);
            break;
        default: return place_decimals(column, from, width, defs, n, out);
    }
    return true;
}

bool flatten_fixed(const ColumnRules& column, const std::vector<FlatPart>& parts, size_t present, FlatMemory& memory, LeafValues& leaf) {
    Values& v = leaf.values;
    v.width = column.width, v.count = present, v.size = checked_mul(present, v.width);
    for (const FlatPart& part : parts) {
        if (part.form == kBits) need(part.first_size, (part.offset + part.length + 7) / 8, "values");
        else need(part.first_size, checked_mul(part.offset + part.length, width_of(column, part.form)), "values");
    }
    if (parts.size() == 1 && parts[0].form == kSame && leaf.defs == nullptr) {
        v.data = parts[0].first + parts[0].offset * v.width;
        const bool number = v.width <= 8 && std::has_single_bit(v.width);
        if (!number || reinterpret_cast<uintptr_t>(v.data) % v.width == 0) return true;
    }
    uint8_t *const begin = memory.take(v.size + v.width + kPadding), *out = begin;
    const uint8_t* defs = leaf.defs;
    bool fit = true;
    for (const FlatPart& part : parts) {
        fit = place_part(column, part, defs, out) && fit;
        if (defs != nullptr) defs += part.length;
    }
    v.data = begin;
    return fit;
}

// ---- byte arrays --------------------------------------------------------------------------------------------------

// Offsets of a part, checked against its bytes.
template <class O>
const O* offsets_of(const FlatPart& part, FlatMemory& memory) {
    if (part.length == 0) {
        static constexpr O none[1] = {};
        return none;  // Arrow lets an empty array leave its offsets out
    }
    const size_t count = part.length + 1;
    need(part.first_size, checked_mul(part.offset + count, sizeof(O)), "offsets");
    const uint8_t* from = part.first + part.offset * sizeof(O);
    if (reinterpret_cast<uintptr_t>(from) % alignof(O) != 0) {
        uint8_t* const moved = memory.take(count * sizeof(O));
        std::memcpy(moved, from, count * sizeof(O));
        from = moved;
    }
    const auto* const offsets = reinterpret_cast<const O*>(from);
    check_offsets(offsets, count, part.second_size);
    return offsets;
}

// The starts of the values that are there, and the end of the last; false where bytes lie below nulls.
template <class O>
bool starts_of(const O* o, const uint8_t* defs, size_t n, O* out) {
    O hidden = 0;
    for (size_t i = 0; i < n; ++i) {
        *out = o[i];
        out += defs[i];
        hidden |= static_cast<O>((o[i + 1] - o[i]) & (static_cast<O>(defs[i]) - 1));
    }
    *out = o[n];
    return hidden == 0;
}

// Appends the values that are there to `out`, and where each of them ends to `ends`.
template <class O>
void append(const FlatPart& part, const O* o, const uint8_t* defs, const uint8_t* begin, uint8_t*& out, const uint8_t* out_end, int64_t*& ends) {
    const uint8_t* const data = part.second;
    if (defs == nullptr) {
        const auto first = static_cast<size_t>(o[0]), size = static_cast<size_t>(o[part.length]) - first;
        const int64_t base = (out - begin) - static_cast<int64_t>(first);
        for (size_t i = 0; i < part.length; ++i) ends[i] = base + static_cast<int64_t>(o[i + 1]);
        if (size > 0) std::memcpy(out, data + first, size);
        ends += part.length, out += size;
        return;
    }
    for (size_t i = 0; i < part.length; ++i) {
        if (defs[i] == 0) continue;
        const auto size = static_cast<size_t>(o[i + 1] - o[i]);
        copy_short(out, out_end, data + o[i], data + part.second_size, size);
        out += size;
        *ends++ = out - begin;
    }
}

template <class O>
bool stay_where_they_are(const FlatPart& part, size_t present, FlatMemory& memory, LeafValues& leaf) {
    Values& v = leaf.values;
    const O* o = offsets_of<O>(part, memory);
    if (leaf.defs != nullptr) {
        O* const starts = reinterpret_cast<O*>(memory.take((present + 2) * sizeof(O)));
        if (!starts_of(o, leaf.defs, part.length, starts)) return false;
        o = starts;
    }
    v.data = part.second, v.size = part.second_size;
    if constexpr (sizeof(O) == 4) v.narrow = o;
    else v.wide = o;
    return true;
}

// Whether every value is UTF-8; of many bytes, threads look at some each.
bool all_utf8(const Values& v, size_t threads) {
    constexpr size_t kShare = size_t{2} << 20;
    const size_t size = v.bytes(0, v.count);
    if (threads < 2 || size < 2 * kShare) return first_invalid_utf8(v) < 0;
    const size_t shares = std::min(size / kShare, v.count), each = (v.count + shares - 1) / shares;
    std::atomic<bool> valid{true};
    run_parallel(shares, threads, [&](size_t k) {
        const size_t first = std::min(k * each, v.count), last = std::min(first + each, v.count);
        if (valid.load(std::memory_order_relaxed) && first_invalid_utf8(v.slice(first, last)) >= 0) valid = false;
    });
    return valid;
}

bool wide_offsets(const FlatPart& part) { return part.form == kOffsets64; }

bool flatten_bytes(const ColumnRules& column, const std::vector<FlatPart>& parts, size_t present, FlatMemory& memory, LeafValues& leaf) {
    Values& v = leaf.values;
    v.width = 0, v.count = present;
    const bool stay = parts.size() == 1 && (wide_offsets(parts[0]) ? stay_where_they_are<int64_t>(parts[0], present, memory, leaf)
                                                                   : stay_where_they_are<int32_t>(parts[0], present, memory, leaf));
    if (!stay) {
        size_t total = 0;
        for (const FlatPart& part : parts) {
            const auto count = [&](const auto* o) { total += static_cast<size_t>(o[part.length] - o[0]); };
            if (wide_offsets(part)) count(offsets_of<int64_t>(part, memory));
            else count(offsets_of<int32_t>(part, memory));
            if (total > kMost) fail("the arrays have too many bytes");
        }
        auto* const offsets = reinterpret_cast<int64_t*>(memory.take((present + 1) * sizeof(int64_t)));
        uint8_t *const begin = memory.take(std::max<size_t>(total, 1)), *out = begin;
        offsets[0] = 0;
        int64_t* ends = offsets + 1;
        const uint8_t* defs = leaf.defs;
        for (const FlatPart& part : parts) {
            if (wide_offsets(part)) append(part, offsets_of<int64_t>(part, memory), defs, begin, out, begin + total, ends);
            else append(part, offsets_of<int32_t>(part, memory), defs, begin, out, begin + total, ends);
            if (defs != nullptr) defs += part.length;
        }
        v.data = begin, v.size = static_cast<size_t>(out - begin), v.wide = offsets, v.narrow = nullptr;
    }
    return !column.text || all_utf8(v, static_cast<size_t>(column.file->threads));
}

// Levels of the parts; how many nulls there are. False for nulls where the leaf may hold none.
bool flatten_levels(const ColumnRules& column, const std::vector<FlatPart>& parts, FlatMemory& memory, LeafValues& leaf, size_t& nulls) {
    size_t rows = 0;
    nulls = 0;
    for (const FlatPart& part : parts) {
        if (part.length > kMost || part.offset > kMost) fail("the array says that it has " + str(part.length) + " elements behind " + str(part.offset));
        rows += part.length;
        if (part.validity == nullptr) continue;
        need(part.validity_size, (part.offset + part.length + 7) / 8, "validity bits");
        nulls += count_nulls(part);
    }
    if (rows != leaf.rows) fail("the arrays have " + str(rows) + " elements for " + str(leaf.rows) + " rows");
    leaf.slots = rows;
    if (nulls == 0) return true;
    if (column.max_def == 0) return false;
    uint8_t *const defs = memory.take(rows + kPadding), *at = defs;
    for (const FlatPart& part : parts) {
        if (part.validity == nullptr) std::memset(at, 1, part.length);
        else expand_bits(part.validity, part.validity_size, part.offset, part.length, at);
        at += part.length;
    }
    leaf.defs = defs;
    return true;
}

// ---- dictionaries -------------------------------------------------------------------------------------------------

// The codes of elements that are there, as places in the dictionary's page.
const int32_t* places_of(const std::vector<FlatPart>& parts, const FlatDictionary& dictionary, size_t present, FlatMemory& memory, LeafValues& leaf) {
    auto* const begin = reinterpret_cast<int32_t*>(memory.take((present + 1) * sizeof(int32_t)));
    int32_t* out = begin;
    const uint8_t* defs = leaf.defs;
    for (const FlatPart& part : parts) {
        need(part.first_size, checked_mul(part.offset + part.length, sizeof(int32_t)), "codes");
        const uint8_t* const from = part.first + part.offset * sizeof(int32_t);
        out = place(defs, part.length, out, [&](size_t i) { return load<int32_t>(from + i * sizeof(int32_t)); });
        if (defs != nullptr) defs += part.length;
    }
    check_indices(begin, present, dictionary.codes);
    if (dictionary.places == nullptr) return begin;
    for (size_t i = 0; i < present; ++i) begin[i] = dictionary.places[begin[i]];
    return begin;
}

// The entries of byte arrays, each behind its length, as values side by side.
void lay_out_entries(const FlatDictionary& dictionary, FlatMemory& memory, Values& v) {
    auto* const offsets = reinterpret_cast<int64_t*>(memory.take((dictionary.count + 1) * sizeof(int64_t)));
    uint8_t* const bytes = memory.take(std::max<size_t>(dictionary.size, 1));
    size_t at = 0, size = 0;
    for (size_t k = 0; k < dictionary.count; ++k) {
        if (dictionary.size - at < 4) fail("the dictionary's entries end early");
        const size_t length = load<uint32_t>(dictionary.plain + at);
        at += 4;
        if (length > dictionary.size - at) fail("the dictionary's entries end early");
        if (length > 0) std::memcpy(bytes + size, dictionary.plain + at, length);
        offsets[k] = static_cast<int64_t>(size);
        at += length, size += length;
    }
    if (at != dictionary.size) fail("there are bytes behind the dictionary's entries");
    offsets[dictionary.count] = static_cast<int64_t>(size);
    v.data = bytes, v.size = size, v.wide = offsets, v.count = dictionary.count;
}

template <class T>
void gather(const FlatDictionary& dictionary, const int32_t* places, size_t n, uint8_t* out) {
    for (size_t i = 0; i < n; ++i) store(out + i * sizeof(T), load<T>(dictionary.plain + static_cast<size_t>(places[i]) * sizeof(T)));
}

void gather_values(const FlatDictionary& dictionary, const int32_t* places, FlatMemory& memory, Values& v) {
    v.size = checked_mul(v.count, v.width);
    uint8_t* const out = memory.take(v.size + kPadding);
    v.data = out;
    if (v.width == 4) return gather<uint32_t>(dictionary, places, v.count, out);
    if (v.width == 8) return gather<uint64_t>(dictionary, places, v.count, out);
    for (size_t i = 0; i < v.count; ++i) std::memcpy(out + i * v.width, dictionary.plain + static_cast<size_t>(places[i]) * v.width, v.width);
}

}  // namespace

bool flatten_codes(const ColumnRules& column, const std::vector<FlatPart>& parts, const FlatDictionary& dictionary, FlatMemory& memory,
                   LeafValues& leaf) {
    if (column.max_rep != 0 || column.max_def > 1 || column.boolean()) fail("the leaf is no column of its own that has a dictionary");
    for (const FlatPart& part : parts)
        if (part.form != kCodes) fail("the arrays are of different forms");
    if (column.width > 0 && checked_mul(dictionary.count, column.width) != dictionary.size) fail("the dictionary has other entries than the leaf");
    size_t nulls = 0;
    if (!flatten_levels(column, parts, memory, leaf, nulls)) return false;
    Values& v = leaf.values;
    v.width = column.width, v.count = leaf.slots - nulls;
    const int32_t* const places = places_of(parts, dictionary, v.count, memory, leaf);
    std::vector<uint8_t> occurs(dictionary.count);
    for (size_t i = 0; i < v.count; ++i) occurs[static_cast<size_t>(places[i])] = 1;
    for (size_t k = 0; k < dictionary.count; ++k)
        if (occurs[k] != 0) leaf.used.push_back(static_cast<int64_t>(k));
    leaf.given = true, leaf.indices = places, leaf.distinct = static_cast<int64_t>(leaf.used.size());
    leaf.entries = dictionary.plain, leaf.entries_size = dictionary.size, leaf.num_entries = dictionary.count;
    if (column.width > 0) {
        gather_values(dictionary, places, memory, v);
    } else {
        leaf.coded = true;
        lay_out_entries(dictionary, memory, leaf.entry_values);
    }
    return true;
}

bool flatten(const ColumnRules& column, const std::vector<FlatPart>& parts, FlatMemory& memory, LeafValues& leaf) {
    if (column.max_rep != 0 || column.max_def > 1) fail("the leaf is no column of its own");
    for (const FlatPart& part : parts) {
        check_form(column, part.form);
        if ((part.form == kOffsets32 || part.form == kOffsets64) != (column.width == 0)) fail("the arrays are of different forms");
    }
    size_t nulls = 0;
    if (!flatten_levels(column, parts, memory, leaf, nulls)) return false;
    if (column.width == 0) return flatten_bytes(column, parts, leaf.slots - nulls, memory, leaf);
    return flatten_fixed(column, parts, leaf.slots - nulls, memory, leaf);
}

}  // namespace pyparq
