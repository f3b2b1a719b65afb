"""The answer to a batch read in plain Python, after docs/formats/wire-v2.md: the oracle of the read path."""

from collections.abc import Mapping

FIXED = 36
COUNT_MOST = 0x7FFFFFFF


def batch(
    entries: Mapping[int, bytes], start: int, count_max: int, size_max: int, *, batch_max: int, frame_max: int
) -> list[bytes]:
    """Return the entries of the answer, empty where there is no such entry. `start` -1 means the last one, alone."""
    if start == -1:
        return [entries[max(entries)]] if entries else []
    if start not in entries:
        return []
    count = count_max if count_max > 0 else COUNT_MOST
    limit = min(size_max, batch_max, frame_max)
    taken = [entries[start]]
    used = FIXED + len(entries[start]) + 4
    while len(taken) < count and (following := entries.get(start + len(taken))) is not None:
        used += len(following) + 4
        if used > limit:
            break
        taken.append(following)
    return taken
