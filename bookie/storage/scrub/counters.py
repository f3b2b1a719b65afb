"""The counters of the scrub. The thread `scrub` writes them; any thread may read them."""

from dataclasses import dataclass, field

from bookie.storage.scrub.findings import Kind

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Counters since the start of the process."""

    bytes: int = 0
    logs: int = 0
    records: int = 0
    verified: int = 0
    """Records whose digest was known and computed."""
    passes: int = 0
    found: dict[Kind, int] = field(default_factory=lambda: {kind: 0 for kind in Kind if kind is not Kind.READ})
    thread_ms: int = 0
    """Processor time of the thread."""

    def stats(self) -> dict[str, int | float]:
        """Return the counters under the names that metrics use."""
        own = {
            "scrub_bytes": self.bytes,
            "scrub_logs": self.logs,
            "scrub_records": self.records,
            "scrub_verified": self.verified,
            "scrub_passes": self.passes,
            "scrub_thread_ms": self.thread_ms,
        }
        return {**own, **{f"scrub_found_{kind.value}": count for kind, count in self.found.items()}}
