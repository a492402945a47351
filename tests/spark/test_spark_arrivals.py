"""Offsets of a stream of files, without Spark: each file is given out once, whatever the order in which files come."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
import xxhash

from pyparq.datasets.data_files import DataFile
from pyparq.errors import ChangedFileError, LimitError, PlanError, UnsupportedError
from pyparq.spark import stream_reader as arrivals
from pyparq.spark.stream_reader import Arrival, Arrivals, Offset, arrived

SECOND = 1_000_000_000


def arrival(name: str, seconds: float) -> Arrival:
    return Arrival(DataFile(name, f"memory://{name}"), int(seconds * SECOND), xxhash.xxh64_hexdigest(name.encode()))


def in_order(files: list[Arrival]) -> list[Arrival]:
    return sorted(files, key=lambda a: (a.time, a.file.name))


def names(files: list[Arrival]) -> list[str]:
    return [a.file.name for a in files]


@pytest.mark.parametrize("most", [100_000, 40])
@pytest.mark.parametrize("seed", range(20))
def test_each_file_is_given_out_once(monkeypatch: pytest.MonkeyPatch, seed: int, most: int) -> None:
    """Files are seen up to ``late`` seconds after their time, in any order, and old ones get new times where all names
    are kept. Every offset goes through JSON. Every batch is asked for again when more files have come, as after a
    restart, and is the same."""
    monkeypatch.setattr(arrivals, "MOST_NAMES", most)
    chance = random.Random(seed)
    late = chance.choice([0.5, 10, 1000] if most > 1_000 else [0.5])
    rules, offset, clock = Arrivals(late), Offset(), 0.0
    files: list[tuple[float, Arrival]] = []
    given: list[str] = []

    def seen(now: float) -> list[Arrival]:
        return in_order([a for when, a in files if when <= now])

    for step in range(200):
        clock += chance.choice([0, 0.1, 1, 30])
        for k in range(chance.choice([0, 0, 1, 3])):
            files.append((clock + chance.random() * late * 0.9, arrival(f"{step}-{k}", clock)))
        if most > 1_000 and files and chance.random() < 0.2:  # chmod, touch
            k = chance.randrange(len(files))
            when, old = files[k]
            if when <= clock:
                files[k] = when, arrival(old.file.name, clock)
        end = rules.advanced(offset, seen(clock), chance.choice([None, 1, 2]))
        end = Offset.from_json(json.loads(json.dumps(end.to_json())))
        batch = sorted(names(rules.between(offset, end, seen(clock))))
        assert sorted(names(rules.between(offset, end, seen(clock + late)))) == batch
        given += batch
        offset = end
        assert len(offset.names) <= most
    end = rules.advanced(offset, seen(clock + late), None)
    given += names(rules.between(offset, end, seen(clock + late)))
    assert sorted(given) == sorted(a.file.name for _, a in files)


def test_a_limit_and_equal_times() -> None:
    files = [arrival(name, 5) for name in "abcde"]
    rules, offset, batches = Arrivals(10), Offset(), []
    while (end := rules.advanced(offset, files, 2)) != offset:
        batches.append(names(rules.between(offset, end, files)))
        offset = end
    assert batches == [["a", "b"], ["c", "d"], ["e"]]


def test_names_tell_what_was_given_out() -> None:
    rules = Arrivals(60)
    end = rules.advanced(Offset(), [arrival("a", 1000)], None)
    files = in_order([arrival("a", 5000), arrival("a day late", 1)])
    assert names(rules.between(end, rules.advanced(end, files, None), files)) == ["a day late"]
    assert len(rules.advanced(end, [arrival("b", 6000)], None).names) == 1  # what is gone needs no name


def test_offsets_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many files the oldest have no name: what is older than they are has been read, or came too late."""
    monkeypatch.setattr(arrivals, "MOST_NAMES", 100)
    rules = Arrivals(10)
    files = [arrival(f"{k:06}", k) for k in range(5_000)]
    offset = rules.advanced(Offset(), files, None)
    assert len(offset.names) == 100
    assert len(json.dumps(offset.to_json())) < 1_300
    assert rules.advanced(offset, files, None) == offset
    late = in_order([*files, arrival("in time", 4_900), arrival("too late", 4_899)])
    assert names(rules.between(offset, rules.advanced(offset, late, None), late)) == ["in time"]


def test_an_offset_of_an_older_version() -> None:
    """It names the files of its last seconds. All that are older count as read."""
    files = [arrival("old", 1), arrival("named", 995), arrival("new", 1000)]
    old = {"version": 1, "time": 996 * SECOND, "names": [files[1].key]}
    start, rules = Offset.from_json(old, 60), Arrivals(60)
    end = rules.advanced(start, files, None)
    assert names(rules.between(start, end, files)) == ["new"]
    again = [arrival("old", 2), arrival("named", 3000), arrival("new", 3000)]
    assert rules.advanced(Offset.from_json(end.to_json()), again, None) == end


def test_too_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_NAMES", 10)
    with pytest.raises(LimitError, match="late_seconds"):
        Arrivals(100).advanced(Offset(), [arrival(str(k), 1) for k in range(11)], None)


def test_a_file_of_a_batch_that_is_gone() -> None:
    rules, files = Arrivals(60), [arrival("a", 1), arrival("b", 2)]
    end = rules.advanced(Offset(), files, None)
    with pytest.raises(ChangedFileError, match="1 of the files of this batch are gone"):
        rules.between(Offset(), end, files[:1])


@pytest.mark.parametrize(
    "given",
    [{}, {"version": 2}, {"version": 1, "time": "x", "names": []}, {"version": 1}, {"version": 2, "names": "a b"},
     {"version": 2, "names": "", "horizon": "x"}, {"version": 3, "names": ""}],
)  # fmt: skip
def test_a_checkpoint_of_something_else(given: dict[str, object]) -> None:
    with pytest.raises(PlanError, match="no offset"):
        Offset.from_json(given)


def test_a_rename_is_when_a_local_file_comes(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    os.utime(old, (1, 1))
    before = os.stat(tmp_path).st_ctime_ns
    os.rename(old, new)
    files = [DataFile(str(new), str(new), mtime_ns=1), DataFile("gone", str(old), mtime_ns=1)]
    (found,) = arrived(files)
    assert found.time >= before > SECOND


def test_a_store_without_times() -> None:
    with pytest.raises(UnsupportedError, match="without times"):
        arrived([DataFile("memory://a", "memory://a")])
