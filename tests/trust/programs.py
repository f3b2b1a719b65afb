"""The programs of `make trust`, and how one chunk of a program is played in a process of its own."""

import os
import platform
import random
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Chunk", "play", "Program", "PROGRAMS", "Share"]

SEEDS = 1 << 44
SANITIZED = Path("build/asan-tree")
COUNT = re.compile(r"(\d+) ([a-z_][a-z0-9_.]*)(?![a-z0-9_./])")
"""A number and what it counts; 11 seeds/s is no count."""
FINDING = re.compile(r"^seed \d+: .*$", re.MULTILINE)
NO_TOTALS = ("failed", "s")


@dataclass(frozen=True, slots=True)
class Program:
    """A program that plays the seeds it is given and prints its totals last.

    Attributes:
        row: How its row of the table is named.
        words: Its module and its arguments before the seeds.
        chunk: How many seeds it plays at a time, a few minutes of one core.
        sanitized: Whether it runs on the build with checks of every memory access.
        makes: The command that makes its file system; only root can mount that.
    """

    row: str
    words: tuple[str, ...]
    chunk: int
    sanitized: bool = False
    makes: str = ""

    @property
    def usable(self) -> bool:
        """Whether this machine permits it."""
        if self.makes and (os.geteuid() != 0 or not shutil.which(self.makes)):
            return False
        return SANITIZED.is_dir() or not self.sanitized


PROGRAMS = {
    "engine": Program("worlds of the engine", ("tests.engine",), 500),
    "hung": Program("worlds in which a directory hangs for ever", ("tests.engine", "--world", "hung"), 100),
    "mended": Program("worlds that repair an index under load", ("tests.engine", "--world", "mended"), 100),
    "rotting": Program("worlds whose disks decay", ("tests.engine", "--world", "rotting"), 300),
    "sliced": Program("worlds that flush the index in slices", ("tests.engine", "--world", "sliced"), 300),
    "stalled": Program("worlds whose disks hang", ("tests.engine", "--world", "stalled"), 300),
    "cluster": Program("worlds of whole clusters", ("tests.engine.cluster",), 100),
    "protocol": Program("worlds of the client's protocol", ("tests.sim", "--jobs", "1"), 10_000),
    "kills": Program("real bookies, killed under load", ("tests.crash", "kills"), 3),
    "power": Program("real bookies, writes without a sync lost or torn", ("tests.crash", "power_cuts"), 3),
    "ext4": Program("real bookies, power of ext4 cut", ("tests.crash", "ext4_cuts"), 2, makes="mkfs.ext4"),
    "xfs": Program("real bookies, power of xfs cut", ("tests.crash", "xfs_cuts"), 2, makes="mkfs.xfs"),
    "sweep": Program("each call of a run failed once", ("tests.engine.sweep",), 1),
    "fuzz": Program("executions of fuzz targets", ("tests.fuzz",), 1),
    "engine-asan": Program("worlds of the engine, every memory access checked", ("tests.engine",), 100, sanitized=True),
    "fuzz-asan": Program("executions of fuzz targets, every memory access checked", ("tests.fuzz",), 1, sanitized=True),
}


@dataclass(frozen=True, slots=True)
class Share:
    """The part of all seeds that one machine draws from: `number` of `machines`, counted from 1."""

    number: int = 1
    machines: int = 1

    @classmethod
    def of(cls, text: str) -> "Share":
        """Parse `number/machines`. Raises ValueError."""
        share = cls(*map(int, text.split("/")))
        if not 1 <= share.number <= share.machines:
            raise ValueError(f"share {text} must be between 1/{share.machines} and {share.machines}/{share.machines}")
        return share

    def draw(self, count: int) -> int:
        """Return the first of `count` seeds."""
        width = SEEDS // self.machines
        return (self.number - 1) * width + random.SystemRandom().randrange(width - count)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The totals of one chunk, as one line of the state file. `seconds` are those of its process."""

    program: str
    first: int
    counts: dict[str, int]
    findings: list[str]
    seconds: float
    commit: str
    machine: str


def machine() -> str:
    """Return what the totals were run on."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release().split('-')[0]}"


def play(name: str, version: str, share: Share) -> Chunk:
    """Play one chunk of new seeds in a process of its own."""
    program = PROGRAMS[name]
    first = share.draw(program.chunk)
    begun = time.monotonic()
    words = [sys.executable, "-m", *program.words, f"{first}:{first + program.chunk}"]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=SANITIZED if program.sanitized else None,
        env=_sanitizers() if program.sanitized else None,
    )
    counts = counted(done.stdout)
    findings = FINDING.findall(done.stdout)
    if not counts or (done.returncode != 0 and not findings):
        findings.append(f"{' '.join(words[1:])} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return Chunk(name, first, counts, findings, round(time.monotonic() - begun, 1), version, machine())


def counted(output: str) -> dict[str, int]:
    """Return what the last line of a program's output counts."""
    last = output.strip().splitlines()[-1] if output.strip() else ""
    return {word: int(number) for number, word in COUNT.findall(last) if word not in NO_TOTALS}


def _sanitizers() -> dict[str, str]:
    """Return the environment of a process on the build of `make asan`."""
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": f"{SANITIZED.resolve()}:{SANITIZED.resolve() / 'admin'}",
    }
