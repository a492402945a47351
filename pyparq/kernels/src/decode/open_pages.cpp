// Opens pages one after another, as pyparq/read/decode/pages.py does, as far as they are of the usual kind: what there is to say of
// the others is said there. Small pages take little time beside that.
#include "codecs/crc.hpp"
#include "decode/inflate.hpp"
#include "decode/page_levels.hpp"
#include "thrift/wire.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace pyparq {
namespace {

constexpr int64_t kRle = 3;

struct Head {
    int64_t type = -1, size = -1, stored = -1, crc = 0;
    bool has_crc = false, has_data = false, v2 = false;
    int64_t count = -1, encoding = -1, rows = -1, def = -1, rep = -1;  // levels: encodings in v1, byte lengths in v2
    bool compressed = true;
};

// Hands every field to `take(id, type)`, which says whether it has read it; none may come twice.
template <class Take>
bool read_fields(Cursor& c, int depth, Take&& take) {
    uint64_t seen = 0;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id > 63 || (seen >> id & 1) != 0) return false;
        seen |= uint64_t{1} << id;
        if (!take(id, type)) skip_field(c, type, depth);
    }
    return true;
}

bool read_data_head(Cursor& c, bool v2, Head& head) {
    head.v2 = v2;
    int64_t* const v1_fields[] = {&head.count, &head.encoding, &head.def, &head.rep};
    constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();
    int64_t nulls = kMissing;
    int64_t* const v2_fields[] = {&head.count, &nulls, &head.rows, &head.encoding, &head.def, &head.rep};
    head.has_data = true;
    const bool fine = read_fields(c, 2, [&](int32_t id, uint8_t type) {
        if (v2 && id == 7 && (type == kTrue || type == kFalse)) {
            head.compressed = type == kTrue;
            return true;
        }
        if (type != kI32 || id > (v2 ? 6 : 4)) return false;
        *(v2 ? v2_fields[id - 1] : v1_fields[id - 1]) = c.number(32);
        return true;
    });
    return fine && (!v2 || nulls != kMissing);
}

// False for a header that is not that of a data page, or in any way odd.
bool read_head(Cursor& c, Head& head) {
    const bool fine = read_fields(c, 1, [&](int32_t id, uint8_t type) {
        if (type == kI32 && id <= 4) {
            int64_t* const fields[] = {&head.type, &head.size, &head.stored, &head.crc};
            *fields[id - 1] = c.number(32);
            head.has_crc |= id == 4;
            return true;
        }
        if (type != kStruct || (id != 5 && id != 8)) return false;
        if (head.has_data || !read_data_head(c, id == 8, head)) c.fail("odd");
        return true;
    });
    return fine && head.has_data && head.type == (head.v2 ? 3 : 0) && head.size >= 0 && head.stored >= 0 &&
           head.count >= 0 && head.encoding >= 0 && head.def >= 0 && head.rep >= 0 && (!head.v2 || head.rows >= 0);
}

// What a column chunk and the options allow.
struct Terms {
    int64_t max_def, max_rep, max_page, expansion_floor, max_expansion, max_values_per_byte, most_per_byte;

    explicit Terms(const nb::tuple& given) {
        int64_t* const fields[] = {&max_def,       &max_rep,             &max_page,     &expansion_floor,
                                   &max_expansion, &max_values_per_byte, &most_per_byte};
        if (nb::len(given) != std::size(fields)) fail("seven terms are due");
        for (size_t k = 0; k < std::size(fields); ++k) *fields[k] = nb::cast<int64_t>(given[k]);
    }
    bool allow(const Head& head) const {
        const auto times = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
        const auto size = static_cast<double>(head.size);
        return head.size <= max_page &&
               (head.size <= expansion_floor || size <= times(head.stored, max_expansion)) &&
               size <= times(head.stored, most_per_byte) + 64 &&
               static_cast<double>(head.count) <= times(head.size + 64, max_values_per_byte);
    }
    bool allow_levels(const Head& head) const {
        if (!head.v2) return (max_def == 0 || head.def == kRle) && (max_rep == 0 || head.rep == kRle);
        if (max_rep == 0 && head.rep != 0) return false;
        return (max_def > 0 || head.def == 0) && head.def + head.rep <= std::min(head.stored, head.size);
    }
};

// Where bytes stand that an object holds.
struct Span {
    size_t from = 0, to = 0;
    size_t size() const { return to - from; }
};

// Levels behind their length, as v1 pages have them: moves `at` behind them; false where they do not fit.
bool take_levels(const RawIn& bytes, size_t& at, Span& levels) {
    if (bytes.size - at < 4) return false;
    const size_t size = load<uint32_t>(bytes.data + at);
    at += 4;
    if (size > bytes.size - at) return false;
    levels = {at, at + size};
    at += size;
    return true;
}

// A page whose header has been read, and whose body is still to open.
struct Waiting {
    Head head;
    int64_t number;  // of the chunk's pages
    nb::object body;
};

// A page whose levels and values are told apart.
struct Opened {
    nb::object values, levels;  // what holds the bytes of either: the same in v1
    Span rep, def;
    size_t start = 0;  // of the values
    int64_t count = 0, encoding = 0;
};

class Opener {
  public:
    Opener(const nb::tuple& terms, const Inflater& inflater, const Crc32* crc)
        : terms_(terms), inflater_(inflater), crc_(crc) {}

    // Whether the terms allow a page with `room` bytes behind its header.
    bool allows(const Head& head, size_t room) const {
        return static_cast<size_t>(head.stored) <= room && terms_.allow(head) && terms_.allow_levels(head);
    }

    // Bytes that an opened page takes at most, its levels spelled out; of the tiniest, too.
    int64_t memory(const Head& head) const {
        constexpr int64_t kObjects = 512;
        return kObjects + head.size + head.count * ((terms_.max_def > 0 ? 1 : 0) + (terms_.max_rep > 0 ? 1 : 0));
    }

    // The pages up to the first that is odd.
    std::vector<Opened> open(std::vector<Waiting> pages) const {
        if (crc_ != nullptr) pages.resize(intact(pages));
        std::vector<Opened> found;
        found.reserve(pages.size());
        for (Waiting& page : pages) {
            if (const Unsealer* const unsealer = inflater_.unsealer; unsealer != nullptr) {
                page.body = unsealer->body(page.body, page.number);
                if (!page.body.is_valid()) break;
            }
            Opened opened;
            if (!inflate(page, opened)) break;
            found.push_back(std::move(opened));
        }
        return found;
    }

    // (count, repetition levels or None, definition levels or None, values present, encoding, values), the levels spelled
    // out as by decode_levels in pyparq/read/decode/pages.py.
    nb::object spelled(const Opened& page) const {
        nb::object rep = nb::none(), def = nb::none();
        auto present = static_cast<size_t>(page.count);
        if (terms_.max_def > 0) {
            RawIn bytes;
            if (!bytes.load(page.levels.ptr())) fail("levels must be bytes-like");
            const auto read = [&](const Span& span, int64_t maximum, bool always) {
                return read_levels(bytes.data + span.from, span.size(), page.count, maximum, always);
            };
            if (terms_.max_rep > 0) rep = read(page.rep, terms_.max_rep, true).levels;
            Levels found = read(page.def, terms_.max_def, false);
            if (found.most < present || !rep.is_none()) def = std::move(found.levels);
            present = found.most;
        }
        return nb::make_tuple(page.count, rep, def, present, page.encoding, data(page));
    }

  private:
    // How many of the pages, from the first on, match their CRCs.
    size_t intact(const std::vector<Waiting>& pages) const {
        std::vector<RawIn> bodies(pages.size());
        size_t bytes = 0;
        for (size_t k = 0; k < pages.size(); ++k) {
            if (!pages[k].head.has_crc) continue;
            if (!bodies[k].load(pages[k].body.ptr())) fail("a page must be bytes-like");
            bytes += bodies[k].size;
        }
        const NoGil nogil(crc_->native() ? bytes : 0);
        size_t k = 0;
        while (k < pages.size() && (!pages[k].head.has_crc || crc_->of(bodies[k]) == static_cast<uint32_t>(pages[k].head.crc)))
            ++k;
        return k;
    }

    // False for an odd page.
    bool inflate(const Waiting& page, Opened& opened) const {
        const Head& head = page.head;
        nb::object body = page.body;
        opened = {{}, {}, {}, {}, 0, head.count, head.encoding};
        int64_t room = head.size;
        if (head.v2) {
            const auto size = static_cast<size_t>(head.stored), middle = static_cast<size_t>(head.rep);
            const size_t before = middle + static_cast<size_t>(head.def);
            opened.levels = body, opened.rep = {0, middle}, opened.def = {middle, before};
            body = part(body, before, size);
            room -= head.rep + head.def;
            if (room == 0) return false;
            if (!head.compressed) {
                opened.values = body;
                return static_cast<size_t>(room) == size - before;
            }
        }
        opened.values = inflater_.inflate(body, static_cast<size_t>(room));
        return opened.values.is_valid() && (head.v2 || split(opened));
    }

    // Finds the levels of a v1 page.
    bool split(Opened& page) const {
        if (terms_.max_def == 0) return true;
        RawIn bytes;
        if (!bytes.load(page.values.ptr())) return false;
        page.levels = page.values;
        return (terms_.max_rep == 0 || take_levels(bytes, page.start, page.rep)) && take_levels(bytes, page.start, page.def);
    }

    // The bytes of the values.
    static nb::object data(const Opened& page) {
        return page.start == 0 ? page.values : part(page.values, page.start, nb::len(page.values));
    }

    Terms terms_;
    const Inflater& inflater_;
    const Crc32* crc_;
};

// The header of page `page` at `at`, and where it ends in `bytes`; false for one that is not of the usual kind.
bool usual_head(const RawIn& bytes, size_t at, int64_t page, const Unsealer* unsealer, Head& head, size_t& end) {
    RawIn plain;
    if (unsealer != nullptr) {
        const nb::object header = unsealer->header(bytes, at, page, end);
        if (!header.is_valid() || !plain.load(header.ptr())) return false;
    }
    Cursor c = unsealer != nullptr ? cursor(plain, 0) : cursor(bytes, static_cast<int64_t>(at));
    try {
        if (!read_head(c, head)) return false;
    } catch (const KernelError&) {
        return false;
    }
    if (unsealer == nullptr) end = static_cast<size_t>(c.at());
    return unsealer == nullptr || !head.v2;  // of v2 pages there are two framings
}

// Pages that follow each other in `data`, whole, from `at` on, the first of them number `page`: up to the first that is not
// of the usual kind, or until they take `window` bytes; no more than `values` values. Returns the pages, their levels spelled
// out, where they end, and what the first would take that is more than `room`. All headers are read before the first body is
// opened: one call of the library right after another finds its code in the processor's caches.
nb::tuple open_run(const nb::object& data, int64_t at, int64_t page, int64_t values, const nb::tuple& terms, int64_t window,
                   int64_t room, const Inflater& inflater, const Crc32* crc) {
    const Opener opener(terms, inflater, crc);
    RawIn bytes;
    if (!bytes.load(data.ptr())) fail("data must be bytes-like");
    std::vector<Waiting> waiting;
    std::vector<int64_t> ends = {at};
    int64_t lacking = 0;
    for (int64_t memory = 0; memory < window && values > 0 && static_cast<uint64_t>(ends.back()) < bytes.size; ++page) {
        Head head;
        size_t start = 0;
        if (!usual_head(bytes, static_cast<size_t>(ends.back()), page, inflater.unsealer, head, start)) break;
        if (head.count > values || !opener.allows(head, bytes.size - start)) break;
        memory += opener.memory(head);
        if (memory > room) {
            if (waiting.empty()) lacking = memory;
            break;
        }
        const size_t end = start + static_cast<size_t>(head.stored);
        waiting.push_back({head, page, part(data, start, end)});
        ends.push_back(static_cast<int64_t>(end));
        values -= head.count;
    }
    nb::list found;
    const std::vector<Opened> opened = opener.open(std::move(waiting));
    try {
        for (const Opened& one : opened) found.append(opener.spelled(one));
    } catch (const KernelError&) {  // these levels are none: pyparq/read/decode/pages.py says so
    }
    return nb::make_tuple(found, ends[nb::len(found)], lacking);
}

}  // namespace
}  // namespace pyparq

void bind_open_pages(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    nb::class_<Unsealer>(m, "Unsealer")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::bytes, nb::bytes, Arena*, int64_t, nb::object>(),
             "decrypt"_a, "decrypt_into"_a.none(), "reset_nonce"_a.none(), "update_into"_a.none(), "header_aad"_a,
             "page_aad"_a, "out"_a, "most"_a, "otherwise"_a, nb::keep_alive<1, 8>());
    nb::class_<Inflater>(m, "Inflater")
        .def(nb::init<nb::object, bool, Arena*, Unsealer*>(), "decode"_a.none(), "snappy"_a, "out"_a, "unsealer"_a.none(),
             nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>());
    nb::class_<Crc32>(m, "Crc32")
        .def(nb::init<nb::object, bool>(), "function"_a, "use_library"_a = true)
        .def_prop_ro("native", &Crc32::native)
        .def("of", [](const Crc32& crc, const RawIn& data, uint32_t before) { return crc.more(before, data.data, data.size); },
             "data"_a, "before"_a = 0);
    m.def("open_run", &open_run, "data"_a, "at"_a, "page"_a, "values"_a, "terms"_a, "window"_a, "room"_a,
          "inflater"_a, "crc"_a.none());
}
