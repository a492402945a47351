// An open file that is closed when the last reference to it is gone. Native, because Python prints and ignores a Ctrl-C
// that arrives in a __del__: the file would stay open.
#pragma once

#include "base/common.hpp"

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

namespace pyparq {

struct HeldFile {
    int number;
    explicit HeldFile(int number_) : number(number_) {}
    HeldFile(const HeldFile&) = delete;
    HeldFile& operator=(const HeldFile&) = delete;
    ~HeldFile() {
#ifdef _WIN32
        if (number >= 0) _close(number);
#else
        if (number >= 0) ::close(number);
#endif
    }
};

}  // namespace pyparq
