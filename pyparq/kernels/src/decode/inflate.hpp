// How the pages of one column chunk are decrypted and inflated: by libraries, whose calls come from Python.
#pragma once
#include "base/arena.hpp"
#include "codecs/snappy_literal.hpp"
#include "crypto/aes.hpp"

namespace pyparq {

// What it takes to open the modules of an encrypted column chunk (Encryption.md, 4.4 and 5.1).
class Unsealer {
  public:
    // `decrypt(nonce, sealed, aad)` and `decrypt_into(nonce, sealed, aad, out)` of AES-GCM, or for the bodies of pages
    // `reset_nonce(counter)` and `update_into(sealed, out)` of AES-CTR instead of the latter (None where it is not); the
    // AADs of headers and bodies up to the page's number; modules of more than `most` bytes go to `otherwise(stored, page)`.
    Unsealer(nb::object decrypt, nb::object decrypt_into, nb::object reset_nonce, nb::object update_into,
             const nb::bytes& header_aad, const nb::bytes& page_aad, Arena* out, int64_t most, nb::object otherwise)
        : decrypt_(std::move(decrypt)), decrypt_into_(std::move(decrypt_into)), reset_nonce_(std::move(reset_nonce)),
          update_into_(std::move(update_into)), header_aad_(header_aad.c_str(), header_aad.size()),
          page_aad_(page_aad.c_str(), page_aad.size()), out_(out), most_(most), otherwise_(std::move(otherwise)) {}

    // The header of page `page` at `at`, and where its module ends; an invalid object where something is wrong.
    nb::object header(const RawIn& bytes, size_t at, int64_t page, size_t& end) const {
        const size_t left = bytes.size - at;
        if (left < kFrame || !counted(page)) return {};
        const size_t length = load<uint32_t>(bytes.data + at);
        if (length < kFrame - kLength || length > left - kLength) return {};
        end = at + kLength + length;
        // A header is short: copying it takes less time than a view of it.
        return call(decrypt_, nonce(bytes, at), nb::bytes(bytes.data + at + kFrame, end - at - kFrame), aad_of(header_aad_, page));
    }

    // The body of page `page`, an invalid object where something is wrong.
    nb::object body(const nb::object& stored, int64_t page) const {
        RawIn bytes;
        if (!bytes.load(stored.ptr())) fail("a module must be bytes-like");
        if (static_cast<int64_t>(bytes.size) > most_) return otherwise_(stored, page);
        const bool ctr = !reset_nonce_.is_none();
        const size_t overhead = ctr ? kFrame : kFrame + kTag;
        if (bytes.size < overhead || load<uint32_t>(bytes.data) != bytes.size - kLength || !counted(page)) return {};
        const nb::object sealed = passing_view(bytes.data + kFrame, bytes.size - kFrame), out = out_->take(bytes.size - overhead);
        if (!ctr) return call(decrypt_into_, nonce(bytes, 0), sealed, aad_of(page_aad_, page), out).is_valid() ? out : nb::object();
        if (bytes.size == overhead) return out;
        if (!call(reset_nonce_, first_counter(bytes.data + kLength)).is_valid()) return {};
        return call(update_into_, sealed, out).is_valid() ? out : nb::object();
    }

  private:
    static nb::bytes nonce(const RawIn& bytes, size_t at) { return nb::bytes(bytes.data + at + kLength, kNonce); }

    nb::object decrypt_, decrypt_into_, reset_nonce_, update_into_;
    std::string header_aad_, page_aad_;
    Arena* out_;
    int64_t most_;
    nb::object otherwise_;
};

class Inflater {
  public:
    // `decode(stored, out)` of a codec's library, None where nothing is compressed; whether that reads Snappy blocks, which
    // can be looked into.
    Inflater(nb::object decode, bool snappy, Arena* out, Unsealer* unsealer)
        : unsealer(unsealer), decode_(std::move(decode)), snappy_(snappy), out_(out) {}

    // The `size` bytes that the body of a page holds, decrypted; an invalid object where something is wrong with it.
    nb::object inflate(const nb::object& stored, size_t size) const {
        if (size == 0) return {};
        if (decode_.is_none()) return nb::len(stored) == size ? stored : nb::object();
        if (snappy_) {
            RawIn block;
            if (!block.load(stored.ptr())) fail("a block must be bytes-like");
            if (const size_t at = one_literal(block, size); at > 0) return part(stored, at, at + size);
        }
        const nb::object out = out_->take(size);
        const nb::object written = call(decode_, stored, out);
        return written.is_valid() && nb::cast<int64_t>(written) == static_cast<int64_t>(size) ? out : nb::object();
    }

    Unsealer* const unsealer;  // null where nothing is encrypted

  private:
    nb::object decode_;
    bool snappy_;
    Arena* out_;
};

}  // namespace pyparq
