// The values of pages, decoded into their slots.
#include "engine_sink.hpp"

#include "delta.hpp"
#include "utf8.hpp"

namespace pyparq {

void join_streams(const uint8_t* streams, size_t n, size_t width, uint8_t* out);
void put_view(uint8_t* out, const uint8_t* bytes, size_t length, uint32_t buffer, uint32_t offset);

size_t LeafSpec::out_width() const {
    if (kind == OutputKind::kCodes) return 4;
    if (kind == OutputKind::kViews) return 16;
    switch (convert) {
        case Convert::kNarrow8: return 1;
        case Convert::kNarrow16: return 2;
        case Convert::kDecimal16: case Convert::kBytesDecimal16: return 16;
        case Convert::kDecimal32: case Convert::kBytesDecimal32: return 32;
        default: return width;
    }
}

namespace {

enum Encoding : int {
    kPlain = 0, kPlainDictionary = 2, kRle = 3, kBitPacked = 4, kDelta = 5, kDeltaLength = 6, kDeltaByteArray = 7,
    kRleDictionary = 8, kByteStreamSplit = 9,
};

bool is_dictionary(int encoding) { return encoding == kPlainDictionary || encoding == kRleDictionary; }

[[noreturn]] void bad_values(int encoding, const KernelError& error) {
    throw Refused{"values", encoding, 0, 0, error.what()};
}

// ---- widths ---------------------------------------------------------------------------------------------

struct Wide12 { uint32_t v[3]; };
struct Wide16 { uint64_t v[2]; };

template <class F>
void by_width(size_t width, F&& f) {
    switch (width) {
        case 1: return f(uint8_t{});
        case 2: return f(uint16_t{});
        case 4: return f(uint32_t{});
        case 8: return f(uint64_t{});
        case 12: return f(Wide12{});
        case 16: return f(Wide16{});
        default: return f(nullptr);
    }
}
template <class T>
constexpr bool is_odd = std::is_same_v<T, std::nullptr_t>;

template <class T>
inline void copy_item(uint8_t* out, size_t i, const uint8_t* from, size_t k, size_t width) {
    if constexpr (is_odd<T>) std::memcpy(out + i * width, from + k * width, width);
    else store(out + i * sizeof(T), load<T>(from + k * sizeof(T)));
}

// Value number at(k) for the k-th present slot; zeros for the others. `values` are present.
template <class T, class At>
inline void place(const uint8_t* from, size_t width, size_t values, const uint8_t* valid, size_t slots, uint8_t* out, At&& at) {
    if (valid == nullptr || values == slots) {
        for (size_t i = 0; i < slots; ++i) copy_item<T>(out, i, from, at(i), width);
        return;
    }
    const size_t end = end_of_set(valid, slots);
    size_t k = 0;
    for (size_t i = 0; i < end; ++i) {
        const bool set = valid[i] != 0;
        if constexpr (is_odd<T>) {
            if (set) std::memcpy(out + i * width, from + at(k) * width, width);
            else std::memset(out + i * width, 0, width);
        } else {
            const T v = load<T>(from + at(k) * sizeof(T));
            if constexpr (std::is_integral_v<T>) store(out + i * sizeof(T), static_cast<T>(set ? v : T{0}));
            else store(out + i * sizeof(T), set ? v : T{});
        }
        k += set;
    }
    std::memset(out + end * width, 0, (slots - end) * width);
}

void place_values(const uint8_t* from, size_t width, const PageValues& page, const uint8_t* valid, size_t slots,
                  uint8_t* out) {
    if (page.picks == nullptr && (valid == nullptr || page.present == slots)) {
        if (slots > 0) std::memcpy(out, from, slots * width);
        return;
    }
    by_width(width, [&](auto tag) {
        using T = decltype(tag);
        if (page.picks == nullptr) place<T>(from, width, page.present, valid, slots, out, [](size_t k) { return k; });
        else place<T>(from, width, page.picked, valid, slots, out, [p = page.picks](size_t k) -> size_t { return p[k]; });
    });
}

// ---- conversion -----------------------------------------------------------------------------------------

template <class From, class To>
void narrow(const uint8_t* in, size_t n, uint8_t* out) {
    for (size_t i = 0; i < n; ++i) store(out + i * sizeof(To), static_cast<To>(load<From>(in + i * sizeof(From))));
}

template <class From>
void widen(const uint8_t* in, size_t n, size_t width, uint8_t* out) {
    for (size_t i = 0; i < n; ++i) {
        const int64_t v = load<From>(in + i * sizeof(From));
        store(out, v);
        for (size_t at = 8; at < width; at += 8) store(out + at, v >> 63);
        out += width;
    }
}

// Big-endian two's complement of `stored` bytes to little-endian of `width`.
void turn(const uint8_t* in, size_t n, size_t stored, size_t width, uint8_t* out) {
    for (size_t i = 0; i < n; ++i, in += stored, out += width) {
        const uint8_t* from = in;
        size_t left = stored;
        if (stored > width) {  // the leading bytes may only repeat the sign
            const uint8_t sign = in[stored - width] >> 7 ? 0xff : 0;
            for (; left > width; --left, ++from)
                if (*from != sign) throw Refused{"decimal_too_large"};
        }
        const uint8_t sign = left > 0 && from[0] >> 7 ? 0xff : 0;
        if (width == 16 && left <= 16) {
            uint8_t padded[16];
            std::memset(padded, sign, sizeof(padded));
            std::memcpy(padded + 16 - left, from, left);
            store(out, byteswap(load<uint64_t>(padded + 8)));
            store(out + 8, byteswap(load<uint64_t>(padded)));
            continue;
        }
        for (size_t k = 0; k < left; ++k) out[k] = from[left - 1 - k];
        std::memset(out + left, sign, width - left);
    }
}

void convert(const LeafSpec& leaf, const uint8_t* in, size_t n, uint8_t* out) {
    const size_t width = leaf.out_width();
    switch (leaf.convert) {
        case Convert::kNarrow8: return narrow<uint32_t, uint8_t>(in, n, out);
        case Convert::kNarrow16: return narrow<uint32_t, uint16_t>(in, n, out);
        case Convert::kDecimal16: case Convert::kDecimal32:
            return leaf.width == 4 ? widen<int32_t>(in, n, width, out) : widen<int64_t>(in, n, width, out);
        case Convert::kBytesDecimal16: case Convert::kBytesDecimal32: return turn(in, n, leaf.width, width, out);
        case Convert::kNone: std::memcpy(out, in, n * width); return;
    }
}

// ---- values of fixed width ------------------------------------------------------------------------------

void check_type(bool fits, int encoding, const LeafSpec& leaf) {
    if (!fits) throw Refused{"encoding_type", encoding, static_cast<int64_t>(leaf.physical)};
}

// The first n values of a page in `out`, or where they lie.
const uint8_t* plain_fixed(const PageValues& page, const LeafSpec& leaf, size_t n, Passing& room, Budget& budget) {
    const Bytes& data = page.data;
    if (leaf.physical == Physical::kBoolean) {
        if (data.size < (n + 7) / 8) {
            if (page.partly) throw NeedsAll{};
            throw Refused{"plain_booleans", static_cast<int64_t>(data.size), static_cast<int64_t>(page.present)};
        }
        if (!page.partly && data.size < (page.present + 7) / 8)
            throw Refused{"plain_booleans", static_cast<int64_t>(data.size), static_cast<int64_t>(page.present)};
        uint8_t* const out = room.take((n + 7) / 8 * 8, budget);
        for (size_t i = 0; i < n; i += 8) {
            const uint64_t bits = data.data[i / 8] * 0x0101010101010101ull & 0x8040201008040201ull;  // one in each byte
            store(out + i, (bits + 0x7f7f7f7f7f7f7f7full) >> 7 & 0x0101010101010101ull);
        }
        return out;
    }
    const size_t needed = checked_mul(n, leaf.width), all = checked_mul(page.present, leaf.width);
    const bool fixed = leaf.physical == Physical::kFixed;
    if (page.partly) {
        if (data.size < needed) throw NeedsAll{};
        if (fixed && data.size > all) throw NeedsAll{};
        return data.data;
    }
    // The width of a FIXED_LEN_BYTE_ARRAY stands in the schema alone: nothing else would show one that is too small.
    if (data.size < all || (fixed && data.size > all))
        throw Refused{"plain_size", static_cast<int64_t>(data.size), static_cast<int64_t>(page.present),
                      static_cast<int64_t>(leaf.width)};
    return data.data;
}

void rle_booleans(const PageValues& page, size_t n, uint8_t* out) {
    const Bytes& data = page.data;
    if (data.size < 4) throw Refused{"rle_length"};
    const size_t size = load<uint32_t>(data.data);
    if (size > data.size - 4) throw Refused{"rle_size", static_cast<int64_t>(size), static_cast<int64_t>(data.size - 4)};
    decode_hybrid_u8(data.data + 4, size, 1, n, out, 1);
}

void delta_fixed(const PageValues& page, const LeafSpec& leaf, uint8_t* out, Passing& room, Budget& budget) {
    const auto start = [&] { return delta::Reader{page.data.data, page.data.data + page.data.size}; };
    delta::Reader in = start();
    if (leaf.width == 8) return delta::decode(in, reinterpret_cast<uint64_t*>(out), page.present);
    try {
        delta::decode(in, reinterpret_cast<uint32_t*>(out), page.present);
    } catch (const KernelError& error) {
        // DuckDB (2.0) takes differences of INT32 as 64-bit numbers and packs them in up to 33 bits. Their sums are right
        // in the lower 32 bits all the same.
        auto* const wide = room.items<uint64_t>(page.present, budget);
        in = start();
        try {
            delta::decode(in, wide, page.present);
        } catch (const KernelError&) {
            throw error;
        }
        for (size_t i = 0; i < page.present; ++i) store(out + 4 * i, static_cast<uint32_t>(wide[i]));
    }
}

// Byte arrays with shared prefixes: their lengths, where they end, and their bytes.
struct Prefixed {
    std::unique_ptr<uint32_t[]> prefix, suffix;
    uint64_t total = 0;
    const uint8_t* bytes = nullptr;
    const uint8_t* end = nullptr;
};

Prefixed read_prefixed(const PageValues& page, uint64_t most) {
    delta::Reader in{page.data.data, page.data.data + page.data.size};
    const size_t count = page.present;
    if (count > 0 || page.data.size > 0) {
        delta::Reader look = in;
        delta::read_header(look, count);  // before anything is allocated: does the page claim as many?
    }
    Prefixed found;
    found.prefix = delta::decode_lengths(in, count, "prefix");
    found.suffix = delta::decode_lengths(in, count, "suffix");
    uint64_t stored = 0, last = 0;
    for (size_t i = 0; i < count; ++i) {
        if (found.prefix[i] > last)
            fail("value " + str(uint64_t{i}) + " takes " + str(uint64_t{found.prefix[i]}) + " bytes from one of " + str(last));
        stored += found.suffix[i];
        last = uint64_t{found.prefix[i]} + found.suffix[i];
        found.total += last;
        if (found.total > most) fail("byte arrays grow beyond the " + str(most) + " bytes allowed");
    }
    if (stored > in.left()) fail("suffixes declare " + str(stored) + " bytes, " + str(uint64_t{in.left()}) + " are left");
    found.bytes = in.p, found.end = in.end;
    return found;
}

void spell_prefixed(const Prefixed& from, size_t count, uint8_t* out) {
    const uint8_t* const end = out + from.total;
    const uint8_t *previous = out, *in = from.bytes;
    for (size_t i = 0; i < count; ++i) {
        uint8_t* const value = out;
        copy_short(out, end, previous, end, from.prefix[i]);
        out += from.prefix[i];
        copy_short(out, end, in, from.end, from.suffix[i]);
        out += from.suffix[i];
        in += from.suffix[i];
        previous = value;
    }
}

const uint8_t* prefixed_fixed(const PageValues& page, const LeafSpec& leaf, Passing& room, Budget& budget) {
    const Hold lengths(budget, checked_mul(page.present, 8));
    const Prefixed found = read_prefixed(page, checked_mul(page.present, leaf.width));
    for (size_t i = 0; i < page.present; ++i)
        if (uint64_t{found.prefix[i]} + found.suffix[i] != leaf.width)
            throw Refused{"fixed_length", static_cast<int64_t>(leaf.width)};
    uint8_t* const out = room.take(found.total, budget);
    spell_prefixed(found, page.present, out);
    return out;
}

// The values of a page that is not dictionary-encoded, the first n of them: in `direct`, where it is given and they are
// not somewhere already.
const uint8_t* decode_fixed(const PageValues& page, const LeafSpec& leaf, size_t n, uint8_t* direct, PageScratch& scratch,
                            Budget& budget) {
    const auto out = [&] { return direct != nullptr ? direct : scratch.values.take(page.present * leaf.width, budget); };
    switch (page.encoding) {
        case kPlain: return plain_fixed(page, leaf, n, scratch.values, budget);
        case kRle: {
            check_type(leaf.physical == Physical::kBoolean, page.encoding, leaf);
            uint8_t* const to = out();
            rle_booleans(page, page.present, to);
            return to;
        }
        case kDelta: {
            check_type(leaf.physical == Physical::kInt32 || leaf.physical == Physical::kInt64, page.encoding, leaf);
            uint8_t* const to = out();
            delta_fixed(page, leaf, to, scratch.indices, budget);
            return to;
        }
        case kByteStreamSplit: {
            check_type(leaf.physical != Physical::kBoolean && leaf.physical != Physical::kInt96, page.encoding, leaf);
            // The streams are as long as the page is: a padded page would be read wrong.
            if (page.data.size != checked_mul(page.present, leaf.width))
                throw Refused{"split_size", static_cast<int64_t>(page.data.size), static_cast<int64_t>(page.present),
                              static_cast<int64_t>(leaf.width)};
            uint8_t* const to = out();
            join_streams(page.data.data, page.present, leaf.width, to);
            return to;
        }
        case kDeltaByteArray:
            check_type(leaf.physical == Physical::kFixed, page.encoding, leaf);
            return prefixed_fixed(page, leaf, scratch.values, budget);
        case kDeltaLength: check_type(false, page.encoding, leaf); return nullptr;
        default: throw Refused{"encoding", page.encoding};
    }
}

// ---- indices --------------------------------------------------------------------------------------------

const Dictionary& there(const Dictionary& dictionary) {
    if (!dictionary.there) throw Refused{"no_dictionary"};
    return dictionary;
}

// Hands all wanted indices of a page, a block at a time, to f(indices, values, valid or null, slots); an index more than
// there are may be read.
template <class F>
void each_block(const PageValues& page, const uint8_t* valid, size_t slots, size_t entries, PageScratch& scratch,
                Budget& budget, F&& f) {
    uint32_t block[kIndexBlock + 8];
    if (page.wanted() == 0) {
        block[0] = 0;
        for (size_t from = 0; from < slots; from += kIndexBlock)
            f(block, 0, valid + from, std::min(kIndexBlock, slots - from));
        return;
    }
    if (page.data.size == 0) throw Refused{"no_indices"};
    IndexReader reader(page.data.data, page.data.size, entries);
    uint32_t* all = nullptr;
    if (page.picks != nullptr) {
        const size_t needed = page.needed();
        all = scratch.indices.items<uint32_t>(needed + 8, budget);
        reader.read(needed, all);
        for (size_t k = 0; k < page.picked; ++k) all[k] = all[page.picks[k]];
    }
    size_t taken = 0;
    for (size_t from = 0; from < slots; from += kIndexBlock) {
        const size_t m = std::min(kIndexBlock, slots - from);
        const uint8_t* present = valid == nullptr ? nullptr : valid + from;
        const size_t values = present == nullptr ? m : count_set(present, m);
        if (values == m) present = nullptr;
        if (all != nullptr) std::memcpy(block, all + taken, values * sizeof(uint32_t));
        else reader.read(values, block);
        block[values] = 0;  // looked up for absent slots behind the last value
        taken += values;
        f(block, values, present, m);
    }
}

// A block of indices into their entries; absent slots become zeros.
template <class T>
inline void pick(const uint8_t* entries, const uint32_t* indices, const uint8_t* valid, size_t n, size_t width, uint8_t* out) {
    if (valid == nullptr) {
        for (size_t i = 0; i < n; ++i) copy_item<T>(out, i, entries, indices[i], width);
        return;
    }
    size_t k = 0;
    for (size_t i = 0; i < n; ++i) {
        const bool set = valid[i] != 0;
        const uint8_t* const entry = entries + size_t{indices[k]} * width;
        if constexpr (is_odd<T>) {
            if (set) std::memcpy(out + i * width, entry, width);
            else std::memset(out + i * width, 0, width);
        } else if constexpr (std::is_integral_v<T>) {
            store(out + i * sizeof(T), static_cast<T>(load<T>(entry) & (T{0} - static_cast<T>(set))));
        } else {
            const T v = load<T>(entry);
            store(out + i * sizeof(T), set ? v : T{});
        }
        k += set;
    }
}

}  // namespace

// ---- dictionary -----------------------------------------------------------------------------------------

namespace {

void check_all_text(const std::vector<int64_t>& offsets, const uint8_t* data) {
    const size_t n = offsets.size() - 1;
    for (size_t i = 0; i < n; ++i) {
        const size_t length = static_cast<size_t>(offsets[i + 1] - offsets[i]);
        if (!utf8_valid(data + offsets[i], length))
            throw Refused{"utf8", static_cast<int64_t>(i), 0, 0,
                          std::string(reinterpret_cast<const char*>(data + offsets[i]), std::min<size_t>(length, 24))};
    }
}

bool ascii(const uint8_t* p, size_t n) {
    size_t i = 0;
    uint64_t any = 0;
    for (; i + 32 <= n; i += 32)
        any |= load<uint64_t>(p + i) | load<uint64_t>(p + i + 8) | load<uint64_t>(p + i + 16) | load<uint64_t>(p + i + 24);
    for (; i < n; ++i) any |= p[i];
    return (any & 0x8080808080808080ull) == 0;
}

}  // namespace

void Dictionary::load(const Bytes& plain, int64_t entries_, const LeafSpec& leaf, size_t uses, int64_t number,
                      Budget& budget) {
    count = static_cast<size_t>(entries_);
    there = true;
    if (leaf.physical != Physical::kByteArray) {
        const size_t needed = checked_mul(count, leaf.width);
        if (count > 0 && needed > plain.size)
            throw Refused{"dictionary_size", entries_, static_cast<int64_t>(plain.size)};
        PageValues page{kPlain, plain, count};
        budget.take(count * leaf.out_width());
        fixed.resize(count * leaf.out_width());
        Passing room;
        if (count == 0) return;
        const uint8_t* const values = plain_fixed(page, leaf, count, room, budget);
        if (leaf.kind == OutputKind::kCodes) {
            for (uint32_t i = 0; i < count; ++i) store(fixed.data() + 4 * i, i);
            bytes.assign(values, values + needed);
        } else {
            convert(leaf, values, count, fixed.data());
        }
        return;
    }
    if (count * 4 > plain.size)
        throw Refused{"plain_byte_arrays", static_cast<int64_t>(plain.size), entries_};
    budget.take(plain.size + 8 * count);
    offsets.resize(count + 1);
    bytes.resize(plain.size - 4 * count + 16);
    const uint8_t *p = plain.data, *end = plain.data + plain.size;
    uint8_t *w = bytes.data(), *w_end = bytes.data() + plain.size - 4 * count;
    offsets[0] = 0;
    for (size_t i = 0; i < count; ++i) {
        if (end - p < 4) throw Refused{"dictionary_values", 0, 0, 0, "PLAIN byte arrays end inside the length of value " + str(uint64_t{i})};
        const size_t length = pyparq::load<uint32_t>(p);
        p += 4;
        if (length > static_cast<size_t>(end - p) || length > static_cast<size_t>(w_end - w))
            throw Refused{"dictionary_values", 0, 0, 0,
                          "PLAIN byte array " + str(uint64_t{i}) + " declares " + str(uint64_t{length}) + " bytes, " +
                              str(static_cast<uint64_t>(end - p)) + " are left"};
        copy_short(w, w_end, p, end, length);
        p += length;
        w += length;
        offsets[i + 1] = w - bytes.data();
    }
    if (leaf.is_text && !ascii(bytes.data(), static_cast<size_t>(offsets[count]))) check_all_text(offsets, bytes.data());
    if (leaf.kind == OutputKind::kCodes) {
        fixed.resize(4 * count);
        for (uint32_t i = 0; i < count; ++i) store(fixed.data() + 4 * i, i);
    } else if (leaf.kind == OutputKind::kViews) {
        if (offsets[count] > std::numeric_limits<int32_t>::max()) throw NeedsWide{};
        budget.take(16 * count);
        fixed.resize(16 * count);
        for (size_t i = 0; i < count; ++i)
            put_view(fixed.data() + 16 * i, bytes.data() + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]),
                     static_cast<uint32_t>(number), static_cast<uint32_t>(offsets[i]));
    } else if (uses >= count && count > 0 && budget.left() / 4 > static_cast<int64_t>(count * (kLongestShort + 4))) {
        budget.take(count * (kLongestShort + 4));
        is_short = entries.load(offsets.data(), count, bytes.data());
    }
}

namespace {

void check_column(size_t size, const PageLimits& limits) {
    if (static_cast<int64_t>(size) > limits.max_column)
        throw Refused{"max_column", static_cast<int64_t>(size), limits.max_column};
}

}  // namespace

// ---- fixed ----------------------------------------------------------------------------------------------

FixedSink::FixedSink(const LeafSpec& leaf, uint8_t* place, size_t room, const PageLimits& limits)
    : leaf_(leaf), width_(leaf.out_width()), place_(place), room_(room), limits_(limits) {}

uint8_t* FixedSink::next(size_t more, Budget& budget) {
    if (place_ != nullptr) {
        if (more > room_ - slots) throw Refused{"too_many_values"};
        return place_ + slots * width_;
    }
    const size_t needed = checked_mul(slots + more, width_);
    check_column(needed, limits_);
    if (needed > own.size()) {
        const size_t room = std::max(needed, std::min(own.size() * 2, own.size() + (size_t{64} << 20)));
        budget.take(room - own.size());
        own.grow(room);
    }
    return own.data() + slots * width_;
}

void FixedSink::append(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& dictionary,
                       PageScratch& scratch, Budget& budget) {
    uint8_t* out = next(n, budget);
    const size_t width = width_;
    try {
        if (is_dictionary(page.encoding)) {
            const Dictionary& from = there(dictionary);
            each_block(page, valid, n, from.count, scratch, budget,
                       [&](const uint32_t* block, size_t values, const uint8_t* present, size_t m) {
                if (values == 0) std::memset(out, 0, m * width);
                else by_width(width, [&](auto tag) { pick<decltype(tag)>(from.fixed.data(), block, present, m, width, out); });
                out += m * width;
            });
        } else if (leaf_.kind != OutputKind::kValues) {
            throw NeedsWide{};
        } else {
            const bool in_order = page.picks == nullptr && (valid == nullptr || page.present == n);
            const bool direct = in_order && leaf_.convert == Convert::kNone;
            const size_t needed = page.needed();
            const uint8_t* values = decode_fixed(page, leaf_, needed, direct ? out : nullptr, scratch, budget);
            if (leaf_.convert != Convert::kNone) {
                if (in_order) {
                    convert(leaf_, values, n, out);
                    values = out;
                } else {
                    uint8_t* const made = scratch.spelled.take(needed * width + 1, budget);
                    convert(leaf_, values, needed, made);
                    values = made;
                }
            }
            if (values != out) place_values(values, width, page, valid, n, out);
        }
    } catch (const KernelError& error) {
        if (page.partly) throw NeedsAll{};
        bad_values(page.encoding, error);
    }
    slots += n;
}

// ---- byte arrays ----------------------------------------------------------------------------------------

template <class O>
BinarySink<O>::BinarySink(const LeafSpec& leaf, O* place, size_t room, size_t bytes_expected, Budget& budget,
                          const PageLimits& limits)
    : leaf_(leaf), place_(place), room_(room), limits_(limits) {
    budget.take(bytes_expected);
    bytes.grow(bytes_expected);
}

template <class O>
O* BinarySink<O>::next(size_t more, Budget& budget) {
    if (place_ != nullptr) {
        if (more > room_ - slots) throw Refused{"too_many_values"};
        return place_ + slots;
    }
    const size_t needed = checked_mul(slots + more + 1, sizeof(O));
    check_column(needed, limits_);
    if (needed > own.size()) {
        const size_t room = std::max(needed, own.size() * 2);
        budget.take(room - own.size());
        own.grow(room);
    }
    return own.as<O>() + slots;
}

template <class O>
void BinarySink<O>::reserve(size_t more, Budget& budget) {
    const int64_t last = sizeof(O) == 4 ? limits_.most_offset : std::numeric_limits<int64_t>::max();
    if (more > static_cast<size_t>(last) || used > static_cast<size_t>(last) - more) throw NeedsWide{};
    const size_t needed = used + more;
    if (needed <= bytes.size()) return;
    check_column(needed, limits_);
    size_t room = std::max(needed, bytes.size() * 2);
    if (static_cast<int64_t>(room - bytes.size()) > budget.left()) room = needed;
    budget.take(room - bytes.size());
    bytes.grow(room);
}

template <class O>
void BinarySink<O>::append(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& dictionary,
                           PageScratch& scratch, Budget& budget) {
    O* const offsets = next(n, budget);
    const size_t from = used;
    if (valid != nullptr && page.wanted() == n) valid = nullptr;
    try {
        if (is_dictionary(page.encoding)) {
            indices(page, valid, n, offsets, there(dictionary), scratch, budget);
        } else if (page.encoding == kPlain) {
            if (page.data.size / 4 < page.present && !page.partly)
                throw Refused{"plain_byte_arrays", static_cast<int64_t>(page.data.size), static_cast<int64_t>(page.present)};
            if (page.picks == nullptr && valid == nullptr) plain_all(page, offsets, budget);
            else plain(page, valid, n, offsets, scratch, budget);
        } else if (page.encoding == kDeltaLength) {
            delta_length(page, valid, n, offsets, scratch, budget);
        } else if (page.encoding == kDeltaByteArray) {
            shared_prefixes(page, valid, n, offsets, scratch, budget);
        } else {
            const bool known = page.encoding == kRle || page.encoding == kDelta || page.encoding == kByteStreamSplit;
            if (known) check_type(false, page.encoding, leaf_);
            throw Refused{"encoding", page.encoding};
        }
    } catch (const KernelError& error) {
        used = from;
        if (page.partly) throw NeedsAll{};
        bad_values(page.encoding, error);
    }
    if (leaf_.is_text && !is_dictionary(page.encoding)) check_text(page, valid, offsets, n, from);
    slots += n;
}

template <class O>
void BinarySink<O>::plain_all(const PageValues& page, O* offsets, Budget& budget) {
    const size_t n = page.present;
    reserve(page.data.size, budget);
    const uint8_t *p = page.data.data, *const end = p + page.data.size;
    uint8_t *const start = bytes.data() + used, *w = start, *const w_end = bytes.data() + bytes.size();
    const O first = base();
    for (size_t i = 0; i < n; ++i) {
        if (end - p < 4) fail("PLAIN byte arrays end inside the length of value " + str(uint64_t{i}));
        const size_t length = load<uint32_t>(p);
        p += 4;
        if (length > static_cast<size_t>(end - p))
            fail("PLAIN byte array " + str(uint64_t{i}) + " declares " + str(uint64_t{length}) + " bytes, " +
                 str(static_cast<uint64_t>(end - p)) + " are left");
        copy_short(w, w_end, p, end, length);
        p += length;
        w += length;
        offsets[i] = static_cast<O>(first + static_cast<O>(w - start));
    }
    used += static_cast<size_t>(w - start);
}

// Values between `source` and `limit`, one for each slot that is present.
template <class O>
void BinarySink<O>::some(const uint8_t* source, const uint8_t* limit, const uint32_t* starts, const uint32_t* lengths,
                         size_t values, const uint8_t* valid, size_t n, O* offsets, Budget& budget) {
    size_t total = 0;
    for (size_t k = 0; k < values; ++k) total += lengths[k];
    reserve(total + 32, budget);
    uint8_t *const start = bytes.data() + used, *w = start, *const w_end = bytes.data() + bytes.size();
    const O first = base();
    size_t k = 0;
    for (size_t i = 0; i < n; ++i) {
        if (valid == nullptr || valid[i] != 0) {
            copy_short(w, w_end, source + starts[k], limit, lengths[k]);
            w += lengths[k++];
        }
        offsets[i] = static_cast<O>(first + static_cast<O>(w - start));
    }
    used += total;
}

template <class O>
void BinarySink<O>::plain(const PageValues& page, const uint8_t* valid, size_t n, O* offsets, PageScratch& scratch,
                          Budget& budget) {
    const size_t needed = page.needed(), wanted = page.wanted();
    auto* const starts = scratch.starts.items<uint32_t>(2 * wanted + 1, budget);
    uint32_t* const lengths = starts + wanted;
    const uint8_t *const first = page.data.data, *p = first, *const end = first + page.data.size;
    size_t k = 0;
    for (size_t i = 0; i < needed; ++i) {
        if (end - p < 4) fail("PLAIN byte arrays end inside the length of value " + str(uint64_t{i}));
        const size_t length = load<uint32_t>(p);
        p += 4;
        if (length > static_cast<size_t>(end - p))
            fail("PLAIN byte array " + str(uint64_t{i}) + " declares " + str(uint64_t{length}) + " bytes, " +
                 str(static_cast<uint64_t>(end - p)) + " are left");
        starts[k] = static_cast<uint32_t>(p - first);  // written anew until the value is one of the wanted
        lengths[k] = static_cast<uint32_t>(length);
        k += page.picks == nullptr || page.picks[k] == i;
        p += length;
    }
    some(first, end, starts, lengths, wanted, valid, n, offsets, budget);
}

template <class O>
void BinarySink<O>::delta_length(const PageValues& page, const uint8_t* valid, size_t n, O* offsets, PageScratch& scratch,
                                 Budget& budget) {
    delta::Reader in{page.data.data, page.data.data + page.data.size};
    const size_t count = page.present, wanted = page.wanted();
    if (count > 0 || page.data.size > 0) {
        delta::Reader look = in;
        delta::read_header(look, count);
    }
    const Hold held(budget, checked_mul(count, 4));
    const auto all = delta::decode_lengths(in, count, "byte array");
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) total += all[i];
    if (total > in.left()) fail("byte arrays declare " + str(total) + " bytes, " + str(uint64_t{in.left()}) + " are left");
    if (page.picks == nullptr && valid == nullptr) {
        reserve(total, budget);
        O at = base();
        for (size_t i = 0; i < count; ++i) offsets[i] = at = static_cast<O>(at + static_cast<O>(all[i]));
        if (total > 0) std::memcpy(bytes.data() + used, in.p, total);
        used += total;
        return;
    }
    auto* const starts = scratch.starts.items<uint32_t>(2 * wanted + 1, budget);
    uint32_t* const lengths = starts + wanted;
    uint32_t at = 0;
    for (size_t i = 0, k = 0; i < count && k < wanted; ++i) {
        starts[k] = at, lengths[k] = all[i];
        k += page.picks == nullptr || page.picks[k] == i;
        at += all[i];
    }
    some(in.p, in.end, starts, lengths, wanted, valid, n, offsets, budget);
}

template <class O>
void BinarySink<O>::shared_prefixes(const PageValues& page, const uint8_t* valid, size_t n, O* offsets,
                                    PageScratch& scratch, Budget& budget) {
    constexpr uint64_t kMostPage = 0x7fffffff;  // what a plain page could hold
    const Hold held(budget, checked_mul(page.present, 8));
    const int64_t left = budget.left() - 8 * static_cast<int64_t>(page.present);
    const uint64_t most = std::min<uint64_t>(kMostPage, left < 0 ? 0 : static_cast<uint64_t>(left));
    Prefixed found;
    try {
        found = read_prefixed(page, most);
    } catch (const KernelError& error) {
        if (most < kMostPage && std::string(error.what()).find("bytes allowed") != std::string::npos)
            throw Refused{"memory", static_cast<int64_t>(most)};
        throw;
    }
    const size_t count = page.present;
    if (page.picks == nullptr && valid == nullptr) {
        reserve(found.total, budget);
        O at = base();
        for (size_t i = 0; i < count; ++i)
            offsets[i] = at = static_cast<O>(at + static_cast<O>(found.prefix[i] + found.suffix[i]));
        spell_prefixed(found, count, bytes.data() + used);
        used += found.total;
        return;
    }
    const size_t wanted = page.wanted();
    uint8_t* const spelled = scratch.spelled.take(found.total + 1, budget);
    spell_prefixed(found, count, spelled);
    auto* const starts = scratch.starts.items<uint32_t>(2 * wanted + 1, budget);
    uint32_t* const lengths = starts + wanted;
    uint32_t at = 0;
    for (size_t i = 0, k = 0; i < count && k < wanted; ++i) {
        starts[k] = at, lengths[k] = found.prefix[i] + found.suffix[i];
        at += lengths[k];
        k += page.picks == nullptr || page.picks[k] == i;
    }
    some(spelled, spelled + found.total, starts, lengths, wanted, valid, n, offsets, budget);
}

template <class O>
void BinarySink<O>::indices(const PageValues& page, const uint8_t* valid, size_t n, O* offsets, const Dictionary& from,
                            PageScratch& scratch, Budget& budget) {
    if (from.is_short) {
        from.entries.visit([&](const auto& entries) {
            each_block(page, valid, n, from.count, scratch, budget,
                       [&](const uint32_t* block, size_t values, const uint8_t* present, size_t m) {
                reserve(from.entries.room(values), budget);
                Spot<O> at{offsets, base(), bytes.data() + used};
                if (values == 0) std::fill_n(offsets, m, at.end);
                else if (present == nullptr) entries.put(block, m, at);
                else entries.put_present(block, values, present, m, at);
                used = static_cast<size_t>(at.out - bytes.data());
                offsets += m;
            });
        });
        return;
    }
    const int64_t* const d = from.offsets.data();
    const uint8_t* const data = from.bytes.data();
    const uint8_t* const end = data + from.bytes.size();
    each_block(page, valid, n, from.count, scratch, budget,
               [&](const uint32_t* block, size_t values, const uint8_t* present, size_t m) {
        size_t total = 0;
        for (size_t k = 0; k < values; ++k) total += static_cast<size_t>(d[block[k] + 1] - d[block[k]]);
        reserve(total + 32, budget);
        uint8_t *w = bytes.data() + used, *const w_end = bytes.data() + bytes.size();
        const uint8_t* const first = bytes.data();
        size_t k = 0;
        for (size_t i = 0; i < m; ++i) {
            if (present == nullptr || present[i] != 0) {
                if (values > 0) {
                    const size_t length = static_cast<size_t>(d[block[k] + 1] - d[block[k]]);
                    copy_short(w, w_end, data + d[block[k]], end, length);
                    w += length;
                    ++k;
                }
            }
            offsets[i] = static_cast<O>(w - first);
        }
        offsets += m;
        used += total;
    });
}

template <class O>
void BinarySink<O>::check_text(const PageValues& page, const uint8_t* valid, const O* offsets, size_t n, size_t from) const {
    const uint8_t* const data = bytes.data();
    if (ascii(data + from, used - from)) return;
    O start = static_cast<O>(from);
    if (utf8_valid(data + from, used - from)) {  // valid as one stream, and no value starts inside a character
        bool split = false;
        O at = start;
        for (size_t i = 0; i < n; ++i) {
            split |= static_cast<size_t>(at) < used && (data[at] & 0xc0) == 0x80;
            at = offsets[i];
        }
        if (!split) return;
    }
    int64_t number = -1;  // of the value in its page, nulls not counted
    for (size_t i = 0; i < n; ++i) {
        const O stop = offsets[i];
        if (valid == nullptr || valid[i] != 0) {
            ++number;
            const auto length = static_cast<size_t>(stop - start);
            if (!utf8_valid(data + start, length))
                throw Refused{"utf8", page.picks == nullptr ? number : page.picks[number], 0, 0,
                              std::string(reinterpret_cast<const char*>(data + start), std::min<size_t>(length, 24))};
        }
        start = stop;
    }
}

template class BinarySink<int32_t>;
template class BinarySink<int64_t>;

}  // namespace pyparq
