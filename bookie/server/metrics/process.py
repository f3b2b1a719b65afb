"""Metrics of the process: time, memory, descriptors, threads, and two of Java's names that dashboards use."""

import os
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bookie._fast.base.spare_descriptors import kept
from bookie.metrics.family import Family, counter, gauge
from bookie.server.process import budget

__all__ = ["process_families"]

PAGE = os.sysconf("SC_PAGESIZE")
STARTED = time.time()


def process_families() -> Iterator[Family]:
    """Yield the present values from the kernel."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    virtual, resident = [int(word) * PAGE for word in Path("/proc/self/statm").read_text().split()[:2]]
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    yield counter(
        "process_cpu_seconds_total", "CPU time of the process, user and system.", used.ru_utime + used.ru_stime
    )
    yield gauge("process_resident_memory_bytes", "Resident memory of the process.", resident)
    yield gauge("process_virtual_memory_bytes", "Address space of the process; the index maps far more than it uses.",
                virtual)  # fmt: skip
    yield gauge("process_open_fds", "Open file descriptors.", files)
    yield gauge("pybookie_kept_fds", "File descriptors that are reserved for the storage.", kept())
    yield gauge("process_max_fds", "Limit of open file descriptors.", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", STARTED)
    yield gauge("pybookie_python_threads", "Threads known to Python.", threading.active_count())
    yield gauge("jvm_memory_direct_bytes_used", "Resident memory of the process, under Java's name.", resident)
    yield gauge("jvm_memory_direct_bytes_max", "Memory that the machine allows the process, under Java's name.",
                budget.allowed_bytes())  # fmt: skip
