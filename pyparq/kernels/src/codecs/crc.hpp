// CRC-32 of pages: long runs of bytes by instructions of the processor, where it has them, the rest by zlib.
#pragma once
#include "base/common.hpp"
#include "codecs/libraries.hpp"

namespace pyparq {

// Has `crc` go on over as many bytes of `data` as the processor can take at once, which it returns.
size_t fold_crc(uint32_t& crc, const uint8_t* data, size_t size);

class Crc32 {
  public:
    // `function(bytes, before)` is that of Python's module zlib. It is called where the kernels have no zlib, or must not use
    // it (`use_library`). Each of its calls gives up the GIL and may wait to get it back.
    Crc32(nb::object function, bool use_library) : function_(std::move(function)), use_library_(use_library) {}

    bool native() const { return use_library_ && zlib() != nullptr; }

    // Of a page's bytes. Needs the GIL unless it is native.
    uint32_t of(const RawIn& page) const { return of(page.data, page.size); }
    uint32_t of(const uint8_t* data, size_t size) const { return more(0, data, size); }
    // The same of bytes that follow others, whose CRC is given.
    uint32_t more(uint32_t before, const uint8_t* data, size_t size) const {
        const size_t done = fold_crc(before, data, size);
        if (done == size) return before;
        if (!native()) return nb::cast<uint32_t>(function_(passing_view(data + done, size - done), before));
        return static_cast<uint32_t>(zlib()->crc32(before, data + done, static_cast<unsigned>(size - done)));  // below 2 GiB
    }

  private:
    nb::object function_;
    bool use_library_;
};

}  // namespace pyparq
