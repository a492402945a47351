// The pages of one column chunk for those who look at them one by one (verify, add_indexes): headers, entries of the
// dictionary, and of each page its levels, codes and values without nulls.
#pragma once
#include "decode/decoder.hpp"
#include "decode/rle_bitpacked.hpp"
#include "decode/values.hpp"

#include <nanobind/stl/pair.h>

namespace pyparq {

constexpr int64_t kAllPresent = -1, kAllNull = -2;  // in place of where the levels of a page begin

// Bytes that grow as pages come.
class Growing {
  public:
    // Room for `more` bytes behind those that are used; `expected`: in all, as far as that is known.
    uint8_t* next(size_t more, size_t expected, Budget& budget) {
        const size_t needed = used + more;
        if (needed > block.size()) {
            size_t room = std::max({needed, expected, 2 * block.size()});
            if (static_cast<int64_t>(std::min(room, size_t{1} << 62)) > budget.left() / 2) room = needed;
            budget.take(room - block.size());
            block.grow(room);
        }
        return block.data() + used;
    }
    Block block;
    size_t used = 0;
};

// What some pages hold, one after another.
struct PageRun {
    std::vector<int64_t> numbers;  // of each page: levels, values that are present, rows, where its levels begin (rep, def)
    Growing rep, def, codes;
    std::unique_ptr<FixedSink> fixed;
    std::unique_ptr<BinarySink<int64_t>> binary;
    size_t pages = 0;

    size_t held() const {
        return rep.block.size() + def.block.size() + codes.block.size() + (fixed ? fixed->held() : 0) +
               (binary ? binary->held() : 0);
    }
};

// The header of a page, and where the page lies.
struct StoredPage {
    PageHead head;
    int64_t offset, size;  // of the whole page, in the file
};

// What some pages hold, for Python.
struct DecodedPages {
    size_t count;
    nb::object numbers, rep, def, codes, values;
};

class PageReader {
  public:
    PageReader(const LeafSpec& leaf, nb::object piece, const PageLimits& limits, int64_t offset)
        : leaf_(leaf), limits_(limits), budget_(0), piece_object_(std::move(piece)), offset_(offset) {
        leaf_.form = leaf_.form_of_values(), leaf_.convert = Convert::kNone, leaf_.is_text = false;
        read_piece(nb::cast<const PieceSpec&>(piece_object_), leaf_, held_, budget_, piece_);
        if (!piece_.whole) fail("a whole column chunk is due");
    }

    nb::object list(bool to_the_end, const nb::object& more, int64_t beyond) {
        return guarded(more, beyond, [&](Place& at) {
            const size_t size = piece_.parts.at(0).size;
            while (piece_.end < size && (to_the_end || walk_.values < piece_.num_values)) {
                const size_t start = piece_.end, pages = piece_.pages.size();
                const bool had_dictionary = walk_.has_dictionary;
                at.page = start == 0 && piece_.first_is_dictionary ? kDictionaryPage : static_cast<int64_t>(pages);
                next_page(leaf_, piece_, walk_, limits_, scratch_, budget_);
                if (piece_.pages.size() > pages) starts_.push_back(static_cast<int64_t>(start));
                if (walk_.has_dictionary && !had_dictionary) {
                    dictionary_start_ = static_cast<int64_t>(start);
                    if (!walk_.dictionary.has_dictionary) throw PageRefusal{"no_dictionary_header"};
                }
                if (stop_requested()) return;
            }
        });
    }

    nb::list pages() const {
        nb::list found;
        for (size_t k = 0; k < piece_.pages.size(); ++k)
            found.append(nb::cast(facts_of(piece_.pages[k].head, piece_.pages[k].body, starts_[k])));
        return found;
    }

    nb::object dictionary() const {
        if (!walk_.has_dictionary || !walk_.dictionary.has_dictionary) return nb::none();
        return nb::cast(facts_of(walk_.dictionary, walk_.dictionary_body, dictionary_start_));
    }

    // (entries, offsets or None, bytes), refusal.
    nb::tuple entries(const nb::object& more, int64_t beyond) {
        Block values;
        std::vector<int64_t> offsets;
        size_t used = 0, count = 0;
        const nb::object refusal = guarded(more, beyond, [&](Place& at) {
            at.page = kDictionaryPage;
            const PageHead& head = walk_.dictionary;
            const Bytes plain = open_dictionary_page(head, walk_.dictionary_body, piece_.codec, piece_.cipher, head.size, limits_,
                                                     scratch_, budget_);
            count = static_cast<size_t>(head.count);
            if (leaf_.physical == Physical::kByteArray) {
                Dictionary found;
                found.load(plain, head.count, head.count, leaf_, 0, budget_);
                values = std::move(found.bytes), offsets = std::move(found.offsets), used = found.bytes_used;
                return;
            }
            used = checked_mul(count, leaf_.width);
            if (count > 0 && used > plain.size)
                throw PageRefusal{"dictionary_size", head.count, static_cast<int64_t>(plain.size)};
            const PageValues page{kPlain, plain, count};
            const uint8_t* const from = plain_fixed(page, leaf_, count, scratch_.values, budget_);
            budget_.take(used);
            values.grow(used);
            if (used > 0) std::memcpy(values.data(), from, used);
        });
        if (!refusal.is_none()) return nb::make_tuple(nb::none(), refusal);
        const nb::object ends = leaf_.physical == Physical::kByteArray ? copied(offsets) : nb::none();
        return nb::make_tuple(nb::make_tuple(count, ends, values.share(used).array<uint8_t>()), nb::none());
    }

    // Pages from number `first` on, until they take `window` bytes; none behind number `last`. `entries`: of the dictionary,
    // below 0 where there is none. Levels alone unless `with_values`.
    nb::tuple decode(size_t first, size_t last, int64_t window, int64_t entries, bool with_values, const nb::object& more,
                     int64_t beyond) {
        budget_.give(std::exchange(lent_, 0));
        PageRun run;
        const nb::object refusal = guarded(more, beyond, [&](Place& at) {
            int64_t bytes = 0;
            last = std::min(last, piece_.pages.size());
            for (size_t k = first; k < last && bytes < window && !stop_requested(); ++k) {
                const ListedPage& page = piece_.pages[k];
                at.page = page.ordinal;
                decode_page(page, k, last, window, entries, with_values, run);
                bytes += page.head.size + page.head.count;
            }
        });
        if (!refusal.is_none()) {
            budget_.give(run.held());
            return nb::make_tuple(nb::none(), refusal);
        }
        lent_ = run.held();
        const nb::object values = values_of(run);
        const nb::object codes = run.codes.block.share(run.codes.used).array<int32_t>();
        return nb::make_tuple(DecodedPages{run.pages, copied(run.numbers), shared(run.rep), shared(run.def), codes, values}, nb::none());
    }

    int64_t num_values() const { return walk_.values; }
    size_t end() const { return piece_.end; }

    // Bytes of all pages and their headers, not compressed.
    int64_t uncompressed() const {
        int64_t found = static_cast<int64_t>(piece_.end);
        for (const ListedPage& page : piece_.pages) found += page.head.size - page.head.stored;
        if (walk_.has_dictionary) found += walk_.dictionary.size - walk_.dictionary.stored;
        return found;
    }

  private:
    StoredPage facts_of(const PageHead& head, const Bytes& body, int64_t start) const {
        return {head, offset_ + start, body.data + body.size - piece_.parts[0].data - start};
    }

    // Runs a task that may be stopped; what is wrong, as Python words it, or None.
    template <class Run>
    nb::object guarded(const nb::object& more, int64_t beyond, Run&& run) {
        Faults faults;
        Place at;
        at.piece = 0;
        budget_.ask([&](int64_t missing) {
            const nb::gil_scoped_acquire gil;
            return nb::cast<std::pair<int64_t, int64_t>>(more(missing));
        }, beyond);
        run_parallel(1, 1, [&](size_t) {
            try {
                run(at);
            } catch (const PageRefusal& refused) {
                faults.note(0, at, refused);
            } catch (const KernelError& error) {
                faults.note(0, at, {"kernel", 0, 0, 0, error.what()});
            } catch (const nb::python_error& error) {
                faults.note_python(0, at, error);
            }
        });
        budget_.ask({}, 0);
        if (stop_requested()) fail("the task was stopped");
        return refusal_of(faults);
    }

    void decode_page(const ListedPage& listed, size_t k, size_t last, int64_t window, int64_t entries, bool with_values,
                     PageRun& run) {
        scratch_.into = nullptr;
        const OpenPage page = open_data_page(listed.head, listed.body, listed.ordinal, piece_.codec, leaf_.max_def,
                                             leaf_.max_rep, piece_.cipher, -1, limits_, scratch_,
                                             budget_);
        const auto count = static_cast<size_t>(page.count);
        size_t present = count, rows = count;
        int64_t rep_from = kAllPresent, def_from = kAllPresent;
        uint8_t *rep = nullptr, *def = nullptr;
        if (leaf_.max_rep > 0) {
            read_page_levels(page.rep, page.rep_encoding, count, leaf_.max_rep, false, scratch_.rep, budget_, rep);
            rows = count_equal(rep, count, 0);
            rep_from = keep(run.rep, rep, count);
        }
        if (leaf_.max_def > 0)
            present = read_page_levels(page.def, page.def_encoding, count, leaf_.max_def, true, scratch_.def, budget_, def);
        if (present < count) {  // a few bytes may stand for any number of nulls
            const bool all_null = present == 0 && leaf_.max_def == 1 && leaf_.max_rep == 0;
            def_from = all_null ? kAllNull : keep(run.def, def, count);
        }
        if (with_values && is_dictionary(page.encoding)) keep_codes(page, present, k, last, window, entries, run);
        else if (with_values) keep_values(page, present, k, last, window, run);
        for (const int64_t n : {page.count, static_cast<int64_t>(present), static_cast<int64_t>(rows), rep_from, def_from})
            run.numbers.push_back(n);
        ++run.pages;
    }

    int64_t keep(Growing& levels, const uint8_t* from, size_t count) {
        uint8_t* const to = levels.next(count, 0, budget_);
        if (count > 0) std::memcpy(to, from, count);
        return static_cast<int64_t>(std::exchange(levels.used, levels.used + count));
    }

    void keep_codes(const OpenPage& page, size_t present, size_t k, size_t last, int64_t window, int64_t entries,
                    PageRun& run) {
        if (entries < 0) throw PageRefusal{"no_dictionary"};
        if (present == 0) return;
        if (page.values.size == 0) throw PageRefusal{"no_indices"};
        size_t expected = 0;  // a flat chunk says how many there are at most; one of lists may claim anything
        if (leaf_.max_rep == 0 && run.codes.block.size() == 0)
            expected = bytes_ahead(k, last, window, true, [](const PageHead& head) { return 4 * head.count; });
        const size_t size = checked_mul(present, sizeof(uint32_t));
        auto* const to = reinterpret_cast<uint32_t*>(run.codes.next(size, expected, budget_));
        try {
            IndexReader(page.values.data, page.values.size, static_cast<size_t>(entries)).read(present, to);
        } catch (const KernelError& error) {
            bad_values(page.encoding, error);
        }
        run.codes.used += size;
    }

    void keep_values(const OpenPage& page, size_t present, size_t k, size_t last, int64_t window, PageRun& run) {
        const PageValues values{page.encoding, page.values, present};
        const auto width = static_cast<int64_t>(leaf_.width);
        if (leaf_.is_binary()) {
            if (!run.binary) {
                const size_t expected = bytes_ahead(k, last, window, false, [](const PageHead& head) { return head.size + 32; });
                run.binary = std::make_unique<BinarySink<int64_t>>(leaf_, nullptr, 0, expected, budget_, limits_);
            }
            return run.binary->append(values, nullptr, present, none_, scratch_, budget_);
        }
        if (!run.fixed) {
            const size_t expected = bytes_ahead(k, last, window, false, [&](const PageHead& head) { return head.count * width; });
            run.fixed = std::make_unique<FixedSink>(leaf_, nullptr, 0, limits_);
            budget_.take(expected);
            run.fixed->own.grow(expected);
        }
        run.fixed->append(values, nullptr, present, none_, scratch_, budget_);
    }

    // What `size(head)` says of the pages to come in this run, as far as that can be believed and is there.
    template <class Size>
    size_t bytes_ahead(size_t k, size_t last, int64_t window, bool coded, Size&& size) const {
        constexpr int64_t kMost = int64_t{64} << 20, kMostPerByte = 64;
        int64_t found = 0;
        for (int64_t bytes = 0; k < last && bytes < window && found < kMost; ++k) {
            const PageHead& head = piece_.pages[k].head;
            bytes += head.size + head.count;
            if (is_dictionary(static_cast<int>(head.encoding)) == coded)
                found += std::min(size(head), kMostPerByte * (head.size + 64));
        }
        found = std::min({found, kMost, budget_.left() / 4, limits_.max_column});
        return static_cast<size_t>(std::max<int64_t>(found, 0));
    }

    static nb::object copied(const std::vector<int64_t>& numbers) {
        Fresh<int64_t> out(numbers.size());
        std::copy(numbers.begin(), numbers.end(), out.data);
        return std::move(out.object);
    }

    static nb::object shared(Growing& levels) { return levels.block.share(levels.used).array<uint8_t>(); }

    // The values of pages that have no codes: bytes, or (offsets, bytes). None without such a page.
    nb::object values_of(PageRun& run) {
        if (run.fixed) return run.fixed->own.share(run.fixed->slots * leaf_.width).array<uint8_t>();
        if (!run.binary) return nb::none();
        const size_t count = run.binary->slots;
        Fresh<int64_t> offsets(count + 1);
        offsets.data[0] = 0;
        if (count > 0) std::memcpy(offsets.data + 1, run.binary->own.data(), count * sizeof(int64_t));
        return nb::make_tuple(offsets.object, run.binary->bytes.share(run.binary->used).array<uint8_t>());
    }

    LeafSpec leaf_;
    PageLimits limits_;
    Budget budget_;
    nb::object piece_object_;
    InputBuffers held_;
    Piece piece_;
    PageWalk walk_;
    PageScratch scratch_;
    const Dictionary none_;
    std::vector<int64_t> starts_;
    int64_t dictionary_start_ = 0;
    int64_t offset_;   // of the piece's bytes in the file
    size_t lent_ = 0;  // bytes of the run that was given out last
};

}  // namespace pyparq
