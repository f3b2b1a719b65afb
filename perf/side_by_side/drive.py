"""Runs bkload and the bound programs, and parses their output."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perf.load.build import build

Result = dict[str, Any]
CLIENT_CPU = (os.cpu_count() or 1) - 1
"""The CPU of the client; the server may use all. If both are left to the scheduler, results are bimodal."""


def bkload(*words: str, port: int, pid: int | None = None, may_fail: bool = False, **options: float) -> Result:
    """Run the load generator once.

    Raises:
        RuntimeError: a response was an error, unless `may_fail`.
    """
    command = [str(build("bkload")), *words, "--port", str(port), "--cpu", str(CLIENT_CPU)]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    if pid is not None:
        command += ["--server-pid", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2 or not done.stdout or (done.returncode and not may_fail):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return dict(json.loads(done.stdout))


def program(name: str, *arguments: object) -> Result:
    """Run a bound program that prints JSON.

    Raises:
        CalledProcessError: it fails.
    """
    command = [str(build(name)), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout or "{}"))


def drop_pages(files: list[Path]) -> None:
    """Sync files and drop their pages from the page cache."""
    program("cold_read", "--drop", *files)


@contextlib.contextmanager
def kept_apart(pid: int) -> Iterator[None]:
    """Keep all threads of a process off the client's CPU while the block runs; with one CPU, do nothing."""
    everywhere = os.sched_getaffinity(0)
    place(pid, everywhere - {CLIENT_CPU} or everywhere)
    yield
    place(pid, everywhere)


def place(pid: int, cpus: set[int]) -> None:
    """Bind every thread of a process to these CPUs."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(thread.name), cpus)


@contextlib.contextmanager
def bound_server(name: str, *arguments: object) -> Iterator[tuple[int, int]]:
    """Run a bound server; yield its port and process id."""
    command = [str(build(name)), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        if server.stdout is None:
            raise RuntimeError(f"{name} has no output")
        try:
            yield int(server.stdout.readline()), server.pid
        finally:
            server.kill()
