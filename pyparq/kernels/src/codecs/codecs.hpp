// The codecs of the format (Compression.md) without Python: our own Snappy and LZ4, and zlib's, zstd's and Brotli's code in
// libraries that are installed anyway.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pyparq {

// All may be called from any thread, with the GIL or without it. `codec` is a number of CompressionCodec in parquet.thrift.

// Whether the two functions below know the codec. For one that a library reads, the first call looks for this library,
// which takes some hundred microseconds and needs the GIL for a moment.
bool codec_is_native(int codec);

// Decompresses `in` to `out`, and never writes beyond `room`. Returns how many bytes `in` holds, -1 where it is malformed,
// or holds more than `room`. Where `wanted` is less than `room`, it may stop when at least so many bytes are there: what
// follows is neither read nor checked then, and of `out` more may have been overwritten than it returns.
int64_t inflate_native(int codec, const uint8_t* in, size_t n, uint8_t* out, size_t room, size_t wanted);

// No `n` bytes take more than this when they are compressed.
size_t deflate_bound(int codec, size_t n);

// Whether `deflate_native` knows the codec.
bool codec_writes_native(int codec);

// Compresses `in` to `out`; `level` is one that the codec has (compression.py knows them), else it is not looked at. Returns
// how many bytes it wrote, -1 where they do not fit `room`, or `stop_requested()` meanwhile.
int64_t deflate_native(int codec, int level, const uint8_t* in, size_t n, uint8_t* out, size_t room);

}  // namespace pyparq
