"""Replays an access log with one cache size and readahead: disk reads per entry served, in total, by ledger and by
client.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bookie.spark.reread.access_log import AccessLog, read_log
from bookie.spark.reread.cache import CacheModel, CacheSettings

__all__ = ["replay", "Replay"]

TOP = 20


@dataclass(frozen=True, slots=True)
class Replay:
    """The parameters of a replay, picklable. `directories` is the number of ledger directories that share the cache."""

    paths: tuple[str, ...]
    settings: CacheSettings
    directories: int

    @property
    def name(self) -> str:
        """The name of the replay within a job."""
        one = self.settings
        kind = " adaptive" if one.adaptive else ""
        return f"{one.cache_bytes >> 20} MiB, {one.readahead_entries} ahead{kind}"


def replay(wanted: Replay, log: AccessLog | None = None) -> dict[str, Any]:
    """Replay a log and return the results as a row; without `log`, the files are read."""
    if log is None:
        log = read_log(Path(path) for path in wanted.paths)
    one = wanted.settings
    each = CacheSettings(
        one.cache_bytes // wanted.directories,
        one.segment_bytes,
        one.readahead_entries,
        one.readahead_bytes,
        one.adaptive,
    )
    models = [CacheModel(each) for _ in range(wanted.directories)]
    served: tuple[Counter[int], Counter[str]] = Counter(), Counter()
    brought: tuple[Counter[int], Counter[str]] = Counter(), Counter()
    for ledger, entry, count, client in log.reads:
        model = models[ledger % wanted.directories]
        before = model.counts.readahead_batch_count
        model.read(ledger, entry, count, log.record_bytes[ledger], log.last[ledger])
        more = model.counts.readahead_batch_count - before
        for by, key in ((0, ledger), (1, client)):
            served[by][key] += count  # type: ignore[index]  # ledgers count ledgers, clients clients
            brought[by][key] += more  # type: ignore[index]
    total = Counter[str]()
    for model in models:
        total.update(asdict(model.counts))
    return {
        "replay": wanted.name,
        "cache_mib": one.cache_bytes >> 20,
        "readahead_entries": one.readahead_entries,
        "adaptive": one.adaptive,
        "reads_per_entry": total["readahead_batch_count"] / max(total["served"], 1),
        "hit_ratio": total["read_cache_hits"] / max(total["served"], 1),
        "unused_share": total["evicted_unused_entries"] / max(total["evicted_entries"], 1),
        **total,
        "ledgers": _worst(served[0], brought[0], "ledger"),
        "clients": _worst(served[1], brought[1], "client"),
    }


def _worst(served: Counter[Any], brought: Counter[Any], name: str) -> Sequence[dict[str, Any]]:
    """Return the ledgers or clients with the most disk reads beyond the entries they were served."""
    ordered = sorted(served, key=lambda one: (served[one] - brought[one], str(one)))
    return [
        {name: one, "served": served[one], "from_disk": brought[one], "reads_per_entry": brought[one] / served[one]}
        for one in ordered[:TOP]
    ]
