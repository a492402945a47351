// What the footer says of many column chunks, held against the schema and the file, and their statistics as numbers.
#include "index/calls.hpp"
#include "index/stored_numbers.hpp"
#include "thrift/chunk_numbers.hpp"

#include <vector>

namespace pyparq {
namespace {

constexpr int64_t kMagicSize = 4, kTrailerSize = 8;

// Where bounds are stored: buffers, and of each chunk the number of its buffer, which stands in an array, or above some
// bits of the place.
class Places {
  public:
    Places(const nb::list& buffers, const In<int64_t>& of, int shift, size_t n) : of_(of), shift_(shift) {
        if ((of.size != 0 && of.size != n) || shift < 0 || shift > 62) fail("a buffer for each chunk is due");
        given_.resize(nb::len(buffers));
        size_t at = 0;
        for (nb::handle item : buffers)
            if (!given_[at++].load(item.ptr())) fail("a list of buffers was expected");
    }
    // `size` bytes that are stored at a place of chunk k.
    const uint8_t* find(size_t k, int64_t place, size_t size) const {
        auto buffer = static_cast<uint64_t>(of_.size == 0 ? 0 : of_.data[k]);
        auto start = static_cast<uint64_t>(place);
        if (shift_ > 0) buffer = start >> shift_, start &= (uint64_t{1} << shift_) - 1;
        if (buffer >= given_.size()) fail("a buffer that is not there");
        const RawIn& bytes = given_[buffer];
        if (start > bytes.size || size > bytes.size - start) fail("bytes outside of their buffer");
        return reinterpret_cast<const uint8_t*>(bytes.data) + start;
    }

  private:
    std::vector<RawIn> given_;
    const In<int64_t>& of_;
    int shift_;
};

bool in_order(int64_t low, int64_t high, int kind) {
    if (kind == kFloating) return std::bit_cast<double>(low) <= std::bit_cast<double>(high);
    if (kind == kUnsigned) return static_cast<uint64_t>(low) <= static_cast<uint64_t>(high);
    return low <= high;
}

}  // namespace

// The numbers of chunks by kind, row group and column; the rows of each row group, and the size of its file (one for all,
// or one for each). Returns the start and size of each chunk, and whether it is unusual: its numbers must not be used
// then.
nb::tuple check_chunks(const In<int64_t>& stack, const In<int64_t>& types, const In<uint8_t>& repeated,
                       const In<int64_t>& num_rows, const In<int64_t>& file_sizes) {
    const size_t columns = types.size, groups = num_rows.size;
    const size_t n = checked_mul(columns, groups);
    if (repeated.size != columns || stack.size != checked_mul(n, kChunkNumbers)) fail("arrays that do not fit");
    if (file_sizes.size != 1 && file_sizes.size != groups) fail("a size of all files, or one for each row group");
    Fresh<int64_t> start(n), size(n);
    Fresh<bool> odd(n);
    const auto of = [&](ChunkNumber kind) { return stack.data + static_cast<size_t>(kind) * n; };
    const int64_t *flags = of(kFlags), *type = of(kType), *values = of(kNumValues), *stored = of(kCompressedSize),
                  *data = of(kDataPage), *dictionary = of(kDictionaryPage);
    for (size_t i = 0, k = 0; i < groups; ++i) {
        const int64_t rows = num_rows.data[i], end = file_sizes.data[file_sizes.size == 1 ? 0 : i] - kTrailerSize;
        for (size_t j = 0; j < columns; ++j, ++k) {
            const bool first = dictionary[k] > 0 && (dictionary[k] < data[k] || data[k] <= 0);
            const int64_t at = first ? dictionary[k] : data[k];
            start.data[k] = at, size.data[k] = stored[k];
            const bool counted = values[k] == rows || (repeated.data[j] != 0 && values[k] >= 0);
            odd.data[k] = (flags[k] & kOdd) != 0 || type[k] != types.data[j] || !counted || at < kMagicSize ||
                          stored[k] <= 0 || at >= end || stored[k] > end - at;
        }
    }
    return nb::make_tuple(std::move(start.object), std::move(size.object), std::move(odd.object));
}

// The bounds of the chunks of one leaf of numbers, as 64-bit numbers of their kind, and where they can be used. `stack`
// has the numbers of the chunks by kind; `modern`: min_value and max_value count, `old`: min and max where neither of them
// is there.
nb::tuple number_bounds(const nb::list& buffers, const In<int64_t>& of, int shift, const In<int64_t>& stack, bool modern,
                        bool old, size_t width, int kind) {
    const size_t n = stack.size / kChunkNumbers;
    if (n * kChunkNumbers != stack.size) fail("arrays that do not fit");
    check_stored_numbers(width, kind);
    const Places places(buffers, of, shift, n);
    Fresh<int64_t> low(n), high(n);
    Fresh<bool> usable(n);
    const auto at = [&](ChunkNumber which, size_t k) { return stack.data[static_cast<size_t>(which) * n + k]; };
    const auto bound = [&](size_t k, ChunkNumber place, ChunkNumber size, int64_t& out) {
        out = 0;
        const int64_t start = at(place, k);
        if (start < 0) return false;
        const uint8_t* const bytes = places.find(k, start, static_cast<size_t>(at(size, k)));
        return at(size, k) == static_cast<int64_t>(width) && widen(bytes, width, kind, out);
    };
    for (size_t k = 0; k < n; ++k) {
        int64_t& lower = low.data[k] = 0;
        int64_t& upper = high.data[k] = 0;
        bool good = false;
        if (modern && (at(kMin, k) >= 0 || at(kMax, k) >= 0))
            good = bound(k, kMin, kMinSize, lower) & bound(k, kMax, kMaxSize, upper);
        else if (old)
            good = bound(k, kOldMin, kOldMinSize, lower) & bound(k, kOldMax, kOldMaxSize, upper);
        usable.data[k] = good && in_order(lower, upper, kind);
    }
    return nb::make_tuple(std::move(low.object), std::move(high.object), std::move(usable.object));
}

// What is counted in the chunks of one leaf: nulls and NaNs (-1 where that cannot be believed), slots, and whether all of
// them are null.
nb::tuple chunk_counts(const In<int64_t>& stack, bool has_nan) {
    const size_t n = stack.size / kChunkNumbers;
    if (n * kChunkNumbers != stack.size) fail("arrays that do not fit");
    Fresh<int64_t> nulls(n), nans(n), slots(n);
    Fresh<bool> all_null(n);
    for (size_t k = 0; k < n; ++k) {
        const auto at = [&](ChunkNumber which) { return stack.data[static_cast<size_t>(which) * n + k]; };
        const int64_t values = at(kNumValues);
        const auto believed = [&](int64_t count) { return count < 0 || count > values ? -1 : count; };
        nulls.data[k] = believed(at(kNullCount));
        nans.data[k] = has_nan ? believed(at(kNanCount)) : 0;
        slots.data[k] = std::max<int64_t>(values, -1);
        all_null.data[k] = slots.data[k] >= 0 && nulls.data[k] == slots.data[k];
    }
    return nb::make_tuple(std::move(nulls.object), std::move(nans.object), std::move(slots.object),
                          std::move(all_null.object));
}

}  // namespace pyparq
