// Segments of a column become one array, and validity becomes bits.
#include "decode/column.hpp"

namespace pyparq {
namespace {

template <class O>
void join_binary(ColumnJob& job, const PageLimits& limits, Budget& budget) {
    size_t total = 0;
    for (Segment& segment : job.segments) total += static_cast<BinarySink<O>&>(*segment.sink).used;
    const bool grows = sizeof(O) == 4 && total > static_cast<size_t>(limits.most_offset);
    if (job.segments.size() == 1) {
        auto& only = static_cast<BinarySink<O>&>(*job.segments[0].sink);
        job.bytes = std::move(only.bytes);
        if (!job.in_place()) {  // offsets grew from the first one behind slot 0: move them by one
            const size_t size = (job.slots + 1) * sizeof(O);
            budget.take(size);
            job.offsets.grow(size);
            if (job.slots > 0) std::memcpy(job.offsets.as<O>() + 1, only.own.data(), job.slots * sizeof(O));
        }
        job.offsets.as<O>()[0] = 0;
        job.bytes_used = total;
        return;
    }
    Block wide;
    if (grows || !job.in_place()) {
        const size_t size = (job.slots + 1) * (grows ? 8 : sizeof(O));
        budget.take(size);
        wide.grow(size);
    }
    bool shared = job.joint.planned();
    for (const Segment& segment : job.segments) shared = shared && static_cast<BinarySink<O>&>(*segment.sink).shares();
    // Their bytes are moved to where those before end, if they are not there; or they go behind the bytes of the first, which
    // has room for all where that was foreseen.
    auto& first = static_cast<BinarySink<O>&>(*job.segments[0].sink);
    const bool there = shared || !first.shares();
    if (shared) job.bytes = job.joint.take();
    else if (there) job.bytes = std::move(first.bytes);
    if (total > job.bytes.size()) {
        budget.take(total - job.bytes.size());
        job.bytes.grow(total);
    }
    size_t at = 0, slot = 0;
    for (Segment& segment : job.segments) {
        auto& sink = static_cast<BinarySink<O>&>(*segment.sink);
        uint8_t* const target = job.bytes.data() + at;
        const bool stays = &segment == &job.segments.front() ? there : target == sink.data();
        if (!stays && sink.used > 0) std::memmove(target, sink.data(), sink.used);
        const O* const from = job.in_place() ? job.offsets.as<O>() + 1 + slot : sink.own.template as<O>();
        const size_t n = sink.slots;
        if (grows) {
            int64_t* const to = wide.as<int64_t>() + 1 + slot;
            for (size_t i = 0; i < n; ++i) to[i] = static_cast<int64_t>(at) + from[i];
        } else {
            O* const to = (job.in_place() ? job.offsets.as<O>() : wide.as<O>()) + 1 + slot;
            const O base = static_cast<O>(at);
            for (size_t i = 0; i < n; ++i) to[i] = static_cast<O>(base + from[i]);
        }
        at += sink.used;
        slot += n;
        budget.give(sink.bytes.size());
        sink.bytes = Block();
    }
    job.joint.clear(budget);
    if (grows || !job.in_place()) job.offsets = std::move(wide);
    job.wide = job.wide || grows;
    if (job.wide) job.offsets.as<int64_t>()[0] = 0;
    else job.offsets.as<int32_t>()[0] = 0;
    job.bytes_used = total;
}

// Room was made for more bytes than there are: offsets of 32 bits do.
void narrow_offsets(ColumnJob& job, Budget& budget) {
    Block narrow;
    budget.take((job.slots + 1) * 4);
    narrow.grow((job.slots + 1) * 4);
    for (size_t i = 0; i <= job.slots; ++i) narrow.as<int32_t>()[i] = static_cast<int32_t>(job.offsets.as<int64_t>()[i]);
    job.offsets = std::move(narrow);
    job.wide = false;
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

// One array of what all segments have; `fill` stands for those that have none.
void join_levels(ColumnJob& job, Block Segment::* part, bool Segment::* has, size_t (*size)(const Segment&), uint8_t fill,
                 Block& out, Budget& budget) {
    if (job.segments.size() == 1) {
        out = std::move(job.segments[0].*part);
        return;
    }
    size_t total = 0;
    for (const Segment& segment : job.segments) total += size(segment);
    budget.take(total);
    out.grow(total);
    size_t at = 0;
    for (Segment& segment : job.segments) {
        const size_t n = size(segment);
        if (n > 0 && (has == nullptr || segment.*has)) std::memcpy(out.data() + at, (segment.*part).data(), n);
        else if (n > 0) std::memset(out.data() + at, fill, n);
        budget.give((segment.*part).size());
        segment.*part = Block();
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

}  // namespace

void finish_column(ColumnJob& job, const PageLimits& limits, Budget& budget) {
    job.nulls = job.levels = 0;
    bool any_valid = false, any_def = false;
    if (!job.in_place()) job.slots = 0;
    for (const Segment& segment : job.segments) {
        job.nulls += segment.nulls;
        job.levels += segment.levels;
        any_valid |= segment.has_valid;
        any_def |= segment.has_def;
        if (!job.in_place()) job.slots += segment.sink->slots;
    }
    if (job.leaf.is_binary()) {
        if (job.segments.empty()) {
            job.offsets.grow(8);
            std::memset(job.offsets.data(), 0, 8);
        } else if (job.wide) {
            join_binary<int64_t>(job, limits, budget);
            if (!job.leaf.is_large && job.bytes_used <= static_cast<size_t>(limits.most_offset)) narrow_offsets(job, budget);
        } else {
            join_binary<int32_t>(job, limits, budget);
        }
    } else if (!job.segments.empty()) {
        join_fixed(job, budget);
    }
    job.has_rep = !job.in_place();
    if (!job.in_place() && !job.segments.empty()) {
        const auto levels = [](const Segment& s) { return s.levels; };
        join_levels(job, &Segment::rep, nullptr, levels, 0, job.rep, budget);
        if (any_def) {
            join_levels(job, &Segment::def, &Segment::has_def, levels, static_cast<uint8_t>(job.leaf.max_def), job.def, budget);
            job.has_def = true;
        }
        if (any_valid) {
            const auto slots = [](const Segment& s) { return s.sink->slots; };
            join_levels(job, &Segment::valid, &Segment::has_valid, slots, 1, job.valid, budget);
            job.has_valid = true;
        }
    }
    if (job.has_valid && job.nulls > 0) pack_bits(job.valid.data(), job.slots, job.bits, budget);
    else job.has_valid = false;
    if (job.leaf.physical == Physical::kBoolean && job.leaf.kind == OutputKind::kValues && job.slots > 0) {
        Block packed;
        pack_bits(job.values.data(), job.slots, packed, budget);
        job.values = std::move(packed);
    }
    for (Segment& segment : job.segments) segment.sink.reset();
}

}  // namespace pyparq
