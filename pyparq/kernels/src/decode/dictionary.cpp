// The entries of a dictionary page, as the sinks gather them.
#include "decode/values.hpp"

#include "arrow/views.hpp"

namespace pyparq {

void Dictionary::load(const Bytes& plain, int64_t entries_, int64_t known_, const LeafSpec& leaf, size_t uses,
                      Budget& budget) {
    count = static_cast<size_t>(entries_);
    there = true;
    const auto known = static_cast<size_t>(known_);
    if (leaf.physical != Physical::kByteArray) return load_fixed(plain, known, leaf, budget);
    load_bytes(plain, known, leaf, budget);
    if (known < count) return;
    if (leaf.is_codes()) {
        fixed.resize(4 * count);
        for (uint32_t i = 0; i < count; ++i) store(fixed.data() + 4 * i, i);
    } else if (leaf.is_views()) {
        hold(16 * count, budget);
        fixed.resize(16 * count);
        make_views(0);
    } else if (uses >= count && count > 0 && budget.left() / 4 > static_cast<int64_t>(count * (kLongestShort + 4))) {
        hold(count * (kLongestShort + 4), budget);
        is_short = entries.load(offsets.data(), count, bytes.data());
    }
}

void Dictionary::hold(size_t size, Budget& budget) {
    budget.take(size);
    held += size;
}

void Dictionary::number_from(uint32_t code) {
    first = code;
    for (size_t i = 0; i < fixed.size() / 4; ++i) store(fixed.data() + 4 * i, static_cast<uint32_t>(code + i));
}

void Dictionary::load_fixed(const Bytes& plain, size_t known, const LeafSpec& leaf, Budget& budget) {
    const size_t needed = checked_mul(known, leaf.width);
    if (known < count && needed > plain.size) throw NeedsAll{};
    if (count > 0 && needed > plain.size)
        throw PageRefusal{"dictionary_size", static_cast<int64_t>(count), static_cast<int64_t>(plain.size)};
    const PageValues page{kPlain, known < count ? Bytes{plain.data, needed} : plain, known};
    hold(count * leaf.out_width(), budget);
    fixed.resize(count * leaf.out_width());
    Passing room;
    if (known == 0) {
        std::fill(fixed.begin(), fixed.end(), uint8_t{0});
        return;
    }
    const uint8_t* const values = plain_fixed(page, leaf, known, room, budget);
    if (leaf.is_codes()) {
        for (uint32_t i = 0; i < count; ++i) store(fixed.data() + 4 * i, i);
        hold(needed, budget);
        bytes.grow(needed);
        std::memcpy(bytes.data(), values, needed);
        bytes_used = needed;
    } else {
        // Zeros stand for the others. What no row uses does no harm.
        std::memset(fixed.data() + known * leaf.out_width(), 0, (count - known) * leaf.out_width());
        if (!convert(leaf, values, known, fixed.data())) {
            beyond = misfits(leaf, values, known);
            beyond.resize(count);
        }
    }
}

void Dictionary::load_bytes(const Bytes& plain, size_t known, const LeafSpec& leaf, Budget& budget) {
    if (known < count && known * 4 > plain.size) throw NeedsAll{};
    if (known * 4 > plain.size)
        throw PageRefusal{"plain_byte_arrays", static_cast<int64_t>(plain.size), static_cast<int64_t>(count)};
    hold(plain.size + 8 * count, budget);
    offsets.resize(count + 1);
    bytes.grow(plain.size - 4 * known + 16);
    uint8_t *w = bytes.data(), *const w_end = w + plain.size - 4 * known;
    offsets[0] = 0;
    size_t longest = 0;
    try {
        PlainReader in(plain);
        for (size_t i = 0; i < known; ++i) {
            const Bytes value = in.next();
            // What is left would not hold the lengths behind it.
            if (value.size > static_cast<size_t>(w_end - w)) in.too_long(i, value.size, static_cast<size_t>(w_end - w));
            copy_short(w, w_end, value.data, in.end, value.size);
            w += value.size;
            longest = std::max(longest, value.size);
            offsets[i + 1] = w - bytes.data();
        }
    } catch (const KernelError& error) {
        if (known < count) {
            budget.give(std::exchange(held, 0));
            throw NeedsAll{};
        }
        throw PageRefusal{"dictionary_values", 0, 0, 0, error.what()};
    }
    bytes_used = static_cast<size_t>(w - bytes.data());
    std::fill(offsets.begin() + static_cast<std::ptrdiff_t>(known) + 1, offsets.end(), offsets[known]);
    any_long = longest > view::kInline;
    if (leaf.is_text && !ascii(bytes.data(), bytes_used))
        for (size_t i = 0; i < known; ++i) check_text(entry(i), static_cast<int64_t>(i));
}

void Dictionary::make_views(uint32_t number) {
    for (size_t i = 0; i < count; ++i) {
        const Bytes value = entry(i);
        view::put_within(fixed.data() + 16 * i, value.data, bytes.size() - static_cast<size_t>(offsets[i]), value.size, number,
                         static_cast<uint32_t>(offsets[i]));
    }
}

void Dictionary::lend(ViewBuffers& buffers) {
    const auto [buffer, number] = buffers.open();
    if (number != 0) make_views(number);
    buffer->bytes = std::move(bytes);
    buffer->used = bytes_used;
}

}  // namespace pyparq
