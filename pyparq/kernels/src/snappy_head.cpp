// The beginning of a Snappy block as a block that states fewer bytes (pyparq/snappy_start.py).
#include "common.hpp"

#include <algorithm>

namespace pyparq {
namespace {

// Copies as much of `block` to `out` as fits behind a preamble that states `limit` bytes; returns the bytes written,
// 0 where the block does not state `size`.
size_t snappy_head(const RawIn& block, int64_t size_, int64_t limit_, const RawOut& out) {
    const uint64_t size = checked_count(size_, "size");
    uint64_t limit = checked_count(limit_, "limit"), stated = 0;
    size_t at = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (at >= block.size || shift > 28) return 0;
        const uint8_t byte = block.data[at++];
        stated |= uint64_t{byte & 127u} << shift;
        if (byte < 128) break;
    }
    if (stated != size) return 0;
    if (limit >> 32 != 0 || out.size < 5) fail("no room for a preamble");
    size_t used = 0;
    for (; limit > 127; limit >>= 7) out.data[used++] = static_cast<uint8_t>(limit | 128);
    out.data[used++] = static_cast<uint8_t>(limit);
    const size_t n = std::min(block.size - at, out.size - used);
    if (n > 0) std::memcpy(out.data + used, block.data + at, n);
    return used + n;
}

}  // namespace
}  // namespace pyparq

void bind_snappy_head(nb::module_& m) {
    using namespace pyparq;
    using namespace nb::literals;
    m.def("snappy_head", &snappy_head, "block"_a, "size"_a, "limit"_a, "out"_a);
}
