// What becomes of the bytes of a page before they are stored: compression and encryption, natively or by calls of Python.
#include "encode/column.hpp"

#include "codecs/codecs.hpp"

namespace pyparq {
namespace {

constexpr size_t kQuick = size_t{4} << 20;  // more is given to Python's codecs, which can be stopped

}  // namespace

size_t Compressor::run(const uint8_t* data, size_t size, Room& out) {
    if (column_.codec == kUncompressed) {
        out.put(data, size);
        return size;
    }
    if (column_.level != kNotNative && size <= kQuick) {
        const size_t room = deflate_bound(column_.codec, size);
        const int64_t stored = deflate_native(column_.codec, column_.level, data, size, out.more(room), room);
        if (stored >= 0) {
            out.add(static_cast<size_t>(stored));
            return static_cast<size_t>(stored);
        }
    }
    if (unlocked_ == nullptr) throw NeedsPython{};
    const Unlocked::Locked locked(*unlocked_);
    const nb::object stored = column_.compress(passing_view(data, size));
    RawIn bytes;
    if (!bytes.load(stored.ptr())) fail("what a codec returns must be bytes-like");
    out.put(bytes.data, bytes.size);
    return bytes.size;
}

void PageSeal::draw(size_t pages, Unlocked& unlocked) {
    if (!native()) return;
    const Unlocked::Locked locked(unlocked);
    seal_.native->draw(2 * pages, nonces_);
}

size_t PageSeal::run(int module, const TextPart* parts, size_t count, int64_t page, AesContext& aes, Unlocked* unlocked, Room& out) {
    if (native()) {
        size_t size = 0;
        for (size_t k = 0; k < count; ++k) size += parts[k].size;
        const size_t stored = seal_.native->stored_size(module, size);
        if (seal_.native->seal(module, parts, count, size, page, nonces_, aes, out.more(stored))) {
            out.add(stored);
            return stored;
        }
    }
    if (unlocked == nullptr) throw NeedsPython{};
    const Unlocked::Locked locked(*unlocked);
    nb::list views;
    for (size_t k = 0; k < count; ++k) views.append(passing_view(parts[k].data, parts[k].size));
    const nb::object sealed = nb::borrow(seal_.otherwise)(module, views, page);
    size_t total = 0;
    for (const nb::handle part : nb::cast<nb::list>(sealed)) {
        RawIn bytes;
        if (!bytes.load(part.ptr())) fail("a sealed module must be bytes-like");
        out.put(bytes.data, bytes.size);
        total += bytes.size;
    }
    return total;
}

}  // namespace pyparq
