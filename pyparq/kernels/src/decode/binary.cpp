// Byte arrays, decoded into offsets and bytes.
#include "decode/values.hpp"

namespace pyparq {

bool ascii(const uint8_t* p, size_t n) {
    size_t i = 0;
    uint64_t any = 0;
    for (; i + 32 <= n; i += 32)
        any |= load<uint64_t>(p + i) | load<uint64_t>(p + i + 8) | load<uint64_t>(p + i + 16) | load<uint64_t>(p + i + 24);
    for (; i < n; ++i) any |= p[i];
    return (any & 0x8080808080808080ull) == 0;
}

void PlainReader::ends_early(uint64_t number) { fail("PLAIN byte arrays end inside the length of value " + str(number)); }

void PlainReader::too_long(uint64_t number, size_t length, size_t left) {
    fail("PLAIN byte array " + str(number) + " declares " + str(uint64_t{length}) + " bytes, " + str(uint64_t{left}) +
         " are left");
}

Lengths read_lengths(const PageValues& page) {
    delta::Reader in{page.data.data, page.data.data + page.data.size};
    const size_t count = page.present;
    if (count > 0 || page.data.size > 0) {
        delta::Reader look = in;
        delta::read_header(look, count);  // before anything is allocated: does the page claim as many?
    }
    Lengths found{delta::decode_lengths(in, count, "byte array"), {}};
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) total += found.all[i];
    if (total > in.left()) fail("byte arrays declare " + str(total) + " bytes, " + str(uint64_t{in.left()}) + " are left");
    found.bytes = {in.p, total};
    return found;
}

delta::Prefixed read_prefixes(const PageValues& page, Budget& budget) {
    constexpr uint64_t kMostPage = 0x7fffffff;  // what a plain page could hold
    const int64_t left = budget.left();
    const uint64_t most = std::min<uint64_t>(kMostPage, left < 0 ? 0 : static_cast<uint64_t>(left));
    try {
        return delta::read_prefixed({page.data.data, page.data.data + page.data.size}, page.present, most);
    } catch (const KernelError& error) {
        if (most < kMostPage && std::string(error.what()).find("bytes allowed") != std::string::npos)
            throw PageRefusal{"memory", static_cast<int64_t>(most) + 1, budget.held()};
        throw;
    }
}

void not_of_byte_arrays(int encoding, const LeafSpec& leaf) {
    if (is_encoding(encoding)) check_type(false, encoding, leaf);
    throw PageRefusal{"encoding", encoding};
}

template <class O>
BinarySink<O>::BinarySink(const LeafSpec& leaf, O* place, size_t room, size_t bytes_expected, Budget& budget,
                          const PageLimits& limits)
    : leaf_(leaf), place_(place), room_(room), limits_(limits), expected_(bytes_expected) {
    constexpr size_t kLeast = 64;
    budget.take(kLeast);
    bytes.grow(kLeast);
    data_ = bytes.data(), data_room_ = bytes.size();
}

// The room that was foreseen, at the first page that has values: nulls take none, and only a page itself tells of them.
template <class O>
void BinarySink<O>::foresee(const PageValues& page, size_t n, Budget& budget) {
    auto expected = static_cast<double>(std::exchange(expected_, 0));
    if (joint_ != nullptr) {
        const JointBytes::Part part = joint_->part(segment_, page.wanted() != n, budget);
        if (part.data != nullptr) {
            data_ = part.data, data_room_ = part.room;
            return;
        }
    }
    if (is_dictionary(page.encoding)) expected *= static_cast<double>(page.wanted()) / static_cast<double>(n);
    const auto size = static_cast<size_t>(expected);
    if (size <= bytes.size()) return;
    budget.take(size - bytes.size());
    bytes.grow(size);
    data_ = bytes.data(), data_room_ = bytes.size();
}

template <class O>
O* BinarySink<O>::next(size_t more, Budget& budget) {
    if (place_ != nullptr) {
        if (more > room_ - slots) throw PageRefusal{"too_many_values"};
        return place_ + slots;
    }
    const size_t needed = checked_mul(slots + more + 1, sizeof(O));
    check_column(needed, limits_);
    if (needed > own.size()) {
        const size_t room = grown(own.size(), needed, budget);
        budget.take(room - own.size());
        own.grow(room);
    }
    return own.as<O>() + slots;
}

template <class O>
void BinarySink<O>::reserve(size_t more, Budget& budget) {
    const int64_t last = sizeof(O) == 4 ? limits_.most_offset : std::numeric_limits<int64_t>::max();
    if (more > static_cast<size_t>(last) || used > static_cast<size_t>(last) - more) throw OtherForm{};
    const size_t needed = used + more;
    if (needed <= data_room_) return;
    check_column(needed, limits_);
    const size_t room = std::max(grown(bytes.size(), needed, budget), bytes.size());
    budget.take(room - bytes.size());
    const bool shared = data_ != bytes.data();
    bytes.grow(room);
    if (shared && used > 0) std::memcpy(bytes.data(), data_, used);
    data_ = bytes.data(), data_room_ = bytes.size();
}

template <class O>
void BinarySink<O>::append(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& dictionary,
                           PageScratch& scratch, Budget& budget) {
    O* const offsets = next(n, budget);
    const size_t from = used;
    if (valid != nullptr && page.wanted() == n) valid = nullptr;
    if (expected_ > 0 && page.wanted() > 0) foresee(page, n, budget);
    try {
        if (is_dictionary(page.encoding)) {
            indices(page, valid, n, offsets, there(dictionary), scratch, budget);
        } else if (page.encoding == kPlain) {
            check_plain(page);
            if (page.picks == nullptr && valid == nullptr) plain_all(page, offsets, budget);
            else plain(page, valid, n, offsets, scratch, budget);
        } else if (page.encoding == kDeltaLength) {
            delta_length(page, valid, n, offsets, scratch, budget);
        } else if (page.encoding == kDeltaByteArray) {
            shared_prefixes(page, valid, n, offsets, scratch, budget);
        } else {
            not_of_byte_arrays(page.encoding, leaf_);
        }
    } catch (const KernelError& error) {
        used = from;
        if (page.partly) throw NeedsAll{};
        bad_values(page.encoding, error);
    }
    if (leaf_.is_text && !is_dictionary(page.encoding)) check_all_text(page, valid, offsets, n, from);
    slots += n;
}

template <class O>
void BinarySink<O>::plain_all(const PageValues& page, O* offsets, Budget& budget) {
    size_t total = page.data.size;                             // at most
    if (data_ != bytes.data() && total > data_room_ - used) {  // perhaps only with the lengths
        total = 0;
        each_plain(page, [&](const Bytes& value) { total += value.size; });
    }
    reserve(total, budget);
    uint8_t *const start = data_ + used, *w = start, *const w_end = data_ + data_room_;
    const uint8_t* const end = page.data.data + page.data.size;
    const O first = base();
    each_plain(page, [&](const Bytes& value) {
        copy_short(w, w_end, value.data, end, value.size);
        w += value.size;
        *offsets++ = static_cast<O>(first + static_cast<O>(w - start));
    });
    used += static_cast<size_t>(w - start);
}

// The values that `walk(f)` hands to f, all of them in `source`, one for each slot that is present.
template <class O>
template <class Walk>
void BinarySink<O>::some(const Bytes& source, const PageValues& page, const uint8_t* valid, size_t n, O* offsets,
                         PageScratch& scratch, Budget& budget, Walk&& walk) {
    const size_t values = page.wanted();
    auto* const starts = scratch.starts.items<uint32_t>(2 * values + 1, budget);
    uint32_t* const lengths = starts + values;
    size_t total = 0, found = 0;
    walk([&](const Bytes& value) {
        starts[found] = static_cast<uint32_t>(value.data - source.data);
        lengths[found++] = static_cast<uint32_t>(value.size);
        total += value.size;
    });
    reserve(total + 32, budget);
    uint8_t *const start = data_ + used, *w = start, *const w_end = data_ + data_room_;
    const uint8_t* const limit = source.data + source.size;
    const O first = base();
    size_t k = 0;
    for (size_t i = 0; i < n; ++i) {
        if (valid == nullptr || valid[i] != 0) {
            copy_short(w, w_end, source.data + starts[k], limit, lengths[k]);
            w += lengths[k++];
        }
        offsets[i] = static_cast<O>(first + static_cast<O>(w - start));
    }
    used += total;
}

template <class O>
void BinarySink<O>::plain(const PageValues& page, const uint8_t* valid, size_t n, O* offsets, PageScratch& scratch,
                          Budget& budget) {
    some(page.data, page, valid, n, offsets, scratch, budget, [&](auto&& f) { each_plain(page, f); });
}

template <class O>
void BinarySink<O>::delta_length(const PageValues& page, const uint8_t* valid, size_t n, O* offsets, PageScratch& scratch,
                                 Budget& budget) {
    const Hold held(budget, checked_mul(page.present, 4));
    const Lengths found = read_lengths(page);
    const size_t total = found.bytes.size;
    if (page.picks == nullptr && valid == nullptr) {
        reserve(total, budget);
        O at = base();
        for (size_t i = 0; i < page.present; ++i) offsets[i] = at = static_cast<O>(at + static_cast<O>(found.all[i]));
        if (total > 0) std::memcpy(data_ + used, found.bytes.data, total);
        used += total;
        return;
    }
    some(found.bytes, page, valid, n, offsets, scratch, budget, [&](auto&& f) {
        each_of_lengths(page, found.bytes.data, [&](size_t i) { return found.all[i]; }, f);
    });
}

template <class O>
void BinarySink<O>::shared_prefixes(const PageValues& page, const uint8_t* valid, size_t n, O* offsets,
                                    PageScratch& scratch, Budget& budget) {
    const Hold held(budget, checked_mul(page.present, 8));
    const delta::Prefixed found = read_prefixes(page, budget);
    const size_t count = page.present;
    if (page.picks == nullptr && valid == nullptr) {
        reserve(found.total, budget);
        O at = base();
        for (size_t i = 0; i < count; ++i) offsets[i] = at = static_cast<O>(at + static_cast<O>(found.length(i)));
        delta::spell_prefixed(found, count, data_ + used);
        used += found.total;
        return;
    }
    uint8_t* const spelled = scratch.spelled.take(found.total + 1, budget);
    delta::spell_prefixed(found, count, spelled);
    some({spelled, found.total}, page, valid, n, offsets, scratch, budget, [&](auto&& f) {
        each_of_lengths(page, spelled, [&](size_t i) { return found.length(i); }, f);
    });
}

// Entries that all are short are kept side by side, each in as much room as the longest.
template <class O>
void BinarySink<O>::short_entries(const PageValues& page, const uint8_t* valid, size_t n, O* offsets, const Dictionary& from,
                                  PageScratch& scratch, Budget& budget) {
    from.entries.visit([&](const auto& entries) {
        each_block(page, valid, n, from.count, scratch, budget,
                   [&](const uint32_t* block, size_t values, const uint8_t* present, size_t m) {
            reserve(from.entries.room(values), budget);
            Spot<O> at{offsets, base(), data_ + used};
            if (values == 0) std::fill_n(offsets, m, at.end);
            else if (present == nullptr) entries.put(block, m, at);
            else entries.put_present(block, values, present, m, at);
            used = static_cast<size_t>(at.out - data_);
            offsets += m;
        });
    });
}

template <class O>
void BinarySink<O>::indices(const PageValues& page, const uint8_t* valid, size_t n, O* offsets, const Dictionary& from,
                            PageScratch& scratch, Budget& budget) {
    if (from.is_short) return short_entries(page, valid, n, offsets, from, scratch, budget);
    const int64_t* const d = from.offsets.data();
    const uint8_t* const data = from.bytes.data();
    const uint8_t* const end = data + from.bytes.size();
    each_block(page, valid, n, from.count, scratch, budget,
               [&](const uint32_t* block, size_t values, const uint8_t* present, size_t m) {
        size_t total = 0;
        for (size_t k = 0; k < values; ++k) total += static_cast<size_t>(d[block[k] + 1] - d[block[k]]);
        reserve(total + 32, budget);
        uint8_t *w = data_ + used, *const w_end = data_ + data_room_;
        const uint8_t* const first = data_;
        size_t k = 0;
        for (size_t i = 0; i < m; ++i) {
            if ((present == nullptr || present[i] != 0) && values > 0) {
                const size_t length = static_cast<size_t>(d[block[k] + 1] - d[block[k]]);
                copy_short(w, w_end, data + d[block[k]], end, length);
                w += length;
                ++k;
            }
            offsets[i] = static_cast<O>(w - first);
        }
        offsets += m;
        used += total;
    });
}

template <class O>
void BinarySink<O>::check_all_text(const PageValues& page, const uint8_t* valid, const O* offsets, size_t n, size_t from) const {
    const uint8_t* const data = data_;
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
            check_text({data + start, static_cast<size_t>(stop - start)}, page.picks == nullptr ? number : page.picks[number]);
        }
        start = stop;
    }
}

template class BinarySink<int32_t>;
template class BinarySink<int64_t>;

}  // namespace pyparq
