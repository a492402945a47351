"""What a Spark session is and says: its version, its parallelism, the settings that reads and writes obey, places
as its workers see them, and its settings for object stores as storage options."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyparq.errors import OptionError, UnsupportedError
from pyparq.io.table_formats import format_of
from pyparq.io.url import local_path

OLDEST = (4, 3)
"""The first pyspark whose public API has what is used here."""

KNOWN_FOR = 60.0
"""Seconds."""

_parallelism: WeakKeyDictionary[Any, tuple[int, float]] = WeakKeyDictionary()


def check_pyspark() -> None:
    """Raise :class:`UnsupportedError` without a usable pyspark."""
    try:
        import pyspark
    except ModuleNotFoundError as error:
        raise UnsupportedError('Spark needs the extra "spark": pip install "pyparq[spark]"') from error
    version = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if version < OLDEST:
        raise UnsupportedError(
            f"pyspark {pyspark.__version__} is too old: pyparq needs {'.'.join(map(str, OLDEST))} or newer "
            '(pip install --upgrade "pyparq[spark]")'
        )


def check_session(spark: Any) -> None:
    """Raise :class:`UnsupportedError` without a usable pyspark, :class:`OptionError` for what is no session."""
    check_pyspark()
    if not hasattr(spark, "createDataFrame"):
        raise OptionError(f"the first argument must be a SparkSession, not {type(spark).__name__}")


def local_session(name: str = "pyparq", master: str | None = None, **config: str) -> Any:
    """The running Spark session, or a new one: on this machine, or where ``master`` says. ``config``: settings with
    ``_`` for each dot, for a new session.

    Raises :class:`UnsupportedError`, with what to do, without pyspark, without Java or with a Java that is too old.
    """
    check_pyspark()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else its workers are the path's python3
    settings = {"spark_ui_enabled": "false", "spark_ui_showConsoleProgress": "false", **config}
    builder = SparkSession.builder.appName(name).master(master or "local[*]")
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of pandas
            made = builder.getOrCreate()
    except (PySparkException, FileNotFoundError) as error:
        raise UnsupportedError(
            "Spark did not start. It needs Java 17 or newer: install it, and set JAVA_HOME to its folder if "
            f"'java -version' shows an older one ({_first_line(error)})"
        ) from error
    return made


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def is_connect(spark: Any) -> bool:
    """Whether the session is a Spark Connect client: it may not see the files that the workers see."""
    return ".connect." in type(spark).__module__


def parallelism(spark: Any) -> int:
    """How many tasks the session runs at a time, now: executors come and go.

    A client of Spark Connect learns it by a small job, the partitions of a plain range, once in :data:`KNOWN_FOR`
    seconds.
    """
    if not is_connect(spark):
        return max(int(spark.sparkContext.defaultParallelism), 1)
    found, when = _parallelism.get(spark, (0, 0.0))
    if not found or time.monotonic() - when > KNOWN_FOR:
        from pyspark.sql import functions

        numbers = spark.range(1 << 12).select(functions.spark_partition_id().alias("k"))
        found = int(numbers.agg(functions.max("k")).first()[0]) + 1
        _parallelism[spark] = found, time.monotonic()
    return found


def is_case_sensitive(spark: Any) -> bool:
    """Whether names of columns are told apart by case (``spark.sql.caseSensitive``)."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def is_ansi(spark: Any) -> bool:
    """Whether values of different types are compared by ANSI's rules (``spark.sql.ansi.enabled``)."""
    return str(spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"


def time_zone(spark: Any) -> str:
    """The zone of points in time that say none (``spark.sql.session.timeZone``)."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def infers_partitions(spark: Any) -> bool:
    """Whether partition columns have other types than text
    (``spark.sql.sources.partitionColumnTypeInference.enabled``)."""
    return str(spark.conf.get("spark.sql.sources.partitionColumnTypeInference.enabled", "true")).lower() == "true"


MANY_FILES = 2_000
"""Of more files, Spark's tasks read the footers. So many local ones take the driver some tenths of a second."""
_MANY_FILES = "spark.pyparq.planInTasksAbove"


def many_files(spark: Any) -> int:
    """The number of files above which a job plans a read (``spark.pyparq.planInTasksAbove``)."""
    given = spark.conf.get(_MANY_FILES, str(MANY_FILES))
    if not re.fullmatch("[0-9]{1,18}", given):
        raise OptionError(f"{_MANY_FILES} must be a number of files, not {given!r}")
    return int(given)


# ---- places ---------------------------------------------------------------------------------------------------------


def absolute(source: Any, far: bool) -> Any:
    """``source`` with absolute paths. ``far``: the files need not be seen here. A table of Delta Lake or Iceberg stays
    as it is: its files are listed here.

    Raises :class:`OptionError` for what another process cannot open.
    """
    if isinstance(source, (list, tuple)):
        return [absolute(item, far) for item in source]
    if format_of(source) is not None:
        if far:
            raise OptionError("over Spark Connect a table cannot be sent along: give its data files' paths")
        return source
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, str):
        raise OptionError(f"Spark needs paths or URLs, which its workers can open too, not {type(source).__name__}")
    source = local(source)
    if far and "://" not in source and not os.path.isabs(source):
        raise OptionError(f"over Spark Connect a path must be absolute, because workers run elsewhere: {source!r}")
    return source if "://" in source else os.path.abspath(source)


def local(path: str) -> str:
    """A path or URL that fsspec understands for one of Hadoop: ``file:/data``, ``s3a://bucket``, and ``dbfs:/data``,
    which Databricks mounts on all its machines."""
    if re.match("file:/(?!/)", path):
        return path[5:]
    if re.match("dbfs:/(?!/)", path):
        return f"/dbfs{path[5:]}"
    return re.sub("^s3[an]://", "s3://", path)


# ---- stores ----------------------------------------------------------------------------------------------------------
#
# A session that reads ``s3a://``, ``abfss://`` or ``gs://`` has the keys and places in settings of Hadoop
# (``spark.hadoop.fs.…``). pyparq's own requests go through fsspec, which has other names for the same. Names on the
# left: Hadoop's S3A, ABFS and the GCS connector; on the right: s3fs, adlfs and gcsfs.

Setting = Callable[[str], str | None]
"""The value of a Hadoop setting by its name, ``None`` where the session has none."""


def store_options(spark: Any, given: Any, *sources: Any) -> Any:
    """``given``, or else what the session's settings say for the store of ``sources`` (URLs, or lists of them).

    Only settings that Spark's public interface shows are seen: those of the session and of ``spark.hadoop.…``, not
    what a program has put into Hadoop's own configuration.
    """
    urls = [url for source in sources for url in _urls(source)]
    if given is not None or not urls:
        return given
    check_session(spark)
    return translated(dict(spark.conf.getAll), urls)


def _urls(source: Any) -> list[str]:
    if isinstance(source, (list, tuple)):
        return [url for item in source for url in _urls(item)]
    return [source] if isinstance(source, str) and "://" in source else []


def translated(settings: Mapping[str, str], urls: list[str]) -> dict[str, Any] | None:
    """Storage options for the store of ``urls``; ``None`` where the settings say nothing of it, or where the URLs are
    of several stores."""
    places = {(_STORES.get(urlsplit(url).scheme), urlsplit(url).netloc.rpartition("@")[2]) for url in urls}
    if len({store for store, _ in places}) != 1:
        return None
    store, place = next(iter(places))
    if store is None:
        return None

    def setting(name: str) -> str | None:
        # What a session sets by itself counts more than what it was started with.
        return settings.get(name) or settings.get(f"spark.hadoop.{name}") or None

    return store(setting, place if len(places) == 1 else "") or None


# ---- S3 ------------------------------------------------------------------------------------------------------------


def _s3(setting: Setting, bucket: str) -> dict[str, Any]:
    """Options of s3fs. Settings of the bucket (``fs.s3a.bucket.NAME.…``) come first."""

    def own(name: str) -> str | None:
        return (setting(f"fs.s3a.bucket.{bucket}.{name}") if bucket else None) or setting(f"fs.s3a.{name}")

    found: dict[str, Any] = {}
    for name, hadoop in (("key", "access.key"), ("secret", "secret.key"), ("token", "session.token")):
        if value := own(hadoop):
            found[name] = value
    if endpoint := own("endpoint"):
        scheme = "http" if own("connection.ssl.enabled") == "false" else "https"
        found["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if region := own("endpoint.region"):
        found["client_kwargs"] = {"region_name": region}
    if own("path.style.access") == "true":
        found["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    if "AnonymousAWSCredentialsProvider" in (own("aws.credentials.provider") or ""):
        found["anon"] = True
    if own("requester.pays.enabled") == "true":
        found["requester_pays"] = True
    return found


# ---- Azure ---------------------------------------------------------------------------------------------------------


def _azure(setting: Setting, host: str) -> dict[str, Any]:
    """Options of adlfs. ``host``: ``account.dfs.core.windows.net``. Settings of the account come first."""
    account = host.partition(".")[0]
    if not account:
        return {}

    def own(name: str) -> str | None:
        other = host.replace(".dfs.", ".blob.")
        return setting(f"{name}.{host}") or setting(f"{name}.{other}") or setting(name)

    found: dict[str, Any] = {}
    if key := own("fs.azure.account.key"):
        found["account_key"] = key
    if token := own("fs.azure.sas.fixed.token"):
        found["sas_token"] = token
    if own("fs.azure.account.auth.type") == "OAuth":
        found |= _azure_oauth(own)
    return {"account_name": account, **found} if found else {}


def _azure_oauth(own: Setting) -> dict[str, Any]:
    """A service principal; otherwise (managed identities) what the libraries of Azure find by themselves."""
    client, secret = own("fs.azure.account.oauth2.client.id"), own("fs.azure.account.oauth2.client.secret")
    tenant = re.search("//[^/]+/([^/]+)/oauth2", own("fs.azure.account.oauth2.client.endpoint") or "")
    if client and secret and tenant:
        return {"client_id": client, "client_secret": secret, "tenant_id": tenant[1]}
    return {"anon": False}


# ---- Google --------------------------------------------------------------------------------------------------------


def _google(setting: Setting, bucket: str) -> dict[str, Any]:
    """Options of gcsfs."""
    found: dict[str, Any] = {}
    for name in ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile"):
        if keyfile := setting(name):
            found["token"] = keyfile
            break
    if setting("fs.gs.auth.type") == "UNAUTHENTICATED" or setting("google.cloud.auth.null.enable") == "true":
        found["token"] = "anon"
    if project := setting("fs.gs.project.id"):
        found["project"] = project
    if endpoint := setting("fs.gs.storage.root.url"):
        found["endpoint_url"] = endpoint.rstrip("/")
    return found


_STORES: dict[str, Callable[[Setting, str], dict[str, Any]]] = {
    "s3": _s3, "s3a": _s3, "s3n": _s3, "abfs": _azure, "abfss": _azure, "gs": _google, "gcs": _google,
}  # fmt: skip


# ---- tables of Spark's catalog whose files are written here: the catalog learns of new partitions and replaced files


_NAME = r"(?:`(?:[^`]|``)+`|[^`.;\s]+)"


class CatalogTable:
    """A table of the session's catalog, looked at before its files are written.

    Raises :class:`OptionError` for a name of no table, for a view, and for a table whose files lie in another folder
    than ``folder``.
    """

    def __init__(self, spark: Any, name: str, folder: str) -> None:
        if not isinstance(name, str) or not re.fullmatch(rf"{_NAME}(?:\.{_NAME})*", name):
            raise OptionError(f"table must be the name of a table, such as 'sales.orders', not {name!r}")
        if not spark.catalog.tableExists(name):
            raise OptionError(f"there is no table {name} in the catalog")
        self._spark, self._name = spark, name
        described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        facts = {str(row[0]): str(row[1]) for row in described}
        place = facts.get("Location")
        if place is None or _folder(place) != _folder(folder):
            raise OptionError(f"the files of the table {name} lie in {place or 'no folder'}, not in {folder}")
        self._is_partitioned = "# Partition Information" in facts and facts.get("Partition Provider") != "None"

    def learn(self) -> None:
        """Make the catalog see what is there now: partitions that came or went, and files that were replaced."""
        if self._is_partitioned:
            self._spark.sql(f"MSCK REPAIR TABLE {self._name} SYNC PARTITIONS")
        self._spark.sql(f"REFRESH TABLE {self._name}")


def learner(spark: Any, table: str | None, folder: str) -> Callable[[], None]:
    """For a job that writes to ``folder``: looks at its table now, and gives what to call after the commit."""
    found = None if table is None else CatalogTable(spark, table, folder)

    def learn() -> None:
        try:
            if found is not None:
                found.learn()
        except Exception as error:
            error.add_note(
                f"The files in {folder} are committed: do not write them again. Run MSCK REPAIR TABLE {table} SYNC "
                f"PARTITIONS, if it has partitions, and REFRESH TABLE {table}."
            )
            raise

    return learn


def _folder(place: str) -> str:
    place = local(place)
    return (local_path(place) or place).rstrip("/")
