"""The sum of all memory budgets, compared at start with what the machine and the control group allow.

Main thread, at start. Index maps are address space and pages of files, not memory of the
process, so they are not counted; the storage's own memory for an index is.
"""

from collections.abc import Mapping

from bookie._fast.server.access_log import BYTES_A_LOOP as ACCESS_BYTES
from bookie._fast.server.long_polls import BUDGETED as POLL_BYTES
from bookie.errors import StartRefused
from bookie.server.configuration.memory import allowed_bytes
from bookie.server.configuration.settings import HttpSettings, NetworkSettings
from bookie.storage.settings import MIB

__all__ = ["allowed_bytes", "check", "parts"]

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
