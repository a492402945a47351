// How the pages of one column chunk are decrypted and inflated.
#pragma once
#include "snappy_start.hpp"

namespace pyparq {

class Inflater {
  public:
    // (`decode(stored, out)` of a library or None where nothing is compressed, whether the beginning of a block can be had
    // as that of a Snappy block, an arena for what is inflated, one for passing use, `decrypt(stored, page)` or None).
    explicit Inflater(const nb::tuple& given) {
        if (nb::len(given) != 5) fail("an inflater has five parts");
        decode_ = given[0], starts_ = nb::cast<bool>(given[1]), decrypt_ = given[4];
        out_ = nb::cast<Arena*>(given[2]), spare_ = nb::cast<Arena*>(given[3]);
    }

    // The `size` bytes that the body of page `page` holds, or the first `wanted` of them and more; an invalid object where
    // something is wrong with it.
    nb::object inflate(nb::object stored, size_t size, size_t wanted, int64_t page) const {
        if (!decrypt_.is_none()) stored = decrypt_(stored, page);
        if (size == 0) return {};
        if (decode_.is_none()) return nb::len(stored) == size ? stored : nb::object();
        const nb::object out = out_->take(size);
        if (starts_ && wanted < size) {
            const size_t found = snappy_start(decode_, stored, size, wanted, out, *spare_);
            if (found > 0) return part(out, 0, found);
        }
        return decode_into(decode_, stored, out).written == static_cast<int64_t>(size) ? out : nb::object();
    }

  private:
    nb::object decode_, decrypt_;
    bool starts_ = false;
    Arena *out_ = nullptr, *spare_ = nullptr;  // kept by the tuple
};

}  // namespace pyparq
