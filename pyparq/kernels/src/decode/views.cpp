// Byte arrays, decoded into views of their bytes.
#include "decode/values.hpp"

#include "arrow/views.hpp"

#include <tuple>

namespace pyparq {
namespace {

constexpr size_t kView = 16;

// Whether values of so many bytes in all are long enough on average to stay where they are: what is inline is there twice.
bool worth_keeping(size_t size, size_t values) { return size >= 16 * values; }

// The first `values` views go to the slots that are present, from the last one on; zeros to the others.
void spread(uint8_t* out, size_t values, const uint8_t* valid, size_t slots) {
    if (values == 0) {
        std::memset(out, 0, slots * kView);
        return;
    }
    size_t k = values;
    for (size_t i = slots; i-- > 0;) {
        const uint64_t set = 0 - uint64_t{valid[i] != 0};
        const uint8_t* const from = out + (k - (k > 0)) * kView;
        const uint64_t low = load<uint64_t>(from) & set, high = load<uint64_t>(from + 8) & set;
        store(out + i * kView, low);
        store(out + i * kView + 8, high);
        k += set;
    }
}

// Throws PageRefusal unless all values that `walk(f)` hands to f are UTF-8.
template <class Walk>
void check_each(const PageValues& page, Walk&& walk) {
    size_t k = 0;
    walk([&](const Bytes& value) {
        check_text(value, static_cast<int64_t>(page.picks == nullptr ? k : page.picks[k]));
        ++k;
    });
}

}  // namespace

void ViewSink::reserve(size_t more, Budget& budget) {
    const auto most = static_cast<size_t>(limits_.most_offset);
    if (buffer_ == nullptr || (buffer_->used > 0 && (more > most || buffer_->used > most - more)))
        std::tie(buffer_, number_) = buffers_.open();
    const size_t needed = buffer_->used + more, size = buffer_->bytes.size();
    if (needed <= size) return;
    check_column(needed, limits_);
    size_t room = std::max(needed, size == 0 ? expected_ : 2 * size);
    if (static_cast<int64_t>(room - size) > budget.left()) room = needed;
    budget.take(room - size);
    buffer_->bytes.grow(room);
}

bool ViewSink::holds(const Bytes& data) const {
    if (buffer_ == nullptr) return false;
    const auto first = reinterpret_cast<uintptr_t>(buffer_->bytes.data()), at = reinterpret_cast<uintptr_t>(data.data);
    return at >= first && at < first + buffer_->bytes.size();
}

uint8_t* ViewSink::page_room(const PageHead& head, Budget& budget) {
    if (head.encoding != kPlain && head.encoding != kDeltaLength) return nullptr;
    const auto size = static_cast<size_t>(head.size);
    if (!worth_keeping(size, static_cast<size_t>(head.count) + size / 32)) return nullptr;
    reserve(size, budget);
    return buffer_->bytes.data() + buffer_->used;
}

void ViewSink::append(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& dictionary,
                      PageScratch& scratch, Budget& budget) {
    if (is_dictionary(page.encoding) && !there(dictionary).is_copied)
        return FixedSink::append(page, valid, n, dictionary, scratch, budget);
    uint8_t* const out = next(n, budget);
    try {
        if (is_dictionary(page.encoding)) copies(page, valid, n, dictionary, out, scratch, budget);
        else if (page.encoding == kPlain) plain(page, out, budget);
        else if (page.encoding == kDeltaLength) delta_length(page, out, budget);
        else if (page.encoding == kDeltaByteArray) shared_prefixes(page, out, scratch, budget);
        else not_of_byte_arrays(page.encoding, leaf_);
    } catch (const KernelError& error) {
        if (page.partly) throw NeedsAll{};
        bad_values(page.encoding, error);
    }
    if (page.wanted() < n) spread(out, page.wanted(), valid, n);
    slots += n;
}

// Views of the values that `walk(f)` hands to f, all of them in `source`: where they lie, if that is here already, otherwise
// of copies, for which there is room.
template <class Walk>
void ViewSink::put(Walk&& walk, const Bytes& source, uint8_t* out) {
    const uint8_t* const end = source.data + source.size;
    uint8_t* const first = buffer_->bytes.data();
    if (holds(source)) {
        walk([&, number = number_](const Bytes& value) {
            view::put_within(out, value.data, static_cast<size_t>(end - value.data), value.size, number,
                             static_cast<uint32_t>(value.data - first));
            out += kView;
        });
        buffer_->used = static_cast<size_t>(end - first);
        return;
    }
    uint8_t *w = first + buffer_->used, *const w_end = first + buffer_->bytes.size();
    walk([&, number = number_](const Bytes& value) {
        view::put_within(out, value.data, static_cast<size_t>(end - value.data), value.size, number,
                         static_cast<uint32_t>(w - first));
        copy_short(w, w_end, value.data, end, value.size);
        w += value.size > view::kInline ? value.size : 0;
        out += kView;
    });
    buffer_->used = static_cast<size_t>(w - first);
}

void ViewSink::plain(const PageValues& page, uint8_t* out, Budget& budget) {
    check_plain(page);
    if (!holds(page.data)) reserve(page.data.size, budget);
    size_t lengths = 0;
    put([&](auto&& f) { lengths = each_plain(page, f); }, page.data, out);
    if (!leaf_.is_text) return;
    // Lengths below 128 are ASCII themselves, so that no character goes on behind one.
    const Bytes& all = page.data;
    if (page.picks == nullptr && lengths < 128 && (ascii(all.data, all.size) || utf8_valid(all.data, all.size))) return;
    check_each(page, [&](auto&& f) { each_plain(page, f); });
}

void ViewSink::delta_length(const PageValues& page, uint8_t* out, Budget& budget) {
    const Hold held(budget, checked_mul(page.present, 4));
    const Lengths found = read_lengths(page);
    if (!holds(found.bytes)) reserve(found.bytes.size, budget);
    const auto walk = [&](auto&& f) { each_of_lengths(page, found.bytes.data, [&](size_t i) { return found.all[i]; }, f); };
    put(walk, found.bytes, out);
    if (!leaf_.is_text || ascii(found.bytes.data, found.bytes.size)) return;
    check_each(page, walk);
}

void ViewSink::shared_prefixes(const PageValues& page, uint8_t* out, PageScratch& scratch, Budget& budget) {
    const Hold held(budget, checked_mul(page.present, 8));
    const delta::Prefixed found = read_prefixes(page, budget);
    const bool kept = page.picks == nullptr && worth_keeping(found.total, page.present);
    reserve(found.total + 1, budget);
    uint8_t* const spelled = kept ? buffer_->bytes.data() + buffer_->used : scratch.spelled.take(found.total + 1, budget);
    delta::spell_prefixed(found, page.present, spelled);
    const Bytes all{spelled, found.total};
    const auto walk = [&](auto&& f) { each_of_lengths(page, spelled, [&](size_t i) { return found.length(i); }, f); };
    put(walk, all, out);
    if (!leaf_.is_text || ascii(all.data, all.size)) return;
    check_each(page, walk);
}

void ViewSink::copies(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& from, uint8_t* out,
                      PageScratch& scratch, Budget& budget) {
    const auto most = static_cast<size_t>(limits_.most_offset);
    const auto size = [&](uint32_t index) { return from.entry(index).size; };
    each_block(page, valid, n, from.count, scratch, budget, [&](const uint32_t* block, size_t values, const uint8_t*, size_t) {
        for (size_t k = 0; k < values;) {  // as many as one buffer holds
            size_t total = 0, to = k;
            do total += size(block[to++]);
            while (to < values && total + size(block[to]) <= most);
            reserve(total, budget);
            put([&](auto&& f) {
                for (size_t i = k; i < to; ++i) f(from.entry(block[i]));
            }, {from.bytes.data(), from.bytes_used}, out);
            out += kView * (to - k);
            k = to;
        }
    });
}

}  // namespace pyparq
