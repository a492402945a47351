// Where Python meets `crypto/`: names, types and docstrings.
#include "crypto/calls.hpp"
#include "crypto/python_sealer.hpp"

namespace pyparq {
namespace {

using namespace nb::literals;

void bind_key(nb::module_& m) {
    nb::class_<AesKey>(m, "AesKey", R"(An AES key of 16, 24 or 32 bytes, used by libcrypto, which the kernels must have. Nothing gives it out again.

Nonces have 12 bytes; tags have 16 and stand behind what is sealed. `out` has exactly the size of the result. Any
thread may call. KernelError: the tag is wrong, so another key or AAD, or damaged bytes.)")
        .def(nb::init<nb::bytes>(), "key"_a)
        .def("encrypt", &encrypt, "nonce"_a, "text"_a, "aad"_a.none(),
             nb::sig("def encrypt(self, nonce: bytes, text: Buffer, aad: Buffer | None) -> bytes"),
             "By GCM.")
        .def("encrypt_into", &encrypt_into, "nonce"_a, "text"_a, "aad"_a.none(), "out"_a,
             nb::sig("def encrypt_into(self, nonce: bytes, text: Buffer, aad: Buffer | None, out: Buffer) -> None"),
             "By GCM; `text` may be where `out` begins.")
        .def("decrypt", &decrypt, "nonce"_a, "sealed"_a, "aad"_a.none(),
             nb::sig("def decrypt(self, nonce: bytes, sealed: Buffer, aad: Buffer | None) -> bytes"),
             "By GCM.")
        .def("decrypt_into", &decrypt_into, "nonce"_a, "sealed"_a, "aad"_a.none(), "out"_a,
             nb::sig("def decrypt_into(self, nonce: bytes, sealed: Buffer, aad: Buffer | None, out: Buffer) -> None"),
             "By GCM.")
        .def("run_ctr", &run_ctr, "nonce"_a, "text"_a, "out"_a,
             "Encrypt or decrypt by CTR, whose first counter is the nonce and the number 1.");
    m.def("aes_is_native", &aes_is_native,
          "Whether OpenSSL's libcrypto was found; where it was not, pages are opened by calls of Python.");
}

void bind_seal(nb::module_& m) {
    nb::class_<Nonces>(m, "Nonces", nb::is_weak_referenceable(), "Nonces of one key, each given once in this process, and counted.")
        .def(nb::init<nb::object>(), "random"_a,
             nb::sig("def __init__(self, random: Callable[[int], bytes]) -> None"),
             "`random(size)` returns that many unpredictable bytes.")
        .def("take", nb::overload_cast<int64_t>(&Nonces::take), "most"_a,
             nb::sig("def take(self, most: int) -> bytes | None"),
             "A nonce for one more encryption; None where `most` were given.")
        .def("forget", &Nonces::forget,
             "Drop the nonces that are drawn already. A forked process must not use those of its parent.")
        .def_ro("used", &Nonces::used);
    nb::class_<NativeSealer>(m, "NativeSealer", "Encrypts the pages of a column chunk by libcrypto, on any thread of native code.")
        .def(nb::init<nb::object, int64_t, nb::object, bool, nb::sequence, nb::object>(), "nonces"_a, "invocations"_a, "key"_a,
             "ctr"_a, "aads"_a, "otherwise"_a,
             nb::sig("def __init__(self, nonces: Nonces, invocations: int, key: AesKey, ctr: bool, aads: Sequence[bytes], "
                     "otherwise: Callable[[int, list[Any], int], list[Any]]) -> None"),
             R"(The key and its nonces, of which it may use `invocations` in all; whether bodies go by AES-CTR. `aads` of the
modules 2 to 5, up to the page's number. Where something is not usual, or no nonce is left, modules go to
`otherwise(module, parts, page)`.)")
        .def("seal", &NativeSealer::seal_one, "module"_a, "parts"_a, "page"_a,
             nb::sig("def seal(self, module: int, parts: list[Any], page: int) -> list[Any]"),
             "The stored form of the bytes in `parts`, one after another; `page` counts data pages.");
    nb::class_<Sealer>(m, "Sealer", R"(Encrypts the pages of a column chunk, on one thread, by a library of Python's: where libcrypto is not found.)")
        .def(nb::init<Nonces*, int64_t, nb::object, nb::object, nb::object, nb::sequence, int64_t, nb::object>(),
             "nonces"_a, "invocations"_a, "encrypt_into"_a.none(), "reset_nonce"_a.none(), "update_into"_a.none(), "aads"_a,
             "most"_a, "otherwise"_a, nb::keep_alive<1, 2>(),
             nb::sig("def __init__(self, nonces: Nonces, invocations: int, encrypt_into: Callable[[bytes, Any, bytes, Any], "
                     "Any] | None, reset_nonce: Callable[[bytes], Any] | None, update_into: Callable[[Any, Any], Any] | None, "
                     "aads: Sequence[bytes], most: int, otherwise: Callable[[int, list[Any], int], list[Any]]) -> None"),
             R"(The key's nonces, of which it may use `invocations` in all. `encrypt_into(nonce, text, aad, out)` of AES-GCM;
for bodies under AES_GCM_CTR_V1 `reset_nonce(counter)` and `update_into(text, out)` of AES-CTR. `aads` of the
modules 2 to 5, up to the page's number. Modules of more than `most` bytes, and all where something is not usual
or the library raises, go to `otherwise(module, parts, page)`.)")
        .def("seal", &Sealer::seal, "module"_a, "parts"_a, "page"_a,
             nb::sig("def seal(self, module: int, parts: list[Any], page: int) -> list[Any]"),
             "The stored form of the bytes in `parts`, one after another; `page` counts data pages.");
}

}  // namespace

void bind_crypto(nb::module_& m) {
    bind_key(m);
    bind_seal(m);
}

}  // namespace pyparq
