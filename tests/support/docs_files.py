"""The files that the pages of the documentation talk of: small, and made once for each page."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import fsspec

import pyparq


def flights(rows: int = 2_000) -> dict[str, list[Any]]:
    """Made-up flights: one aircraft in two hundred is N14228."""
    start = dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)
    return {
        "time_hour": [start + dt.timedelta(hours=k // 10) for k in range(rows)],
        "year": [2013] * rows,
        "month": [1 + k // 1_000 for k in range(rows)],
        "flight": [k * 7 % 1_000 for k in range(rows)],
        "tailnum": ["N14228" if k % 200 == 3 else f"N{10_000 + k * 37 % 9_000}" for k in range(rows)],
        "dest": [("LAX", "ORD", "ATL")[k % 3] for k in range(rows)],
        "dep_delay": [None if k % 50 == 0 else k % 120 - 10 for k in range(rows)],
    }


def events(day: int = 1, rows: int = 500) -> list[dict[str, Any]]:
    return [
        {"id": day * rows + k, "user": f"u{k % 50}", "url": f"/page/{k}", "kind": ("view", "sale")[k % 2],
         "time": dt.datetime(2024, 1, day, k % 24, k % 60), "amount": k / 4}
        for k in range(rows)
    ]  # fmt: skip


def sales() -> list[dict[str, Any]]:
    return [
        {"id": k, "year": 2023 + k % 2, "day": dt.date(2024, 1, 1 + k % 9), "price": k / 2,
         "city": ("Lima", "Kyoto", "Berlin")[k % 3], "place": {"city": ("Lima", "Kyoto")[k % 2]}}
        for k in range(600)
    ]  # fmt: skip


def people() -> dict[str, list[Any]]:
    return {"name": ["Ada", "Grace"], "salary": [100, 200], "address": ["London", "New York"]}


def prepare(page: str) -> None:
    """Puts the files of a page into the current folder."""
    name = Path(page).stem
    wanted = FILES["api"] if name.startswith("api-") else FILES.get(name, ())
    for make in wanted:
        make()


def _flights() -> None:
    pyparq.write_table(flights(), "flights.parquet", row_group_size=500, max_rows_per_page=100,
                       bloom_filters=["tailnum"])  # fmt: skip


def _flight_folder() -> None:
    pyparq.write_dataset(flights(), "flights", partition_cols=["month"])


def _events() -> None:
    pyparq.write_table(events(), "events.parquet")


def _event_folder() -> None:
    Path("events").mkdir()
    for day in (1, 2):
        pyparq.write_table(events(day), f"events/{day}.parquet", bloom_filters=["id"])


def _lake() -> None:
    pyparq.write_dataset(events(), "lake", partition_cols=["kind"])


def _sales() -> None:
    pyparq.write_dataset(sales(), "sales", partition_cols=["year"])


def _logs() -> None:
    Path("logs").mkdir()
    for day in (1, 2, 3):
        pyparq.write_table(events(day), f"logs/2024-01-{day:02}.parquet")


def _log_folder() -> None:
    Path("logs/2024-01").mkdir(parents=True)
    for day in (1, 2):
        pyparq.write_table(events(day), f"logs/2024-01/{day}.parquet")


def _plain() -> None:
    pyparq.write_table(people(), "plain.parquet")


def _cities() -> None:
    pyparq.write_table(sales(), "cities.parquet", sort_by=["city"], bloom_filters=["id"])


def _stores() -> None:
    """In a bucket that everybody may read."""
    pyparq.write_table(flights(), "s3://bucket/flights.parquet")
    pyparq.write_table(flights(), "s3://bucket/more.parquet")
    pyparq.write_dataset(flights(), "s3://bucket/flights", partition_cols=["year"])
    store = fsspec.filesystem("s3", skip_instance_cache=True)  # each page has its own server
    for path in store.find("bucket"):
        store.chmod(path, "public-read")
    store.chmod("bucket", "public-read")


FILES = {
    "add-indexes": (_events, _lake),
    "api": (_flights, _flight_folder, _events),
    "command-line": (_flights, _event_folder, _logs),
    "datasets": (_sales,),
    "deleting": (_event_folder, _events),
    "catalog": (_event_folder,),
    "lookup": (_event_folder,),
    "rewriting": (_logs, _log_folder, _flight_folder, _plain),
    "spark": (_sales,),
    "tools": (_flights, _flight_folder),
    "urls": (_stores,),
    "async": (_stores,),
    "own-stores": (_stores,),
    "verify": (_flights, _logs),
}


def prepare_for_spark(page: str) -> None:
    """Files that only the blocks with Spark need."""
    if page == "docs/tour.md":
        pyparq.write_dataset(
            [{**row, "day": str(row["time"])[:10]} for row in events()], "events", partition_cols=["day"]
        )
    if page == "docs/coming-from.md":
        pyparq.write_table(events(), "trips.parquet")
    for folder in ("arrivals", "in"):
        Path(folder).mkdir()
        pyparq.write_table(sales() if folder == "arrivals" else events(), f"{folder}/1.parquet")
