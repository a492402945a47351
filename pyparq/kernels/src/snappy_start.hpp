// The beginning of a Snappy block, without inflating the rest: what few rows of a page need.
//
// A block states its size and goes on with elements that look back only: its beginning does not depend on its end. The
// library has no call for that, but it refuses a block of more bytes than are stated at the element where this shows, and
// says how many of them were still missing: what stands before these is the beginning.
#pragma once
#include "arena.hpp"

#include <charconv>
#include <string_view>

namespace pyparq {

constexpr size_t kStartPaysFrom = size_t{16} << 10;  // bytes of a block below which inflating all of it is as quick

// What a library's `decode(stored, out)` came to.
struct Decoded {
    int64_t written = -1;  // -1: it found something wrong
    std::string said;      // of what is wrong
};

inline Decoded decode_into(const nb::object& decode, const nb::object& stored, const nb::object& out) {
    PyObject* const given[] = {stored.ptr(), out.ptr()};
    const nb::object result = nb::steal(PyObject_Vectorcall(decode.ptr(), given, 2, nullptr));
    if (result.is_valid()) return {nb::cast<int64_t>(result), {}};
    const nb::python_error error = clear_exception();
    const nb::object text = nb::steal(PyObject_Str(error.value().ptr()));
    if (!text.is_valid()) throw nb::python_error();
    Py_ssize_t size = 0;
    const char* const said = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (said == nullptr) throw nb::python_error();
    return {-1, std::string(said, static_cast<size_t>(size))};
}

// What the library says is missing of the bytes that a block states; -1 where it says no such thing.
inline int64_t bytes_missing(std::string_view said) {
    constexpr std::string_view before = "remaining dst: ";
    const size_t at = said.rfind(before);
    if (at == std::string_view::npos) return -1;
    const char *const first = said.data() + at + before.size(), *const last = said.data() + said.size();
    int64_t missing = -1;
    const auto [end, error] = std::from_chars(first, last, missing);
    return error == std::errc{} && end < last && *end == ')' ? missing : -1;
}

// Moves `at` behind the preamble of `block`; false where that does not state `size` bytes.
inline bool pass_preamble(const RawIn& block, size_t size, size_t& at) {
    uint64_t stated = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (at >= block.size || shift > 28) return false;
        const uint8_t byte = block.data[at++];
        stated |= uint64_t{byte & 127u} << shift;
        if (byte < 128) return stated == size;
    }
}

// Where the `size` bytes of a block begin that holds nothing but them, as one literal; 0 of any other. Pages of up to 64 KiB
// that do not shrink are such blocks, and to open one by the library takes longer than its bytes are worth.
inline size_t one_literal(const RawIn& block, size_t size) {
    size_t at = 0;
    if (size == 0 || !pass_preamble(block, size, at) || at >= block.size || (block.data[at] & 3) != 0) return 0;
    const size_t code = block.data[at++] >> 2, bytes = code < 60 ? 0 : code - 59;  // of the length, where that is long
    if (bytes > block.size - at) return 0;
    uint64_t stated = 0;
    std::memcpy(&stated, block.data + at, bytes);
    at += bytes;
    return (bytes == 0 ? code : stated) + 1 == size && block.size - at == size ? at : 0;
}

// Writes as much of `block` to `out` as fits behind a preamble that states `limit` bytes (below 2^32); returns how many
// bytes these are, 0 where the block does not state `size`.
inline size_t write_head(const RawIn& block, size_t size, uint64_t limit, uint8_t* out, size_t room) {
    size_t at = 0, used = 0;
    if (!pass_preamble(block, size, at)) return 0;
    for (; limit > 127; limit >>= 7) out[used++] = static_cast<uint8_t>(limit | 128);
    out[used++] = static_cast<uint8_t>(limit);
    const size_t n = std::min(block.size - at, room - used);
    if (n > 0) std::memcpy(out + used, block.data + at, n);
    return used + n;
}

// Inflates the first `wanted` of the `size` bytes of `stored`, or some more, to `out`, a memoryview of all of them; returns
// how many, 0 where they cannot be had for less than all. `spare` is cleared, and a part of the block goes there.
inline size_t snappy_start(const nb::object& decode, const nb::object& stored, size_t size, size_t wanted,
                           const nb::object& out, Arena& spare) {
    constexpr size_t kLongestCopy = 64;  // of an element that looks back; one that does not fit is not written in part
    RawIn block;
    if (!block.load(stored.ptr())) fail("a block must be bytes-like");
    // Of bytes that hardly shrink, long pieces are stored as they are: to inflate them is to copy them.
    if (size < kStartPaysFrom || size >> 32 != 0 || block.size > size / 32 * 31 || wanted > size) return 0;
    const size_t limit = wanted + kLongestCopy;
    if (limit > size / 16 * 15) return 0;
    // Most blocks shrink alike all over, and no compressor stores its input in more than the second (snappy.cc,
    // MaxCompressedLength); where one did, all is inflated.
    const size_t likely = block.size * limit / size * 17 / 16 + 1024, enough = limit + limit / 6 + 64;
    const nb::object target = part(out, 0, limit);
    for (const size_t most : {std::min(likely, enough), enough}) {
        spare.clear();
        const nb::object room = spare.take(most);
        RawOut head;
        if (!head.load(room.ptr())) fail("no room for a part of the block");
        const size_t length = write_head(block, size, limit, head.data, head.size);
        if (length == 0) return 0;
        const Decoded found = decode_into(decode, part(room, 0, length), target);
        if (found.written >= 0) return static_cast<size_t>(found.written) == limit ? limit : 0;
        const int64_t missing = bytes_missing(found.said);
        if (missing >= 0 && static_cast<uint64_t>(missing) <= limit - wanted) return limit - static_cast<size_t>(missing);
        if (length < most || most == enough) return 0;
    }
    return 0;
}

}  // namespace pyparq
