"""A standalone master of Spark with worker processes on this machine, for tests by ``pytest -m cluster``."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Cluster:
    """``url``: what a session names as its master."""

    def __init__(
        self, url: str, processes: list[subprocess.Popen[bytes]], start_worker: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        self.url = url
        self._processes = processes
        """The master, and its workers."""
        self._start_worker = start_worker

    def executors(self) -> list[int]:
        """Process ids of the executors: children of our own worker processes."""
        return [pid for worker in self._processes[1:] for pid in _children(worker.pid) if "Executor" in _command(pid)]

    def kill_executor(self) -> bool:
        """End one of them as the system does that has no memory left. ``False`` where none runs."""
        return _kill_one(self.executors())

    def kill_python(self) -> bool:
        """End one process in which an executor runs Python."""
        inner = [pid for executor in self.executors() for pid in _children(executor)]
        return _kill_one([pid for pid in inner if "daemon" in _command(pid)])

    def kill_worker(self) -> bool:
        """End a worker of Spark, whose executors end with it, and start another one in its place."""
        killed = _kill_one([self._processes[1].pid])
        self._processes[1].wait()
        self._processes[1] = self._start_worker()
        return killed


def _kill_one(pids: list[int]) -> bool:
    """Whether the last of these processes that is still there was ended."""
    for pid in reversed(pids):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        return True
    return False


def _children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == pid:
            found.append(int(status.parent.name))
    return [*found, *(inner for child in found for inner in _children(child))]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and its workers, with one core each. They end with the body.

    Each worker has an address of its own, because Spark starts no second attempt of a task on the host of the first.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1",
                   "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}  # fmt: skip
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with open(folder / f"{name}.log", "wb") as log:
            command = [str(home / "bin" / "spark-class"), *arguments]
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True
            )

    def start_worker(k: int = 0) -> subprocess.Popen[bytes]:
        return start(
            f"worker-{k}", "org.apache.spark.deploy.worker.Worker", "--host", f"127.0.0.{k + 2}", "--cores", "1",
            "--memory", "1g", "--work-dir", str(folder / f"work-{k}"), "--webui-port", str(_free_port()), url,
        )  # fmt: skip

    try:
        processes.append(
            start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port),
                  "--webui-port", str(_free_port()))
        )  # fmt: skip
        _wait_for(folder / "master.log", "Successfully started service 'sparkMaster'")
        for k in range(workers):
            processes.append(start_worker(k))
        for k in range(workers):
            _wait_for(folder / f"worker-{k}.log", "Successfully registered with master")
        yield Cluster(url, processes, start_worker)
    finally:
        for process in reversed(processes):
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(20)
            except ProcessLookupError:
                pass
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _wait_for(log: Path, text: str) -> None:
    for _ in range(600):
        if log.exists() and text in log.read_text(errors="replace"):
            return
        time.sleep(0.2)
    raise TimeoutError(f"{log.name} does not say {text!r}: {log.read_text(errors='replace')[-2000:]}")
