// Opens pages one after another, as pyparq/read/pages.py does, as far as they are of the usual kind: what that has to say of
// the others is said there. Of a page of which few rows are wanted, little else takes any time.
#include "thrift_wire.hpp"

namespace pyparq {
namespace {

constexpr int64_t kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8;

struct Head {
    int64_t type = -1, size = -1, stored = -1, crc = 0;
    bool has_crc = false, has_data = false;
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
    int64_t* const v1_fields[] = {&head.count, &head.encoding, &head.def, &head.rep};
    int64_t nulls = -1;
    int64_t* const v2_fields[] = {&head.count, &nulls, &head.rows, &head.encoding, &head.def, &head.rep};
    head.has_data = true;
    return read_fields(c, 2, [&](int32_t id, uint8_t type) {
        if (v2 && id == 7 && (type == kTrue || type == kFalse)) {
            head.compressed = type == kTrue;
            return true;
        }
        if (type != kI32 || id > (v2 ? 6 : 4)) return false;
        *(v2 ? v2_fields[id - 1] : v1_fields[id - 1]) = c.number(32);
        return true;
    });
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
        if (id == 8 ? head.rows < 0 : head.rows != -1) c.fail("odd");
        return true;
    });
    const bool v2 = head.rows >= 0;
    return fine && head.has_data && head.type == (v2 ? 3 : 0) && head.size >= 0 && head.stored >= 0 && head.count >= 0 &&
           head.encoding >= 0 && head.def >= 0 && head.rep >= 0;
}

// What a column chunk and the options allow.
struct Terms {
    int64_t max_def, chunk_size, max_page, expansion_floor, max_expansion, max_values_per_byte, most_per_byte;

    bool allow(const Head& head) const {
        const auto times = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
        return head.size <= chunk_size && head.size <= max_page &&
               (head.size <= expansion_floor || static_cast<double>(head.size) <= times(head.stored, max_expansion)) &&
               static_cast<double>(head.size) <= times(head.stored, most_per_byte) + 64 &&
               static_cast<double>(head.count) <= times(head.size + 64, max_values_per_byte);
    }
};

nb::object part(const nb::object& view, size_t from, size_t to) {
    return view[nb::slice(nb::int_(from), nb::int_(to), nb::int_(1))];
}

// (values, levels or None, count, encoding) of an inflated page; an invalid object where its levels do not fit.
nb::object split(const Head& head, const nb::object& levels, const nb::object& values, int64_t max_def) {
    nb::object data = nb::steal(PyMemoryView_FromObject(values.ptr()));
    if (!data.is_valid()) throw nb::python_error();
    nb::object defs = nb::none();
    if (max_def > 0 && head.rows >= 0) {
        defs = levels;
    } else if (max_def > 0) {
        RawIn bytes;
        if (!bytes.load(values.ptr()) || bytes.size < 4) return {};
        const size_t size = load<uint32_t>(bytes.data);
        if (size > bytes.size - 4) return {};
        defs = part(data, 4, 4 + size);
        data = part(data, 4 + size, bytes.size);
    }
    return nb::make_tuple(data, defs, head.count, head.encoding);
}

// `stored`: whole pages of a leaf outside of lists; from page `at` on, up to the first that is not of the usual kind, or
// until `window` bytes are inflated. Of page k only the first wanted[k] of rows[k] values are needed.
nb::list open_pages(const nb::sequence& stored, size_t at, const In<int64_t>& wanted, const In<int64_t>& rows,
                    const nb::tuple& terms_, int64_t window, const nb::object& inflate, const nb::object& crc32) {
    if (nb::len(terms_) != 7) fail("seven terms are due");
    int64_t term[7];
    for (size_t k = 0; k < 7; ++k) term[k] = nb::cast<int64_t>(terms_[k]);
    const Terms terms{term[0], term[1], term[2], term[3], term[4], term[5], term[6]};
    const size_t pages = nb::len(stored);
    if (wanted.size != pages || rows.size != pages) fail("a number per page is due");
    nb::list found;
    for (int64_t inflated = 0; at < pages && inflated < window; ++at) {
        const nb::object page = stored[at];
        RawIn bytes;
        if (!bytes.load(page.ptr())) fail("a page must be bytes-like");
        Cursor c{bytes.data, bytes.data, bytes.data + bytes.size};
        Head head;
        try {
            if (!read_head(c, head)) break;
        } catch (const KernelError&) {
            break;
        }
        const size_t start = static_cast<size_t>(c.at()), size = static_cast<size_t>(head.stored);
        const bool v2 = head.rows >= 0, plain = head.encoding == kPlain;
        const bool indices = head.encoding == kRleDictionary || head.encoding == kPlainDictionary;
        if (size > bytes.size - start || !terms.allow(head) || head.count != rows.data[at]) break;
        if (v2 ? head.rows != head.count || head.rep != 0 || head.def > std::min(head.stored, head.size) ||
                     (terms.max_def == 0 && head.def != 0)
               : terms.max_def > 0 && head.def != kRle)
            break;
        nb::object body = part(page, start, start + size), levels;
        if (head.has_crc && !crc32.is_none() &&
            nb::cast<uint32_t>(crc32(body)) != static_cast<uint32_t>(head.crc)) break;
        int64_t room = head.size;
        if (v2) {
            levels = part(body, 0, static_cast<size_t>(head.def));
            body = part(body, static_cast<size_t>(head.def), size);
            room -= head.def;
            if (room == 0 || !head.compressed) break;
        }
        const int64_t first = wanted.data[at];
        const bool some = (plain || indices) && first >= 0 && first < head.count;
        const int64_t need = some ? room * first / head.count + room / 32 + 256 : room;
        nb::object opened = split(head, levels, inflate(body, room, std::min(need, room)), terms.max_def);
        if (!opened.is_valid()) break;
        found.append(std::move(opened));
        inflated += head.size;
    }
    return found;
}

}  // namespace
}  // namespace pyparq

void bind_open_pages(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("open_pages", &open_pages, "stored"_a, "at"_a, "wanted"_a, "rows"_a, "terms"_a, "window"_a, "inflate"_a,
          "crc32"_a.none());
}
