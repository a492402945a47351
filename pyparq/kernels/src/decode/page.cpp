// One page: header, CRC, decryption, inflation, levels. The rules of a page stand here, and nowhere else.
#include "decode/page.hpp"

#include "decode/libraries.hpp"
#include "decode/rle_bitpacked.hpp"
#include "thrift/wire.hpp"
#include "values/checks.hpp"

namespace pyparq {
namespace {

constexpr int kUncompressed = 0;
constexpr int kBitPackedLevels = 4, kRleLevels = 3;
constexpr int64_t kPlain = 0, kPlainDictionary = 2, kRleDictionary = 8;

// ---- header ---------------------------------------------------------------------------------------------

// Hands the fields of a struct to `take(id, type)`, which says whether it has read one. Those of another type are passed
// over like unknown ones; none may come twice. Returns a bit per id that was taken.
template <class Take>
uint64_t read_fields(Cursor& c, int depth, Take&& take) {
    uint64_t seen = 0;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id < 1 || id > 63 || !take(id, type)) {
            skip_field(c, type, depth);
            continue;
        }
        if ((seen >> id & 1) != 0) c.fail("a field appears twice");
        seen |= uint64_t{1} << id;
    }
    return seen;
}

void need_fields(const Cursor& c, uint64_t seen, uint64_t required) {
    if ((required & ~seen) != 0) c.fail("a required field is missing");
}

constexpr uint64_t first_fields(int n) { return ((uint64_t{1} << n) - 1) << 1; }

void read_v1(Cursor& c, PageHead& head) {
    int64_t* const fields[] = {&head.count, &head.encoding, &head.def, &head.rep};
    need_fields(c, read_fields(c, 2, [&](int32_t id, uint8_t type) {
        if (id == 5 && type == kStruct) head.has_statistics = true;
        if (type != kI32 || id > 4) return false;
        *fields[id - 1] = c.number(32);
        return true;
    }),
                first_fields(4));
    head.has_v1 = true;
}

void read_v2(Cursor& c, PageHead& head) {
    int64_t* const fields[] = {&head.count, &head.nulls, &head.rows, &head.encoding, &head.def, &head.rep};
    need_fields(c, read_fields(c, 2, [&](int32_t id, uint8_t type) {
        if (id == 7 && (type == kTrue || type == kFalse)) {
            head.compressed = type == kTrue;
            return true;
        }
        if (id == 8 && type == kStruct) head.has_statistics = true;
        if (type != kI32 || id > 6) return false;
        *fields[id - 1] = c.number(32);
        return true;
    }),
                first_fields(6));
    head.has_v2 = true;
}

void read_dictionary(Cursor& c, PageHead& head) {
    need_fields(c, read_fields(c, 2, [&](int32_t id, uint8_t type) {
        if (id == 3) head.is_sorted = type == kTrue;
        if (type != kI32 || id > 2) return false;
        (id == 1 ? head.count : head.encoding) = c.number(32);
        return true;
    }),
                first_fields(2));
    head.has_dictionary = true;
}

PageHead read_head(Cursor& c) {
    PageHead head, v1, dictionary, v2;
    need_fields(c, read_fields(c, 1, [&](int32_t id, uint8_t type) {
        if (type == kI32 && id <= 4) {
            int64_t* const fields[] = {&head.type, &head.size, &head.stored, &head.crc};
            *fields[id - 1] = c.number(32);
            head.has_crc |= id == 4;
            return true;
        }
        if (type != kStruct || id < 5 || id > 8) return false;
        if (id == 5) read_v1(c, v1);
        else if (id == 6) skip_struct(c, 2);
        else if (id == 7) read_dictionary(c, dictionary);
        else read_v2(c, v2);
        return true;
    }),
                first_fields(3));
    head.has_v1 = v1.has_v1, head.has_v2 = v2.has_v2, head.has_dictionary = dictionary.has_dictionary;
    const PageHead& inner = head.type == PageHead::kDictionary ? dictionary : head.type == PageHead::kDataV2 ? v2
                                                                                                             : v1;
    head.count = inner.count, head.encoding = inner.encoding, head.def = inner.def, head.rep = inner.rep;
    head.nulls = inner.nulls, head.rows = inner.rows;
    head.compressed = inner.compressed, head.has_statistics = inner.has_statistics, head.is_sorted = inner.is_sorted;
    return head;
}

double times(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

// Bytes that one stored byte can stand for: the codec's longest match for its shortest code.
int64_t most_per_byte(int codec) {
    switch (codec) {
        case 0: return 1;
        case 1: return 22;
        case 2: return 1032;
        case 3:
        case 7: return 255;
        case 6: return int64_t{1} << 15;
        default: return int64_t{1} << 31;
    }
}

// ---- body -----------------------------------------------------------------------------------------------

// `size` bytes that `stored` inflates to, or the first `wanted` of them.
Bytes inflate(int codec, const Bytes& stored, int64_t size, int64_t wanted, uint8_t* into, Passing& room, Budget& budget,
              bool& partly) {
    partly = false;
    if (codec == kUncompressed) {
        if (static_cast<int64_t>(stored.size) != size)
            throw PageRefusal{"uncompressed_size", size, static_cast<int64_t>(stored.size)};
        return stored;
    }
    if (size == 0) return {};
    uint8_t* const out = into != nullptr ? into : room.take(static_cast<size_t>(size), budget);
    const int64_t found = inflate_page(codec, stored.data, stored.size, out, static_cast<size_t>(size),
                                       static_cast<size_t>(std::min(wanted, size)));
    if (found < std::min(wanted, size) || (wanted >= size && found != size))
        throw PageRefusal{"inflated_size", codec, found, size};
    partly = found < size;
    return {out, static_cast<size_t>(found)};
}

// Bytes that the first `wanted` values of a page may need: a guess with some to spare.
int64_t share_of(const PageHead& head, int64_t size, int64_t wanted, int max_def) {
    const bool in_order = head.encoding == kPlain || head.encoding == kPlainDictionary || head.encoding == kRleDictionary;
    if (!in_order || wanted >= head.count) return size;
    const int64_t levels = head.is_v2() ? 0 : head.count * std::bit_width(static_cast<unsigned>(max_def)) / 8;
    return std::min(size, size * wanted / head.count + levels + size / 64 + 256);
}

Bytes stored_levels(Bytes& rest, int64_t count, int maximum, int encoding) {
    size_t size;
    if (encoding == kBitPackedLevels) {
        size = (static_cast<size_t>(count) * std::bit_width(static_cast<unsigned>(maximum)) + 7) / 8;
    } else {
        if (rest.size < 4) throw PageRefusal{"ends_before_levels"};
        size = load<uint32_t>(rest.data);
        rest = {rest.data + 4, rest.size - 4};
    }
    if (size > rest.size)
        throw PageRefusal{"levels_size", static_cast<int64_t>(size), static_cast<int64_t>(rest.size)};
    const Bytes found{rest.data, size};
    rest = {rest.data + size, rest.size - size};
    return found;
}

}  // namespace

PageHead parse_page_head(const uint8_t* data, size_t size, size_t& at) {
    Cursor c{data, data + at, data + size};
    const PageHead head = read_head(c);
    at = static_cast<size_t>(c.at());
    return head;
}

PageHead read_page_head(const Bytes& data, size_t& at, int codec, const PageLimits& limits) {
    PageHead head;
    try {
        head = parse_page_head(data.data, data.size, at);
    } catch (const KernelError& error) {
        throw PageRefusal{"page_header", static_cast<int64_t>(at), 0, 0, error.what()};
    }
    check_page_head(head, data.size - at, codec, limits);
    return head;
}

void check_page_head(const PageHead& head, size_t room, int codec, const PageLimits& limits) {
    const int64_t size = head.size, stored = head.stored;
    if (stored < 0 || static_cast<uint64_t>(stored) > room)
        throw PageRefusal{"stored_size", stored, static_cast<int64_t>(room)};
    if (size < 0) throw PageRefusal{"negative_size", size};
    if (size > limits.max_page) throw PageRefusal{"max_page", stored, size, limits.max_page};
    if (size > limits.expansion_floor && static_cast<double>(size) > times(stored, limits.max_expansion))
        throw PageRefusal{"max_expansion", stored, size, limits.max_expansion};
    if (static_cast<double>(size) > times(stored, most_per_byte(codec)) + 64)
        throw PageRefusal{"impossible_size", stored, size};
}

int64_t declared_values(const PageHead& head) {
    if (!(head.is_v2() ? head.has_v2 : head.has_v1)) throw PageRefusal{"no_data_header"};
    if (head.count < 0) throw PageRefusal{"negative_values", head.count};
    return head.count;
}

void check_page_crc(const PageHead& head, const Bytes& body, const PageCipher* cipher, const PageLimits& limits) {
    if (!head.has_crc || !limits.check_crc) return;
    // A tag is about to prove more; of a v2 page only the values may be under one.
    if (cipher != nullptr && cipher->authenticates && !head.is_v2()) return;
    if (crc32_of(body.data, body.size) != static_cast<uint32_t>(head.crc))
        throw PageRefusal{"crc", static_cast<int64_t>(static_cast<uint32_t>(head.crc))};
}

OpenPage open_data_page(const PageHead& head, Bytes body, int64_t ordinal, int codec, int max_def, int max_rep,
                        const PageCipher* cipher, int64_t wanted, const PageLimits& limits, PageScratch& scratch,
                        Budget& budget) {
    check_page_crc(head, body, cipher, limits);
    OpenPage page;
    page.count = declared_values(head);
    page.encoding = static_cast<int>(head.encoding);
    if (static_cast<double>(head.count) > times(head.size + 64, limits.max_values_per_byte))
        throw PageRefusal{"values_per_byte", head.count, head.size};
    if (head.is_v2() && (head.rep < 0 || head.def < 0 || head.rep + head.def > std::min<int64_t>(body.size, head.size)))
        throw PageRefusal{"levels_v2", head.rep, head.def, static_cast<int64_t>(body.size)};
    if (cipher != nullptr) body = cipher->body(body, head, ordinal, scratch, budget);
    int64_t size = head.size;
    if (head.is_v2()) {
        const size_t rep = static_cast<size_t>(head.rep), levels = rep + static_cast<size_t>(head.def);
        if (levels > body.size) throw PageRefusal{"levels_v2", head.rep, head.def, static_cast<int64_t>(body.size)};
        if (max_rep > 0) page.rep = {body.data, rep};
        if (max_def > 0) page.def = {body.data + rep, levels - rep};
        body = {body.data + levels, body.size - levels};
        size -= static_cast<int64_t>(levels);
        if (!head.compressed || (body.size == 0 && size == 0)) codec = kUncompressed;
    }
    const int64_t due = wanted < 0 ? size : share_of(head, size, wanted, max_def);
    page.values = inflate(codec, body, size, due, scratch.into, scratch.inflated, budget, page.partly);
    if (head.is_v2()) return page;
    page.rep_encoding = static_cast<int>(head.rep), page.def_encoding = static_cast<int>(head.def);
    if (max_rep > 0) page.rep = stored_levels(page.values, head.count, max_rep, page.rep_encoding);
    if (max_def > 0) page.def = stored_levels(page.values, head.count, max_def, page.def_encoding);
    return page;
}

Bytes open_dictionary_page(const PageHead& head, Bytes body, int codec, const PageCipher* cipher, int64_t due,
                           const PageLimits& limits, PageScratch& scratch, Budget& budget) {
    check_page_crc(head, body, cipher, limits);
    if (!head.has_dictionary) throw PageRefusal{"no_dictionary_header"};
    if (head.encoding != kPlain && head.encoding != kPlainDictionary && head.encoding != kRleDictionary)
        throw PageRefusal{"dictionary_encoding", head.encoding};
    if (head.count < 0) throw PageRefusal{"negative_entries", head.count};
    if (cipher != nullptr) body = cipher->body(body, head, kDictionaryPage, scratch, budget);
    bool partly;
    return inflate(codec, body, head.size, due, nullptr, scratch.inflated, budget, partly);
}

size_t read_page_levels(const Bytes& stored, int encoding, size_t count, int maximum, bool may_skip, Passing& room,
                        Budget& budget, uint8_t*& out) {
    out = nullptr;
    const auto top = static_cast<uint8_t>(maximum);
    const auto width = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(maximum)));
    try {
        if (may_skip && encoding != kBitPackedLevels && is_one_run(stored.data, stored.size, count, top)) return count;
        out = room.take(count, budget);
        if (encoding == kBitPackedLevels) {
            unpack_old_levels(stored.data, stored.size, width, count, out);
            for (size_t i = 0; i < count; ++i)
                if (out[i] > top) throw PageRefusal{"level", out[i], maximum};
        } else {
            decode_hybrid_u8(stored.data, stored.size, width, count, out, top);
        }
    } catch (const KernelError& error) {
        throw PageRefusal{"levels", 0, 0, 0, error.what()};
    }
    return count_equal(out, count, top);
}

}  // namespace pyparq
