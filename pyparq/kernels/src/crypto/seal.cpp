#include "crypto/python_sealer.hpp"

namespace pyparq {

// Random bytes for this many nonces; no other call gets the same ones. A few nonces are drawn as a large batch, because
// asking the system releases the lock to other threads, and then waits for them.
std::string Nonces::drawn(size_t count) {
    constexpr size_t kAtOnce = 64;
    const size_t wanted = count * kNonce;
    while (drawn_.size() < wanted) {
        const uint64_t before = forks();
        const size_t size = std::max(count, kAtOnce) * kNonce;
        const nb::object bytes = random_(size);
        RawIn view;
        if (!view.load(bytes.ptr()) || view.size != size) fail("too few random bytes");
        // A handler of a signal may fork while the system is asked.
        if (forks() == before) drawn_.append(reinterpret_cast<const char*>(view.data), view.size);
    }
    const size_t rest = drawn_.size() - wanted;
    std::string found = drawn_.substr(rest);
    drawn_.resize(rest);
    return found;
}

nb::object Nonces::take(int64_t most) {
    if (used >= most) return nb::none();
    ++used;
    const std::string nonce = drawn(1);
    return nb::bytes(nonce.data(), nonce.size());
}

bool Nonces::take(size_t count, int64_t most, NonceBlock& block) {
    if (used > most || static_cast<uint64_t>(most - used) < count) return false;
    used += static_cast<int64_t>(count);
    block.bytes_ = drawn(count);
    block.from_ = this, block.forks_ = forks(), block.next_ = 0;
    return true;
}

NativeSealer::NativeSealer(nb::object nonces, int64_t invocations, nb::object key, bool ctr, const nb::sequence& aads,
                           nb::object otherwise)
    : nonces_object_(std::move(nonces)), key_object_(std::move(key)), otherwise_(std::move(otherwise)),
      nonces_(nb::cast<Nonces*>(nonces_object_)), key_(nb::cast<const AesKey*>(key_object_)), invocations_(invocations),
      ctr_(ctr), aads_(aads_of(aads)) {
    if (!aes_is_native()) fail("libcrypto was not found");
}

bool NativeSealer::seal(int module, const TextPart* parts, size_t count, size_t size, int64_t page, NonceBlock& nonces,
                        AesContext& aes, uint8_t* out) const {
    if (!is_page_module(module) || (has_number(module) && !counted(page))) return false;
    const size_t length = stored_size(module, size) - kLength;
    if (length >> 31 != 0) return false;
    const char* const nonce = nonces.take();
    if (nonce == nullptr) return false;
    store(out, static_cast<uint32_t>(length));
    std::memcpy(out + kLength, nonce, kNonce);
    const uint8_t *const start = out + kLength, number[] = {static_cast<uint8_t>(page), static_cast<uint8_t>(page >> 8)};
    if (ctr_ && is_body(module)) return aes.seal_ctr(*key_, start, parts, count, out + kFrame);
    const std::string& aad = aads_[static_cast<size_t>(module - kDataPageModule)];
    return aes.seal_gcm(*key_, start, aad, number, has_number(module) ? sizeof(number) : 0, parts, count, out + kFrame);
}

nb::object NativeSealer::seal_one(int64_t module, const nb::list& parts, int64_t page) const {
    std::vector<RawIn> views(nb::len(parts));
    std::vector<TextPart> texts;
    size_t size = 0;
    for (size_t k = 0; k < views.size(); ++k) {
        if (!views[k].load(nb::object(parts[k]).ptr())) return otherwise_(module, parts, page);
        texts.push_back({views[k].data, views[k].size});
        size += views[k].size;
    }
    NonceBlock nonce;
    if (!is_page_module(module) || !draw(1, nonce)) return otherwise_(module, parts, page);
    const int which = static_cast<int>(module);
    std::string out(stored_size(which, size), '\0');
    AesContext aes;
    if (!seal(which, texts.data(), texts.size(), size, page, nonce, aes, reinterpret_cast<uint8_t*>(out.data())))
        return otherwise_(module, parts, page);
    nb::list result;
    result.append(nb::bytes(out.data(), out.size()));
    return result;
}

}  // namespace pyparq
