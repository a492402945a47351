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
        // The last that begins before it; of those that overlap, one before that may reach further.
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

std::vector<LeafSpec> specs_of(const nb::list& leaves) {
    std::vector<LeafSpec> specs;
    for (const nb::handle leaf : leaves) {
        specs.push_back(nb::cast<const LeafSpec&>(leaf));
        if (!specs.back().is_values()) fail("whole chunks come out as values");
    }
    return specs;
}

// A job for each run of row groups and column.
void add_jobs(const std::vector<LeafSpec>& specs, const In<int64_t>& runs, const ChunkArrays& chunks, const Stretches& stretches,
              Decoder& decoder) {
    size_t group = 0;
    for (size_t r = 0; r < runs.size; ++r) {
        const size_t count = checked_count(runs.data[r], "run");
        if (count > chunks.num_rows.size - group) fail("more row groups in runs than there are");
        for (size_t c = 0; c < specs.size(); ++c) {
            ColumnJob& job = decoder.jobs.emplace_back();
            job.leaf = specs[c];
            job.pieces.resize(count);
            for (size_t p = 0; p < count; ++p)
                chunks.describe(group + p, (group + p) * specs.size() + c, stretches, job.pieces[p]);
        }
        group += count;
    }
}

}  // namespace

nb::tuple decode_chunks(const nb::list& leaves, const In<int64_t>& runs, const In<int64_t>& num_rows,
                        const In<int64_t>& codec, const In<int64_t>& num_values, const In<int64_t>& has_dictionary,
                        const In<int64_t>& start, const In<int64_t>& size, const nb::list& read, const PageLimits& limits,
                        size_t threads, int64_t room) {
    const std::vector<LeafSpec> specs = specs_of(leaves);
    const ChunkArrays chunks{num_rows, codec, num_values, has_dictionary, start, size};
    chunks.check(specs.size());
    const Stretches stretches(read);
    Decoder decoder(limits, std::max<size_t>(threads, 1), room);
    add_jobs(specs, runs, chunks, stretches, decoder);
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
        DecodedColumn column = column_of(job);
        totals.num_bytes += column.size();
        found.append(nb::cast(std::move(column)));
    }
    return nb::make_tuple(found, totals, nb::none());
}

}  // namespace pyparq
