"""Metrics of the process: time, memory, descriptors, threads; and the two of Java's that dashboards ask for."""

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
    """As the kernel tells it now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    virtual, resident = [int(word) * PAGE for word in Path("/proc/self/statm").read_text().split()[:2]]
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    yield counter(
        "process_cpu_seconds_total", "CPU time of the process, user and system.", used.ru_utime + used.ru_stime
    )
    yield gauge("process_resident_memory_bytes", "Memory of the process that lies in RAM.", resident)
    yield gauge("process_virtual_memory_bytes", "Address space of the process; the index maps far more than it uses.",
                virtual)  # fmt: skip
    yield gauge("process_open_fds", "Open descriptors.", files)
    yield gauge("pybookie_kept_fds", "Open descriptors that are kept for what storage opens.", kept())
    yield gauge("process_max_fds", "Most descriptors that may be open.", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", STARTED)
    yield gauge("pybookie_python_threads", "Threads that Python knows of.", threading.active_count())
    yield gauge("jvm_memory_direct_bytes_used", "Memory of the process that lies in RAM, under Java's name.", resident)
    yield gauge("jvm_memory_direct_bytes_max", "Memory that the machine allows the process, under Java's name.",
                budget.allowed_bytes())  # fmt: skip
