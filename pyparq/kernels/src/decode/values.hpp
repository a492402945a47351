// What the sinks share: encodings, indices, and how values of several widths are copied.
#pragma once
#include "base/encodings.hpp"
#include "base/widths.hpp"
#include "decode/column_output.hpp"

#include "base/utf8.hpp"
#include "decode/delta_binary_packed.hpp"

namespace pyparq {

[[noreturn]] inline void bad_values(int encoding, const KernelError& error) {
    throw PageRefusal{"values", encoding, 0, 0, error.what()};
}

inline void check_type(bool fits, int encoding, const LeafSpec& leaf) {
    if (!fits) throw PageRefusal{"encoding_type", encoding, static_cast<int64_t>(leaf.physical)};
}

inline void check_column(size_t size, const PageLimits& limits) {
    if (static_cast<int64_t>(size) > limits.max_column)
        throw PageRefusal{"max_column", static_cast<int64_t>(size), limits.max_column};
}

inline const Dictionary& there(const Dictionary& dictionary) {
    if (!dictionary.there) throw PageRefusal{"no_dictionary"};
    return dictionary;
}

// The first n values of a page of PLAIN values of fixed width, in `room` or where they lie.
const uint8_t* plain_fixed(const PageValues& page, const LeafSpec& leaf, size_t n, Passing& room, Budget& budget);

// n stored values of fixed width as those of the output. False where one of them does not fit: an integer of more bits, a
// decimal of more digits.
bool convert(const LeafSpec& leaf, const uint8_t* in, size_t n, uint8_t* out);

// Which of n stored values do not fit: a 1 for each.
std::vector<uint8_t> misfits(const LeafSpec& leaf, const uint8_t* in, size_t n);

[[noreturn]] void does_not_fit(const LeafSpec& leaf);

bool ascii(const uint8_t* p, size_t n);

// Throws PageRefusal unless a value is UTF-8; it is the `number`-th of its page or dictionary.
inline void check_text(const Bytes& value, int64_t number) {
    if (ascii(value.data, value.size) || utf8_valid(value.data, value.size)) return;
    const auto* const shown = reinterpret_cast<const char*>(value.data);
    throw PageRefusal{"utf8", number, 0, 0, std::string(shown, std::min<size_t>(value.size, 24))};
}

// ---- byte arrays ----------------------------------------------------------------------------------------

// PLAIN byte arrays, one after another: each its length in four bytes, then its bytes.
class PlainReader {
  public:
    explicit PlainReader(const Bytes& data) : at(data.data), end(data.data + data.size) {}

    Bytes next() {
        if (end - at < 4) [[unlikely]]
            ends_early(read);
        const size_t length = load<uint32_t>(at);
        const uint8_t* const value = at + 4;
        if (length > static_cast<size_t>(end - value)) [[unlikely]]
            too_long(read, length, static_cast<size_t>(end - value));
        at = value + length;
        ++read;
        return {value, length};
    }

    const uint8_t *at, *const end;
    uint64_t read = 0;  // values so far

    [[noreturn]] static void ends_early(uint64_t number);
    [[noreturn]] static void too_long(uint64_t number, size_t length, size_t left);
};

// Hands the values that are wanted of a page to f, in order; returns all lengths, one or-ed with the other.
template <class F>
inline size_t each_plain(const PageValues& page, F&& f) {
    PlainReader in(page.data);
    size_t any = 0;
    if (page.picks == nullptr) {
        for (size_t k = 0; k < page.present; ++k) {
            const Bytes value = in.next();
            any |= value.size;
            f(value);
        }
        return any;
    }
    for (size_t k = 0; k < page.picked; ++k) {
        Bytes value;
        do value = in.next();
        while (in.read <= page.picks[k]);
        any |= value.size;
        f(value);
    }
    return any;
}

// The same of values whose bytes follow each other from `data` on; `length(i)` is how long the i-th is.
template <class Length, class F>
inline void each_of_lengths(const PageValues& page, const uint8_t* data, Length&& length, F&& f) {
    const size_t wanted = page.wanted();
    size_t i = 0;
    for (size_t k = 0; k < wanted; ++k, ++i) {
        if (page.picks != nullptr)
            for (; i < page.picks[k]; ++i) data += length(i);
        f(Bytes{data, length(i)});
        data += length(i);
    }
}

// Throws PageRefusal where a page of PLAIN byte arrays is too small for so many of them.
inline void check_plain(const PageValues& page) {
    if (page.data.size / 4 < page.present && !page.partly)
        throw PageRefusal{"plain_byte_arrays", static_cast<int64_t>(page.data.size), static_cast<int64_t>(page.present)};
}

// Lengths of DELTA_LENGTH_BYTE_ARRAY, and where the bytes lie.
struct Lengths {
    std::unique_ptr<uint32_t[]> all;
    Bytes bytes;
};
Lengths read_lengths(const PageValues& page);

// A page of DELTA_BYTE_ARRAY; refused where its values would be larger than what may still be held.
delta::Prefixed read_prefixes(const PageValues& page, Budget& budget);

// For an encoding that byte arrays do not have.
[[noreturn]] void not_of_byte_arrays(int encoding, const LeafSpec& leaf);

// ---- widths ---------------------------------------------------------------------------------------------

template <class T>
inline void copy_item(uint8_t* out, size_t i, const uint8_t* from, size_t k, size_t width) {
    if constexpr (is_odd<T>) std::memcpy(out + i * width, from + k * width, width);
    else store(out + i * sizeof(T), load<T>(from + k * sizeof(T)));
}

// ---- indices --------------------------------------------------------------------------------------------

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
    if (page.data.size == 0) throw PageRefusal{"no_indices"};
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

}  // namespace pyparq
