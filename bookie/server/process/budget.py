"""The sum of all memory budgets, compared at start with what the machine and the control group allow.

Main thread, at start; reads /proc and /sys. Index maps are address space and pages of files, not memory of the
process, so they are not counted; the storage's own memory for an index is.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bookie._fast.server.access_log import BYTES_A_LOOP as ACCESS_BYTES
from bookie._fast.server.long_polls import BUDGETED as POLL_BYTES
from bookie.errors import StartRefused
from bookie.server.configuration.settings import HttpSettings, NetworkSettings
from bookie.storage.settings import MIB

__all__ = ["allowed_bytes", "check", "parts"]

UNLIMITED = 1 << 60
PROCESS_BYTES = 128 * MIB
"""The memory of an idle process, 75 MiB for interpreter, libraries and stacks, and of fragmentation. Tests verify it
by comparing the sum with the resident memory of bookies under pressure.
"""
TLS_BYTES = 32 << 10
"""The memory of OpenSSL for one connection, including its handshake."""


def parts(
    storage: Mapping[str, int], network: NetworkSettings, http: HttpSettings | None = None, *, tls: bool = False
) -> dict[str, int]:
    """Return every budget by name, in bytes, rounded up to whole MiB; `storage` has those of the ledger storage."""
    encrypted = {"tls": network.connections_max * TLS_BYTES} if tls else {}
    found = {
        "process": PROCESS_BYTES,
        **encrypted,
        **storage,
        "network_input": network.input_bytes_max,
        "network_output": network.output_bytes_max,
        "long_polls": network.long_polls_max * POLL_BYTES,
        "policy_queue": network.policy_bytes_max,
        **({"http_output": http.output_bytes_max} if http is not None and http.enabled else {}),
        **({"access_log": (network.io_threads + 1) * ACCESS_BYTES} if network.access_log else {}),
    }
    return {name: -(-size // MIB) * MIB for name, size in found.items()}


def check(budgets: Mapping[str, int], limit: int) -> int:
    """Return the sum of `budgets`. Raises StartRefused if it exceeds `limit`; both are in bytes."""
    total = sum(budgets.values())
    if total > limit:
        listed = ", ".join(f"{name} {size // MIB}" for name, size in budgets.items())
        raise StartRefused(
            f"the memory budgets add up to {total // MIB} MiB ({listed}), but only {limit // MIB} MiB are allowed;"
            " lower the caches or the network budgets, or raise memoryLimitMb"
        )
    return total


def allowed_bytes(root: Path = Path("/")) -> int:
    """Return the physical memory, or the tightest limit of the control groups of this process. `root` is for tests."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([physical, *_cgroup_limits(root)])


def _cgroup_limits(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            yield from _limits_up(root / "sys/fs/cgroup", group, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_up(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes")


def _limits_up(mount: Path, group: str, name: str) -> Iterator[int]:
    """Yield the limits of `group` and those above it; inside a container only the mount's own may be visible."""
    leaf = mount / group.strip("/")
    for directory in (leaf, *leaf.parents):
        if not directory.is_relative_to(mount):
            return
        try:
            text = (directory / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < UNLIMITED:
            yield int(text)
