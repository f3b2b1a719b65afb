"""Files that hold secrets: tokens, users, private keys, passwords of keys. Read only while nobody else may use them.

A server refuses a file that others may read or write. A client tells of it, once, and goes on: files come to it in ways
that leave it no choice, as Spark gives its executors every file readable by all. Any thread.
"""

import functools
import logging
import os
import stat
from pathlib import Path

__all__ = ["check_secret", "FILE_BYTES_MAX", "read_secret", "read_secret_text", "SecretRefused"]

FILE_BYTES_MAX = 1 << 20
NOBODYS = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
TOLD_MAX = 1024

log = logging.getLogger(__name__)


class SecretRefused(Exception):
    """A file that cannot be used; `reason` and `remedy` hold nothing of what stands in it."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason, self.remedy = reason, remedy
        super().__init__(f"{reason}; {remedy}")


def read_secret(path: str | Path, *, strict: bool = True) -> bytes:
    """What the file holds, FILE_BYTES_MAX at most. SecretRefused; not `strict`: others may use it all the same."""
    try:
        with Path(path).open("rb") as file:
            found = os.fstat(file.fileno())  # of this very file, whoever replaces it meanwhile
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        remedy = "name a file that this process can read"
        raise SecretRefused(f"it cannot be read ({error.strerror})", remedy) from None
    mode = stat.S_IMODE(found.st_mode)
    if mode & _others(found.st_uid):
        if strict:
            remedy = "give it the mode 600; or 440, where it is another user's and this process reads it by its group"
            raise SecretRefused(f"others may use it (mode {mode:o})", remedy)
        _tell(str(path), mode)
    if len(data) > FILE_BYTES_MAX:
        raise SecretRefused(f"it is larger than {FILE_BYTES_MAX} bytes", "name a smaller file")
    return data


def read_secret_text(path: str | Path, *, strict: bool = True) -> str:
    """The same of a file of UTF-8 text."""
    try:
        return read_secret(path, strict=strict).decode()
    except UnicodeDecodeError:
        raise SecretRefused("it cannot be read as UTF-8", "name a file of UTF-8 text") from None


def check_secret(path: str | Path, *, strict: bool = True) -> None:
    """For files that a library opens by their path. SecretRefused where `read_secret` would raise it."""
    read_secret(path, strict=strict)


def _others(owner: int) -> int:
    """The bits of a mode that let in more than who owns the file, and us.

    A group may read what is not ours: so a secret of Kubernetes, which is root's, comes to a process that is not root.
    """
    return NOBODYS | (stat.S_IRGRP if owner == os.geteuid() else 0)


@functools.lru_cache(TOLD_MAX)
def _tell(path: str, mode: int) -> None:
    log.warning("others may use a file with a secret, give it the mode 600", extra={"file": path, "mode": f"{mode:o}"})
