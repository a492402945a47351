"""``add_indexes`` and ``verify`` over the files of a dataset as Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError
from pyparq.io.table_formats import IN_PLACE, check_folder
from pyparq.io.url import is_url
from pyparq.spark import stores
from pyparq.spark.file_jobs import FileJob
from pyparq.spark.files import Progress, report_of
from pyparq.spark.keys import check_factory
from pyparq.spark.paths import absolute
from pyparq.spark.session import check_session, is_connect


def add_indexes(
    spark: Any,
    source: Any,
    target: Any = None,
    *,
    decryption: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Add Bloom filters and page indexes to the files of a dataset, on Spark's workers.

    ``source`` and ``target``: as in :func:`pyparq.add_indexes`; without a target each file is replaced in its place.
    ``decryption``: the name of a function that makes the keys on each worker (``"module:function"``). ``progress``:
    called with the number of files done and the number of files. ``options``: those of :func:`pyparq.add_indexes`.

    The job runs now. Returns a DataFrame with one row per file: ``path, ok, error, rows, bytes_read, bytes_decoded,
    bytes_copied, bytes_written, seconds, added``. A file that fails is a row with ``ok`` false, and the others go on.
    A second run leaves files alone that have what is asked for.

    Example::

        import pyparq.spark as ps

        ps.add_indexes(spark, "flights/", bloom_filters=["tailnum"]).show()
    """
    where = absolute(source, is_connect(spark))
    job = _job(spark, "add_indexes", options, decryption, stores.storage_options(spark, storage_options, where))
    folder = None if target is None else absolute(target, is_connect(spark))
    if folder is None:
        for place in where if isinstance(where, list) else [where]:
            if isinstance(place, str) and not is_url(place):
                check_folder(place, IN_PLACE, bool(options.get("force")))
    return report_of(spark, where, job, progress, folder)


def verify(
    spark: Any,
    source: Any,
    *,
    decryption: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Check every file of a dataset against its own data, on Spark's workers: see :func:`pyparq.verify`.

    The parameters and the report are those of :func:`add_indexes`; ``ok`` is false for files with findings, and
    ``error`` tells the first of them.

    Example::

        import pyparq.spark as ps

        ps.verify(spark, "flights/").where("not ok").show()
    """
    where = absolute(source, is_connect(spark))
    job = _job(spark, "verify", options, decryption, stores.storage_options(spark, storage_options, where))
    return report_of(spark, where, job, progress)


def _job(spark: Any, work: str, options: dict[str, Any], decryption: Any, storage_options: Any) -> FileJob:
    check_session(spark)
    check_factory(decryption)
    _check_options(work, options)
    return FileJob(work, options, decryption, storage_options)


_OWN = ("source", "target", "on_error", "use_threads", "progress", "decryption", "storage_options")


def _check_options(work: str, options: Mapping[str, Any]) -> None:
    """Raise :class:`OptionError` for an option that the work does not take: before the job, not in each task."""
    import inspect

    from pyparq.maintenance.add_indexes import add_indexes as indexing
    from pyparq.maintenance.verify.verify import verify as verifying

    function: Any = indexing if work == "add_indexes" else verifying
    known = [name for name in inspect.signature(function).parameters if name not in _OWN]
    for name in options:
        if name not in known:
            raise OptionError(f"unknown option {name!r} of pyparq.spark.{work}. It takes {', '.join(known)}")
