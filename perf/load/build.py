"""Compiles the load generator and the bound programs into build/perf/. A program is rebuilt when a source is newer."""

import os
import platform
import subprocess
import tempfile
from pathlib import Path

PERF = Path(__file__).resolve().parent.parent
OUT = PERF.parent / "build" / "perf"
PROGRAMS = {
    "bkload": [
        "load/answers.c",
        "load/answers_v3.c",
        "load/bkload.c",
        "load/process.c",
        "load/report.c",
        "load/requests.c",
        "load/requests_v3.c",
        "load/worker.c",
    ],
    "read_bound": ["bounds/read_bound.c"],
    "add_bound": ["bounds/add_bound.c"],
    "lone_add": ["bounds/lone_add.c"],
    "lone_read": ["bounds/lone_read.c"],
    "sync_rate": ["bounds/sync_rate.c"],
    "cold_read": ["bounds/cold_read.c"],
    "random_read": ["bounds/random_read.c"],
    "relay": ["distance/relay.c"],
}
NEED_OPENSSL = {"tls_batches": ["load/tls_batches.c"]}
"""Programs that are built on request only, because they need OpenSSL's headers (libssl-dev)."""
CRC_FLAG = "-march=armv8-a+crc" if platform.machine() == "aarch64" else "-msse4.2"
FLAGS = [
    "-std=gnu11",
    "-O2",
    "-g1",
    CRC_FLAG,
    "-D_GNU_SOURCE",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Werror",
    "-pthread",
]


def build(program: str) -> Path:
    """Compile a program if necessary; return its path.

    Raises:
        CalledProcessError: the compiler fails.
    """
    target = OUT / program
    sources = [PERF / name for name in {**PROGRAMS, **NEED_OPENSSL}[program]]
    libraries = ["-lssl", "-lcrypto"] if program in NEED_OPENSSL else []
    newest = max(path.stat().st_mtime for path in [*sources, *PERF.glob("*/*.h")])
    if target.exists() and target.stat().st_mtime > newest:
        return target
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as scratch:
        fresh = Path(scratch) / program
        subprocess.run([*os.environ.get("CC", "gcc").split(), *FLAGS, *sources, *libraries, "-o", fresh], check=True)
        fresh.replace(target)
    return target


def build_all() -> dict[str, Path]:
    """Compile all programs; return their paths by name."""
    return {program: build(program) for program in PROGRAMS}


if __name__ == "__main__":
    build_all()
