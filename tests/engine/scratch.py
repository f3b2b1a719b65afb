"""Where worlds keep their files. The path has the same length for every process and on every machine, because bookies
write it into cookies and metadata, and a world depends on their sizes.
"""

from pathlib import Path

__all__ = ["base", "scratch"]

MEMORY = Path("/dev/shm")  # noqa: S108 - the files are small and short-lived
PATH_LENGTH = 40


def base() -> Path:
    """Return the directory that holds the directories of all worlds."""
    return MEMORY if MEMORY.is_dir() else Path("/tmp")  # noqa: S108


def scratch(kind: str) -> Path:
    """Return the path of a directory for a world of this kind that no other process uses."""
    number = Path("/proc/self").readlink()  # os.getpid() gives the same number in each namespace of process ids
    return Path(f"{base()}/bookie-{kind}-{number}-".ljust(PATH_LENGTH, "x"))
