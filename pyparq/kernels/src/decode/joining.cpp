// Segments of a column become one array, and validity becomes bits.
#include "decode/column.hpp"

namespace pyparq {
namespace {

// The bytes that a block had are released.
void replace(Block& block, Block made, Budget& budget) {
    budget.give(block.size());
    block = Block();
    block = std::move(made);
}

template <class O>
BinarySink<O>& sink_of(const Segment& segment) { return static_cast<BinarySink<O>&>(*segment.sink); }

template <class O>
void take_only_segment(ColumnJob& job, Budget& budget) {
    BinaryOutput& out = job.binary;
    auto& only = sink_of<O>(job.segments[0]);
    out.bytes = std::move(only.bytes);
    if (!job.in_place()) {  // offsets grew from the first one behind slot 0: move them by one
        const size_t size = (job.slots + 1) * sizeof(O);
        budget.take(size);
        out.offsets.grow(size);
        if (job.slots > 0) std::memcpy(out.offsets.as<O>() + 1, only.own.data(), job.slots * sizeof(O));
    }
    out.offsets.as<O>()[0] = 0;
    out.bytes_used = only.used;
}

// Makes room for the bytes of all segments: where they lie, if they share memory; or behind the bytes of the first, which has
// room for all where that was foreseen. Returns whether the bytes of the first are in their place.
template <class O>
bool make_room(ColumnJob& job, size_t total, Budget& budget) {
    BinaryOutput& out = job.binary;
    bool shared = out.joint.planned();
    for (const Segment& segment : job.segments) shared = shared && sink_of<O>(segment).shares();
    auto& first = sink_of<O>(job.segments[0]);
    const bool there = shared || !first.shares();
    if (shared) out.bytes = out.joint.take();
    else if (there) out.bytes = std::move(first.bytes);
    if (total > out.bytes.size()) {
        budget.take(total - out.bytes.size());
        out.bytes.grow(total);
    }
    return there;
}

// Offsets that count from the start of a segment become those of the column.
template <class To, class From>
void shift_offsets(const From* from, size_t n, size_t start, To* to) {
    const To base = static_cast<To>(start);
    for (size_t i = 0; i < n; ++i) to[i] = static_cast<To>(base + from[i]);
}

template <class O>
void join_segments(ColumnJob& job, size_t total, bool grows, Budget& budget) {
    BinaryOutput& out = job.binary;
    const bool apart = grows || !job.in_place();
    Block made;  // offsets that cannot be made in their place
    if (apart) {
        const size_t size = (job.slots + 1) * (grows ? 8 : sizeof(O));
        budget.take(size);
        made.grow(size);
    }
    Block& offsets = apart ? made : out.offsets;
    const bool there = make_room<O>(job, total, budget);
    size_t at = 0, slot = 0;
    for (Segment& segment : job.segments) {
        auto& sink = sink_of<O>(segment);
        uint8_t* const target = out.bytes.data() + at;
        const bool stays = &segment == &job.segments.front() ? there : target == sink.data();
        if (!stays && sink.used > 0) std::memmove(target, sink.data(), sink.used);
        const O* const from = job.in_place() ? out.offsets.as<O>() + 1 + slot : sink.own.template as<O>();
        if (grows) shift_offsets(from, sink.slots, at, offsets.as<int64_t>() + 1 + slot);
        else shift_offsets(from, sink.slots, at, offsets.as<O>() + 1 + slot);
        at += sink.used, slot += sink.slots;
        budget.give(sink.bytes.size());
        sink.bytes = Block();
    }
    out.joint.clear(budget);
    if (apart) replace(out.offsets, std::move(made), budget);
    out.wide = out.wide || grows;
    std::memset(out.offsets.data(), 0, out.offset_width());
    out.bytes_used = total;
}

template <class O>
void join_binary(ColumnJob& job, const PageLimits& limits, Budget& budget) {
    if (job.segments.size() == 1) return take_only_segment<O>(job, budget);
    size_t total = 0;
    for (const Segment& segment : job.segments) total += sink_of<O>(segment).used;
    join_segments<O>(job, total, sizeof(O) == 4 && total > static_cast<size_t>(limits.most_offset), budget);
}

// Room was made for more bytes than there are: offsets of 32 bits do.
void narrow_offsets(ColumnJob& job, Budget& budget) {
    Block narrow;
    budget.take((job.slots + 1) * 4);
    narrow.grow((job.slots + 1) * 4);
    const int64_t* const from = job.binary.offsets.as<int64_t>();
    for (size_t i = 0; i <= job.slots; ++i) narrow.as<int32_t>()[i] = static_cast<int32_t>(from[i]);
    replace(job.binary.offsets, std::move(narrow), budget);
    job.binary.wide = false;
}

void join_fixed(ColumnJob& job, Budget& budget) {
    if (job.in_place()) return;
    const size_t width = job.leaf.out_width();
    if (job.segments.size() == 1) {
        job.values = std::move(static_cast<FixedSink&>(*job.segments[0].sink).own);
        return;
    }
    budget.take(job.slots * width);
    job.values.grow(job.slots * width);
    size_t at = 0;
    for (Segment& segment : job.segments) {
        auto& sink = static_cast<FixedSink&>(*segment.sink);
        if (sink.slots > 0) std::memcpy(job.values.data() + at, sink.own.data(), sink.slots * width);
        at += sink.slots * width;
        budget.give(sink.own.size());
        sink.own = Block();
    }
}

size_t levels_of(const Segment& segment) { return segment.levels; }
size_t slots_of(const Segment& segment) { return segment.sink->slots; }

// One array of what all segments have; `fill` stands for those that have none.
void join_bytes(ColumnJob& job, std::optional<Block> Segment::* part, size_t (*size)(const Segment&), int fill, Block& out,
                Budget& budget) {
    if (job.segments.size() == 1) {
        if (std::optional<Block>& only = job.segments[0].*part) out = std::move(*only);
        return;
    }
    size_t total = 0;
    for (const Segment& segment : job.segments) total += size(segment);
    budget.take(total);
    out.grow(total);
    size_t at = 0;
    for (Segment& segment : job.segments) {
        const size_t n = size(segment);
        std::optional<Block>& from = segment.*part;
        if (n > 0 && from) std::memcpy(out.data() + at, from->data(), n);
        else if (n > 0) std::memset(out.data() + at, fill, n);
        if (from) budget.give(from->size());
        from.reset();
        at += n;
    }
}

// A byte per slot to Arrow's bitmap, 1 for every byte that is not 0.
void pack_bits(const uint8_t* bytes, size_t n, Block& out, Budget& budget) {
    const size_t size = (n + 7) / 8;
    if (size > out.size()) {
        budget.take(size - out.size());
        out.grow(size);
    }
    size_t i = 0;
    uint8_t* w = out.data();
    for (; i + 8 <= n; i += 8) *w++ = static_cast<uint8_t>(ones_of_eight(load<uint64_t>(bytes + i)) * 0x0102040810204080ull >> 56);
    if (i < n) {
        uint8_t last = 0;
        for (size_t k = 0; i + k < n; ++k) last = static_cast<uint8_t>(last | (bytes[i + k] != 0) << k);
        *w = last;
    }
}

// The segments of a leaf in lists have levels and validity of their own.
void join_lists(ColumnJob& job, Budget& budget) {
    bool any_valid = false, any_def = false;
    for (const Segment& segment : job.segments) {
        any_valid |= segment.valid.has_value();
        any_def |= segment.def.has_value();
    }
    join_bytes(job, &Segment::rep, levels_of, 0, job.rep, budget);
    if (any_def) join_bytes(job, &Segment::def, levels_of, job.leaf.max_def, job.def.emplace(), budget);
    if (any_valid) join_bytes(job, &Segment::valid, slots_of, 1, job.valid.emplace(), budget);
}

void join_values(ColumnJob& job, const PageLimits& limits, Budget& budget) {
    if (job.segments.empty()) {
        if (!job.leaf.is_binary()) return;
        job.binary.offsets.grow(8);
        std::memset(job.binary.offsets.data(), 0, 8);
    } else if (!job.leaf.is_binary()) {
        join_fixed(job, budget);
    } else if (job.binary.wide) {
        join_binary<int64_t>(job, limits, budget);
        const bool needed = job.binary.bytes_used > static_cast<size_t>(limits.most_offset);
        if (!job.leaf.large_offsets && !needed) narrow_offsets(job, budget);
    } else {
        join_binary<int32_t>(job, limits, budget);
    }
}

}  // namespace

void finish_column(ColumnJob& job, const PageLimits& limits, Budget& budget) {
    job.nulls = job.levels = 0;
    if (!job.in_place()) job.slots = 0;
    for (const Segment& segment : job.segments) {
        job.nulls += segment.nulls;
        job.levels += segment.levels;
        if (!job.in_place()) job.slots += segment.sink->slots;
    }
    join_values(job, limits, budget);
    if (!job.in_place() && !job.segments.empty()) join_lists(job, budget);
    if (job.valid && job.nulls > 0) pack_bits(job.valid->data(), job.slots, job.bits, budget);
    if (job.valid) replace(*job.valid, Block(), budget);
    if (job.nulls == 0) job.valid.reset();
    if (job.leaf.physical == Physical::kBoolean && job.leaf.is_values() && job.slots > 0) {
        Block packed;
        pack_bits(job.values.data(), job.slots, packed, budget);
        replace(job.values, std::move(packed), budget);
    }
    for (Segment& segment : job.segments) {
        budget.give(segment.held());
        segment.sink.reset();
    }
}

}  // namespace pyparq
