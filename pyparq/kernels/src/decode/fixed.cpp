// Values of fixed width, decoded into their slots.
#include "decode/values.hpp"

#include "decode/delta_binary_packed.hpp"
#include "values/alp.hpp"
#include "values/byte_stream_split.hpp"

namespace pyparq {

size_t LeafSpec::out_width() const {
    if (is_codes()) return 4;
    if (is_views()) return 16;
    switch (convert) {
        case Convert::kInt8:
        case Convert::kUint8: return 1;
        case Convert::kInt16:
        case Convert::kUint16: return 2;
        case Convert::kDecimal16:
        case Convert::kBytesDecimal16: return 16;
        case Convert::kDecimal32:
        case Convert::kBytesDecimal32: return 32;
        default: return width;
    }
}

namespace {

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

}  // namespace

// The first n values of a page in `out`, or where they lie.
const uint8_t* plain_fixed(const PageValues& page, const LeafSpec& leaf, size_t n, Passing& room, Budget& budget) {
    const Bytes& data = page.data;
    if (leaf.physical == Physical::kBoolean) {
        if (data.size < (n + 7) / 8) {
            if (page.partly) throw NeedsAll{};
            throw PageRefusal{"plain_booleans", static_cast<int64_t>(data.size), static_cast<int64_t>(page.present)};
        }
        if (!page.partly && data.size < (page.present + 7) / 8)
            throw PageRefusal{"plain_booleans", static_cast<int64_t>(data.size), static_cast<int64_t>(page.present)};
        uint8_t* const out = room.take((n + 7) / 8 * 8, budget);
        for (size_t i = 0; i < n; i += 8) {
            const uint64_t bits = data.data[i / 8] * 0x0101010101010101ull & 0x8040201008040201ull;  // one in each byte
            store(out + i, (bits + 0x7f7f7f7f7f7f7f7full) >> 7 & 0x0101010101010101ull);
        }
        return out;
    }
    const size_t needed = checked_mul(n, leaf.width), all = checked_mul(page.present, leaf.width);
    // The width of a FIXED_LEN_BYTE_ARRAY stands in the schema alone: nothing else would show one that is too small. Such
    // a page has a byte per value too many, or more. Fewer are no part of a value (fastparquet pads pages by 8 bytes).
    const bool fixed = leaf.physical == Physical::kFixed;
    const bool narrow = fixed && data.size > all && data.size - all >= page.present;
    if (page.partly) {
        if (data.size < needed || narrow) throw NeedsAll{};
        return data.data;
    }
    if (data.size < all || narrow)
        throw PageRefusal{"plain_size", static_cast<int64_t>(data.size), static_cast<int64_t>(page.present),
                          static_cast<int64_t>(leaf.width)};
    return data.data;
}

namespace {

void rle_booleans(const PageValues& page, size_t n, uint8_t* out) {
    const Bytes& data = page.data;
    if (data.size < 4) throw PageRefusal{"rle_length"};
    const size_t size = load<uint32_t>(data.data);
    if (size > data.size - 4) throw PageRefusal{"rle_size", static_cast<int64_t>(size), static_cast<int64_t>(data.size - 4)};
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

const uint8_t* prefixed_fixed(const PageValues& page, const LeafSpec& leaf, Passing& room, Budget& budget) {
    const Hold lengths(budget, checked_mul(page.present, 8));
    const auto found = delta::read_prefixed({page.data.data, page.data.data + page.data.size}, page.present,
                                            checked_mul(page.present, leaf.width));
    for (size_t i = 0; i < page.present; ++i)
        if (uint64_t{found.prefix[i]} + found.suffix[i] != leaf.width)
            throw PageRefusal{"fixed_length", static_cast<int64_t>(leaf.width)};
    uint8_t* const out = room.take(found.total, budget);
    delta::spell_prefixed(found, page.present, out);
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
        case kDeltaBinaryPacked: {
            check_type(leaf.physical == Physical::kInt32 || leaf.physical == Physical::kInt64, page.encoding, leaf);
            uint8_t* const to = out();
            delta_fixed(page, leaf, to, scratch.indices, budget);
            return to;
        }
        case kByteStreamSplit: {
            check_type(leaf.physical != Physical::kBoolean && leaf.physical != Physical::kInt96, page.encoding, leaf);
            // The streams are as long as the page is: a padded page would be read wrong.
            if (page.data.size != checked_mul(page.present, leaf.width))
                throw PageRefusal{"split_size", static_cast<int64_t>(page.data.size), static_cast<int64_t>(page.present),
                                  static_cast<int64_t>(leaf.width)};
            uint8_t* const to = out();
            join_streams(page.data.data, page.present, leaf.width, to);
            return to;
        }
        case kAlp: {
            check_type(leaf.physical == Physical::kFloat || leaf.physical == Physical::kDouble, page.encoding, leaf);
            uint8_t* const to = out();
            alp_decode(page.data.data, page.data.size, leaf.width, page.present, page.picks, page.picked, to);
            return to;
        }
        case kDeltaByteArray:
            check_type(leaf.physical == Physical::kFixed, page.encoding, leaf);
            return prefixed_fixed(page, leaf, scratch.values, budget);
        case kDeltaLength: check_type(false, page.encoding, leaf); return nullptr;
        default: throw PageRefusal{"encoding", page.encoding};
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

void FixedSink::check_used(const Dictionary& from, const uint32_t* indices, size_t values) const {
    for (size_t i = 0; i < values; ++i)
        if (from.beyond[indices[i]] != 0) does_not_fit(leaf_);
}

FixedSink::FixedSink(const LeafSpec& leaf, uint8_t* place, size_t room, const PageLimits& limits)
    : leaf_(leaf), width_(leaf.out_width()), place_(place), room_(room), limits_(limits) {}

uint8_t* FixedSink::next(size_t more, Budget& budget) {
    if (place_ != nullptr) {
        if (more > room_ - slots) throw PageRefusal{"too_many_values"};
        return place_ + slots * width_;
    }
    const size_t needed = checked_mul(slots + more, width_);
    check_column(needed, limits_);
    if (needed > own.size()) {
        const size_t room = std::max(needed, std::min(grown(own.size(), needed, budget), own.size() + (size_t{64} << 20)));
        budget.take(room - own.size());
        own.grow(room);
    }
    return own.data() + slots * width_;
}

void FixedSink::append(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& dictionary,
                       PageScratch& scratch, Budget& budget) {
    uint8_t* const out = next(n, budget);
    try {
        if (is_dictionary(page.encoding)) append_entries(page, valid, n, there(dictionary), out, scratch, budget);
        else if (!leaf_.is_values()) throw OtherForm{};
        else append_values(page, valid, n, out, scratch, budget);
    } catch (const KernelError& error) {
        if (page.partly) throw NeedsAll{};
        bad_values(page.encoding, error);
    }
    slots += n;
}

void FixedSink::append_entries(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& from, uint8_t* out,
                               PageScratch& scratch, Budget& budget) {
    if (leaf_.is_codes() && valid == nullptr && page.picks == nullptr && n > 0) {
        if (page.data.size == 0) throw PageRefusal{"no_indices"};
        auto* const codes = reinterpret_cast<uint32_t*>(out);
        IndexReader(page.data.data, page.data.size, from.count).read(n, codes);
        for (size_t i = 0; from.first != 0 && i < n; ++i) codes[i] += from.first;
        return;
    }
    const size_t width = width_;
    each_block(page, valid, n, from.count, scratch, budget,
               [&](const uint32_t* block, size_t values, const uint8_t* present, size_t m) {
        if (!from.beyond.empty()) check_used(from, block, values);
        if (values == 0) std::memset(out, 0, m * width);
        else by_width(width, [&](auto tag) { pick<decltype(tag)>(from.fixed.data(), block, present, m, width, out); });
        out += m * width;
    });
}

void FixedSink::append_values(const PageValues& page, const uint8_t* valid, size_t n, uint8_t* out, PageScratch& scratch,
                              Budget& budget) {
    const bool in_order = page.picks == nullptr && (valid == nullptr || page.present == n);
    const bool converts = leaf_.convert != Convert::kNone;
    PageValues kept = page;
    const uint8_t* values = decode_fixed(page, leaf_, page.needed(), in_order && !converts ? out : nullptr, scratch, budget);
    if (converts && in_order) {
        if (!convert(leaf_, values, n, out)) does_not_fit(leaf_);
        values = out;
    } else if (converts) {
        values = convert_wanted(kept, values, scratch, budget);
    }
    if (values != out) place_values(values, width_, kept, valid, n, out);
}

// Of the stored values only those that are wanted, converted; `page` then has no others.
const uint8_t* FixedSink::convert_wanted(PageValues& page, const uint8_t* values, PageScratch& scratch, Budget& budget) const {
    const size_t wanted = page.wanted();
    const size_t stored = page.picks == nullptr ? 0 : wanted * leaf_.width;
    uint8_t* const made = scratch.spelled.take(stored + wanted * width_ + 1, budget);
    if (page.picks != nullptr) {
        place_values(values, leaf_.width, page, nullptr, wanted, made);
        values = made;
    }
    if (!convert(leaf_, values, wanted, made + stored)) does_not_fit(leaf_);
    page.picks = nullptr, page.present = wanted;
    return made + stored;
}

}  // namespace pyparq
