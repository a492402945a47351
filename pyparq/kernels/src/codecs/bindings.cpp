// Where Python meets `codecs/`: names, types and docstrings.
#include "codecs/calls.hpp"
#include "codecs/codecs.hpp"
#include "codecs/crc.hpp"

namespace pyparq {
namespace {

using namespace nb::literals;

int64_t inflate(int codec, const RawIn& data, const RawOut& out, int64_t wanted) {
    const size_t most = wanted < 0 ? out.size : static_cast<size_t>(wanted);
    const NoGil nogil(data.size + out.size);
    return inflate_native(codec, data.data, data.size, out.data, out.size, most);
}

int64_t deflate(int codec, int level, const RawIn& data, const RawOut& out) {
    const NoGil nogil(data.size + out.size);
    return deflate_native(codec, level, data.data, data.size, out.data, out.size);
}

void bind_compression(nb::module_& m) {
    m.def("codec_writes_native", &codec_writes_native, "codec"_a,
          "Whether the kernels compress with the codec, a number of CompressionCodec in parquet.thrift.");
    nb::module_ probes = nb::borrow<nb::module_>(m.attr("probes"));
    probes.def("codec_is_native", &codec_is_native, "codec"_a,
               "Whether `inflate` knows the codec, a number of CompressionCodec in parquet.thrift.");
    probes.def("inflate",
               &inflate,
               "codec"_a, "data"_a, "out"_a, "wanted"_a = -1,
               R"(Decompress to `out`; how many bytes `data` holds, -1 where it is malformed or holds more than `out` has room
for. With fewer `wanted` it may stop when these are there: it returns how many it has, and no byte behind is
checked.)");
    probes.def("deflate_bound", [](int codec, int64_t size) { return deflate_bound(codec, checked_count(size, "size")); },
               "codec"_a, "size"_a,
               "No so many bytes take more than this when they are compressed.");
    probes.def("deflate",
               &deflate,
               "codec"_a, "level"_a, "data"_a, "out"_a,
               R"(Compress to `out`; how many bytes it took, -1 where they do not fit. `level` must be one that the codec
has.)");
}

void bind_crc(nb::module_& m) {
    nb::class_<Crc32>(m, "Crc32", "CRC-32 by the processor's own means, where it has them, and by zlib.")
        .def(nb::init<nb::object, bool>(), "function"_a, "use_library"_a = true,
             nb::sig("def __init__(self, function: Callable[..., int], use_library: bool = True) -> None"),
             R"(`function(data, before)` of Python's module `zlib` is called where the kernels have no zlib of their own, or
must not use it.)")
        .def_prop_ro("native", &Crc32::native,
                     "Whether the kernels call zlib themselves, which needs no GIL.")
        .def("of", [](const Crc32& crc, const RawIn& data, uint32_t before) { return crc.more(before, data.data, data.size); },
             "data"_a, "before"_a = 0,
             "The CRC-32 of bytes that follow others, whose CRC-32 is `before`.");
}

void bind_libraries(nb::module_& m) {
    m.def("library_report", &library_report,
          nb::sig("def library_report() -> list[tuple[str, str, str, str, str]]"),
          R"(Of zlib, zstd, brotli and libcrypto: name, state (`linked`, `found`, `missing`, `switched off` or `interrupted`),
version, the file that it is in, and why candidates were refused. Looks for libraries that were not used yet.)");
}

}  // namespace

void bind_codecs(nb::module_& m) {
    bind_compression(m);
    bind_crc(m);
    bind_libraries(m);
}

}  // namespace pyparq
