"""``edit_metadata``: the key-value metadata of files that exist, changed by writing the footer anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyparq.errors import OptionError
from pyparq.io.locations import both_located
from pyparq.io.sink import Sink, copy_range
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.file_runs import jobs_of, run, side_by_side
from pyparq.maintenance.footer_edit import FooterTree
from pyparq.option_checks import keywords
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile
from pyparq.write.schema_hint import text_key, text_value

if TYPE_CHECKING:
    from pyparq.encryption.properties import DecryptionProperties


@keywords
def edit_metadata(
    source: Any,
    target: Any = None,
    *,
    update: Mapping[str, str | bytes | None] | None = None,
    remove: Iterable[str] = (),
    force: bool = False,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    fsync: bool = False,
) -> int:
    """Change the key-value metadata of files. Only the footer is rewritten; everything before it is copied byte for
    byte.

    ``source``: a file, or a folder, glob or list of files. ``target``: where the new file goes; for many files, a
    folder. Without it, each file is replaced in its place. ``update``: keys to set, with their values (text, bytes, or
    ``None`` for a key without a value). Keys that are there keep their place. ``remove``: keys to remove; those that
    are not there are skipped. A file in which nothing changes is not written. The other options are those of
    :func:`pyparq.add_indexes`.

    Returns the number of files that were written.

    Raises :class:`pyparq.OptionError` where a key is both set and removed, :class:`pyparq.DataError` for keys and
    values that are neither text nor bytes, :class:`pyparq.CorruptFileError` and ``OSError``. The file that it happens
    to is then unchanged.

    Example::

        pyparq.edit_metadata("events.parquet", update={"owner": "data team"}, remove=["draft"])
    """
    changed = {text_key(key): text_value(key, value) for key, value in (update or {}).items()}
    if isinstance(remove, (str, bytes)):
        raise OptionError(f"remove must be a list of keys; did you mean [{remove!r}]?")
    gone = [text_key(key) for key in remove]
    for key in gone:
        if key in changed:
            raise OptionError(f"the key {key!r} is both set and removed")
    options = ReadOptions(decryption=decryption, limits=limits or DEFAULT_LIMITS)

    def prepare(file: OpenFile) -> _NewFooter | None:
        file.check_places()
        footer = FooterTree(file)
        return _NewFooter(file, footer) if footer.change_table_keys(changed, gone) else None

    source, target, storage_options = both_located(source, target, filesystem, storage_options)
    jobs = jobs_of(source, target, options, storage_options, force, fsync)
    outcomes = side_by_side(lambda job: run(job, prepare), jobs, [job.size for job in jobs], progress)
    return sum(outcome.written for outcome in outcomes)


class _NewFooter:
    """A file with another footer."""

    def __init__(self, file: OpenFile, footer: FooterTree) -> None:
        self._fetcher = file.fetcher
        self._footer = footer

    def write(self, sink: Sink) -> None:
        parts = self._footer.parts()  # first: without the key there can be no new footer
        copy_range(sink, self._fetcher, 0, self._footer.start)
        sink.write(parts)
