// CRC-32 of pages: long runs of bytes by the processor's own means, where it has them, and all else by zlib: the library
// that Python's module of that name is linked to, where it can be found.
#pragma once
#include "base/common.hpp"

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace pyparq {

// Has `crc` go on over as many bytes of `data` as the processor can take at once, which it returns.
size_t fold_crc(uint32_t& crc, const uint8_t* data, size_t size);

class Crc32 {
  public:
    // `function(bytes)` of Python's module, and the file that the module is in ("" where it is in none). Each of its calls
    // gives up the GIL, and waits where another thread took it meanwhile: the library's own need no GIL.
    Crc32(nb::object function, const std::string& module) : function_(std::move(function)), native_(find(module)) {}

    bool native() const { return native_ != nullptr; }

    // Of a page's bytes. Needs the GIL unless it is native.
    uint32_t of(const RawIn& page) const { return of(page.data, page.size); }
    uint32_t of(const uint8_t* data, size_t size) const { return more(0, data, size); }
    // The same of bytes that follow others, whose CRC is given.
    uint32_t more(uint32_t before, const uint8_t* data, size_t size) const {
        const size_t done = fold_crc(before, data, size);
        if (done == size) return before;
        if (!native()) return nb::cast<uint32_t>(function_(passing_view(data + done, size - done), before));
        return static_cast<uint32_t>(native_(before, data + done, static_cast<unsigned>(size - done)));
    }

  private:
    using Function = unsigned long (*)(unsigned long, const unsigned char*, unsigned);

    static uint32_t run(Function function, const uint8_t* data, size_t size) {
        return static_cast<uint32_t>(function(0, data, static_cast<unsigned>(size)));  // pages are below 2 GiB
    }

    static Function find(const std::string& module) {
#ifndef _WIN32
        // It is loaded already, and so is what it is linked to.
        void* const handle = module.empty() ? nullptr : dlopen(module.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (handle == nullptr) return nullptr;
        const auto function = reinterpret_cast<Function>(dlsym(handle, "crc32"));
        constexpr uint8_t kKnown[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
        if (function != nullptr && run(function, kKnown, sizeof(kKnown)) == 0xcbf43926u) return function;
        dlclose(handle);
#endif
        return nullptr;
    }

    nb::object function_;
    Function native_;
};

}  // namespace pyparq
