// CRC-32 of pages, by zlib: the library that Python's module of that name is linked to, where it can be found.
#pragma once
#include "common.hpp"

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace pyparq {

class Crc32 {
  public:
    // `function(bytes)` of Python's module, and the file that the module is in ("" where it is in none). Each of its calls
    // gives up the GIL, and waits where another thread took it meanwhile: the library's own need no GIL.
    Crc32(nb::object function, const std::string& module) : function_(std::move(function)), native_(find(module)) {}

    bool native() const { return native_ != nullptr; }

    // Of a page's bytes. Needs the GIL unless it is native.
    uint32_t of(const RawIn& page) const {
        if (!native()) return nb::cast<uint32_t>(function_(passing_view(page.data, page.size)));
        return run(native_, page.data, page.size);
    }

    // The same of bytes that follow others, whose CRC is given.
    uint32_t more(uint32_t before, const uint8_t* data, size_t size) const {
        if (!native()) return nb::cast<uint32_t>(function_(passing_view(data, size), before));
        return static_cast<uint32_t>(native_(before, data, static_cast<unsigned>(size)));
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
