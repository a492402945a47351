// The decoder of column chunks: bytes in, Arrow buffers out, on threads of its own and without Python in between.
#include "codecs.hpp"
#include "crc.hpp"
#include "engine_column.hpp"
#include "engine_libraries.hpp"
#include "workers.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <deque>

namespace pyparq {

nb::object Block::taken(size_t n, bool is_signed, size_t itemsize) {
    trim_area(area_, n * itemsize);
    const Area area = std::exchange(area_, {});
    size_ = 0;
    const nb::capsule owner = owner_of(area, n * itemsize);
    uint8_t* const data = area.data;
    const auto over = [&](auto tag) {
        using T = decltype(tag);
        return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(reinterpret_cast<T*>(data), {n}, owner));
    };
    return !is_signed ? over(uint8_t{}) : itemsize == 4 ? over(int32_t{}) : over(int64_t{});
}

namespace {

// ---- libraries ------------------------------------------------------------------------------------------

struct Libraries {
    std::optional<Crc32> crc;
    nb::object decoders;  // decode(codec, stored, out) -> bytes written
};
Libraries* libraries = nullptr;  // never freed: threads may outlive the module

void set_libraries(nb::object crc_function, const std::string& crc_module, nb::object decoders) {
    if (libraries == nullptr) libraries = new Libraries;
    libraries->crc.emplace(std::move(crc_function), crc_module);
    libraries->decoders = std::move(decoders);
}

}  // namespace

uint32_t crc32_of(const uint8_t* data, size_t size) {
    if (libraries == nullptr || !libraries->crc) fail("the decoder has no CRC-32");
    if (libraries->crc->native()) return libraries->crc->of(data, size);
    const nb::gil_scoped_acquire gil;
    return libraries->crc->of(data, size);
}

int64_t inflate_page(int codec, const uint8_t* in, size_t n, uint8_t* out, size_t size, size_t wanted) {
    if (codec_is_native(codec)) return inflate_native(codec, in, n, out, size, wanted);
    const nb::gil_scoped_acquire gil;
    const nb::object target =
        nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(out), static_cast<Py_ssize_t>(size), PyBUF_WRITE));
    if (!target.is_valid()) throw nb::python_error();
    return nb::cast<int64_t>(libraries->decoders(codec, passing_view(in, n), target));
}

// ---- encrypted chunks -----------------------------------------------------------------------------------

namespace {

void append_view(const nb::object& view, std::string& out) {
    RawIn bytes;
    if (!bytes.load(view.ptr())) fail("a module must be bytes-like");
    out.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
}

constexpr int kDataPageModule = 2, kDictionaryModule = 3, kDataHeaderModule = 4, kDictionaryHeaderModule = 5;

}  // namespace

std::string PageCipher::header(const Bytes& data, size_t at, int64_t ordinal, size_t& end) const {
    const nb::gil_scoped_acquire gil;
    const bool dictionary = ordinal == kDictionaryPage;
    const nb::object found = crypto_.attr("module_at")(passing_view(data.data, data.size), at,
                                                       dictionary ? kDictionaryHeaderModule : kDataHeaderModule,
                                                       dictionary ? int64_t{-1} : ordinal);
    std::string plain;
    append_view(found[0], plain);
    end = nb::cast<size_t>(found[1]);
    if (end > data.size) fail("a module ends behind its chunk");
    return plain;
}

void PageCipher::body(const Bytes& stored, const PageHead& head, int64_t ordinal, std::string& out) const {
    const nb::gil_scoped_acquire gil;
    out.clear();
    const nb::object view = passing_view(stored.data, stored.size);
    if (ordinal == kDictionaryPage) {
        append_view(crypto_.attr("open")(kDictionaryModule, view), out);
    } else if (head.is_v2()) {
        const nb::object parts = crypto_.attr("open_page_v2")(view, head.rep + head.def, ordinal);
        append_view(parts[0], out);
        append_view(parts[1], out);
    } else {
        append_view(crypto_.attr("open")(kDataPageModule, view, ordinal), out);
    }
}

namespace {

// ---- arguments ------------------------------------------------------------------------------------------

// What keeps the bytes of all pieces alive during a call.
struct Held {
    std::deque<Buffer> buffers;

    Bytes bytes(const nb::handle& source) {
        Buffer& buffer = buffers.emplace_back();
        if (!buffer.acquire(source.ptr(), PyBUF_SIMPLE)) fail("pages must be bytes-like");
        return {static_cast<const uint8_t*>(buffer.view().buf), static_cast<size_t>(buffer.view().len)};
    }
    template <class T>
    const T* items(const nb::handle& source, size_t& n) {
        const Bytes found = bytes(source);
        n = found.size / sizeof(T);
        if (reinterpret_cast<uintptr_t>(found.data) % alignof(T) != 0) fail("an array is not aligned");
        return reinterpret_cast<const T*>(found.data);
    }
};

nb::handle item(const nb::handle& tuple, Py_ssize_t k) {
    PyObject* const found = PyTuple_GetItem(tuple.ptr(), k);
    if (found == nullptr) throw nb::python_error();
    return found;
}

int64_t number(const nb::handle& tuple, Py_ssize_t k) {
    const long long found = PyLong_AsLongLong(item(tuple, k).ptr());
    if (found == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return found;
}

LeafSpec read_leaf(const nb::handle& given) {
    LeafSpec leaf{};
    leaf.physical = static_cast<Physical>(number(given, 0));
    leaf.width = static_cast<size_t>(number(given, 1));
    leaf.max_def = static_cast<int>(number(given, 2));
    leaf.max_rep = static_cast<int>(number(given, 3));
    leaf.slot_level = static_cast<int>(number(given, 4));
    leaf.keeps_levels = number(given, 5) != 0;
    leaf.is_text = number(given, 6) != 0;
    leaf.kind = static_cast<OutputKind>(number(given, 7));
    leaf.convert = static_cast<Convert>(number(given, 8));
    if (leaf.max_def < 0 || leaf.max_def > 255 || leaf.max_rep < 0 || leaf.max_rep > 255) fail("levels out of range");
    if (leaf.physical != Physical::kByteArray && leaf.width == 0) fail("a leaf of no width");
    return leaf;
}

// A dictionary that is known: (entries, offsets or None, bytes).
Dictionary read_known(const nb::handle& given, const LeafSpec& leaf, Held& held, Budget& budget) {
    Dictionary dictionary;
    const auto count = number(given, 0);
    if (count < 0) fail("a dictionary of a negative size");
    const Bytes data = held.bytes(item(given, 2));
    if (item(given, 1).is_none()) {
        if (leaf.physical == Physical::kBoolean) {
            dictionary.there = true, dictionary.count = static_cast<size_t>(count);
            dictionary.fixed.assign(data.data, data.data + data.size);
            if (data.size < dictionary.count) fail("a dictionary that is too short");
            return dictionary;
        }
        dictionary.load(data, count, leaf, 0, budget);
        return dictionary;
    }
    size_t n;
    const int64_t* const offsets = held.items<int64_t>(item(given, 1), n);
    if (n != static_cast<size_t>(count) + 1) fail("a dictionary needs an offset more than it has entries");
    check_offsets(offsets, n, data.size);
    std::vector<uint8_t> plain;
    for (size_t i = 0; i + 1 < n; ++i) {
        const auto length = static_cast<uint32_t>(offsets[i + 1] - offsets[i]);
        const auto* const p = reinterpret_cast<const uint8_t*>(&length);
        plain.insert(plain.end(), p, p + 4);
        plain.insert(plain.end(), data.data + offsets[i], data.data + offsets[i + 1]);
    }
    dictionary.load({plain.data(), plain.size()}, count, leaf, plain.size(), budget);
    return dictionary;
}

// (codec, values, rows, first page is a dictionary, whole, parts or bytes, ordinals, first rows, rows of pages,
//  dictionary apart, selection, crypto, authenticates, known dictionary)
void read_piece(const nb::handle& given, const LeafSpec& leaf, Held& held, Budget& budget, Piece& piece) {
    piece.codec = static_cast<int>(number(given, 0));
    piece.num_values = number(given, 1);
    piece.num_rows = number(given, 2);
    piece.first_is_dictionary = number(given, 3) != 0;
    piece.whole = number(given, 4) != 0;
    const nb::handle parts = item(given, 5);
    if (piece.whole) {
        piece.parts.push_back(held.bytes(parts));
    } else {
        const Py_ssize_t n = PySequence_Size(parts.ptr());
        if (n < 0) throw nb::python_error();
        for (Py_ssize_t k = 0; k < n; ++k) {
            const nb::object part = nb::steal(PySequence_GetItem(parts.ptr(), k));
            piece.parts.push_back(held.bytes(part));
        }
        piece.dictionary_apart = number(given, 9) != 0;
        size_t a = 0, b = 0, c = 0;
        piece.ordinals = held.items<int64_t>(item(given, 6), a);
        piece.first_rows = held.items<int64_t>(item(given, 7), b);
        piece.page_rows = held.items<int64_t>(item(given, 8), c);
        const size_t pages = piece.parts.size() - (piece.dictionary_apart ? 1 : 0);
        if (piece.dictionary_apart && piece.parts.empty()) fail("no dictionary page");
        if (a != pages || b != pages || c != pages) fail("a number per page is due");
    }
    const nb::handle rows = item(given, 10);
    if (PyTuple_Check(rows.ptr())) {
        size_t a = 0, b = 0;
        piece.rows.form = RowSelection::kRanges;
        piece.rows.starts = held.items<int64_t>(item(rows, 0), a);
        piece.rows.ends = held.items<int64_t>(item(rows, 1), b);
        if (a != b) fail("ranges need as many ends as starts");
        int64_t last = 0;
        for (size_t k = 0; k < a; ++k) {
            if (piece.rows.starts[k] < last || piece.rows.ends[k] < piece.rows.starts[k]) fail("ranges must ascend");
            last = piece.rows.ends[k];
        }
        piece.rows.ranges = a;
    } else if (!rows.is_none()) {
        const Bytes bits = held.bytes(rows);
        if (bits.size % 8 != 0 || static_cast<int64_t>(bits.size) * 8 < piece.num_rows) fail("a bitmap needs a bit per row");
        piece.rows.form = RowSelection::kBitmap;
        piece.rows.bits = bits.data;
        piece.rows.num_rows = piece.num_rows;
    }
    if (!item(given, 11).is_none()) piece.cipher.emplace(nb::borrow(item(given, 11)), number(given, 12) != 0);
    if (!item(given, 13).is_none()) piece.known = read_known(item(given, 13), leaf, held, budget);
}

// ---- running --------------------------------------------------------------------------------------------

// The first thing that is wrong, in the order of columns, row groups and pages.
struct Fault {
    bool any = false;
    size_t job = 0;
    Place place;
    Refused refused{""};
    PyObject* error = nullptr;  // an exception of Python's
    bool memory = false;
};

class Faults {
  public:
    void note(size_t job, const Place& place, const Refused& refused) {
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
        decode(threads);
        if (faults.any()) return;
        bool again = false;
        for (ColumnJob& job : jobs) {
            if (!job.give_up || !job.leaf.is_binary()) continue;
            job.give_up = false, job.wide = again = true;
            for (Piece& piece : job.pieces) piece.pages_read = 0;
        }
        if (again) decode(threads, true);
        if (faults.any()) return;
        each(jobs.size(), threads, [&](size_t j, PageScratch&, Place&) {
            if (!jobs[j].give_up) finish_column(jobs[j], limits_, budget);
        }, [](size_t j) { return j; });
    }

  private:
    void decode(size_t threads, bool wide_only = false) {
        int64_t all = 0, largest = 0;
        for (const ColumnJob& job : jobs) {
            int64_t bytes = 0;
            for (const Piece& piece : job.pieces) bytes += piece.inflated;
            all += bytes;
            largest = std::max(largest, bytes);
        }
        std::vector<std::pair<size_t, size_t>> tasks;
        for (size_t j = 0; j < jobs.size(); ++j) {
            ColumnJob& job = jobs[j];
            if (wide_only && !job.wide) continue;
            Place at;
            try {
                plan(job, all, threads);
            } catch (const Refused& refused) {
                faults.note(j, at, refused);
                return;
            }
            for (size_t s = 0; s < job.segments.size(); ++s) tasks.emplace_back(j, s);
        }
        // The largest first: a long task that starts last would leave the other threads idle.
        std::stable_sort(tasks.begin(), tasks.end(), [&](const auto& a, const auto& b) {
            return jobs[a.first].segments[a.second].bytes > jobs[b.first].segments[b.second].bytes;
        });
        each(tasks.size(), threads, [&](size_t k, PageScratch& scratch, Place& at) {
            const auto [j, s] = tasks[k];
            try {
                if (!jobs[j].give_up)
                    decode_segment(jobs[j], jobs[j].segments[s], limits_, scratch, budget, at);
            } catch (const NeedsWide&) {
                jobs[j].give_up = true;
            }
        }, [&](size_t k) { return tasks[k].first; });
    }

    void plan(ColumnJob& job, int64_t all, size_t threads) {
        constexpr int64_t kLeast = int64_t{512} << 10;
        int64_t bytes = 0;
        for (const Piece& piece : job.pieces) bytes += piece.inflated;
        if (threads == 1) return plan_segments(job, std::numeric_limits<int64_t>::max(), false, limits_, budget);
        const auto share = all / static_cast<int64_t>(threads);
        const bool apart = job.in_place() && !job.leaf.is_binary();
        // What has to be joined afterwards is cut only where the other threads would have nothing to do.
        const bool split = apart || bytes > share;
        const int64_t target = apart ? std::max(kLeast, share / 8) : std::max(kLeast, bytes / static_cast<int64_t>(threads) + 1);
        plan_segments(job, target, split, limits_, budget);
    }

    template <class Run, class JobOf>
    void each(size_t tasks, size_t threads, Run&& run, JobOf&& job_of) {
        run_parallel(tasks, std::min(threads, tasks), [&](size_t k) {
            if (faults.any()) return;
            Place at;
            std::unique_ptr<PageScratch> scratch = take_scratch();
            try {
                run(k, *scratch, at);
            } catch (const Refused& refused) {
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

// ---- results --------------------------------------------------------------------------------------------

template <class T>
nb::object array_of(const std::vector<T>& values) {
    Fresh<T> out(values.size());
    if (!values.empty()) std::memcpy(out.data, values.data(), values.size() * sizeof(T));
    return std::move(out.object);
}

// (count, offsets or None, bytes) of a dictionary, byte arrays or values of fixed width as they are stored.
nb::object dictionary_of(Dictionary& dictionary, const LeafSpec& leaf) {
    if (!dictionary.there) return nb::none();
    const bool binary = leaf.physical == Physical::kByteArray;
    return nb::make_tuple(dictionary.count, binary ? array_of(dictionary.offsets) : nb::none(),
                          dictionary.bytes.array<uint8_t>(dictionary.bytes_used));
}

// (slots, nulls, validity, values, offsets, bytes, definition levels, repetition levels, dictionaries or the bytes that views
// look at), or None where the column cannot come out as the kind that was asked for.
nb::object result_of(ColumnJob& job) {
    if (job.give_up) return nb::none();
    const LeafSpec& leaf = job.leaf;
    nb::object values = nb::none(), offsets = nb::none(), bytes = nb::none(), dictionaries = nb::none();
    if (leaf.is_binary()) {
        offsets = job.wide ? job.offsets.array<int64_t>(job.slots + 1) : job.offsets.array<int32_t>(job.slots + 1);
        bytes = job.bytes.array<uint8_t>(job.bytes_used);
    } else {
        const bool bits = leaf.physical == Physical::kBoolean && leaf.kind == OutputKind::kValues;
        values = job.values.array<uint8_t>(bits ? (job.slots + 7) / 8 : job.slots * leaf.out_width());
    }
    if (leaf.kind == OutputKind::kCodes) {
        nb::list all;
        for (Piece& piece : job.pieces) all.append(dictionary_of(piece.known ? *piece.known : piece.dictionary, leaf));
        dictionaries = all;
    } else if (leaf.is_views()) {
        nb::list all;
        for (ViewBuffer& buffer : job.views.all) all.append(buffer.bytes.array<uint8_t>(buffer.used));
        dictionaries = all;
    }
    return nb::make_tuple(job.slots, job.nulls, job.has_valid ? job.bits.array<uint8_t>((job.slots + 7) / 8) : nb::none(),
                          values, offsets, bytes, job.has_def ? job.def.array<uint8_t>(job.in_place() ? job.slots : job.levels) : nb::none(),
                          job.has_rep ? job.rep.array<uint8_t>(job.levels) : nb::none(), dictionaries);
}

// What each piece has read: where its pages end, data pages, dictionary pages.
nb::object facts_of(const std::deque<ColumnJob>& jobs) {
    nb::list all;
    for (const ColumnJob& job : jobs)
        for (const Piece& piece : job.pieces)
            all.append(nb::make_tuple(piece.end, piece.pages_read, piece.dictionary_read ? 1 : 0));
    return all;
}

// jobs: (leaf, pieces) each. limits: as PageLimits. Returns (results, facts, None), or (None, None, what is wrong): its
// name, three numbers, a text, the job, piece and page, and an exception of Python's or None.
nb::tuple decode_columns(const nb::list& given, const nb::tuple& limits_given, size_t threads, int64_t room) {
    PageLimits limits{number(limits_given, 0), number(limits_given, 1), number(limits_given, 2),
                      number(limits_given, 3), number(limits_given, 4), number(limits_given, 5) != 0,
                      std::clamp<int64_t>(number(limits_given, 6), 0, std::numeric_limits<int32_t>::max())};
    Held held;
    Decoder decoder(limits, std::max<size_t>(threads, 1), room);
    const Py_ssize_t count = PyList_Size(given.ptr());
    try {
        for (Py_ssize_t j = 0; j < count; ++j) {
            const nb::handle one = PyList_GetItem(given.ptr(), j);
            ColumnJob& job = decoder.jobs.emplace_back();
            job.leaf = read_leaf(item(one, 0));
            const nb::handle pieces = item(one, 1);
            const Py_ssize_t n = PyList_Size(pieces.ptr());
            job.pieces.resize(static_cast<size_t>(n));
            for (Py_ssize_t p = 0; p < n; ++p)
                read_piece(PyList_GetItem(pieces.ptr(), p), job.leaf, held, decoder.budget, job.pieces[static_cast<size_t>(p)]);
        }
        decoder.run();
    } catch (const Refused& refused) {
        decoder.faults.note(decoder.jobs.empty() ? 0 : decoder.jobs.size() - 1, {}, refused);
    } catch (...) {
        Py_XDECREF(decoder.faults.first.error);
        for (PyObject* const error : decoder.faults.lost_) Py_DECREF(error);
        throw;
    }
    if (stop_requested()) fail("the task was stopped");
    for (PyObject* const error : decoder.faults.lost_) Py_DECREF(error);
    const Fault& fault = decoder.faults.first;
    if (fault.any) {
        const nb::object error = fault.error == nullptr ? nb::none() : nb::steal(fault.error);
        const auto& text = fault.refused.text;
        return nb::make_tuple(nb::none(), nb::none(),
                              nb::make_tuple(fault.refused.name, fault.refused.a, fault.refused.b, fault.refused.c,
                                             nb::bytes(text.data(), text.size()), fault.job, fault.place.piece,
                                             fault.place.page, error));
    }
    nb::list results;
    for (ColumnJob& job : decoder.jobs) results.append(result_of(job));
    return nb::make_tuple(results, facts_of(decoder.jobs), nb::none());
}

}  // namespace
}  // namespace pyparq

void bind_engine(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("set_libraries", &set_libraries, "crc32"_a, "crc_module"_a, "decode"_a);
    m.def("decode_columns", &decode_columns, "jobs"_a, "limits"_a, "threads"_a, "room"_a);
}
