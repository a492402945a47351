// One leaf's column chunks in the footers of many files: their counts, bounds and Bloom filters, without an object for
// each chunk.
#include "files.hpp"
#include "thrift_wire.hpp"

namespace pyparq {
namespace {

constexpr int32_t kRowGroups = 4, kGroupRows = 3, kGroupColumns = 1;

enum ChunkField : int32_t { kFilePath = 1, kMetaData = 3, kCrypto = 8, kSealedMetaData = 9 };
enum MetaField : int32_t {
    kType = 1, kPath = 3, kNumValues = 5, kSize = 7, kDataPage = 9, kDictionaryPage = 11, kStatistics = 12,
    kFilterOffset = 14, kFilterLength = 15,
};
enum StatisticsField : int32_t { kMax = 1, kMin = 2, kNullCount = 3, kMaxValue = 5, kMinValue = 6, kNanCount = 9 };

struct Text {
    const uint8_t* data = nullptr;  // null: not there
    size_t size = 0;
};

struct LeafChunk {
    int64_t rows = -1, values = -1, nulls = -1, nans = -1, filter = 0, filter_length = 0;
    int64_t size = -1, data_page = 0, dictionary_page = 0, type = -1;
    Text low, high, old_low, old_high;
    bool good = true;
};

struct Leaf {
    size_t column;
    int64_t type;
    std::vector<std::string_view> path;
};

Text text(Cursor& c) {
    const size_t size = c.varint(32);
    c.advance(size);
    return {c.p - size, size};
}

// What a reader that knows each field once, of its own type, would take for damage is left to that reader.
struct Once {
    uint32_t seen = 0;
    bool fresh(int32_t id) {
        if (id > 31) return true;
        const bool again = (seen >> id & 1) != 0;
        seen |= 1u << id;
        return !again;
    }
};

void read_statistics(Cursor& c, LeafChunk& out) {
    int32_t id = 0;
    uint8_t type;
    Once once;
    while (c.field(type, id)) {
        out.good &= once.fresh(id);
        Text* place = nullptr;
        int64_t* count = nullptr;
        switch (id) {
            case kMax: place = &out.old_high; break;
            case kMin: place = &out.old_low; break;
            case kMaxValue: place = &out.high; break;
            case kMinValue: place = &out.low; break;
            case kNullCount: count = &out.nulls; break;
            case kNanCount: count = &out.nans; break;
            default: break;
        }
        if (place != nullptr && type == kBinary) *place = text(c);
        else if (count != nullptr && type == kI64) *count = c.number(64);
        else {
            out.good &= place == nullptr && count == nullptr;
            skip_field(c, type, 4);
        }
    }
}

bool same_path(Cursor& c, const Leaf& leaf) {
    uint8_t element;
    size_t count = c.list(element);
    bool same = count == leaf.path.size() && (count == 0 || element == kBinary);
    for (size_t k = 0; k < count; ++k) {
        if (element != kBinary) {
            skip_value(c, element, 4);
            continue;
        }
        const Text part = text(c);
        same = same && leaf.path[k] == std::string_view(reinterpret_cast<const char*>(part.data), part.size);
    }
    return same;
}

void read_meta(Cursor& c, const Leaf& leaf, LeafChunk& out) {
    int32_t id = 0;
    uint8_t type;
    bool path = false;
    Once once;
    while (c.field(type, id)) {
        out.good &= once.fresh(id);
        int64_t* place = nullptr;
        uint8_t due = kI64;
        switch (id) {
            case kType: place = &out.type, due = kI32; break;
            case kNumValues: place = &out.values; break;
            case kSize: place = &out.size; break;
            case kDataPage: place = &out.data_page; break;
            case kDictionaryPage: place = &out.dictionary_page; break;
            case kFilterOffset: place = &out.filter; break;
            case kFilterLength: place = &out.filter_length, due = kI32; break;
            default: break;
        }
        if (place != nullptr && type == due) *place = c.number(due == kI32 ? 32 : 64);
        else if (id == kPath && type == kList) path = same_path(c, leaf);
        else if (id == kStatistics && type == kStruct) read_statistics(c, out);
        else {
            out.good &= place == nullptr && id != kPath && id != kStatistics;
            skip_field(c, type, 3);
        }
    }
    out.good &= path && out.type == leaf.type;
}

void read_chunk(Cursor& c, const Leaf& leaf, LeafChunk& out) {
    int32_t id = 0;
    uint8_t type;
    bool found = false;
    while (c.field(type, id)) {
        if (id == kMetaData && type == kStruct && !found) {
            found = true;
            read_meta(c, leaf, out);
            continue;
        }
        out.good &= id != kMetaData && id != kFilePath && id != kCrypto && id != kSealedMetaData;
        skip_field(c, type, 3);
    }
    out.good &= found;
}

LeafChunk read_group(Cursor& c, const Leaf& leaf) {
    LeafChunk out;
    int32_t id = 0;
    uint8_t type;
    int columns = 0, counted = 0;
    while (c.field(type, id)) {
        if (id == kGroupRows && type == kI64) {
            ++counted, out.rows = c.number(64);
        } else if (id == kGroupColumns && type == kList) {
            uint8_t element;
            const size_t count = c.list(element);
            if (count > 0 && element != kStruct) c.fail("RowGroup.columns is not a list of structs");
            ++columns;
            out.good &= leaf.column < count;
            for (size_t k = 0; k < count; ++k) {
                if (k == leaf.column) read_chunk(c, leaf, out);
                else skip_struct(c, 3);
            }
        } else {
            skip_field(c, type, 2);
        }
    }
    out.good &= columns == 1 && counted == 1;
    return out;
}

// Whether the pages lie within a file of that size, as the reader of one file wants it.
bool lies_within(const LeafChunk& chunk, int64_t file_size) {
    if (chunk.rows < 0 || chunk.values < 0 || chunk.size < 0) return false;
    int64_t start = chunk.data_page > 0 ? chunk.data_page : 0;
    if (chunk.dictionary_page > 0 && (start == 0 || chunk.dictionary_page < start)) start = chunk.dictionary_page;
    if (start == 0) return chunk.values == 0;
    const int64_t room = file_size - 8 - start;
    return start >= 4 && room > 0 && chunk.size <= room && (chunk.size > 0 || chunk.values == 0);
}

std::vector<LeafChunk> leaf_of(std::string_view footer, const Leaf& leaf, int64_t file_size) {
    const auto* data = reinterpret_cast<const uint8_t*>(footer.data());
    Cursor c{data, data, data + footer.size()};
    std::vector<LeafChunk> found;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id != kRowGroups || type != kList) {
            skip_field(c, type, 1);
            continue;
        }
        uint8_t element;
        const size_t count = c.list(element);
        if (count > 0 && element != kStruct) c.fail("FileMetaData.row_groups is not a list of structs");
        for (size_t n = count; n > 0; --n) {
            found.push_back(read_group(c, leaf));
            found.back().good &= lies_within(found.back(), file_size);
        }
    }
    return found;
}

nb::object bytes_or_none(const Text& text) {
    if (text.data == nullptr) return nb::none();
    return nb::bytes(text.data, text.size);
}

// `modern`: min_value and max_value may be believed; `old`: where neither is there, min and max.
nb::tuple leaf_chunks(const nb::list& footers, const In<int64_t>& sizes, size_t column, const nb::list& path,
                      int64_t type, bool modern, bool old) {
    const BytesList given(footers), names(path);
    const size_t n = given.items.size();
    if (sizes.size != n) fail("footers and sizes differ in number");
    const Leaf leaf{column, type, names.items};
    Fresh<int64_t> first(n + 1);
    std::vector<LeafChunk> chunks;
    {
        NoGil nogil(n << 10);
        for (size_t k = 0; k < n; ++k) {
            first.data[k] = static_cast<int64_t>(chunks.size());
            try {
                const std::vector<LeafChunk> found = leaf_of(given.items[k], leaf, sizes.data[k]);
                chunks.insert(chunks.end(), found.begin(), found.end());
            } catch (const KernelError&) {  // whoever decodes it says what is wrong
                chunks.emplace_back().good = false;
            }
        }
        first.data[n] = static_cast<int64_t>(chunks.size());
    }
    const size_t count = chunks.size();
    Fresh<int64_t> numbers(6 * count);
    Fresh<bool> good(count);
    nb::list mins, maxs;
    for (size_t k = 0; k < count; ++k) {
        const LeafChunk& chunk = chunks[k];
        const int64_t row[6] = {chunk.rows, chunk.values, chunk.nulls, chunk.nans, chunk.filter, chunk.filter_length};
        for (size_t i = 0; i < 6; ++i) numbers.data[i * count + k] = row[i];
        good.data[k] = chunk.good;
        const bool now = modern && (chunk.low.data != nullptr || chunk.high.data != nullptr);
        mins.append(now ? bytes_or_none(chunk.low) : old ? bytes_or_none(chunk.old_low) : nb::none());
        maxs.append(now ? bytes_or_none(chunk.high) : old ? bytes_or_none(chunk.old_high) : nb::none());
    }
    return nb::make_tuple(first.object, numbers.object, good.object, mins, maxs);
}

}  // namespace
}  // namespace pyparq

void bind_leaf_chunks(nb::module_& m) {
    using namespace nb::literals;
    m.def("leaf_chunks", &pyparq::leaf_chunks, "footers"_a, "sizes"_a, "column"_a, "path"_a, "type"_a, "modern"_a,
          "old"_a);
}
