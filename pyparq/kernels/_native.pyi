"""Made by tests/support/native_stub.py from the bindings in kernels/src: edit those, not this.

- `Buffer`: any C-contiguous buffer; where an item type is named below, a one-dimensional array of it.
- offsets: int32 or int64, n + 1 of them for n values, into uint8 data; they may start above 0.
- valid: one byte per slot, non-zero = present; None = every slot is present.
- "values"/"dictionary" with a `width`: raw bytes of whole values.
- Every function raises `KernelError` for bytes, counts or indices that do not fit, and TypeError for an
  argument that is not the buffer it asks for.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer as _PyBuffer

# numpy's stubs say that arrays are buffers from Python 3.12 on only.
Buffer: TypeAlias = _PyBuffer | NDArray[Any]

_Bounds: TypeAlias = tuple[list[bytes | None], list[bytes | None], NDArray[np.int64] | None]

_More: TypeAlias = Callable[[int], tuple[int, int]]
"""Called for so many bytes more than there are: how many it adds, and how many could follow. It may raise."""

class KernelError(ValueError):
    pass

def take_memory(size: int) -> NDArray[np.uint8]:
    """
    Bytes of anything, in memory that is used again when the last view of it is gone.
    """

def release_idle_memory() -> None:
    """Give them back to the system."""

def keep_idle_memory(most: int) -> None:
    """Keep no more than so many idle bytes of it."""

class ArrowField:
    """
    A field (`pyparq.format.types.Field`) and all below it, as a schema that can be given away many times.
    """

    def __init__(self, field: Any) -> None: ...
    def capsule(self) -> Any:
        """An `arrow_schema` capsule."""

def arrow_array(array: Any) -> Any:
    """
    An `arrow_array` capsule over the buffers of a column, or of (columns, number of rows): a record batch.
    """

def arrow_arrays(field: ArrowField, arrays: Any) -> Any:
    """An `arrow_array_stream` capsule of such arrays."""

class ImportedBuffer:
    pass

class ImportedArray:
    """
    An array of fixed width, or of byte arrays, as another library made it. Its buffers have the buffer protocol.
    """

    @property
    def length(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def null_count(self) -> int: ...
    @property
    def num_bytes(self) -> int:
        """
        Bytes of its elements, which of byte arrays are four for each and their own.
        """

    @property
    def validity(self) -> Any | None: ...
    @property
    def buffers(self) -> tuple[Any, ...]:
        """Values, or offsets and bytes."""

class ArrowImport:
    """
    Takes over what capsules hold: `arrow_schema` and `arrow_array`, or None and `arrow_array_stream`.
    """

    def __init__(self, schema: Any | None, arrays: Any) -> None: ...
    def schema(self) -> tuple[Any, ...] | None:
        """
        (format, name, metadata or None, flags, children, dictionary or None), these two the same again. None where
        a type is not known: the capsules hold what they held.
        """

    def next(self) -> ImportedArray | tuple[Any, ...] | None:
        """
        The next array; what is nested, a dictionary or views is (length, offset, null count, validity or None,
        buffers, children, dictionary or None). None at the end.
        """

def arrow_schema_field(data: Buffer, offset: int, index: int) -> tuple[str, str] | None:
    """
    Name and C data interface format of the field at `index` of the FlatBuffers vector of an Arrow schema's fields
    that starts at `offset`. None where it has more than these (children, metadata, a dictionary), or is damaged.
    """

def arrow_stream(producer: Any) -> Any:
    """
    An `arrow_array_stream` capsule whose callbacks ask `producer`, from whatever thread they are called.

    `get_schema()` gives an `arrow_schema` capsule, `get_next()` an `arrow_array` capsule or None at the end; both are
    emptied. `close()` is called when the stream is let go of, read to its end or not. An exception becomes an errno
    and the text "Type: message", and the stream then fails in the same way for good; KeyboardInterrupt is raised again
    where Python runs next. Once the interpreter shuts down the producer is called no more.
    """

def lay_out_views(
    views: Buffer, valid: NDArray[np.uint8] | None, buffers: list[NDArray[np.uint8]] | list[bytes]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """
    Offsets and bytes of string views, which are 16 bytes each; nulls (0 in `valid`) have none. Fails for views that
    point outside of the `buffers`.
    """

def string_views(
    offsets: Buffer, data: Buffer, validity: Buffer | None, first_bit: int, most: int, out: Buffer
) -> list[int]:
    """
    Arrow's string views of byte arrays, 16 bytes each, into `out`; null ones are zero.

    `validity` is a packed bitmap, value 0 at `first_bit`. Returns where in `data` the buffers start that the views
    point into, each of at most `most` bytes; none where all values stand in their views.
    """

def codec_writes_native(codec: int) -> bool:
    """
    Whether the kernels compress with the codec, a number of CompressionCodec in parquet.thrift.
    """

class Crc32:
    """CRC-32 by the processor's own means, where it has them, and by zlib."""

    def __init__(self, function: Callable[..., int], use_library: bool = True) -> None:
        """
        `function(data, before)` of Python's module `zlib` is called where the kernels have no zlib of their own, or
        must not use it.
        """

    @property
    def native(self) -> bool:
        """Whether the kernels call zlib themselves, which needs no GIL."""

    def of(self, data: Buffer, before: int = 0) -> int:
        """The CRC-32 of bytes that follow others, whose CRC-32 is `before`."""

def library_report() -> list[tuple[str, str, str, str, str]]:
    """
    Of zlib, zstd, brotli and libcrypto: name, state (`linked`, `found`, `missing`, `switched off` or `interrupted`),
    version, the file that it is in, and why candidates were refused. Looks for libraries that were not used yet.
    """

class AesKey:
    """
    An AES key of 16, 24 or 32 bytes, used by libcrypto, which the kernels must have. Nothing gives it out again.

    Nonces have 12 bytes; tags have 16 and stand behind what is sealed. `out` has exactly the size of the result. Any
    thread may call. KernelError: the tag is wrong, so another key or AAD, or damaged bytes.
    """

    def __init__(self, key: bytes) -> None: ...
    def encrypt(self, nonce: bytes, text: Buffer, aad: Buffer | None) -> bytes:
        """By GCM."""

    def encrypt_into(self, nonce: bytes, text: Buffer, aad: Buffer | None, out: Buffer) -> None:
        """By GCM; `text` may be where `out` begins."""

    def decrypt(self, nonce: bytes, sealed: Buffer, aad: Buffer | None) -> bytes:
        """By GCM."""

    def decrypt_into(self, nonce: bytes, sealed: Buffer, aad: Buffer | None, out: Buffer) -> None:
        """By GCM."""

    def run_ctr(self, nonce: bytes, text: Buffer, out: Buffer) -> None:
        """
        Encrypt or decrypt by CTR, whose first counter is the nonce and the number 1.
        """

def aes_is_native() -> bool:
    """
    Whether OpenSSL's libcrypto was found; where it was not, pages are opened by calls of Python.
    """

class Nonces:
    """Nonces of one key, each given once in this process, and counted."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        """`random(size)` returns that many unpredictable bytes."""

    def take(self, most: int) -> bytes | None:
        """A nonce for one more encryption; None where `most` were given."""

    def forget(self) -> None:
        """
        Drop the nonces that are drawn already. A forked process must not use those of its parent.
        """

    @property
    def used(self) -> int: ...

class NativeSealer:
    """
    Encrypts the pages of a column chunk by libcrypto, on any thread of native code.
    """

    def __init__(
        self,
        nonces: Nonces,
        invocations: int,
        key: AesKey,
        ctr: bool,
        aads: Sequence[bytes],
        otherwise: Callable[[int, list[Any], int], list[Any]],
    ) -> None:
        """
        The key and its nonces, of which it may use `invocations` in all; whether bodies go by AES-CTR. `aads` of the
        modules 2 to 5, up to the page's number. Where something is not usual, or no nonce is left, modules go to
        `otherwise(module, parts, page)`.
        """

    def seal(self, module: int, parts: list[Any], page: int) -> list[Any]:
        """
        The stored form of the bytes in `parts`, one after another; `page` counts data pages.
        """

class Sealer:
    """
    Encrypts the pages of a column chunk, on one thread, by a library of Python's: where libcrypto is not found.
    """

    def __init__(
        self,
        nonces: Nonces,
        invocations: int,
        encrypt_into: Callable[[bytes, Any, bytes, Any], Any] | None,
        reset_nonce: Callable[[bytes], Any] | None,
        update_into: Callable[[Any, Any], Any] | None,
        aads: Sequence[bytes],
        most: int,
        otherwise: Callable[[int, list[Any], int], list[Any]],
    ) -> None:
        """
        The key's nonces, of which it may use `invocations` in all. `encrypt_into(nonce, text, aad, out)` of AES-GCM;
        for bodies under AES_GCM_CTR_V1 `reset_nonce(counter)` and `update_into(text, out)` of AES-CTR. `aads` of the
        modules 2 to 5, up to the page's number. Modules of more than `most` bytes, and all where something is not usual
        or the library raises, go to `otherwise(module, parts, page)`.
        """

    def seal(self, module: int, parts: list[Any], page: int) -> list[Any]:
        """
        The stored form of the bytes in `parts`, one after another; `page` counts data pages.
        """

class DecodedColumn:
    """
    A decoded column of fixed width or of byte arrays, in memory that arrays of numpy and of Arrow share.

    Each attribute that is an array is made anew when it is asked for. `values` are bytes; those of byte arrays have
    `offsets`, int32 or int64 (`has_wide_offsets`).
    """

    @property
    def length(self) -> int: ...
    @property
    def null_count(self) -> int: ...
    @property
    def is_binary(self) -> bool: ...
    @property
    def has_wide_offsets(self) -> bool: ...
    @property
    def size(self) -> int:
        """Bytes, those of levels included."""

    @property
    def buffer_size(self) -> int:
        """Bytes of validity, offsets and values."""

    @property
    def validity(self) -> NDArray[np.uint8] | None: ...
    @property
    def values(self) -> NDArray[np.uint8]: ...
    @property
    def offsets(self) -> NDArray[Any]: ...
    @property
    def definition_levels(self) -> NDArray[np.uint8] | None: ...
    @property
    def repetition_levels(self) -> NDArray[np.uint8] | None: ...

class LeafSpec:
    """
    A leaf, and what its values become.

    `physical`: number of Type in parquet.thrift; `width`: bytes of a stored value, 0 for BYTE_ARRAY. A
    definition level of `slot_level` or more is a slot. `form`: "values", "codes" (of the dictionary) or
    "views"; with `codes_or_values`, values where a page has no codes. `convert`: number of Convert in
    kernels/src/decode/column_output.hpp. `digits`: most that a decimal may have, 0 for any. Text must be UTF-8.
    """

    def __init__(
        self,
        physical: int,
        width: int,
        max_def: int,
        max_rep: int,
        slot_level: int = 0,
        keeps_levels: bool = False,
        is_text: bool = False,
        form: str = "values",
        convert: int = 0,
        large_offsets: bool = False,
        codes_or_values: bool = False,
        digits: int = 0,
    ) -> None: ...

class PageLimits:
    """
    Limits of pyparq.limits, whether pages are held against their CRC, and the bytes of byte arrays above which
    a column has offsets of 64 bits.
    """

    def __init__(
        self,
        max_page: int,
        max_expansion: int,
        expansion_floor: int,
        max_values_per_byte: int,
        max_column: int,
        check_crc: bool,
        most_offset: int,
    ) -> None: ...

class PageCipher:
    """
    Decrypts the pages of a chunk: by libcrypto, with `key` and the AADs of modules 2 to 5 up to the page
    number; or by `decryption`, where `key` is None or a module is not as usual. With `ctr`, bodies are by
    AES-CTR.
    """

    def __init__(self, decryption: Any, key: AesKey | None, aads: list[bytes], ctr: bool) -> None: ...

class PieceSpec:
    """
    The wanted part of one column chunk.

    `data`: the bytes of the whole chunk; or, with int64 arrays of a number for each data page (`ordinals`,
    `first_rows`, `page_rows`), a list of pages, the dictionary page first if it is `dictionary_apart`. `rows`:
    None for all; int64 (starts, ends) of ranges; or a bitmap with a bit for each row of the row group, in whole
    words of 64. `dictionary`: where it is known, (entries, int64 offsets or None, bytes).
    """

    def __init__(
        self,
        codec: int,
        num_values: int,
        num_rows: int,
        first_is_dictionary: bool,
        data: Any,
        ordinals: Buffer | None = None,
        first_rows: Buffer | None = None,
        page_rows: Buffer | None = None,
        dictionary_apart: bool = False,
        rows: Any = None,
        cipher: PageCipher | None = None,
        dictionary: tuple[int, Any, Any] | None = None,
    ) -> None: ...

class DecodeRefusal:
    """
    A fault in a file: a name with up to three numbers and a text, which pyparq/read/decode/decoder.py puts
    into words; the column and piece of the call; and the ordinal of the data page, -2 for the dictionary page,
    -1 for none.
    """

    @property
    def name(self) -> str: ...
    @property
    def a(self) -> int: ...
    @property
    def b(self) -> int: ...
    @property
    def c(self) -> int: ...
    @property
    def text(self) -> bytes: ...
    @property
    def column(self) -> int: ...
    @property
    def piece(self) -> int: ...
    @property
    def page(self) -> int: ...
    @property
    def error(self) -> BaseException | None:
        """An exception that a library or a key raised."""

class PieceFacts:
    """
    What has been read of a piece: the end of its pages, in a whole chunk, and numbers of pages.
    """

    @property
    def end(self) -> int: ...
    @property
    def data_pages(self) -> int: ...
    @property
    def dictionary_pages(self) -> int: ...

class ChunkTotals:
    """What has been read of all chunks of a call."""

    @property
    def data_pages(self) -> int: ...
    @property
    def dictionary_pages(self) -> int: ...
    @property
    def num_bytes(self) -> int:
        """Of the columns."""

    @property
    def ended_early(self) -> int:
        """Chunks that have bytes behind their last page."""

def set_libraries(crc32: Callable[..., int], decode: Callable[[int, Any, Any], int]) -> None:
    """
    What the decoder calls where the kernels have no library: `zlib.crc32(data, before)`, and `decode(codec, stored,
    out)`, which gives the bytes written.
    """

def decode_columns(
    jobs: list[tuple[LeafSpec, list[PieceSpec]]], limits: PageLimits, threads: int, room: int
) -> tuple[list[Any], list[PieceFacts], DecodeRefusal | None]:
    """
    Decode columns, each of pieces of one leaf (see pyparq/read/decode/decoder.py), in at most `room` bytes.

    (results, facts about all pieces, None), or (None, None, what is refused).
    """

class StoredPage:
    """
    The header of a page, and where the page lies in the file. Sizes are in bytes.
    """

    @property
    def offset(self) -> int:
        """Of its header, in the file."""

    @property
    def size(self) -> int:
        """As it is stored, with the header."""

    @property
    def stored(self) -> int:
        """As it is stored, without the header."""

    @property
    def uncompressed(self) -> int: ...
    @property
    def type(self) -> int:
        """Number of PageType in parquet.thrift."""

    @property
    def version(self) -> int: ...
    @property
    def num_values(self) -> int:
        """Nulls included; of a dictionary page, its entries."""

    @property
    def encoding(self) -> int: ...
    @property
    def num_nulls(self) -> int | None:
        """Of a data page of version 2."""

    @property
    def num_rows(self) -> int | None:
        """Of a data page of version 2."""

    @property
    def is_sorted(self) -> bool:
        """Of a dictionary page."""

    @property
    def has_crc(self) -> bool: ...
    @property
    def has_statistics(self) -> bool: ...

class DecodedPages:
    """What some data pages hold, one after another."""

    @property
    def count(self) -> int:
        """Pages."""

    @property
    def numbers(self) -> NDArray[np.int64]:
        """
        Five of each page: values, those that are present, rows, where its repetition and its definition levels
        begin (-1: all are the maximum, -2: all are 0).
        """

    @property
    def repetition_levels(self) -> NDArray[np.uint8]: ...
    @property
    def definition_levels(self) -> NDArray[np.uint8]: ...
    @property
    def codes(self) -> NDArray[np.int32]:
        """Of the pages that have codes."""

    @property
    def values(self) -> Any:
        """
        The present values of the other pages: bytes, (int64 offsets, bytes), or None without such a page.
        """

class PageReader:
    """
    The pages of one column chunk (used by pyparq.read.decode.chunk_pages alone).

    The piece is a whole column chunk, at `offset` in the file. Its data stay referenced. `beyond`: bytes that
    `more` could give. For one thread at a time.
    """

    def __init__(self, leaf: LeafSpec, piece: PieceSpec, limits: PageLimits, offset: int) -> None: ...
    def list_pages(self, to_the_end: bool, more: _More, beyond: int) -> DecodeRefusal | None:
        """
        Read headers until the pages hold the values of the piece, or to the end of its data. Returns a refusal. The
        pages before the one that is refused are listed.
        """

    def pages(self) -> list[StoredPage]:
        """The data pages."""

    def dictionary(self) -> StoredPage | None:
        """The dictionary page."""

    def entries(self, more: _More, beyond: int) -> tuple[Any, DecodeRefusal | None]:
        """
        ((entries, int64 offsets or None, their bytes) or None, refusal) of the dictionary page, which is listed.
        Booleans take a byte each.
        """

    def decode(
        self, first: int, last: int, window: int, entries: int, with_values: bool, more: _More, beyond: int
    ) -> tuple[DecodedPages | None, DecodeRefusal | None]:
        """
        Decode data pages from number `first` on, none behind number `last`, until they take `window` bytes; one at
        least. `entries`: how many the dictionary has, below 0 without one. Levels alone unless `with_values`.

        Returns (what they hold or None, refusal).
        """

    @property
    def num_values(self) -> int:
        """Of all pages that are listed, nulls included."""

    @property
    def end(self) -> int:
        """Where the last of them ends in the data."""

    @property
    def uncompressed(self) -> int:
        """Bytes of all of them before compression, headers as they are stored."""

def decode_chunks(
    leaves: list[LeafSpec],
    runs: Buffer,
    num_rows: Buffer,
    codec: Buffer,
    num_values: Buffer,
    has_dictionary: Buffer,
    start: Buffer,
    size: Buffer,
    read: list[tuple[int, Any]],
    limits: PageLimits,
    threads: int,
    room: int,
    wanted: list[Buffer | None] = [],
) -> tuple[list[Any], ChunkTotals, DecodeRefusal | None]:
    """
    Decode whole chunks. A number per chunk, row group by row group; `num_rows` per row group. `runs`: how many row
    groups are joined, one run after another. `read`: (offset in the file, bytes) each. `wanted`: nothing where all
    rows are; otherwise for each run None, or a bit for each of its rows in uint64 words. A row group without a wanted
    row need not be in `read`.

    (columns of one run after another, totals, None), or (None, None, what is refused). A leaf of codes is (column,
    dictionaries of its row groups), and codes count through all of them; or None where a page has none.
    """

class FileRules:
    """
    What holds for all columns of a file that is written. Lengths to cut bounds to are below 0 for whole ones.
    """

    def __init__(
        self,
        version: int,
        max_rows: int,
        page_size: int,
        dictionary_limit: int,
        statistics_truncate: int,
        index_truncate: int,
        longest_bound: int,
        page_index: bool,
        size_statistics: bool,
        min_values: int,
        settles: float,
        most_of_dictionary: float,
        record_key: str,
        crc: Crc32 | None,
        threads: int,
    ) -> None: ...

class ColumnRules:
    """
    How a leaf is written. `encoding` below 0: chosen from the data among PLAIN and the `candidates`, pairs of an
    encoding and the share of the best before it that it may take; `level`: of the native
    codec, or compression.NOT_NATIVE to use `compress` alone; `text`: values must be UTF-8; `precision`: digits of a
    decimal; `geo`: 1 for the WKB of a geometry, 2 for that of a geography; `key_values` are serialized KeyValue
    structs.
    """

    def __init__(
        self,
        file: FileRules,
        order: LeafOrder,
        physical: int,
        width: int,
        max_def: int,
        max_rep: int,
        codec: int,
        compress: Callable[[Any], Any] | None,
        level: int,
        dictionary: bool,
        keep_dictionary: bool,
        encoding: int,
        candidates: Sequence[tuple[int, float]],
        statistics: bool,
        text: bool,
        precision: int,
        geo: int,
        path: Sequence[str],
        key_values: Sequence[bytes],
    ) -> None: ...

class FlatArray:
    """
    One array of a column that is a leaf itself. pyparq.write.flat_columns has the forms.
    """

    @overload
    def __init__(self, form: int, length: int, offset: int, validity: Any, values: Any, bytes: Any) -> None:
        """From buffers: validity bits or None; values, or offsets and bytes."""

    @overload
    def __init__(self, form: int, array: ImportedArray) -> None: ...

class KnownDictionary:
    """
    The dictionary that values come from: entries in PLAIN and how many, the int32 index of each value, and how
    many entries occur.
    """

    def __init__(self, entries: object, count: int, indices: object, distinct: int) -> None: ...

class ValuesChunk:
    """
    A chunk to encode, from its values without nulls (byte arrays with `offsets`) and its levels.

    `choice`: an encoding that was chosen before, and its stored bytes per value. `seal(module, parts, page)`
    encrypts.
    """

    def __init__(
        self,
        rules: ColumnRules,
        offsets: Any,
        values: Any,
        def_levels: Any,
        rep_levels: Any,
        num_rows: int,
        num_slots: int,
        dictionary: KnownDictionary | None = None,
        choice: tuple[int, float] | None = None,
        seal: Any = None,
    ) -> None: ...

class ArraysChunk:
    """
    A chunk to encode, of a column that is a leaf itself.

    With `codes` the arrays are int32 codes of a dictionary: (entries in PLAIN, how many, where the entry of
    each code is among them, or None where the codes say that). `choice` and `seal` as for ValuesChunk.
    """

    def __init__(
        self,
        rules: ColumnRules,
        arrays: list[FlatArray],
        num_rows: int,
        codes: tuple[Any, int, Any] | None = None,
        choice: tuple[int, float] | None = None,
        seal: Any = None,
    ) -> None: ...

class EncodeRefusal:
    """
    Why a chunk cannot be written: 1, a page is too large (`page` below 0: the dictionary's); 2, a row is; 3,
    the arrays hold what the leaf may not; 4, a value is EWKB.
    """

    @property
    def code(self) -> int: ...
    @property
    def page(self) -> int: ...
    @property
    def row(self) -> int: ...
    @property
    def size(self) -> int: ...

class EncodedChunks:
    """
    Column chunks of one row group, one after another, and what the footer and the indexes say about them.
    """

    def __init__(self) -> None: ...
    def encode(self, jobs: Sequence[ValuesChunk | ArraysChunk], check: Callable[[], object]) -> EncodeRefusal | None:
        """
        Encode a chunk from each job, without the GIL. `check()` is called every 50 ms.
        """

    @property
    def count(self) -> int:
        """Chunks that are encoded."""

    @property
    def at_fault(self) -> int:
        """After a failure or refusal, the number of the chunk that it is about."""

    @property
    def size(self) -> int:
        """Stored bytes."""

    @property
    def uncompressed(self) -> int:
        """The same before compression; headers count as they are stored."""

    def take(self) -> list[NDArray[np.uint8]]:
        """
        The bytes of the chunks that were not taken yet, in order. While a thread is in `encode`: those of them
        that are finished.
        """

    def place(self, base: int) -> None:
        """Say where in the file the first chunk starts."""

    def column_index(self, chunk: int) -> bytes | None:
        """The serialized ColumnIndex of a chunk, if it has one."""

    def offset_index(self, chunk: int) -> bytes: ...
    def set_column_index(self, chunk: int, stored: bytes) -> None:
        """Store these bytes instead."""

    def set_offset_index(self, chunk: int, stored: bytes) -> None: ...
    def column_metadata(self, chunk: int) -> bytes:
        """Its serialized ColumnMetaData."""

    def column_chunk(self, chunk: int, crypto: bytes, sealed: bytes, bare: bool) -> bytes:
        """
        Its serialized ColumnChunk. `crypto`: the serialized ColumnCryptoMetaData, or nothing. `sealed`: its metadata
        as an encrypted module, which stands instead of them, or nothing; `bare`: beside those that a reader without the
        key needs.
        """

    def column_indexes(self, position: int) -> bytes:
        """
        All ColumnIndexes, one after another, as they will be stored at `position`. They are not kept.
        """

    def offset_indexes(self, position: int) -> bytes: ...
    def column_chunks(self) -> bytes:
        """All serialized ColumnChunks, one after another."""

    def set_bloom(self, chunk: int, position: int, size: int) -> None:
        """Say where the Bloom filter of a chunk is."""

    def choice(self, chunk: int) -> tuple[int, float] | None:
        """
        The encoding that was chosen for it, and the stored bytes per value; None where nothing was measured.
        """

    def used_entries(self, chunk: int) -> NDArray[np.int64]:
        """
        The entries of its dictionary that occur in it, ascending, where it came as codes.
        """

    def first_places(self, chunk: int) -> NDArray[np.int64] | None:
        """
        The values at which the entries of its dictionary first occur; None without one that has all values.
        """

class LeafOrder:
    """How the values of a leaf compare (`pyparq.format.order.native_order`)."""

    def __init__(self, domain: int, width: int, total: bool, cut: bool, text: bool) -> None: ...

def segment_bounds_fixed(order: LeafOrder, values: Buffer, edges: Buffer) -> _Bounds:
    """
    Smallest and largest value of each segment [edges[k], edges[k + 1]) in PLAIN, int64 edges, and how many NaNs are
    in it (None but for floats). None where no value could be a bound.
    """

def segment_bounds_binary(order: LeafOrder, offsets: Buffer, data: Buffer, edges: Buffer) -> _Bounds:
    """The same of byte arrays."""

def shorter_min(order: LeafOrder, value: bytes, length: int) -> bytes:
    """
    A lower bound of at most `length` bytes (below 0: whole) where the type allows that.
    """

def shorter_max(order: LeafOrder, value: bytes, length: int) -> bytes:
    """
    The same for an upper bound; the whole value where there is no shorter one.
    """

def column_index(
    order: LeafOrder,
    mins: Sequence[bytes | None],
    maxs: Sequence[bytes | None],
    null_counts: Sequence[int],
    value_counts: Sequence[int],
    nan_counts: Sequence[int],
    definition: Sequence[int],
    repetition: Sequence[int],
    truncate: int,
    longest: int,
) -> bytes | None:
    """
    The serialized ColumnIndex of pages; None where the format allows none, or a bound is longer than `longest`.
    """

def check_chunks(
    stack: Buffer, types: Buffer, repeated: Buffer, num_rows: Buffer, file_sizes: Buffer
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """
    Start and size of column chunks, and whether anything about them is unusual. `stack`: their numbers by kind, row
    group and column; `types` (int64) and `repeated` (uint8) of the columns; rows of each row group; the size of its
    file, one for all or one for each.
    """

def number_bounds(
    buffers: list[Any], of: Buffer, shift: int, stack: Buffer, modern: bool, old: bool, width: int, kind: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """
    Lower and upper bounds of the chunks of one leaf of numbers, 64 bits each, and where they can be used. `stack`:
    their numbers by kind; `kind`: 0 signed, 1 unsigned, 2 floating (the bits of a double), 3 boolean, stored in `width`
    bytes. `modern`: min_value and max_value count, `old`: min and max where neither is there. Places are in one buffer,
    or in the one whose number `of` has, or that stands above `shift` bits of the place.
    """

def chunk_counts(
    stack: Buffer, has_nan: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """
    Nulls, NaNs and slots of chunks, -1 where they are not known, and whether all are null.
    """

def xxh64_fixed(values: Buffer, width: int) -> NDArray[np.uint64]:
    """XXH64, seed 0, of each value's bytes."""

def xxh64_binary(offsets: Buffer, data: Buffer) -> NDArray[np.uint64]:
    """XXH64, seed 0, of each value's bytes (no length prefix)."""

def sbbf_insert(bitset: Buffer, hashes: Buffer) -> None:
    """
    Insert uint64 hashes into a split block filter; the bitset is a positive multiple of 32 bytes.
    """

def sbbf_check(bitset: Buffer, hashes: Buffer) -> NDArray[np.bool_]:
    """
    Whether each hash may be in the filter. A single 32-byte block is a filter of one block.
    """

probe_filters: (
    Callable[[list[bytes], Buffer, Buffer, Buffer, Buffer, Buffer, int], tuple[NDArray[np.uint8], int, int]] | None
)
"""`(paths, statuses, files, offsets, lengths, hashes, most)`: Whether Bloom filters hold any of the hashes (uint64): 0
certainly not, 1 perhaps, 2 where the filter cannot be used. And the requests and bytes that this took. `statuses`:
size, mtime, inode and ctime of each file, which must be what they were; `files`: of each filter the place of its file
in `paths`, rising. A filter of more than `most` bytes is not used. None where the system has no positioned reads."""

probe_open_filters: Callable[[int, int, Buffer, Buffer, Buffer, Buffer, int], tuple[NDArray[np.uint8], int, int]] | None
"""`(fd, size, tail, offsets, lengths, hashes, most)`: The same of filters of one open file of `size` bytes, whose last
bytes are `tail`; with the number of requests that this took, and their bytes. None where the system has no positioned
reads."""

def compare_binary(offsets: Buffer, data: Buffer, literal: Buffer) -> NDArray[np.int8]:
    """-1, 0, 1: each value against the literal, unsigned bytes."""

def compare_binary_decimal(offsets: Buffer, data: Buffer, literal: Buffer) -> NDArray[np.int8]:
    """
    -1, 0, 1: each value against the literal, big-endian two's complement of any length.
    """

def compare_flba(data: Buffer, width: int, signed_be: bool, literal: Buffer) -> NDArray[np.int8]:
    """-1, 0, 1 for fixed width; a signed literal may have another length."""

read_footers: Callable[[list[bytes], int, int], list[tuple[int, int, int, int, bool, bytes, int, int] | None]] | None
"""`(paths, tail, most)`: The footers of local files, each opened, read and closed; `tail` bytes are read at first, a
footer of more than `most` bytes is not read. Of each file its size, mtime in nanoseconds, inode and ctime, whether
the footer is encrypted, the footer as stored, and how many reads of how many bytes it took; None where anything is
unusual (reading that file by itself tells what). None where the system has no positioned reads."""

footer_kinds: (
    Callable[
        [list[bytes], Buffer, int, int],
        tuple[NDArray[np.int64], list[tuple[int, int, int, int, bool, bytes, int, int]], NDArray[np.int64]],
    ]
    | None
)
"""`(paths, statuses, tail, most)`: The places of the first local file of each kind, where footers that are the same in
all but rows and row groups are of one kind, then these files' footers as `read_footers` gives them, then the places of
files whose kind cannot be told: something about them is unusual, they are encrypted, or no longer what `statuses` says
(size, mtime, inode and ctime of each, int64). None where the system has no positioned reads."""

def footer_frames(footers: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """
    Of each serialized FileMetaData: the place in the list of the first that is the same in all but its rows and row
    groups, and its rows. -1 and -1 where that cannot be told: it is damaged, says that the file is encrypted, has row
    groups without rows, or states rows that are not their sum.
    """

read_many_ranges: Callable[[list[bytes], Buffer, Buffer, Buffer, Buffer, Buffer], int] | None
"""`(paths, statuses, files, offsets, lengths, out)`: Read ranges of files one after another into `out`; returns how
many were read before one could not be: its file is not there, has changed, or ends too early. `statuses`: size,
mtime, inode and ctime of each file, which must be what they were; `files`: of each range the place of its file in
`paths`, rising. None where the system has no positioned reads."""

class HeldFile:
    """
    The descriptor of an open file, closed with the last reference to this.
    """

    def __init__(self, number: int) -> None: ...
    @property
    def number(self) -> int: ...

pread_ranges: Callable[[int, Buffer, Buffer, Buffer, int], int] | None
"""`(fd, offsets, lengths, out, threads)`: Read ranges (int64) of an open file one after another into `out`. Returns
the bytes that came before its end, raises OSError as the system does. None where the system has no positioned reads."""

begin_writeback: Callable[[int, int, int], None] | None
"""`(fd, offset, size)`: Have the kernel begin to store these bytes of an open file, and do not wait for it. Errors are
those of later calls. None where the system cannot do that."""

def column_of_objects(
    values: list[Any], precision: int = 0, scale: int = 0
) -> tuple[str, int, NDArray[np.uint8] | None, int, tuple[NDArray[Any], ...]] | None:
    """
    A list of values of one type, and None, as a column: bools, ints of 64 bits, floats, strings, bytes, datetimes,
    dates, times, timedeltas, UUIDs, or decimals, which may have ints among them. `precision`, `scale`: of the decimals
    that are wanted; 0: those that the values need, and ints alone stay ints.

    (Arrow's format, length, validity or None, nulls, buffers). None for values of several types, of subclasses or of
    others, for strings with lone surrogates, for 2 GiB of bytes or more, for decimals of more than 38 digits or that do
    not fit what is wanted, for datetimes of which some have a zone, or that leave the years 1 to 9999 in UTC, and for
    times with a zone.
    """

def first_other(values: list[Any], type: type) -> int | None:
    """
    The place of the first value that is not exactly of this type; None if all are.
    """

def split_dicts(rows: list[Any]) -> tuple[list[str], list[list[Any]], NDArray[np.bool_] | None] | None:
    """
    The keys of all dicts, for each key the list of its values (None where a dict lacks it), and which rows are not
    None (None: no row is). None unless each row is a dict, and no subclass, with strings as keys, or None.
    """

def gather_rows(
    source: Any, rows: list[Any], size: int, most_rows: int, most_bytes: int, plain: tuple[type, ...]
) -> tuple[int, list[Any], bool]:
    """
    Append dicts of the iterator to `rows` until there are `most_rows`, or about `most_bytes` bytes of values beside
    the `size` that are there. `plain`: types of small values, beside Python's own of numbers, text and bytes.

    (Size, another item in a list or nothing, whether the iterator has ended). Another item: no dict, or one with values
    of other types.
    """

def join_lists(values: list[Any]) -> tuple[list[Any], NDArray[np.int64], NDArray[np.bool_] | None] | None:
    """
    The items of all lists and tuples, where those of each begin, and which values are not None (None: no value is).
    None for a value that is something else, or a subclass.
    """

def objects_of_numbers(values: Buffer, flags: bool, valid: Buffer | None) -> list[Any]:
    """
    Numbers, or flags of a byte each, as Python's objects; None where `valid` is 0.
    """

def objects_of_bytes(offsets: Buffer, data: Buffer, valid: Buffer | None, text: bool) -> list[Any] | None:
    """
    Byte arrays as bytes or, with `text`, strings. None where one of them is not UTF-8.
    """

def objects_at(entries: list[Any], places: Buffer, valid: Buffer | None) -> list[Any]:
    """The entries at int64 places; None where `valid` is 0."""

def cut_list(items: list[Any], offsets: Buffer, valid: Buffer | None) -> list[Any]:
    """A list for each two neighbouring offsets; None where `valid` is 0."""

def dicts_of_lists(names: list[str], lists: list[list[Any]], count: int, valid: Buffer | None) -> list[Any]:
    """
    `count` dicts, each with one item of every list; None where `valid` is 0.
    """

def tally_codes(
    codes: Buffer, edges: Buffer, num_entries: int, weights: Buffer | None
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """
    Of dictionary codes (int32) page by page, page k from `edges[k]` to `edges[k + 1]` (int64): the codes that each
    page uses, each once, one page after another; where each page's begin, and the end; the sum of the `weights` (int32,
    one for each of the entries; None: all 0) of its codes.
    """

def mask_count(words: Buffer) -> int:
    """How many bits are set."""

def mask_ranks(words: Buffer, places: Buffer) -> NDArray[np.int64]:
    """How many bits are set before each of `places` (int64, ascending)."""

def mask_runs(words: Buffer) -> int:
    """How many runs of set bits there are."""

def mask_to_ranges(words: Buffer, num_rows: int, join: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """
    Where the runs of set bits start and end; runs at most `join` rows apart are one.
    """

def mask_from_ranges(starts: Buffer, ends: Buffer, num_rows: int) -> NDArray[np.uint64]:
    """The reverse, of int64 ranges that ascend and are disjoint."""

def mask_rows(words: Buffer) -> NDArray[np.int64]:
    """The numbers of the bits that are set."""

def mask_head(words: Buffer, count: int) -> NDArray[np.uint64]:
    """The first `count` of the set bits."""

def mask_within(words: Buffer, num_rows: int, starts: Buffer, ends: Buffer) -> NDArray[np.uint64]:
    """
    The bits that lie in some ranges (int64, ascending and disjoint), side by side.
    """

def mask_spread(words: Buffer, starts: Buffer, ends: Buffer, num_rows: int) -> NDArray[np.uint64]:
    """
    Each bit at the next row of the ranges; the other rows of `num_rows` are not set.
    """

def mask_of_bits(bitmap: Buffer, offset: int, length: int) -> NDArray[np.uint64]:
    """`length` bits of any bitmap from bit `offset` on."""

def keep_fixed(words: Buffer, values: Buffer, width: int, out: Buffer) -> None:
    """
    The values of `width` bytes whose bits are set, into the bytes `out`, which they fill.
    """

def keep_bits(words: Buffer, bitmap: Buffer, offset: int, length: int) -> NDArray[np.uint64]:
    """
    Of the `length` bits of a bitmap from bit `offset` on those whose bits in `words` are set, side by side.
    """

def kept_bytes(words: Buffer, offsets: Buffer) -> int:
    """Bytes of the strings whose bits are set."""

def keep_binary(words: Buffer, offsets: Buffer, data: Buffer, out_offsets: Buffer, out_data: Buffer) -> None:
    """
    The strings whose bits are set: offsets of the same width from 0 on, and their `kept_bytes`.
    """

def mask_entries(words: Buffer, num_rows: int, rep_levels: Buffer) -> NDArray[np.uint64]:
    """
    For each of the uint8 repetition levels, whether the row that it belongs to is set.
    """

def mask_slots(words: Buffer, def_levels: Buffer, level: int) -> NDArray[np.uint64]:
    """
    The bits of those entries whose uint8 definition level comes to `level`, side by side.
    """

def match_numbers(values: Buffer, op: str, literal: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]:
    """
    Numbers (float16 too) against a literal of their type: == != < <= > >=, is_nan, is_not_nan. NaN is above every
    number, and no literal; the zeros are equal.
    """

def match_limbs(data: Buffer, width: int, op: str, literal: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]:
    """Little-endian two's complement of `width` bytes, a multiple of 8."""

def match_binary(
    offsets: Buffer, data: Buffer, op: str, literal: Buffer, within: Buffer | None = None
) -> NDArray[np.uint64]:
    """
    Byte strings in unsigned lexicographic order: == != < <= > >=, starts_with, not starts_with.
    """

def match_boxes(
    offsets: Buffer, data: Buffer, box: Buffer, round: bool, wanted: bool, within: Buffer | None = None
) -> NDArray[np.uint64]:
    """
    Whether the box around each WKB value intersects a box: xmin, ymin, xmax, ymax.

    Where xmin is above xmax, that crosses the antimeridian; of `round` values the box around them may as well.
    """

def match_fixed(data: Buffer, width: int, op: str, literal: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]:
    """The same for byte strings of one length."""

def match_codes(codes: Buffer, table: Buffer, entries: int, within: Buffer | None = None) -> NDArray[np.uint64]:
    """
    For each index the bit of `table`, which has so many `entries`; none for an index that is not below that.
    """

class NumberSet:
    """
    Numbers (float16 too) to look others of their type up in. NaN is never found; the zeros are equal.
    """

    def __init__(self, values: Buffer) -> None: ...
    def test(self, values: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]: ...

class TextTest:
    """
    A test of texts: starts_with, ends_with, contains, like, ilike or matches.

    `pattern`: bytes for the first three. For like and ilike a list of texts, in which None stands for any characters
    and an empty one for a single one. For matches a text in the dialect of `re`, or bytes if `is_text` is false. `ask`
    gets a value, as str or bytes, and returns None if it does not pass. It decides where rules of Unicode do, and for
    what is no regular language.
    """

    def __init__(self, kind: str, pattern: Any, is_text: bool, ask: Callable[[Any], object] | None) -> None: ...
    def test(self, offsets: Buffer, data: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]: ...

def compare_texts(
    offsets: Buffer,
    data: Buffer,
    codes: Buffer | None,
    other_offsets: Buffer,
    other_data: Buffer,
    other_codes: Buffer | None,
) -> NDArray[np.int8]:
    """
    -1, 0 or 1 for each row: which byte string comes first. Codes (int64) choose among them. A single one without codes
    stands beside all rows of the other side.
    """

def count_characters(offsets: Buffer, data: Buffer) -> NDArray[np.int64]:
    """Characters of each text. A byte that is no UTF-8 counts as one."""

def change_case(offsets: Buffer, data: Buffer, upper: bool) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """
    The texts in lower or upper case, as Python's str has it: offsets and bytes.
    """

def compare_computed(
    steps: list[tuple[Any, ...]], op: str, count: int, within: Buffer | None = None
) -> NDArray[np.uint64] | None:
    """
    Two computed numbers of each row against each other: == != < <= > >=. NaN equals itself and is above every
    number, and no null passes. None where numbers need more than 128 bits, and for a few that would have to be rounded.

    The steps make the first number and then the second, operands before what is made of them. Each is one of

    - `("column", den, floats, numbers, codes)`: doubles, or whole numbers of 1 / den. Numbers and codes are
      `(values, length, validity, offset)`, with the bit of the first value in the validity (None: there are no nulls).
      Codes (None: there are none) choose among the numbers;
    - `("literal", number, den)`: a float, or a whole number of 1 / den;
    - `("part", name)`: of points in time, as part_of_dates has it;
    - `(op, floats)`: + - * / %, and rem, whose result has the sign of the dividend. Where floats is true, in doubles. A
      division by zero is null.
    """

def part_of_dates(ticks: Buffer, per_day: int, name: str) -> NDArray[np.int64]:
    """
    The year, quarter, month, day, hour, minute or second of points in time: ticks (int64) since 1970, of which a day
    has `per_day`.
    """

def thrift_index_footer(
    data: Buffer,
) -> tuple[int, tuple[int, int], tuple[int, int], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """
    Where things lie in a serialized FileMetaData.

    Its end; the schema list; the row group list; per row group start, end, start and end of its column
    list, and num_rows; where each row group's chunks begin in the last array; starts of the chunks and, per row
    group, the end of the last one.
    """

def check_page_locations(pages: Buffer, num_rows: int, start: int, end: int) -> int:
    """
    What is wrong with the places of a chunk's pages: int64 offsets, then sizes, then first rows.

    0: nothing. 1: the first rows do not rise from 0 to below `num_rows`. 2: a page is empty or begins outside of
    [start, end). 3: pages overlap, are out of order, or go beyond `end`.
    """

class ColumnIndexArrays:
    """
    The fields of a ColumnIndex; None for absent lists.

    Bounds are lists of bytes, or (64-bit numbers, where they can be used) as `number_bounds` has them.
    """

    @property
    def null_pages(self) -> NDArray[np.bool_]: ...
    @property
    def lower(self) -> Any: ...
    @property
    def upper(self) -> Any: ...
    @property
    def order(self) -> int: ...
    @property
    def null_counts(self) -> NDArray[np.int64] | None: ...
    @property
    def repetition_histograms(self) -> NDArray[np.int64] | None: ...
    @property
    def definition_histograms(self) -> NDArray[np.int64] | None: ...
    @property
    def nan_counts(self) -> NDArray[np.int64] | None: ...

class ThriftTruncated(KernelError):
    pass

class ThriftRules:
    """
    The structs' fields, as `pyparq.format.generated.rules` tells them, to check bytes before decoding.
    """

    def __init__(self, rows: Sequence[Any]) -> None: ...
    def check(self, data: Buffer, offset: int, kind: int) -> tuple[int, bool]:
        """
        End of the struct of that kind at `offset`, and whether a text that may be raw is not UTF-8.
        """

    def lists(self, data: Buffer, offset: int, kind: int) -> tuple[int, list[NDArray[np.int64] | None]]:
        """
        End of the struct of that kind at `offset`, and its lists by field (None for absent ones). For structs that
        hold nothing but lists of integers or of structs of required integers; of such structs, all of their first
        field come first, then all of the next.
        """

    def column_index(self, data: Buffer, kind: int, width: int, number_kind: int) -> ColumnIndexArrays:
        """
        The ColumnIndex (the struct of that kind) at the start of `data`. `width`: 0 for bounds that are bytes.
        """

    def chunk_numbers(self, data: Buffer, starts: Buffer, kind: int, paths: list[bytes]) -> NDArray[np.int64]:
        """
        The numbers of the ColumnChunks (the struct of that kind) that start at `starts` (int64; -1: there is none),
        as `pyparq.format.chunk_numbers` names them: all of the first, then all of the second. `paths`: in turn, the
        path_in_schema that the chunks should have, as it is stored.
        """

    def chunks_of_footers(
        self, footers: list[bytes], columns: Buffer, kind: int, paths: list[bytes], leaves: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """
        The same of some columns (int64, ascending) in all row groups of serialized FileMetaData. Row groups before
        each footer, and of all; the rows of each row group, -1 where something is wrong with it; the numbers of their
        chunks. `leaves`: column chunks that each row group should have.
        """

def bytes_at(buffers: list[Any], of: Buffer, starts: Buffer, sizes: Buffer) -> list[bytes | None]:
    """
    Bytes of `buffers`: the place of the buffer in the list, start and size of each (int64); None where the start is
    negative.
    """

def thrift_split_struct(data: Buffer, offset: int) -> tuple[int, NDArray[np.int64]]:
    """
    The end of the struct that starts at ``offset``, and four numbers per field: its id, its type, where its header
    starts and where its value does. A bool has no value beside its type.
    """

def thrift_split_list(data: Buffer, offset: int) -> tuple[int, NDArray[np.int64]]:
    """
    The type of the elements of the list or set that starts at ``offset``, and where each of them starts, then the
    end of the last.
    """

def moved_offset_index(data: Buffer, moved: Callable[[int], int]) -> bytes:
    """
    A serialized OffsetIndex whose page offsets are what `moved` says of the old ones. All else stays.
    """

def plain_binary_encode(offsets: Buffer, data: Buffer) -> NDArray[np.uint8]:
    """The PLAIN bytes of every value: 4-byte length, then the value."""

def narrow_offsets(offsets: Buffer) -> NDArray[np.int32]:
    """int64 offsets as int32, checked."""

def gather_binary_offsets(dict_offsets: Buffer, indices: Buffer, out_offsets: Buffer, base: int = 0) -> int:
    """
    Offsets of the values an int32 index array picks, from `base` up; returns the bytes they take.
    """

def gather_binary_bytes(dict_offsets: Buffer, dict_data: Buffer, indices: Buffer, out_data: Buffer) -> int:
    """
    The picked values' bytes, one after the other; returns how many. May scribble behind them.
    """

def take_binary(offsets: Buffer, data: Buffer, rows: Buffer) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """
    The values at int64 `rows` (0 <= row < n, any order) as fresh offsets and data.
    """

def distinct_binary(offsets: Buffer, data: Buffer) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """
    The values in unsigned lexicographic order, each once, as fresh offsets and data.
    """

def distinct_numbers(values: Buffer) -> NDArray[np.uint64]:
    """
    The bits of int64, uint64 or float64 numbers, ascending, each once. -0.0 and 0.0 are two.
    """

def divide_fixed(values: Buffer, width: int, groups: Buffer, counts: Buffer) -> list[NDArray[np.uint8]]:
    """
    The values of `width` bytes of each group, in their order. `groups`: int32, that of each row; `counts`: int64, the
    rows of each.
    """

def divide_binary(
    offsets: Buffer, data: Buffer, groups: Buffer, counts: Buffer
) -> list[tuple[NDArray[Any], NDArray[np.uint8]]]:
    """
    As `divide_fixed` for byte arrays: offsets, which have the width of those given, and data of each group.
    """

def compact_binary(offsets: Buffer, data: Buffer, valid: Buffer | None) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """
    The values of the slots that are present; bytes under absent slots are dropped.
    """

def utf8_validate(offsets: Buffer, data: Buffer) -> int:
    """Index of the first value that is not UTF-8 on its own, or -1."""

def dict_encode_fixed(values: Buffer, width: int, max_entries: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """
    Number the distinct values (by bits) in order of appearance.

    Returns the indices of the first m values and the position of each entry's first appearance. m == n if
    everything fits; otherwise value m would be entry `max_entries` + 1.
    """

def dict_encode_binary(offsets: Buffer, data: Buffer, max_bytes: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """
    The same for byte arrays; stops where the dictionary's PLAIN size would pass `max_bytes`.
    """

class BytesSet:
    """Byte strings to look others up in, hashed once."""

    def __init__(self, offsets: Buffer, data: Buffer) -> None: ...
    def test(self, offsets: Buffer, data: Buffer, within: Buffer | None = None) -> NDArray[np.uint64]: ...

def count_distinct_u64(hashes: Buffer) -> int:
    """How many different uint64 there are, exactly."""

def estimate_distinct_u64(hashes: Buffer) -> float:
    """
    How many different uint64 there are, about: of a million, within 0.1 % nearly always. A tenth of the time.
    """

def gather_fixed(dictionary: Buffer, width: int, indices: Buffer, out: Buffer) -> None:
    """
    `out[i] = dictionary[indices[i]]` for checked int32 indices; `out` has len(indices) * width bytes.
    """

def compact_fixed(values: Buffer, width: int, valid: Buffer | None) -> NDArray[np.uint8]:
    """
    The reverse: the bytes of the slots that are present (also a row filter).
    """

def list_slots(
    def_levels: Buffer | None,
    rep_levels: Buffer | None,
    entries: int,
    slots: int,
    rep: int,
    item: int,
    item_rep: int,
    item_def: int,
    def_level: int,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """
    Offsets (slots + 1) and presence of the lists in a position.

    `item_rep` and `item_def` are the levels of the list's items; the list is there from `def_level` on. The
    levels must start exactly `slots` slots.
    """

def slot_validity(
    def_levels: Buffer | None, rep_levels: Buffer | None, entries: int, slots: int, rep: int, item: int, def_level: int
) -> NDArray[np.bool_]:
    """
    Whether each slot of a position is present: its definition level is at least `def_level`.
    """

def levels_agree(
    def_a: Buffer | None,
    rep_a: Buffer | None,
    entries_a: int,
    def_b: Buffer | None,
    rep_b: Buffer | None,
    entries_b: int,
    rep: int,
    def_level: int,
) -> bool:
    """
    Whether two leaves below a position have the same levels for it and for what encloses it.

    Of the entries that do not go on with a list below the position (repetition at most `rep`), the repetition levels
    must be equal, and the definition levels as far as `def_level`.
    """

def expand_lists(
    slots: int,
    reps: Buffer | None,
    defs: Buffer | None,
    starts: Buffer,
    lengths: Buffer,
    num_items: int,
    item_rep: int,
    empty_def: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None, int, NDArray[np.int64] | None, int]:
    """
    One level of nesting for writing: slots of lists become slots of their items.

    The slots that are LIVE_SLOT in `defs` (None = all) hold a list, the k-th the items from starts[k] on, lengths[k]
    of them (int64); the other slots have ended. An empty list ends with `empty_def`. Gives the new slots' repetition
    levels, their definition levels (None if all are live), how many are live, and the item that each of these stands
    for, or None and the first one where they follow each other.
    """

def settle_slots(slots: int, defs: Buffer | None, present: Buffer | None, absent: int, there: int) -> NDArray[np.uint8]:
    """
    `defs` with the k-th live slot (None = all are) at level `there` if present[k] (None = all), else `absent`.
    """

LIVE_SLOT: int = 255

def number_texts(values: Buffer) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """
    Decimal texts of integers or floats, as offsets and data: what ``str`` writes.

    Empty for floats that Python may write with an exponent, that are not finite, or of two bytes; and for all floats
    where the C++ library has no shortest texts.
    """

def variant_unshred(
    metadata: tuple[Any, Any], tree: tuple[Any, Any], rows: Buffer | None, slots: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """
    The unshredded values of ``slots`` Variants, as offsets and data (VariantShredding.md).

    ``metadata``: the offsets and data of the metadata. ``rows``: one byte per Variant, 0 where it is null. ``tree``:
    the column ``value`` and the column ``typed_value``, each ``None`` where the schema has none. A column ``value`` is
    ``(offsets, data, mask)``. A column ``typed_value`` is ``(kind, scale, mask, ...)``. The kind is the number of a
    primitive type in VariantEncoding.md, followed by the values, or by offsets and data; 100 for an object, followed by
    the names of its fields and a tree for each; 101 for an array, followed by its offsets and the tree of its elements.

    Raises :class:`KernelError`, which names the row, for what is no valid Variant.
    """

def variant_shred(
    metadata_offsets: Buffer,
    metadata: Buffer,
    value_offsets: Buffer,
    value: Buffer,
    rows: Buffer | None,
    slots: int,
    schema: Any,
) -> tuple[Any, Any, Any, Any]:
    """
    The columns that ``slots`` Variants are shredded to (VariantShredding.md).

    ``rows``: one byte per Variant, 0 where it is null. ``schema``: ``(kind, digits, scale)`` of a primitive type, by
    the kinds of ``variant_unshred``; ``(100, names, schemas)`` of an object; ``(101, schema)`` of an array; ``None``
    without a column ``typed_value``. Numbers go to a column of another kind of exact number where it holds their
    value.

    Returns, nested as the schema, the offsets, data and mask of ``value``, and what is ``typed_value`` or ``None``:
    (mask, values), (mask, offsets, data), (mask, columns), or (mask, offsets, columns). The values are as Arrow has
    them, except that each bool is a byte.

    Raises :class:`KernelError`, which names the row, for what is no valid Variant.
    """

def variant_to_object(metadata: Buffer, value: Buffer, other: Callable[[int, bytes], Any]) -> Any:
    """
    A Variant as a Python object: None, a bool, int, float, string, bytes, list or dict.

    ``other(kind, data)`` makes the object of any other primitive type: its number in VariantEncoding.md, and the bytes
    that follow its header, as many as the type has.

    Raises :class:`KernelError` for what is no valid Variant, for items that overlap, and beyond 200 levels of objects
    and arrays.
    """

def variant_types(metadata: Buffer, value: Buffer) -> Any:
    """
    The types in a Variant: the number of a primitive type in VariantEncoding.md, ``(number, digits, scale)`` of a
    decimal, a list for an array, a dict for an object. Raises what ``variant_to_object`` raises.
    """

def variant_of_object(value: Any, other: Callable[[Any], Any]) -> tuple[bytes, bytes]:
    """
    The metadata and the value of a Python object: what ``variant_to_object`` makes by itself, and tuples. Integers
    take the fewest bytes.

    ``other(value)`` is asked about any other class, and about integers beyond 64 bits. It returns one of those objects,
    or ``(kind, data)`` for a value of a primitive type.

    Raises :class:`KernelError` for what a Variant cannot hold.
    """

class probes:
    @staticmethod
    def idle_memory() -> int:
        """Bytes that wait to be used again."""

    @staticmethod
    def run_parallel(tasks: int, threads: int, run: Callable[[int], object]) -> None:
        """
        `run(k)` for each k below `tasks`, on this thread and up to `threads - 1` others that are not Python's. The
        first error ends the work and is raised, when no call is under way any more.
        """

    @staticmethod
    def stop_requested() -> bool:
        """Within such a call: whether its result is of no use any more."""

    @staticmethod
    def codec_is_native(codec: int) -> bool:
        """
        Whether `inflate` knows the codec, a number of CompressionCodec in parquet.thrift.
        """

    @staticmethod
    def inflate(codec: int, data: Buffer, out: Buffer, wanted: int = -1) -> int:
        """
        Decompress to `out`; how many bytes `data` holds, -1 where it is malformed or holds more than `out` has room
        for. With fewer `wanted` it may stop when these are there: it returns how many it has, and no byte behind is
        checked.
        """

    @staticmethod
    def deflate_bound(codec: int, size: int) -> int:
        """No so many bytes take more than this when they are compressed."""

    @staticmethod
    def deflate(codec: int, level: int, data: Buffer, out: Buffer) -> int:
        """
        Compress to `out`; how many bytes it took, -1 where they do not fit. `level` must be one that the codec
        has.
        """

    @staticmethod
    def statistics(
        order: LeafOrder,
        mins: Sequence[bytes | None],
        maxs: Sequence[bytes | None],
        null_count: int,
        nan_count: int,
        distinct_count: int,
        truncate: int,
    ) -> bytes:
        """
        The serialized Statistics of a chunk from the whole bounds of its pages. A `distinct_count` below 0: unknown.
        """

    @staticmethod
    def plain_binary_decode(data: Buffer, count: int, out_offsets: Buffer, out_data: Buffer, base: int = 0) -> int:
        """
        Decode `count` length-prefixed values; returns the bytes of `data` used.

        Writes count + 1 offsets from `base` up (int32 or int64), and the bytes, used - 4 * count of them, to the
        start of `out_data` (len(data) - 4 * count always suffices). What lies behind them in `out_data` may be
        overwritten too.
        """

    @staticmethod
    def alp_decode(data: Buffer, width: int, count: int, out: Buffer) -> None:
        """
        Decode the `count` floats (`width` 4) or doubles (8) of an ALP page into `out`.
        """

    @staticmethod
    def alp_encode(values: Buffer, width: int) -> bytes:
        """An ALP page of floats or doubles."""

    @staticmethod
    def byte_stream_split_decode(data: Buffer, width: int, out: Buffer) -> None:
        """
        Join the streams of all of `data` to values of `width` bytes; `out` is as long as `data`.
        """

    @staticmethod
    def byte_stream_split_encode(values: Buffer, width: int) -> NDArray[np.uint8]:
        """Split values of `width` bytes into streams."""

    @staticmethod
    def delta_decode_i32(data: Buffer, out: Buffer, count: int) -> int:
        """
        Decode exactly `count` values into int32 `out[:count]`; returns the bytes used.

        The data must claim that many; no bytes at all do for none. Arithmetic wraps.
        """

    @staticmethod
    def delta_decode_i64(data: Buffer, out: Buffer, count: int) -> int:
        """As `delta_decode_i32`, for int64."""

    @staticmethod
    def delta_encode_i32(values: Buffer) -> bytes:
        """Encode int32 values, blocks of 128 in 4 miniblocks."""

    @staticmethod
    def delta_encode_i64(values: Buffer) -> bytes:
        """Encode int64 values, blocks of 128 in 4 miniblocks."""

    @staticmethod
    def delta_length_decode(data: Buffer, count: int, out_offsets: Buffer, out_data: Buffer, base: int = 0) -> int:
        """
        Decode DELTA_LENGTH_BYTE_ARRAY as `plain_binary_decode` does PLAIN; returns the bytes used.

        `out_data` gets out_offsets[-1] - base bytes; len(data) always suffices.
        """

    @staticmethod
    def delta_length_encode(offsets: Buffer, data: Buffer) -> bytes:
        """Encode byte arrays as DELTA_LENGTH_BYTE_ARRAY."""

    @staticmethod
    def delta_byte_array_decode(
        data: Buffer, count: int, max_bytes: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8], int]:
        """
        Decode DELTA_BYTE_ARRAY: offsets from 0, bytes, and the bytes of `data` used.

        Shared prefixes let few bytes grow into many: beyond `max_bytes` of output it is an error.
        """

    @staticmethod
    def delta_byte_array_encode(offsets: Buffer, data: Buffer) -> bytes:
        """Encode byte arrays as DELTA_BYTE_ARRAY."""

    @staticmethod
    def rle_decode_u8(data: Buffer, bit_width: int, count: int, out: Buffer, max_value: int = -1) -> int:
        """
        Decode exactly `count` values of 0..8 bits into uint8 `out[:count]`; returns the bytes used.

        A value above `max_value` (if not negative) or wider than `bit_width` is an error. With bit width 0 every
        value is 0 and no byte is read. A final bit-packed run may lack its padding but no wanted value.
        """

    @staticmethod
    def rle_decode_i32(data: Buffer, bit_width: int, count: int, out: Buffer, limit: int) -> int:
        """
        As `rle_decode_u8`, 0..32 bits into int32 `out`; every value must be below `limit` (at most 2^31).
        """

    @staticmethod
    def bit_packed_decode_u8(data: Buffer, bit_width: int, count: int, out: Buffer) -> int:
        """
        Decode the deprecated BIT_PACKED levels (most significant bit first); returns bytes consumed.
        """

    @staticmethod
    def rle_encode_u8(values: Buffer, bit_width: int) -> bytes:
        """
        Encode uint8 values of 0..8 bits. A value that does not fit is an error.
        """

    @staticmethod
    def rle_encode_i32(values: Buffer, bit_width: int) -> bytes:
        """
        Encode int32 values, seen as unsigned, of 0..32 bits. A value that does not fit is an error.
        """
