"""The user's settings for encryption: keys, algorithm, and the parts of the file that stay readable.

Keys become :class:`~pyparq.encryption.cipher.DataKey` as soon as they are given. So they are in no repr, no message and
no pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Self, TypeVar

from pyparq.column_names import ColumnName, is_name
from pyparq.encryption.cipher import DataKey, check_key
from pyparq.errors import ColumnNotFoundError, EncryptionError, OptionError, ParquetError, near_matches
from pyparq.option_checks import keywords, methods_told
from pyparq.runtime.text import printable

T = TypeVar("T")
Path = tuple[str, ...]
Find = Callable[[ColumnName], Path | None]
"""The path of the column or group that a name stands for; ``None`` where there is none. Raises
:class:`ColumnNotFoundError` where a name may be any of several: a key must not serve more columns, or others, than its
owner meant."""


def find_among(leaves: Sequence[ColumnName]) -> Find:
    """Names of the leaves at these paths and of the groups above them, without a schema."""
    paths = map(path_of, leaves)
    known = list(dict.fromkeys(path[:k] for path in paths for k in range(1, len(path) + 1)))

    def find(name: ColumnName) -> Path | None:
        fits = [path for path in known if name in (path, ".".join(path))]
        if len(fits) > 1:
            raise ColumnNotFoundError(f"{name!r} matches {len(fits)} columns. Give the path as a tuple: one of {fits}")
        return fits[0] if fits else None

    return find


def path_of(leaf: ColumnName) -> Path:
    return tuple(leaf.split(".")) if isinstance(leaf, str) else leaf


def assign(leaves: Sequence[ColumnName], named: Mapping[ColumnName, T], find: Find) -> dict[ColumnName, T]:
    """The value for each leaf that has one: by its own name, or by the name of the nearest group above it.

    Raises :class:`ColumnNotFoundError` for a name of no column, and :class:`OptionError` for two names of one column.
    """
    given: dict[Path, T] = {}
    for name, value in named.items():
        path = find(name)
        if path is None:
            known = [leaf if isinstance(leaf, str) else ".".join(leaf) for leaf in leaves]
            shown = name if isinstance(name, str) else ".".join(name)
            raise ColumnNotFoundError(
                f"a key is given for column {name!r}, which does not exist{near_matches(shown, known)}"
            )
        if path in given:
            raise OptionError(f"column {'.'.join(path)!r} has two keys: the second is given as {name!r}")
        given[path] = value
    found = {leaf: nearest(path_of(leaf), given) for leaf in leaves}
    return {leaf: value for leaf, value in found.items() if value is not None}


def nearest(path: Path, given: Mapping[Path, T]) -> T | None:
    """The value for a leaf, or for the nearest group above it."""
    for length in range(len(path), 0, -1):
        if path[:length] in given:
            return given[path[:length]]
    return None


AES_GCM_V1, AES_GCM_CTR_V1 = "AES_GCM_V1", "AES_GCM_CTR_V1"
ALGORITHMS = (AES_GCM_V1, AES_GCM_CTR_V1)
Algorithm = Literal["AES_GCM_V1", "AES_GCM_CTR_V1"]

ReadSibling = Callable[[str], bytes]
"""Reads the file of a name in the folder of the Parquet file."""


@methods_told
@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """A key with its key metadata. ``metadata`` is stored in the file, unencrypted, and is passed to the key
    retriever.

    Example::

        key = pyparq.EncryptionKey(b"0123456789abcdef", metadata=b"key of 2024")
        pyparq.write_table({"id": [1]}, "secret.parquet", encryption=pyparq.EncryptionProperties(footer_key=key))
    """

    key: bytes = field(repr=False)
    metadata: bytes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", check_key(self.key, "a key"))
        object.__setattr__(self, "metadata", _as_bytes(self.metadata, "key metadata"))

    def __reduce__(self) -> NoReturn:
        raise TypeError("an encryption key cannot be pickled")


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A key that is ready for use, with its metadata."""

    key: DataKey
    metadata: bytes | None


@dataclass(frozen=True, slots=True)
class FileKeys:
    """The keys of one file. ``columns`` holds a leaf's own key, or ``None`` where it is under the footer key; leaves
    that stay clear are missing."""

    footer: HeldKey
    columns: Mapping[ColumnName, HeldKey | None]
    material: Mapping[str, str] | None = None
    """Key material to store beside the file."""


def _held(given: Any, what: str) -> HeldKey:
    if isinstance(given, EncryptionKey):
        return HeldKey(DataKey(given.key), given.metadata)
    return HeldKey(DataKey(check_key(given, what)), None)


def _by_column(given: Any) -> dict[ColumnName, HeldKey]:
    if not isinstance(given, Mapping):
        raise OptionError("column_keys must map column names to keys")
    for name in given:
        if not is_name(name):
            raise OptionError(f"column_keys must have names of columns as keys, not {type(name).__name__}")
    return {name: _held(key, f"the key of column {name!r}") for name, key in given.items()}


def _as_bytes(given: Any, what: str) -> bytes | None:
    if given is None or isinstance(given, bytes):
        return given
    if not isinstance(given, str):
        raise OptionError(f"{what} must be text or bytes, not {type(given).__name__}")
    try:
        return given.encode()
    except UnicodeEncodeError:
        raise OptionError(f"{what} contains a character that cannot be encoded as UTF-8") from None


def _flag(given: Any, what: str) -> bool:
    if not isinstance(given, bool):
        raise OptionError(f"{what} must be True or False, not {given!r}")
    return given


def check_algorithm(name: Any) -> str:
    if name not in ALGORITHMS:
        raise OptionError(f"algorithm must be {' or '.join(map(repr, ALGORITHMS))}, not {name!r}")
    return str(name)


class _Secretive:
    """Copies share the keys. Pickling is refused, because a pickle would contain them."""

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{type(self).__name__} holds keys and cannot be pickled. Create it in the process that uses it"
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


class EncryptionProperties(_Secretive):
    """How to encrypt a file: ``write_table(..., encryption=EncryptionProperties(footer_key=...))``.

    ``footer_key`` and the values of ``column_keys`` are keys of 16, 24 or 32 bytes. Give an :class:`EncryptionKey` to
    store key metadata with a key. Without ``column_keys``, all columns are encrypted with the footer key. With it, the
    other columns are not encrypted, unless ``complete_columns`` is true: then the footer key encrypts them. The name of
    a column is a path, dotted or as a tuple of names. The path of a group means all leaf columns below it.

    ``algorithm``: ``"AES_GCM_V1"``, or ``"AES_GCM_CTR_V1"``, which does not authenticate pages. ``plaintext_footer``:
    sign the footer instead of encrypting it, so that readers without keys can read the unencrypted columns.
    ``aad_prefix``: a name for the file. A reader that gives it notices when the file was replaced by another one.
    ``store_aad_prefix=False`` does not store it in the file, so every reader must give it.

    One object may be used for many files, which get different random identifiers. Raises :class:`OptionError`.

    Example::

        keys = pyparq.EncryptionProperties(footer_key=b"0123456789abcdef")
        pyparq.write_table({"id": [1, 2]}, "secret.parquet", encryption=keys)
    """

    @keywords
    def __init__(
        self,
        footer_key: bytes | EncryptionKey,
        column_keys: Mapping[Any, bytes | EncryptionKey] | None = None,
        *,
        algorithm: Algorithm = "AES_GCM_V1",
        plaintext_footer: bool = False,
        aad_prefix: str | bytes | None = None,
        store_aad_prefix: bool = True,
        complete_columns: bool = False,
    ) -> None:
        self._footer = _held(footer_key, "footer_key")
        self._columns = None if column_keys is None else _by_column(column_keys)
        self._settle(algorithm, plaintext_footer, aad_prefix, store_aad_prefix, complete_columns)
        if self._columns is not None and not self._columns and not self.complete_columns:
            raise OptionError("column_keys is empty: no column would be encrypted. Leave it out to encrypt all")
        for held in (self._footer, *(self._columns or {}).values()):
            held.key.count_on()

    def _settle(
        self, algorithm: str, plaintext_footer: bool, aad_prefix: str | bytes | None, store: bool, complete: bool
    ) -> None:
        self.algorithm = check_algorithm(algorithm)
        self.plaintext_footer = _flag(plaintext_footer, "plaintext_footer")
        self.aad_prefix = _as_bytes(aad_prefix, "aad_prefix") or None
        self.store_aad_prefix = _flag(store, "store_aad_prefix")
        self.complete_columns = _flag(complete, "complete_columns")
        if self.aad_prefix is None and not self.store_aad_prefix:
            raise OptionError("store_aad_prefix=False needs an aad_prefix")

    def keys_for(self, leaves: Sequence[ColumnName], file_name: str, find: Find | None = None) -> FileKeys:
        """The keys of a new file with these leaf columns. ``find`` turns the name of a column into its path; without
        it, names are the paths of leaf columns and groups.

        Raises :class:`ColumnNotFoundError` for a key whose column does not exist or is ambiguous.
        """
        if self._columns is None:
            return FileKeys(self._footer, dict.fromkeys(leaves))
        return FileKeys(self._footer, self._all_of(leaves, assign(leaves, self._columns, find or find_among(leaves))))

    def _all_of(
        self, leaves: Sequence[ColumnName], own: Mapping[ColumnName, HeldKey]
    ) -> Mapping[ColumnName, HeldKey | None]:
        """All leaves, including those that the footer key encrypts."""
        return {**dict.fromkeys(leaves), **own} if self.complete_columns else own

    @printable
    def __repr__(self) -> str:
        columns = "all columns" if self._columns is None else f"{len(self._columns)} column keys"
        return (
            f"<{type(self).__name__}: {self.algorithm}, footer {'signed' if self.plaintext_footer else 'encrypted'}, "
            f"{columns}>"
        )


class DecryptionProperties(_Secretive):
    """How to decrypt a file: ``read_table(..., decryption=DecryptionProperties(footer_key=...))``.

    ``footer_key``: the key that encrypts or signs the footer. ``column_keys``: keys by column, named as in
    :class:`EncryptionProperties`. ``key_retriever``: a function that takes key metadata (bytes) and returns the key. It
    is called for keys that were not given. ``aad_prefix``: the AAD prefix of the file. It is needed when the file does
    not store it, and must match when it does.

    ``check_footer_integrity``: what to do about a signed plaintext footer. ``True`` refuses the file when the signature
    cannot be checked because the footer key is missing. ``None``, the default, warns instead. ``False`` neither checks
    nor warns. ``allow_plaintext_files``: also read files that are not encrypted. ``algorithm``: refuse files encrypted
    with another algorithm.

    Keys may be missing. The parts of the file that they encrypt cannot be read then; all other parts can. Raises
    :class:`OptionError`.

    Example::

        key = b"0123456789abcdef"
        pyparq.write_table({"id": [1, 2]}, "secret.parquet", encryption=pyparq.EncryptionProperties(footer_key=key))
        table = pyparq.read_table("secret.parquet", decryption=pyparq.DecryptionProperties(footer_key=key))
    """

    @keywords
    def __init__(
        self,
        footer_key: bytes | None = None,
        column_keys: Mapping[Any, bytes] | None = None,
        *,
        key_retriever: Callable[[bytes], bytes] | None = None,
        aad_prefix: str | bytes | None = None,
        check_footer_integrity: bool | None = None,
        allow_plaintext_files: bool = False,
        algorithm: Algorithm | None = None,
    ) -> None:
        self._footer = None if footer_key is None else _held(footer_key, "footer_key").key
        self._columns: dict[ColumnName, DataKey] = {
            name: held.key for name, held in _by_column({} if column_keys is None else column_keys).items()
        }
        if key_retriever is not None and not callable(key_retriever):
            raise OptionError("key_retriever must be a function that takes key metadata and returns a key")
        self._retriever = key_retriever
        self.aad_prefix = _as_bytes(aad_prefix, "aad_prefix") or None
        if check_footer_integrity is not None:
            _flag(check_footer_integrity, "check_footer_integrity")
        self.check_footer_integrity = check_footer_integrity
        self.allow_plaintext_files = _flag(allow_plaintext_files, "allow_plaintext_files")
        self.algorithm = None if algorithm is None else check_algorithm(algorithm)

    def for_file(self, file_name: str, read_sibling: ReadSibling) -> DecryptionProperties:
        """The properties to use for one file."""
        return self

    def footer_key(self, metadata: bytes | None) -> DataKey | None:
        """The footer key; ``None`` when it was not given and cannot be retrieved."""
        return self._footer or self._retrieved(metadata, "the footer")

    def column_keys(self, find: Find) -> dict[tuple[str, ...], DataKey]:
        """The given keys by the paths of the file's leaf columns and groups. Keys of columns not in the file are left
        out.

        Raises :class:`ColumnNotFoundError` for a name that fits several columns."""
        return {path: key for name, key in self._columns.items() if (path := find(name)) is not None}

    def column_key(self, name: str, metadata: bytes | None) -> DataKey | None:
        """The key of a leaf column whose own key was not given; ``None`` when it cannot be retrieved."""
        return self._retrieved(metadata, f"column {name!r}")

    def _retrieved(self, metadata: bytes | None, what: str) -> DataKey | None:
        if self._retriever is None or metadata is None:
            return None
        try:
            key = self._retriever(metadata)
        except ParquetError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise EncryptionError(f"the key of {what} could not be retrieved: {reason}") from error
        if key is None:
            return None
        try:
            return DataKey(check_key(key, f"the retrieved key of {what}"))
        except OptionError as error:
            raise EncryptionError(error.message) from None

    @printable
    def __repr__(self) -> str:
        known = ["footer key"] * (self._footer is not None) + [f"keys of {len(self._columns)} columns"]
        known += ["key retriever"] * (self._retriever is not None)
        return f"<{type(self).__name__}: {', '.join(known)}>"
