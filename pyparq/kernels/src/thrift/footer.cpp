// The index of a footer: where its row groups and column chunks lie. Nothing is decoded here; it lets the generated
// code decode single chunks.
#include "thrift/calls.hpp"
#include "thrift/wire.hpp"

#include <algorithm>
#include <limits>

namespace pyparq {
namespace {

struct FooterIndex {
    int64_t schema[2] = {-1, -1};  // the lists with their headers: [start, end)
    int64_t row_groups[2] = {-1, -1};
    std::vector<int64_t> groups;  // per row group: start, end, start and end of its column list, its rows
    std::vector<int64_t> first;   // per row group: where its chunks begin in `chunks`; then the total
    std::vector<int64_t> chunks;  // per row group: start of each column chunk, then the end of the last
    int64_t rows = 0;             // of all row groups; negative numbers are refused elsewhere
};

constexpr int32_t kSchemaId = 2, kRowGroupsId = 4, kColumnsId = 1, kNumRowsId = 3;

size_t struct_list(Cursor& c, const char* what) {
    uint8_t element;
    const size_t count = c.list(element);
    if (count > 0 && element != kStruct) c.fail(std::string(what) + " is not a list of structs");
    return count;
}

void index_row_group(Cursor& c, FooterIndex& out) {
    const int64_t start = c.at();
    int64_t columns[2] = {-1, -1}, rows = -1;
    bool counted = false;
    out.first.push_back(static_cast<int64_t>(out.chunks.size()));
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id == kNumRowsId && type == kI64) {
            if (counted) c.fail("RowGroup.num_rows appears twice");
            counted = true;
            rows = c.number(64);
            continue;
        }
        if (id != kColumnsId || type != kList) {
            skip_field(c, type, 2);
            continue;
        }
        if (columns[0] >= 0) c.fail("RowGroup.columns appears twice");
        columns[0] = c.at();
        for (size_t n = struct_list(c, "RowGroup.columns"); n > 0; --n) {
            out.chunks.push_back(c.at());
            skip_struct(c, 3);
        }
        columns[1] = c.at();
        out.chunks.push_back(columns[1]);
    }
    if (columns[0] < 0) c.fail("RowGroup lacks its required field columns");
    if (!counted) c.fail("RowGroup lacks its required field num_rows");
    if (rows > std::numeric_limits<int64_t>::max() - out.rows) c.fail("the row groups have more than 2**63 - 1 rows");
    out.rows += std::max<int64_t>(rows, 0);
    out.groups.insert(out.groups.end(), {start, c.at(), columns[0], columns[1], rows});
}

void index_footer(Cursor& c, FooterIndex& out) {
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        int64_t* place = nullptr;
        if (type == kList && id == kSchemaId) place = out.schema;
        if (type == kList && id == kRowGroupsId) place = out.row_groups;
        if (place == nullptr) {
            skip_field(c, type, 1);
            continue;
        }
        if (place[0] >= 0) c.fail("FileMetaData has a list twice");
        place[0] = c.at();
        if (id == kRowGroupsId) {
            for (size_t n = struct_list(c, "FileMetaData.row_groups"); n > 0; --n) index_row_group(c, out);
        } else {
            for (size_t n = struct_list(c, "FileMetaData.schema"); n > 0; --n) skip_struct(c, 2);
        }
        place[1] = c.at();
    }
    if (out.schema[0] < 0) c.fail("FileMetaData lacks its required field schema");
    if (out.row_groups[0] < 0) c.fail("FileMetaData lacks its required field row_groups");
    out.first.push_back(static_cast<int64_t>(out.chunks.size()));
}

}  // namespace

nb::tuple index_footer_py(const RawIn& data) {
    Cursor c = cursor(data, 0);
    FooterIndex index;
    {
        NoGil free(data.size);
        index_footer(c, index);
    }
    return nb::make_tuple(c.at(), nb::make_tuple(index.schema[0], index.schema[1]),
                          nb::make_tuple(index.row_groups[0], index.row_groups[1]), int64_array(index.groups),
                          int64_array(index.first), int64_array(index.chunks));
}

}  // namespace pyparq
