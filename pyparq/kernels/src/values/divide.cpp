// Rows dealt out to groups in one pass: read in order, written at the end of each group. Gathering the rows of one group
// after the other would fetch every line of memory once for each group.
#include "base/common.hpp"
#include "values/calls.hpp"
#include "values/checks.hpp"

#include <vector>

namespace pyparq {
namespace {

// Each row's group, checked: every group has exactly as many rows as was said.
void check_groups(const In<int32_t>& groups, const In<int64_t>& counts) {
    std::vector<int64_t> found(counts.size);
    for (size_t i = 0; i < groups.size; ++i) {
        if (groups.data[i] < 0 || static_cast<size_t>(groups.data[i]) >= counts.size) fail("a row's group does not exist");
        ++found[static_cast<size_t>(groups.data[i])];
    }
    for (size_t g = 0; g < counts.size; ++g)
        if (found[g] != counts.data[g]) fail("a group has another number of rows");
}

template <size_t Width>
void deal(const uint8_t* from, const In<int32_t>& groups, size_t width, std::vector<uint8_t*>& ends) {
    for (size_t i = 0; i < groups.size; ++i) {
        uint8_t*& to = ends[static_cast<size_t>(groups.data[i])];
        const size_t size = Width == 0 ? width : Width;
        std::memcpy(to, from + i * size, size);
        to += size;
    }
}

}  // namespace

nb::list divide_fixed(const RawIn& values, int64_t width_, const In<int32_t>& groups, const In<int64_t>& counts) {
    const size_t width = checked_count(width_, "width");
    if (width == 0 || values.size != checked_mul(groups.size, width)) fail("a value for each row is due");
    check_groups(groups, counts);
    nb::list found;
    std::vector<uint8_t*> ends;
    for (size_t g = 0; g < counts.size; ++g) {
        const Fresh<uint8_t> part(static_cast<size_t>(counts.data[g]) * width);
        ends.push_back(part.data);
        found.append(part.object);
    }
    const NoGil nogil(values.size);
    switch (width) {
        case 1: deal<1>(values.data, groups, width, ends); break;
        case 4: deal<4>(values.data, groups, width, ends); break;
        case 8: deal<8>(values.data, groups, width, ends); break;
        case 16: deal<16>(values.data, groups, width, ends); break;
        default: deal<0>(values.data, groups, width, ends);
    }
    return found;
}

nb::list divide_binary(const Offsets& offsets, const RawIn& data, const In<int32_t>& groups, const In<int64_t>& counts) {
    return offsets.visit([&](const auto* o) {
        using Offset = std::remove_cvref_t<decltype(*o)>;
        check_offsets(o, offsets.size, data.size);
        if (offsets.size != groups.size + 1) fail("a value for each row is due");
        check_groups(groups, counts);
        std::vector<size_t> sizes(counts.size);
        for (size_t i = 0; i < groups.size; ++i) sizes[static_cast<size_t>(groups.data[i])] += static_cast<size_t>(o[i + 1] - o[i]);
        struct Part {
            Offset* edge;
            uint8_t *first, *at, *end;
        };
        nb::list found;
        std::vector<Part> parts;
        for (size_t g = 0; g < counts.size; ++g) {
            const Fresh<Offset> edges(static_cast<size_t>(counts.data[g]) + 1);
            const Fresh<uint8_t> bytes(sizes[g]);
            edges.data[0] = 0;
            parts.push_back({edges.data + 1, bytes.data, bytes.data, bytes.data + sizes[g]});
            found.append(nb::make_tuple(edges.object, bytes.object));
        }
        const NoGil nogil(groups.size * 8 + data.size);
        for (size_t i = 0; i < groups.size; ++i) {
            Part& part = parts[static_cast<size_t>(groups.data[i])];
            const auto size = static_cast<size_t>(o[i + 1] - o[i]);
            copy_short(part.at, part.end, data.data + o[i], data.data + data.size, size);
            part.at += size;
            *part.edge++ = static_cast<Offset>(part.at - part.first);
        }
        return found;
    });
}

}  // namespace pyparq
