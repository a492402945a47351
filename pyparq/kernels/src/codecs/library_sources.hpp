// Where the functions of a library come from: the build linked them, or a file has them.
#pragma once
#include "codecs/libraries.hpp"

#include <string>

namespace pyparq {

// Takes the functions of a library that this build is linked to; false where it is not.
bool link_functions(Zlib& zlib);
bool link_functions(Zstd& zstd);
bool link_functions(Brotli& brotli);
bool link_functions(Crypto& crypto);

// A shared library at run time. It stays loaded while an object has it, and for good after `keep()`.
class OpenLibrary {
  public:
    explicit OpenLibrary(const char* path);
    OpenLibrary(const OpenLibrary&) = delete;
    OpenLibrary& operator=(const OpenLibrary&) = delete;
    ~OpenLibrary();

    bool is_open() const { return handle_ != nullptr; }
    // Whether it, or a library that it is linked to, has the function.
    template <class F>
    bool find(const char* name, F*& function) const {
        function = reinterpret_cast<F*>(symbol(name));
        return function != nullptr;
    }
    void keep() { handle_ = nullptr; }

  private:
    void* symbol(const char* name) const;
    void* handle_;
};

// The name of the first function that the library does not have; null where it has all.
const char* find_functions(const OpenLibrary& from, Zlib& zlib);
const char* find_functions(const OpenLibrary& from, Zstd& zstd);
const char* find_functions(const OpenLibrary& from, Brotli& brotli);
const char* find_functions(const OpenLibrary& from, Crypto& crypto);

// The same for libdeflate, which helps zlib.
const char* find_libdeflate(const OpenLibrary& from, Zlib& zlib);

// The file that a function is in, as the system's loader names it; empty where it does not say.
std::string file_of(const void* function);

}  // namespace pyparq
