// Pages of encrypted chunks: their headers and bodies, decrypted (Encryption.md, 5).
#include "decode/page.hpp"

namespace pyparq {
namespace {

// Whether a module begins at `data` and ends where its bytes do.
bool is_framed(const Bytes& data) {
    return data.size >= kFrame && load<uint32_t>(data.data) == data.size - kLength;
}

Bytes copied(const nb::object& view, uint8_t* out, size_t room) {
    RawIn bytes;
    if (!bytes.load(view.ptr()) || bytes.size > room) fail("a module must be bytes-like, and no longer than it was");
    if (bytes.size > 0) std::memcpy(out, bytes.data, bytes.size);
    return {out, bytes.size};
}

}  // namespace

PageCipher::PageCipher(nb::object crypto, nb::object key, const nb::handle& aads, bool ctr)
    : crypto_(std::move(crypto)), key_object_(std::move(key)),
      key_(key_object_.is_none() ? nullptr : nb::cast<const AesKey*>(key_object_)), ctr_(ctr), authenticates(!ctr) {
    for (size_t k = 0; k < aads_.size(); ++k) {
        const auto aad = nb::cast<nb::bytes>(aads[k]);
        aads_[k].assign(aad.c_str(), aad.size());
    }
}

// The text of a whole module, `size` bytes in `out`; false where something is not as usual.
bool PageCipher::open(int module, const Bytes& stored, int64_t page, AesContext& context, uint8_t* out, size_t& size) const {
    const bool ctr = ctr_ && is_body(module);
    if (!is_framed(stored) || (has_number(module) && !counted(page))) return false;
    const uint8_t *const nonce = stored.data + kLength, *const body = stored.data + kFrame;
    size = stored.size - kFrame;
    if (ctr) return context.open_ctr(*key_, nonce, body, size, out);
    if (size < kTag) return false;
    size -= kTag;
    const uint8_t number[] = {static_cast<uint8_t>(page), static_cast<uint8_t>(page >> 8)};
    const std::string& aad = aads_[static_cast<size_t>(module - kDataPageModule)];
    return context.open_gcm(*key_, nonce, aad, number, has_number(module) ? sizeof(number) : 0, body, size, out);
}

Bytes PageCipher::header(const Bytes& data, size_t at, int64_t ordinal, PageScratch& scratch, Budget& budget,
                         size_t& end) const {
    const bool dictionary = ordinal == kDictionaryPage;
    const int module = dictionary ? kDictionaryHeaderModule : kDataHeaderModule;
    const size_t left = data.size - at;
    const size_t size = left < kLength ? 0 : kLength + size_t{load<uint32_t>(data.data + at)};
    uint8_t* const out = scratch.decrypted.take(std::min(size, left), budget);
    size_t found = 0;
    if (key_ != nullptr && size <= left && open(module, {data.data + at, size}, ordinal, scratch.aes, out, found)) {
        end = at + size;
        return {out, found};
    }
    const nb::gil_scoped_acquire gil;
    const nb::object answer =
        crypto_.attr("module_at")(passing_view(data.data, data.size), at, module, dictionary ? int64_t{-1} : ordinal);
    end = nb::cast<size_t>(answer[1]);
    if (end > data.size) fail("a module ends behind its chunk");
    return copied(answer[0], out, std::min(size, left));
}

// The text of a page's body in `out`; false where something is not as usual.
bool PageCipher::open_body(const Bytes& stored, const PageHead& head, int64_t ordinal, AesContext& context, uint8_t* out,
                           size_t& size) const {
    if (ordinal == kDictionaryPage) return open(kDictionaryModule, stored, -1, context, out, size);
    if (open(kDataPageModule, stored, ordinal, context, out, size)) return true;
    if (!head.is_v2()) return false;
    // The specification encrypts the whole body, as Arrow C++ does; parquet-java leaves the levels in the clear.
    const auto levels = static_cast<size_t>(head.rep + head.def);
    if (levels > stored.size) return false;
    if (!open(kDataPageModule, {stored.data + levels, stored.size - levels}, ordinal, context, out + levels, size)) return false;
    if (levels > 0) std::memcpy(out, stored.data, levels);
    size += levels;
    return true;
}

Bytes PageCipher::body(const Bytes& stored, const PageHead& head, int64_t ordinal, PageScratch& scratch, Budget& budget) const {
    uint8_t* const out = scratch.decrypted.take(stored.size, budget);
    size_t size = 0;
    if (key_ != nullptr && open_body(stored, head, ordinal, scratch.aes, out, size)) return {out, size};
    const nb::gil_scoped_acquire gil;
    const nb::object view = passing_view(stored.data, stored.size);
    if (ordinal == kDictionaryPage) return copied(crypto_.attr("open")(kDictionaryModule, view), out, stored.size);
    if (!head.is_v2()) return copied(crypto_.attr("open")(kDataPageModule, view, ordinal), out, stored.size);
    const nb::object parts = crypto_.attr("open_page_v2")(view, head.rep + head.def, ordinal);
    const size_t levels = copied(parts[0], out, stored.size).size;
    return {out, levels + copied(parts[1], out + levels, stored.size - levels).size};
}

}  // namespace pyparq
