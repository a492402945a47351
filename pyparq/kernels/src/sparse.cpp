// Few rows of some pages: their levels and values are picked, and what lies between them is stepped over.
#include "hybrid.hpp"
#include "values.hpp"

namespace pyparq {
namespace {

constexpr size_t kBlock = 1024;
using Ints = In<int64_t>;

struct Window {
    size_t start, stop;
    size_t size() const { return stop - start; }
};

// One run, or the part of it that lies before `stop`.
struct Run {
    size_t length = 0;
    uint32_t value = 0;             // of all, unless they are packed
    const uint8_t* bits = nullptr;  // packed values
    size_t bytes = 0;               // that may be read from `bits` on
};

class Runs {
  public:
    Runs(const uint8_t* data, size_t size, unsigned width, uint32_t last)
        : data_(data), size_(size), width_(width), last_(last) {}

    // The next run, of no more than `most` values (which are more than none); only those need be there.
    Run next(size_t most) {
        const uint64_t header = read_run_header(data_, size_, pos_);
        Run run;
        if ((header & 1) == 0) {
            run.length = static_cast<size_t>(std::min<uint64_t>(header >> 1, most));
            run.value = read_run_value(data_, size_, pos_, (width_ + 7) / 8);
            check_hybrid(run.value, last_);
            return run;
        }
        const uint64_t groups = header >> 1;
        run.length = static_cast<size_t>(std::min<uint64_t>(groups * 8, most));
        run.bits = data_ + pos_, run.bytes = size_ - pos_;
        if ((run.length * width_ + 7) / 8 > run.bytes) fail("RLE data end inside a bit-packed run");
        pos_ += static_cast<size_t>(std::min<uint64_t>(groups * width_, run.bytes));
        return run;
    }
    unsigned width() const { return width_; }

  private:
    const uint8_t* data_;
    size_t size_, pos_ = 0;
    unsigned width_;
    uint32_t last_;
};

// Values from..to of a packed run; returns the largest.
template <class T>
uint32_t unpack_part(const Run& run, unsigned w, size_t from, size_t to, T* out) {
    uint32_t top = 0;
    for (; from < to && from % 8 != 0; ++from) {
        const uint32_t v = unpack_one(run.bits, run.bytes, w, from);
        *out++ = static_cast<T>(v);
        top = std::max(top, v);
    }
    const size_t at = from / 8 * w, n = to - from;
    if (n == 0) return top;
    if constexpr (sizeof(T) == 1) {
        unpack_u8(run.bits + at, run.bytes - at, w, n, out);
        for (size_t i = 0; i < n; ++i) top = std::max<uint32_t>(top, out[i]);
        return top;
    } else {
        return std::max(top, unpack_u32(run.bits + at, run.bytes - at, w, n, reinterpret_cast<uint32_t*>(out)));
    }
}

// Spells out the window; `before(run, n)` is told of the first n values of each run that lie in front of it.
template <class T, class Before>
void read_window(Runs& runs, const Window& window, uint32_t last, T* out, Before&& before) {
    size_t done = 0;
    while (done < window.stop) {
        const Run run = runs.next(window.stop - done);
        const size_t skipped = done < window.start ? std::min(run.length, window.start - done) : 0;
        if (skipped > 0) before(run, skipped);
        if (skipped < run.length) {
            T* const to = out + (done + skipped - window.start);
            if (run.bits == nullptr) std::fill_n(to, run.length - skipped, static_cast<T>(run.value));
            else check_hybrid(unpack_part(run, runs.width(), skipped, run.length, to), last);
        }
        done += run.length;
    }
}

size_t set_bits(const uint8_t* bits, size_t n) {
    size_t set = 0, i = 0;
    for (; i + 64 <= n; i += 64) set += static_cast<size_t>(std::popcount(load<uint64_t>(bits + i / 8)));
    for (; i < n; ++i) set += bits[i / 8] >> (i % 8) & 1;
    return set;
}

// How many of the first n values of a run are `value`, the largest that there may be.
size_t count_in(const Run& run, unsigned w, size_t n, uint8_t value) {
    if (run.bits == nullptr) return run.value == value ? n : 0;
    if (w == 1) return set_bits(run.bits, n);
    uint8_t block[kBlock];
    size_t found = 0;
    for (size_t from = 0; from < n; from += kBlock) {
        const size_t to = std::min(n, from + kBlock);
        check_hybrid(unpack_part(run, w, from, to, block), value);
        found += count_equal(block, to - from, value);
    }
    return found;
}

// A page of a leaf outside of lists, where a level is a row, and the rows of it that are wanted (ascending, at least one).
struct Page {
    RawIn data;             // of the values
    RawIn levels;           // definition levels, without a length
    bool nullable = false;  // there are levels
    size_t count = 0;       // of rows
    const int64_t* rows = nullptr;
    size_t num_rows = 0;
};

struct Pages {
    std::vector<Page> pages;
    std::vector<int64_t> wanted;  // row numbers within the pages
    size_t rows = 0;              // wanted of all
    size_t bytes = 0;             // of all

    // `list`: tuples (data, levels or None, number of rows, ...); `starts`: where the rows of each start among `among`,
    // and the last page's end; `firsts`: the row that each page starts with.
    Pages(const nb::list& list, const Ints& among, const Ints& starts, const Ints& firsts)
        : pages(nb::len(list)) {
        if (starts.size != pages.size() + 1 || firsts.size != pages.size())
            fail("each page needs a start and a first row, and the end is needed");
        if (pages.empty()) return;
        const int64_t base = starts.data[0], end = starts.data[pages.size()];
        if (base < 0 || end < base || static_cast<uint64_t>(end) > among.size) fail("the rows are outside of those that exist");
        wanted.resize(static_cast<size_t>(end - base));
        for (size_t k = 0; k < pages.size(); ++k) {
            PyObject* const item = PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(k));
            if (!PyTuple_Check(item) || PyTuple_Size(item) < 3) fail("a page must be (data, levels, count)");
            Page& page = pages[k];
            if (!page.data.load(PyTuple_GetItem(item, 0))) fail("a page's data must be bytes-like");
            PyObject* const levels = PyTuple_GetItem(item, 1);
            page.nullable = levels != Py_None;
            if (page.nullable && !page.levels.load(levels)) fail("a page's levels must be bytes-like, or None");
            const long long count = PyLong_AsLongLong(PyTuple_GetItem(item, 2));
            if (count == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
            page.count = checked_count(count, "count");
            const int64_t from = starts.data[k], to = starts.data[k + 1], first = firsts.data[k];
            if (from < base || to <= from || to > end) fail("a page without rows, or beyond them");
            if (first < 0) fail("a negative row: " + str(first));
            int64_t* const own = wanted.data() + (from - base);
            page.rows = own;
            page.num_rows = static_cast<size_t>(to - from);
            for (size_t i = 0; i < page.num_rows; ++i) {
                const int64_t row = among.data[static_cast<size_t>(from) + i];
                if (row < first || (i > 0 && row - first <= own[i - 1])) fail("rows must ascend");
                own[i] = row - first;
            }
            if (static_cast<uint64_t>(page.rows[page.num_rows - 1]) >= page.count)
                fail("row " + str(page.rows[page.num_rows - 1]) + " of a page of " + str(page.count) + " rows");
            rows += page.num_rows;
            bytes += page.data.size + page.levels.size;
        }
    }
};

// Finds the wanted rows' levels, and which of a page's values these rows have.
class Placer {
  public:
    explicit Placer(int64_t maximum) {
        if (maximum < 0 || maximum > 255) fail("level out of range: " + str(maximum));
        maximum_ = static_cast<uint8_t>(maximum);
        width_ = static_cast<unsigned>(std::bit_width(unsigned{maximum_}));
    }

    // Writes a level per row; fills `places`.
    void place(const Page& page, uint8_t* levels) {
        places.clear();
        if (!page.nullable || maximum_ == 0) {
            std::memset(levels, maximum_, page.num_rows);
            places.resize(page.num_rows);
            for (size_t i = 0; i < page.num_rows; ++i) places[i] = static_cast<size_t>(page.rows[i]);
            return;
        }
        const Window window{static_cast<size_t>(page.rows[0]), static_cast<size_t>(page.rows[page.num_rows - 1]) + 1};
        near_.resize(window.size());
        size_t present = 0, at = 0;
        Runs runs(page.levels.data, page.levels.size, width_, maximum_);
        read_window(runs, window, maximum_, near_.data(),
                    [&](const Run& run, size_t n) { present += count_in(run, width_, n, maximum_); });
        if (window.size() == page.num_rows) {  // rows that adjoin
            std::memcpy(levels, near_.data(), page.num_rows);
            places.resize(page.num_rows);
            for (size_t i = 0; i < page.num_rows; ++i) {
                places[at] = present + at;
                at += near_[i] == maximum_;
            }
            places.resize(at);
            return;
        }
        for (size_t i = 0; i < page.num_rows; ++i) {
            const size_t row = static_cast<size_t>(page.rows[i]) - window.start;
            present += count_equal(near_.data() + at, row - at, maximum_);
            at = row;
            levels[i] = near_[row];
            if (levels[i] == maximum_) places.push_back(present);
        }
    }

    std::vector<size_t> places;

  private:
    uint8_t maximum_;
    unsigned width_;
    std::vector<uint8_t> near_;
};

// The levels, None where all of them are the maximum.
nb::object levels_or_none(const Fresh<uint8_t>& levels, size_t present) {
    return present == levels.size ? nb::none() : levels.object;
}

nb::object pick_fixed(const nb::list& list, const Ints& rows, const Ints& starts, const Ints& firsts,
                      int64_t maximum, int64_t width_) {
    const Pages pages(list, rows, starts, firsts);
    const size_t width = checked_value_width(width_);
    Fresh<uint8_t> levels(pages.rows), values(checked_mul(pages.rows, width));
    Placer placer(maximum);
    size_t row = 0, present = 0;
    for (const Page& page : pages.pages) {
        placer.place(page, levels.data + row);
        row += page.num_rows;
        const std::vector<size_t>& places = placer.places;
        if (places.empty()) continue;
        if (places.back() >= page.data.size / width)
            fail("value " + str(uint64_t{places.back()}) + " of " + str(uint64_t{width}) + " bytes in " +
                 str(uint64_t{page.data.size}));
        if (places.back() - places.front() == places.size() - 1) {
            std::memcpy(values.data + present * width, page.data.data + places.front() * width, places.size() * width);
            present += places.size();
            continue;
        }
        for (const size_t place : places)
            std::memcpy(values.data + present++ * width, page.data.data + place * width, width);
    }
    return nb::make_tuple(first_items(values.object, values.size, present * width), levels_or_none(levels, present));
}

nb::object pick_indices(const nb::list& list, const Ints& rows, const Ints& starts, const Ints& firsts,
                        int64_t maximum, int64_t limit) {
    if (limit < 0 || limit > int64_t{1} << 31) fail("limit is not in 0..2^31: " + str(limit));
    const Pages pages(list, rows, starts, firsts);
    Fresh<uint8_t> levels(pages.rows);
    Fresh<int32_t> indices(pages.rows);
    Placer placer(maximum);
    std::vector<int32_t> near;
    size_t row = 0, present = 0;
    for (const Page& page : pages.pages) {
        placer.place(page, levels.data + row);
        row += page.num_rows;
        if (placer.places.empty()) continue;
        if (page.data.size == 0) fail("no data, not even a bit width");
        if (limit == 0) fail("an index into a dictionary without entries");
        const unsigned w = page.data.data[0];
        if (w > 32) fail("bit width " + str(uint64_t{w}) + " is not in 0..32");
        const uint64_t widest = (uint64_t{1} << w) - 1;
        const uint32_t last = static_cast<uint32_t>(std::min<uint64_t>(static_cast<uint64_t>(limit - 1), widest));
        const Window window{placer.places.front(), placer.places.back() + 1};
        near.assign(window.size(), 0);
        if (w > 0) {
            Runs runs(page.data.data + 1, page.data.size - 1, w, last);
            read_window(runs, window, last, near.data(), [](const Run&, size_t) {});
        }
        for (const size_t place : placer.places) indices.data[present++] = near[place - window.start];
    }
    return nb::make_tuple(first_items(indices.object, indices.size, present), levels_or_none(levels, present));
}

// Length-prefixed values: where each starts only the lengths before it tell.
nb::object pick_plain_binary(const nb::list& list, const Ints& rows, const Ints& starts, const Ints& firsts,
                             int64_t maximum) {
    const Pages pages(list, rows, starts, firsts);
    Fresh<uint8_t> levels(pages.rows);
    std::vector<int64_t> offsets{0};
    std::vector<uint8_t> values;
    {
        NoGil nogil(pages.bytes);
        Placer placer(maximum);
        size_t row = 0;
        for (const Page& page : pages.pages) {
            placer.place(page, levels.data + row);
            row += page.num_rows;
            const uint8_t *p = page.data.data, *const end = p + page.data.size;
            size_t at = 0;
            const auto length = [&]() -> size_t {  // of the value at p: it fits
                if (end - p < 4) fail("PLAIN byte arrays end inside the length of value " + str(uint64_t{at}));
                const size_t len = load<uint32_t>(p), left = static_cast<size_t>(end - p) - 4;
                if (len > left)
                    fail("PLAIN byte array " + str(uint64_t{at}) + " declares " + str(uint64_t{len}) + " bytes, " +
                         str(uint64_t{left}) + " are left");
                return len;
            };
            for (const size_t place : placer.places) {
                for (; at < place; ++at) p += 4 + length();
                const size_t len = length();
                values.insert(values.end(), p + 4, p + 4 + len);
                offsets.push_back(static_cast<int64_t>(values.size()));
                p += 4 + len;
                ++at;
            }
        }
    }
    Fresh<int64_t> out_offsets(offsets.size());
    Fresh<uint8_t> out(values.size());
    std::copy(offsets.begin(), offsets.end(), out_offsets.data);
    std::copy(values.begin(), values.end(), out.data);
    return nb::make_tuple(out_offsets.object, out.object, levels_or_none(levels, offsets.size() - 1));
}

// Of pages whose values are decoded elsewhere: which of its values the rows of each have.
nb::object pick_places(const nb::list& list, const Ints& rows, const Ints& starts, const Ints& firsts,
                       int64_t maximum) {
    const Pages pages(list, rows, starts, firsts);
    Fresh<uint8_t> levels(pages.rows);
    Fresh<int64_t> places(pages.rows);
    Placer placer(maximum);
    size_t row = 0, present = 0;
    for (const Page& page : pages.pages) {
        placer.place(page, levels.data + row);
        row += page.num_rows;
        for (const size_t place : placer.places) places.data[present++] = static_cast<int64_t>(place);
    }
    return nb::make_tuple(first_items(places.object, places.size, present), levels_or_none(levels, present));
}

}  // namespace
}  // namespace pyparq

void bind_sparse(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("pick_fixed", &pick_fixed, "pages"_a, "rows"_a, "starts"_a, "firsts"_a, "maximum"_a, "width"_a);
    m.def("pick_indices", &pick_indices, "pages"_a, "rows"_a, "starts"_a, "firsts"_a, "maximum"_a, "limit"_a);
    m.def("pick_plain_binary", &pick_plain_binary, "pages"_a, "rows"_a, "starts"_a, "firsts"_a, "maximum"_a);
    m.def("pick_places", &pick_places, "pages"_a, "rows"_a, "starts"_a, "firsts"_a, "maximum"_a);
}
