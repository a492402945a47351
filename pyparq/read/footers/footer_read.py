"""Reads the end of a file: one speculative tail read, the footer in it, and the footer's information about
encryption."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyparq.encryption import properties as keys
from pyparq.encryption.reading import CLEAR_FILE, EncryptedFile, FileDecryption
from pyparq.errors import CorruptFileError, EncryptionError, LimitError, OptionError
from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import ENCRYPTED_MAGIC, MAGIC, TRAILER, LazyFileMetaData
from pyparq.format.thrift_codec import ThriftDecodeError, deserialize
from pyparq.io import siblings
from pyparq.io.byte_ranges import Source
from pyparq.io.fetch import Fetcher
from pyparq.io.kept_files import KeptFile, drop_file, keep_file, kept_file, remote_cache_size
from pyparq.io.source import REMOTE_TAIL, versioned
from pyparq.kernels import KernelError
from pyparq.options import ReadOptions

LOCAL_TAIL, MANY_REMOTE_TAIL = 16 << 10, 48 << 10
"""Bytes of the end that are read first, of a local file and of each remote file of a dataset (one remote file:
``REMOTE_TAIL``). They hold the footer of most files, and often page indexes or Bloom filters."""

SMALL_FILE = 128 << 10
"""A local file of up to this many bytes is read whole at once: a second read would take longer."""

FEW = 8
"""Bytes of the request that asks whether a file has changed."""


def take_kept(fetcher: Fetcher, lazily: bool) -> bool:
    """Give the fetcher the footer and the indexes that are kept of its file, if it still has the same version. Returns
    whether it does.

    The listing of a folder tells the version, or else a request of few bytes. ``lazily``: no request is made; the next
    one will tell.
    """
    source = versioned(fetcher.source)
    identity = None if source is None else source.identity
    kept = None if identity is None else kept_file(identity)
    if source is None or identity is None or kept is None:
        return False
    listed = source.is_listed_as(kept.size, kept.tag)
    if listed or lazily:
        source.go_on(kept.size, kept.tag)
    else:
        fetcher.read_tail(FEW)
        if (source.size, source.tag) != (kept.size, kept.tag):
            drop_file(identity)
            return False
    fetcher.use(kept, is_proven=listed or not lazily)
    return True


def keep_footer(fetcher: Fetcher, size: int) -> None:
    """Keep the last ``size`` bytes of the file, where its version is known."""
    source = versioned(fetcher.source)
    identity = None if source is None or not remote_cache_size() else source.identity
    if source is not None and identity is not None and source.tag is not None:
        fetcher.kept = KeptFile(source.size, source.tag, bytes(fetcher.tail[-size:]))
        keep_file(identity, fetcher.kept)


def read_footer(
    fetcher: Fetcher, options: ReadOptions, remote_tail: int = REMOTE_TAIL, *, lazily: bool = False
) -> tuple[LazyFileMetaData, FileDecryption]:
    """The footer at the end of the file (the format's README, "File format"), and the decryption context for the rest.

    ``remote_tail``: bytes to read first if the file is remote and no option gives the number. ``lazily``: where the
    footer of a remote file is kept in memory, take it without asking whether the file is still the same;
    :meth:`Fetcher.prove` tells in the end. Raises
    :class:`EncryptionError` for an encrypted footer without its key, and for one that fails its authentication or
    signature. Also raises it for a file that is not encrypted when keys are given, unless they allow that.
    """
    return open_footer(*stored_footer(fetcher, options, remote_tail, lazily=lazily), fetcher.source, options)


def stored_footer(
    fetcher: Fetcher, options: ReadOptions, remote_tail: int = REMOTE_TAIL, *, lazily: bool = False
) -> tuple[bool, memoryview]:
    """Whether the footer is encrypted, and the bytes that its length field counts. ``lazily``: see
    :func:`read_footer`."""
    if options.decryption is not None:
        _check_keys(options.decryption)
    magic, stored = _stored(fetcher, options, remote_tail, lazily)
    return magic == ENCRYPTED_MAGIC, stored


def open_footer(
    encrypted: bool, stored: memoryview, source: Source, options: ReadOptions
) -> tuple[LazyFileMetaData, FileDecryption]:
    """As :func:`read_footer`, for a footer whose bytes were read before. ``stored`` are the bytes that its length field
    counts."""
    properties = None if options.decryption is None else _properties(options.decryption, source)
    if encrypted:
        crypto, end = deserialize(tt.FileCryptoMetaData, stored)
        file = EncryptedFile(properties, crypto.encryption_algorithm, crypto.key_metadata, plaintext_footer=False)
        return _decoded(file.open_footer(stored[end:])), file
    footer = _decoded(stored)
    meta = footer.meta
    if meta.encryption_algorithm is not None:
        file = EncryptedFile(
            properties, meta.encryption_algorithm, meta.footer_signing_key_metadata, plaintext_footer=True
        )
        file.check_signature(stored)
        return footer, file
    if properties is not None and not properties.allow_plaintext_files:
        raise EncryptionError(
            "the file is not encrypted, but keys were given: someone may have replaced the file. "
            "To read it anyway, use DecryptionProperties(allow_plaintext_files=True)"
        )
    return footer, CLEAR_FILE


def _properties(given: Any, source: Source) -> keys.DecryptionProperties:
    found = _check_keys(given)
    return found.for_file(siblings.base_name(source.name), partial(siblings.read_sibling, source))


def _check_keys(given: Any) -> keys.DecryptionProperties:
    if not isinstance(given, keys.DecryptionProperties):
        raise OptionError(f"decryption must be pyparq.DecryptionProperties(key), not {type(given).__name__}")
    return given


def _stored(fetcher: Fetcher, options: ReadOptions, remote_tail: int, lazily: bool) -> tuple[bytes, memoryview]:
    """The magic at the end of the file, and the bytes that the length field before it counts."""
    source: Source = fetcher.source
    is_kept = not source.is_local and take_kept(fetcher, lazily)
    if is_kept:
        tail = fetcher.tail
    elif source.is_local:
        tail = fetcher.read_tail(options.tail_size or (source.size if source.size <= SMALL_FILE else LOCAL_TAIL))
    else:
        tail = fetcher.read_tail(options.tail_size or remote_tail)
    if source.size < 12:  # the magic bytes at both ends, and the length of the footer
        raise CorruptFileError(f"not a Parquet file: it has only {source.size} bytes")
    # The magic bytes at the start are not read: that would take another request, and readers need nothing from there.
    magic = bytes(tail[-4:])
    if magic not in (MAGIC, ENCRYPTED_MAGIC):
        page = ". It is a web page: folders of web servers are not listed, so give the URLs of the files"
        is_page = b"</html" in bytes(tail[-64:]).lower()
        raise CorruptFileError(f"not a Parquet file: it ends in {magic!r}, not {MAGIC!r}{page * is_page}")
    size = int.from_bytes(tail[-8:-4], "little")
    if size > source.size - 12 or size == 0:
        raise CorruptFileError(f"the footer declares {size} bytes, but the file has {source.size}")
    if size > options.limits.max_footer:
        raise LimitError(f"the footer of {size} bytes exceeds limits.max_footer ({options.limits.max_footer})")
    if size + 8 > len(tail):  # the first read was too short for this footer
        tail = fetcher.read_tail(size + 8)
    if not is_kept and not source.is_local:
        keep_footer(fetcher, size + TRAILER)
    return magic, tail[len(tail) - TRAILER - size : len(tail) - TRAILER]


def _decoded(data: memoryview) -> LazyFileMetaData:
    try:
        return LazyFileMetaData(data)
    except (ThriftDecodeError, KernelError) as error:
        raise CorruptFileError(f"the footer cannot be decoded: {error}") from error
