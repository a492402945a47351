"""The ArrowArrayStream of our own, called as consumers in C call it: from any thread, released at any time."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import nanoarrow
import pytest

from pyparq.kernels import arrow_stream

HERE = os.path.dirname(__file__)


class Struct(ctypes.Structure):
    """``struct ArrowArrayStream``."""


Call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Struct), ctypes.c_void_p)
Struct._fields_ = [
    ("get_schema", Call),
    ("get_next", Call),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Struct))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Struct))),
    ("private_data", ctypes.c_void_p),
]


class Producer:
    """Batches of one int32 array each, as plain arrays; ``fails`` is raised instead of the third."""

    def __init__(self, count: int = 3, fails: BaseException | None = None) -> None:
        self.left, self.fails, self.closed = count, fails, 0
        self.threads: set[int] = set()

    def get_schema(self) -> Any:
        return nanoarrow.c_schema(nanoarrow.int32()).__arrow_c_schema__()

    def get_next(self) -> Any:
        self.threads.add(threading.get_ident())
        if self.left == 1 and self.fails is not None:
            raise self.fails
        if self.left == 0:
            return None
        self.left -= 1
        return nanoarrow.c_array([self.left], nanoarrow.int32()).__arrow_c_array__()[1]

    def close(self) -> None:
        self.closed += 1


def struct_of(capsule: Any) -> Any:
    """The struct in the capsule, which keeps it."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return Struct.from_address(get(capsule, b"arrow_array_stream"))


class Array(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        *((name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private_data")),
    )

    def let_go(self) -> None:
        assert self.release
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.release)(ctypes.addressof(self))


def take(stream: Any) -> tuple[int, bool]:
    """What get_next() returns, and whether there was an array."""
    array = Array()
    code = stream.get_next(ctypes.byref(stream), ctypes.addressof(array))
    if there := bool(array.release):
        array.let_go()
    return code, there


def test_all_arrays_come_and_then_the_end() -> None:
    producer = Producer()
    found = nanoarrow.c_array_stream(arrow_stream(producer))
    assert [list(nanoarrow.Array(a).iter_py()) for a in found] == [[2], [1], [0]]
    del found
    assert producer.closed == 1


def test_the_end_stays_the_end() -> None:
    capsule = arrow_stream(Producer(1))
    stream = struct_of(capsule)
    assert [take(stream) for _ in range(3)] == [(0, True), (0, False), (0, False)]
    assert stream.get_last_error(ctypes.byref(stream)) is None


def test_a_capsule_that_nobody_takes() -> None:
    producer = Producer()
    there = weakref.ref(producer)
    capsule = arrow_stream(producer)
    del producer
    assert there() is not None
    del capsule
    gc.collect()
    assert there() is None


def test_released_before_its_end() -> None:
    producer = Producer()
    capsule = arrow_stream(producer)
    stream = struct_of(capsule)
    assert take(stream) == (0, True)
    stream.release(ctypes.byref(stream))
    assert producer.closed == 1
    assert not stream.release
    assert sys.getrefcount(producer) == 2
    del capsule  # nothing is left for it to release
    assert producer.closed == 1


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("no good"), errno.EINVAL, b"ValueError: no good"),
        (OSError("disk"), errno.EIO, b"OSError: disk"),
        (MemoryError(), errno.ENOMEM, b"MemoryError"),
        (NotImplementedError("x"), errno.ENOSYS, b"NotImplementedError: x"),
        (RuntimeError("a\udc80 \u00e9"), errno.EIO, "RuntimeError: a\\udc80 é".encode()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_exception_is_an_errno_and_a_text(error: Exception, code: int, text: bytes) -> None:
    """And is the same at every further call: what failed does not look like the end."""
    capsule = arrow_stream(Producer(3, error))
    stream = struct_of(capsule)
    assert [take(stream) for _ in range(4)] == [(0, True), (0, True), (code, False), (code, False)]
    assert stream.get_last_error(ctypes.byref(stream)) == text


class Untold(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def test_an_exception_without_a_text() -> None:
    capsule = arrow_stream(Producer(1, Untold()))
    stream = struct_of(capsule)
    assert take(stream)[0] == errno.EIO
    assert stream.get_last_error(ctypes.byref(stream)) == b"an error without a message"


def odd(value: Any) -> Producer:
    producer = Producer()
    producer.get_next = lambda: value  # type: ignore[method-assign]
    return producer


def emptied() -> Any:
    capsule = nanoarrow.c_array([1], nanoarrow.int32()).__arrow_c_array__()[1]
    taken = Producer()
    taken.get_next = lambda: capsule  # type: ignore[method-assign]
    struct = arrow_stream(taken)
    assert take(struct_of(struct)) == (0, True)
    return capsule


@pytest.mark.parametrize(
    "value", [1, "text", object(), arrow_stream(Producer())], ids=["int", "str", "object", "stream"]
)
def test_what_is_no_array(value: Any) -> None:
    capsule = arrow_stream(odd(value))
    assert take(struct_of(capsule)) == (errno.EINVAL, False)


def test_an_array_that_was_taken_before() -> None:
    capsule = arrow_stream(odd(emptied()))
    stream = struct_of(capsule)
    assert take(stream) == (errno.EIO, False)
    assert b"emptied before" in stream.get_last_error(ctypes.byref(stream))


def test_a_producer_without_methods() -> None:
    capsule = arrow_stream(object())
    stream = struct_of(capsule)
    assert take(stream) == (errno.EIO, False)
    assert b"AttributeError" in stream.get_last_error(ctypes.byref(stream))
    with unraisable() as seen:
        del capsule
    assert [type(one.exc_value) for one in seen] == [AttributeError]


class unraisable:
    """What is told through sys.unraisablehook."""

    def __enter__(self) -> list[Any]:
        self.seen: list[Any] = []
        self.before, sys.unraisablehook = sys.unraisablehook, self.seen.append
        return self.seen

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self.before


# ---- threads


def in_thread(work: Callable[[], Any]) -> Any:
    """Run by a thread that Python did not start: C calls back on it, without the GIL."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_calls_from_several_threads() -> None:
    producer = Producer(4)
    capsule = arrow_stream(producer)
    stream = struct_of(capsule)
    assert [in_thread(lambda: take(stream)) for _ in range(4)] == [(0, True)] * 4
    in_thread(lambda: stream.release(ctypes.byref(stream)))
    assert producer.closed == 1


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "pthread_create"), reason="needs pthreads")
def test_a_thread_that_python_does_not_know() -> None:
    """pthread_create on the callbacks themselves: no Python frame below them."""
    producer = Producer(2)
    capsule = arrow_stream(producer)
    stream = struct_of(capsule)
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    create = libc.pthread_create
    create.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    entry = ctypes.cast(stream.release, ctypes.c_void_p)
    assert create(ctypes.addressof(thread), None, entry, ctypes.addressof(stream)) == 0
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert libc.pthread_join(thread, None) == 0
    assert producer.closed == 1
    assert sys.getrefcount(producer) == 2


def test_an_error_on_the_way_is_kept() -> None:
    """A stream that is released while an exception passes must not swallow or replace it."""

    def fails() -> None:
        capsule = arrow_stream(Producer())
        assert struct_of(capsule).private_data
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails()


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_an_interrupt_comes_again() -> None:
    """The consumer makes an error of its own of it; KeyboardInterrupt is then raised where Python runs next."""
    code = (
        "import ctypes, sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_kernels_stream as t\n"
        "capsule = t.arrow_stream(t.Producer(1, KeyboardInterrupt()))\n"
        "stream = t.struct_of(capsule)\n"
        "try:\n"
        "    print(t.take(stream)[0])\n"
        "    for _ in range(1000): pass\n"
        "    print('not interrupted')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, HERE], capture_output=True, text=True)
    assert done.stdout.split() in (["interrupted"], [str(errno.EINTR), "interrupted"]), done.stderr
    assert signal.getsignal(signal.SIGINT) is not None


# ---- the end of the process

AT_EXIT = {
    "a stream that is left over": "keep = [capsule]\n",
    "in a cycle": "loop = [capsule]; loop.append(loop)\n",
    "released by an exit handler": (
        "import atexit\natexit.register(lambda: stream.release(ctypes.byref(stream)))\n"
    ),
    "released and asked after the interpreter was told to stop": (
        "class Late:\n"
        "    def __init__(self): self.all = t, ctypes, stream, capsule\n"
        "    def __del__(self):\n"
        "        t, ctypes, stream, capsule = self.all\n"
        "        code, there = t.take(stream)\n"
        "        print(code, stream.get_last_error(ctypes.byref(stream)).decode())\n"
        "        stream.release(ctypes.byref(stream))\n"
        "late = Late()\n"
    ),
    "asked by a thread until the end": (
        "import threading\n"
        "def run():\n"
        "    while True: t.take(stream)\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "import time; time.sleep(0.05)\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_EXIT)
def test_at_exit(name: str) -> None:
    """Neither a crash nor a process that hangs."""
    code = (
        "import ctypes, sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_kernels_stream as t\n"
        "capsule = t.arrow_stream(t.Producer(1 << 30))\n"
        "stream = t.struct_of(capsule)\n"
        "print(t.take(stream))\n"
    ) + AT_EXIT[name]
    where = HERE
    done = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("(0, True)\n")
    if "told to stop" in name:
        assert done.stdout.splitlines()[1:] == [f"{errno.ECANCELED} the interpreter is shutting down"]
