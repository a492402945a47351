// Changes in serialized Thrift values that keep what is not known. A level is split into its fields or elements, so that
// Python can change some of them; the offsets in an OffsetIndex, one for each page, are changed here.
#include "thrift/calls.hpp"
#include "thrift/wire.hpp"
#include "thrift/writer.hpp"

namespace pyparq {
namespace {

constexpr size_t kMaxFields = 32767;

// An OffsetIndex while the places of its pages are changed. `kept`: from where its bytes are still to be copied.
struct MovedIndex {
    Cursor c;
    const nb::callable& moved;
    const uint8_t* kept;
    std::string bytes;

    void keep_until(const uint8_t* stop) {
        bytes.append(reinterpret_cast<const char*>(kept), static_cast<size_t>(stop - kept));
        kept = stop;
    }

    // An offset whose field starts at `head`. The format says i64; another integer becomes one.
    void offset(const uint8_t* head, uint8_t type) {
        if (type != kI16 && type != kI32 && type != kI64) c.fail("the offset of a page is not an integer");
        const uint8_t* value = c.p;
        const int64_t from = c.number(type == kI16 ? 16 : type == kI32 ? 32
                                                                       : 64);
        const auto to = nb::cast<int64_t>(moved(from));
        if (to == from) return;
        keep_until(head);
        bytes.push_back(static_cast<char>((*head & 0xf0) | kI64));
        kept = head + 1;
        keep_until(value);
        ThriftOut out;
        out.number(to);
        bytes += out.bytes;
        kept = c.p;
    }

    void page() {
        int32_t id = 0;
        while (true) {
            const uint8_t* head = c.p;
            uint8_t type;
            if (!c.field(type, id)) return;
            if (id == 1) {
                offset(head, type);
            } else {
                skip_field(c, type, 3);
            }
        }
    }

    void index() {
        int32_t id = 0;
        uint8_t type, element;
        while (c.field(type, id)) {
            if (id != 1) {
                skip_field(c, type, 1);
                continue;
            }
            if (type != kList) c.fail("the pages are not a list");
            size_t count = c.list(element);
            if (count > 0 && element != kStruct) c.fail("a page is not a struct");
            for (; count > 0; --count) page();
        }
        keep_until(c.end);
    }
};

}  // namespace

nb::tuple split_struct_py(const RawIn& data, int64_t offset) {
    Cursor c = cursor(data, offset);
    std::vector<int64_t> fields;
    int32_t id = 0;
    while (true) {
        const int64_t head = c.at();
        uint8_t type;
        if (!c.field(type, id)) break;
        const int64_t value = c.at();
        skip_field(c, type, 1);
        if (fields.size() >= kMaxFields * 4) c.fail("more fields than there are ids");
        fields.insert(fields.end(), {int64_t{id}, int64_t{type}, head, value});
    }
    return nb::make_tuple(c.at(), int64_array(fields));
}

nb::tuple split_list_py(const RawIn& data, int64_t offset) {
    Cursor c = cursor(data, offset);
    uint8_t element;
    size_t count = c.list(element);
    std::vector<int64_t> places{c.at()};
    for (; count > 0; --count) {
        skip_value(c, element, 1);
        places.push_back(c.at());
    }
    return nb::make_tuple(int{element}, int64_array(places));
}

nb::bytes moved_offset_index_py(const RawIn& data, const nb::callable& moved) {
    MovedIndex index{cursor(data, 0), moved, data.data, {}};
    index.index();
    return nb::bytes(index.bytes.data(), index.bytes.size());
}

}  // namespace pyparq
