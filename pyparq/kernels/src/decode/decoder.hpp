// Many column chunks decoded in one call, on several threads: how the work is divided, and which of several faults is
// reported.
#pragma once
#include "base/workers.hpp"
#include "decode/arguments.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

namespace pyparq {

// The first thing that is wrong, in the order of columns, row groups and pages.
struct Fault {
    bool any = false;
    size_t job = 0;
    Place place;
    PageRefusal refused{""};
    PyObject* error = nullptr;  // an exception of Python's
    bool memory = false;
};

class Faults {
  public:
    void note(size_t job, const Place& place, const PageRefusal& refused) {
        const std::lock_guard lock(mutex_);
        if (!earlier(job, place)) return;
        first.any = true, first.job = job, first.place = place, first.refused = refused;
        forget();
    }
    void note_python(size_t job, const Place& place, const nb::python_error& error) {
        const nb::gil_scoped_acquire gil;
        const std::lock_guard lock(mutex_);
        if (!earlier(job, place)) return;
        first.any = true, first.job = job, first.place = place;
        forget();
        first.error = nb::borrow(error.value()).release().ptr();
    }
    // The next one noted is the first.
    void restart() {
        const std::lock_guard lock(mutex_);
        first.any = false;
        forget();
    }
    bool any() {
        const std::lock_guard lock(mutex_);
        return first.any;
    }
    Fault first;

  private:
    bool earlier(size_t job, const Place& place) const {
        if (!first.any) return true;
        if (job != first.job) return job < first.job;
        if (place.piece != first.place.piece) return place.piece < first.place.piece;
        return place.page < first.place.page;
    }
    void forget() {  // its reference is given up where the GIL is held, at the end
        if (first.error != nullptr) lost_.push_back(first.error);
        first.error = nullptr;
    }

  public:
    std::vector<PyObject*> lost_;
    Faults() = default;
    Faults(const Faults&) = delete;
    Faults& operator=(const Faults&) = delete;
    ~Faults() {  // with the GIL
        Py_XDECREF(first.error);
        for (PyObject* const error : lost_) Py_DECREF(error);
    }

  private:
    std::mutex mutex_;
};

class Decoder {
  public:
    Decoder(const PageLimits& limits, size_t threads, int64_t room) : limits_(limits), threads_(threads), budget(room) {}

    std::deque<ColumnJob> jobs;
    Faults faults;

    void run() {
        std::vector<std::pair<size_t, size_t>> pieces;
        int64_t stored = 0;
        for (size_t j = 0; j < jobs.size(); ++j)
            for (size_t p = 0; p < jobs[j].pieces.size(); ++p) {
                pieces.emplace_back(j, p);
                for (const Bytes& part : jobs[j].pieces[p].parts) stored += static_cast<int64_t>(part.size);
            }
        // Waking a thread takes as long as decoding some tens of kilobytes.
        const size_t threads = stored < (int64_t{256} << 10) ? 1 : threads_;
        each(pieces.size(), threads, [&](size_t k, PageScratch& scratch, Place& at) {
            const auto [j, p] = pieces[k];
            at.piece = static_cast<int64_t>(p);
            list_pages(jobs[j], jobs[j].pieces[p], limits_, scratch, budget, at);
        }, [&](size_t k) { return pieces[k].first; });
        if (faults.any()) return;
        std::vector<size_t> all(jobs.size());
        std::iota(all.begin(), all.end(), size_t{0});
        for (ColumnJob& job : jobs) {
            job.binary.wide = job.leaf.large_offsets;
            if (job.leaf.is_codes() && !number_entries(job)) job.misfit = true;
        }
        decode(all, threads);
        if (faults.any()) return prefer_dictionaries();
        decode(widened(), threads);
        if (faults.any()) return;
        each(jobs.size(), threads, [&](size_t j, PageScratch&, Place&) {
            if (!jobs[j].misfit && jobs[j].segments.empty()) finish_column(jobs[j], limits_, budget);
        }, [](size_t j) { return j; });
    }

  private:
    // A dictionary of byte arrays that is refused is told before any page, as where dictionaries are not left for later: what
    // is told of a damaged file does not depend on that.
    void prefer_dictionaries() {
        if (std::string_view(faults.first.refused.name) == "memory") return;
        const std::unique_ptr<PageScratch> scratch = take_scratch();
        for (size_t j = 0; j < jobs.size(); ++j)
            for (size_t p = 0; p < jobs[j].pieces.size() && jobs[j].leaf.is_binary(); ++p) {
                Piece& piece = jobs[j].pieces[p];
                if (!piece.unread) continue;
                Place at{static_cast<int64_t>(p)};
                try {
                    release_dictionary(piece, *scratch, budget);
                    piece.unread = std::make_unique<std::once_flag>();
                    read_unread_dictionary(jobs[j], piece, limits_, *scratch, budget, at);
                    release_dictionary(piece, *scratch, budget);
                } catch (const PageRefusal& refused) {
                    if (std::string_view(refused.name) == "memory") return;
                    faults.restart();
                    return faults.note(j, at, refused);
                }
            }
    }

    // The dictionaries of a column become one, and each entry has a code of its own. False where there are too many.
    static bool number_entries(ColumnJob& job) {
        size_t count = 0;
        for (Piece& piece : job.pieces) {
            Dictionary& entries = piece.known ? *piece.known : piece.dictionary;
            if (entries.count > static_cast<size_t>(std::numeric_limits<int32_t>::max()) - count) return false;
            if (count > 0) entries.number_from(static_cast<uint32_t>(count));
            count += entries.count;
        }
        return true;
    }

    // The jobs whose byte arrays are to be decoded anew, with wider offsets.
    std::vector<size_t> widened() {
        std::vector<size_t> found;
        for (size_t j = 0; j < jobs.size(); ++j) {
            ColumnJob& job = jobs[j];
            if (!job.misfit || !job.leaf.is_binary()) continue;
            job.misfit = false, job.binary.wide = true;
            for (Piece& piece : job.pieces) piece.pages_read = 0;
            found.push_back(j);
        }
        return found;
    }

    // Cuts the jobs of these numbers into segments: (job, segment) each. Nothing where one is refused.
    std::vector<std::pair<size_t, size_t>> plan(const std::vector<size_t>& numbers, size_t threads) {
        int64_t all = 0;
        for (const ColumnJob& job : jobs)
            for (const Piece& piece : job.pieces) all += piece.inflated;
        std::vector<std::pair<size_t, size_t>> tasks;
        std::unique_ptr<PageScratch> scratch = take_scratch();
        for (const size_t j : numbers) {
            try {
                plan_job(jobs[j], all, threads, *scratch);
            } catch (const PageRefusal& refused) {
                faults.note(j, {}, refused);
                return {};
            }
            jobs[j].undecoded = jobs[j].segments.size();
            for (size_t s = 0; s < jobs[j].segments.size(); ++s) tasks.emplace_back(j, s);
        }
        idle_.push_back(std::move(scratch));
        return tasks;
    }

    void decode(const std::vector<size_t>& numbers, size_t threads) {
        if (numbers.empty()) return;
        std::vector<std::pair<size_t, size_t>> tasks = plan(numbers, threads);
        // The largest first: a long task that starts last would leave the other threads idle.
        std::stable_sort(tasks.begin(), tasks.end(), [&](const auto& a, const auto& b) {
            return jobs[a.first].segments[a.second].bytes > jobs[b.first].segments[b.second].bytes;
        });
        each(tasks.size(), threads, [&](size_t k, PageScratch& scratch, Place& at) {
            ColumnJob& job = jobs[tasks[k].first];
            try {
                if (!job.misfit) decode_segment(job, job.segments[tasks[k].second], limits_, scratch, budget, at);
            } catch (const OtherForm&) {
                job.misfit = true;
            }
            // At once: of many columns, few hold segments beside their output then.
            at = {};
            if (--job.undecoded == 0 && !job.misfit) finish_column(job, limits_, budget);
        }, [&](size_t k) { return tasks[k].first; });
    }

    void plan_job(ColumnJob& job, int64_t all, size_t threads, PageScratch& scratch) {
        constexpr int64_t kLeast = int64_t{512} << 10;
        int64_t bytes = 0;
        for (const Piece& piece : job.pieces) bytes += piece.inflated;
        if (threads == 1) return plan_segments(job, std::numeric_limits<int64_t>::max(), false, limits_, scratch, budget);
        const auto share = all / static_cast<int64_t>(threads);
        const bool apart = job.in_place() && !job.leaf.is_binary();
        // What has to be joined afterwards is cut only where the other threads would have nothing to do.
        const bool split = apart || bytes > share;
        const int64_t target = apart ? std::max(kLeast, share / 8) : std::max(kLeast, bytes / static_cast<int64_t>(threads) + 1);
        plan_segments(job, target, split, limits_, scratch, budget);
    }

    template <class Run, class JobOf>
    void each(size_t tasks, size_t threads, Run&& run, JobOf&& job_of) {
        run_parallel(tasks, std::min(threads, tasks), [&](size_t k) {
            if (faults.any()) return;
            Place at;
            std::unique_ptr<PageScratch> scratch = take_scratch();
            try {
                run(k, *scratch, at);
            } catch (const PageRefusal& refused) {
                faults.note(job_of(k), at, refused);
            } catch (const KernelError& error) {
                faults.note(job_of(k), at, {"kernel", 0, 0, 0, error.what()});
            } catch (const nb::python_error& error) {
                faults.note_python(job_of(k), at, error);
            }
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(scratch));
        });
    }

    std::unique_ptr<PageScratch> take_scratch() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return std::make_unique<PageScratch>();
        std::unique_ptr<PageScratch> found = std::move(idle_.back());
        idle_.pop_back();
        return found;
    }

    PageLimits limits_;
    size_t threads_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<PageScratch>> idle_;

  public:
    Budget budget;
};

// What is wrong, for Python to put into words.
struct DecodeRefusal {
    std::string name;
    int64_t a, b, c;
    nb::bytes text;
    size_t column;
    int64_t piece, page;  // page: -1 for none, -2 for the dictionary page
    nb::object error;     // an exception of Python's, or None
};

// What has been read of one piece.
struct PieceFacts {
    size_t end;  // of its pages, in a whole chunk
    int64_t data_pages, dictionary_pages;
};

// What has been read of all chunks of a call.
struct ChunkTotals {
    size_t data_pages = 0, dictionary_pages = 0;
    size_t num_bytes = 0;    // of the columns
    size_t ended_early = 0;  // chunks whose pages end before their bytes do
};

// A DecodeRefusal, or None where nothing is wrong. Needs the GIL. To be called once, also after an exception.
nb::object refusal_of(Faults& faults);

// A column of values. Needs the GIL; nothing is left in the job.
DecodedColumn column_of(ColumnJob& job);

// The column; for codes (column, dictionaries of its pieces), for views (column, the bytes that they look at). None where it
// cannot come out as what was asked for.
nb::object result_of(ColumnJob& job);

}  // namespace pyparq
