// Whole column chunks in the clear, described by arrays: one call decodes those of many row groups and columns, and joins
// the chunks of a column where row groups are read together.
#include "decode/calls.hpp"
#include "decode/decoder.hpp"

namespace pyparq {
namespace {

// Bytes of the file that have been read.
struct Stretch {
    int64_t start;
    Bytes bytes;
};

class Stretches {
  public:
    explicit Stretches(const nb::list& given) {
        const Py_ssize_t count = PyList_Size(given.ptr());
        for (Py_ssize_t k = 0; k < count; ++k) {
            const nb::handle pair = PyList_GetItem(given.ptr(), k);
            Buffer& buffer = buffers_.emplace_back();
            if (!buffer.acquire(item(pair, 1).ptr(), PyBUF_SIMPLE)) fail("what was read must be bytes-like");
            const Bytes bytes{static_cast<const uint8_t*>(buffer.view().buf), static_cast<size_t>(buffer.view().len)};
            found_.push_back({number(pair, 0), bytes});
        }
        std::sort(found_.begin(), found_.end(), [](const Stretch& a, const Stretch& b) { return a.start < b.start; });
    }
    Bytes at(int64_t start, int64_t size) const {
        auto found = std::upper_bound(found_.begin(), found_.end(), start,
                                      [](int64_t place, const Stretch& stretch) { return place < stretch.start; });
        // The last stretch that begins before it. Stretches may overlap, so an earlier one may reach further.
        while (found != found_.begin()) {
            --found;
            const auto skipped = static_cast<uint64_t>(start - found->start);
            if (skipped <= found->bytes.size && size >= 0 && static_cast<uint64_t>(size) <= found->bytes.size - skipped)
                return {found->bytes.data + skipped, static_cast<size_t>(size)};
        }
        fail("a column chunk that has not been read");
    }

  private:
    std::deque<Buffer> buffers_;
    std::vector<Stretch> found_;
};

// The numbers of all chunks, row group by row group.
struct ChunkArrays {
    const In<int64_t>&num_rows, &codec, &num_values, &has_dictionary, &start, &size;  // the first: of each row group

    void check(size_t columns) const {
        const size_t chunks = checked_mul(num_rows.size, columns);
        for (const In<int64_t>* numbers : {&codec, &num_values, &has_dictionary, &start, &size})
            if (numbers->size != chunks) fail("a number per chunk is due");
    }
    void describe(size_t group, size_t k, const Stretches& stretches, Piece& piece) const {
        piece.codec = static_cast<int>(codec.data[k]);
        piece.num_values = num_values.data[k];
        piece.num_rows = num_rows.data[group];
        piece.first_is_dictionary = has_dictionary.data[k] != 0;
        piece.parts.push_back(stretches.at(start.data[k], size.data[k]));
    }
};

// The wanted rows of a run: a bit for each of its rows, or none where all are wanted.
class RunRows {
  public:
    RunRows(const nb::handle& given, const int64_t* num_rows, size_t groups) {
        if (given.is_none()) return;
        if (!bits_.acquire(given.ptr(), PyBUF_SIMPLE)) fail("wanted rows must be bytes-like");
        int64_t total = 0;
        for (size_t k = 0; k < groups; ++k)
            if (num_rows[k] < 0 || __builtin_add_overflow(total, num_rows[k], &total)) fail("rows of a run out of range");
        if (bits_.view().len % 8 != 0 || bits_.view().len / 8 < (total + 63) / 64) fail("a bitmap needs a bit per row");
        all_ = false;
    }
    // Takes the next row group of the run: which of its rows are wanted. The bits of some begin at a word of their own.
    RowSelection next(int64_t rows) {
        RowSelection found;
        if (all_) return found;
        const auto words = static_cast<size_t>((rows + 63) / 64);
        uint64_t* const own = kept_.emplace_back(new uint64_t[words]).get();
        int64_t count = 0;
        for (size_t w = 0; w < words; ++w) {
            own[w] = word(first_ + static_cast<int64_t>(64 * w), std::min<int64_t>(64, rows - static_cast<int64_t>(64 * w)));
            count += std::popcount(own[w]);
        }
        first_ += rows;
        if (count == rows) return found;
        found.form = RowSelection::kBitmap, found.num_rows = rows;
        found.bits = count == 0 ? nullptr : reinterpret_cast<const uint8_t*>(own);
        return found;
    }

  private:
    // `count` bits from `row` on, those behind them cleared.
    uint64_t word(int64_t row, int64_t count) const {
        const auto* const bytes = static_cast<const uint8_t*>(bits_.view().buf);
        const int64_t at = row / 64, shift = row % 64;
        uint64_t found = load<uint64_t>(bytes + 8 * at) >> shift;
        if (shift + count > 64) found |= load<uint64_t>(bytes + 8 * (at + 1)) << (64 - shift);
        return count == 64 ? found : found & ((uint64_t{1} << count) - 1);
    }

    Buffer bits_;
    bool all_ = true;
    int64_t first_ = 0;
    std::deque<std::unique_ptr<uint64_t[]>> kept_;
};

std::vector<LeafSpec> specs_of(const nb::list& leaves) {
    std::vector<LeafSpec> specs;
    for (const nb::handle leaf : leaves) {
        LeafSpec& spec = specs.emplace_back(nb::cast<const LeafSpec&>(leaf));
        if (!spec.is_values() && !spec.is_codes()) fail("whole chunks come out as values or codes");
        spec.codes_or_values = false;  // all pieces of a column have one form
    }
    return specs;
}

// Adds a job for each column, with a piece for each of `count` row groups from `group` on that have wanted rows.
void add_run(const std::vector<LeafSpec>& specs, size_t group, size_t count, const ChunkArrays& chunks, RunRows& run,
             const Stretches& stretches, Decoder& decoder) {
    const size_t first = decoder.jobs.size();
    for (const LeafSpec& spec : specs) decoder.jobs.emplace_back().leaf = spec;
    for (size_t p = group; p < group + count; ++p) {
        const RowSelection chosen = run.next(chunks.num_rows.data[p]);
        if (!chosen.all() && chosen.bits == nullptr) continue;
        for (size_t c = 0; c < specs.size(); ++c) {
            Piece& piece = decoder.jobs[first + c].pieces.emplace_back();
            chunks.describe(p, p * specs.size() + c, stretches, piece);
            piece.rows = chosen;
        }
    }
}

// Adds the jobs of all runs; `rows` keeps the bits of their rows.
void add_runs(const std::vector<LeafSpec>& specs, const In<int64_t>& runs, const nb::list& wanted, const ChunkArrays& chunks,
              const Stretches& stretches, std::deque<RunRows>& rows, Decoder& decoder) {
    if (nb::len(wanted) != 0 && nb::len(wanted) != runs.size) fail("the wanted rows of each run are due");
    size_t group = 0;
    for (size_t r = 0; r < runs.size; ++r) {
        const size_t count = checked_count(runs.data[r], "run");
        if (count > chunks.num_rows.size - group) fail("more row groups in runs than there are");
        const nb::handle given = nb::len(wanted) == 0 ? nb::handle(Py_None) : PyList_GetItem(wanted.ptr(), static_cast<Py_ssize_t>(r));
        RunRows& run = rows.emplace_back(given, chunks.num_rows.data + group, count);
        add_run(specs, group, count, chunks, run, stretches, decoder);
        group += count;
    }
}

}  // namespace

nb::tuple decode_chunks(const nb::list& leaves, const In<int64_t>& runs, const In<int64_t>& num_rows,
                        const In<int64_t>& codec, const In<int64_t>& num_values, const In<int64_t>& has_dictionary,
                        const In<int64_t>& start, const In<int64_t>& size, const nb::list& read, const PageLimits& limits,
                        size_t threads, int64_t room, const nb::list& wanted) {
    const std::vector<LeafSpec> specs = specs_of(leaves);
    const ChunkArrays chunks{num_rows, codec, num_values, has_dictionary, start, size};
    chunks.check(specs.size());
    const Stretches stretches(read);
    Decoder decoder(limits, std::max<size_t>(threads, 1), room);
    std::deque<RunRows> rows;
    add_runs(specs, runs, wanted, chunks, stretches, rows, decoder);
    decoder.run();
    if (stop_requested()) fail("the task was stopped");
    const nb::object refusal = refusal_of(decoder.faults);
    if (!refusal.is_none()) return nb::make_tuple(nb::none(), nb::none(), refusal);
    ChunkTotals totals;
    nb::list found;
    for (ColumnJob& job : decoder.jobs) {
        for (const Piece& piece : job.pieces) {
            totals.data_pages += static_cast<size_t>(piece.pages_read);
            totals.dictionary_pages += piece.dictionary_read ? 1 : 0;
            totals.ended_early += piece.end != piece.parts[0].size ? 1 : 0;
        }
        for (const Piece& piece : job.pieces)
            if (job.leaf.is_codes()) totals.num_bytes += piece.dictionary.bytes_used + 8 * piece.dictionary.offsets.size();
        nb::object column = result_of(job);
        if (!column.is_none())
            totals.num_bytes += nb::cast<const DecodedColumn&>(job.leaf.is_codes() ? item(column, 0) : nb::handle(column)).size();
        found.append(std::move(column));
    }
    return nb::make_tuple(found, totals, nb::none());
}

}  // namespace pyparq
