// Splits one level of a serialized Thrift value: where its fields or elements lie. The kinds of fields need not be known, so
// unknown fields can be copied byte by byte.
#include "thrift/calls.hpp"
#include "thrift/wire.hpp"

namespace pyparq {
namespace {

constexpr size_t kMaxFields = 32767;

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

}  // namespace pyparq
