"""Files with secrets, such as tokens, users, private keys and their passwords. They are read only if nobody else may
access them.

A server refuses a file that others may read or write. A client logs that once and continues, because it may not be
able to choose the permissions: Spark, for example, gives its executors every file readable by all. Any thread.
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
    """A file that cannot be used. `reason` and `remedy` contain nothing of the file's contents."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason, self.remedy = reason, remedy
        super().__init__(f"{reason}; {remedy}")


def read_secret(path: str | Path, *, strict: bool = True) -> bytes:
    """Return the contents, at most FILE_BYTES_MAX. Raises SecretRefused; if not `strict`, only logs other access."""
    try:
        with Path(path).open("rb") as file:
            found = os.fstat(file.fileno())  # the state of this very file, even if it is replaced meanwhile
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        remedy = "set it to a file that this process can read"
        raise SecretRefused(f"it cannot be read ({error.strerror})", remedy) from None
    mode = stat.S_IMODE(found.st_mode)
    if mode & _others(found.st_uid):
        if strict:
            remedy = "set its mode to 600; or to 440, if another user owns it and this process reads it by its group"
            raise SecretRefused(f"others may access it (mode {mode:o})", remedy)
        _tell(str(path), mode)
    if len(data) > FILE_BYTES_MAX:
        raise SecretRefused(f"it is larger than {FILE_BYTES_MAX} bytes", "set it to a smaller file")
    return data


def read_secret_text(path: str | Path, *, strict: bool = True) -> str:
    """Return the contents of a file of UTF-8 text, like `read_secret`."""
    try:
        return read_secret(path, strict=strict).decode()
    except UnicodeDecodeError:
        raise SecretRefused("it cannot be read as UTF-8", "set it to a file of UTF-8 text") from None


def check_secret(path: str | Path, *, strict: bool = True) -> None:
    """Check a file that a library opens by its path. Raises SecretRefused where `read_secret` would."""
    read_secret(path, strict=strict)


def _others(owner: int) -> int:
    """Return the bits of a mode that give access to anyone but the file's owner and this process.

    A group may read a file that this process does not own, because a secret of Kubernetes, which root owns, comes to
    a process of another user in this way.
    """
    return NOBODYS | (stat.S_IRGRP if owner == os.geteuid() else 0)


@functools.lru_cache(TOLD_MAX)
def _tell(path: str, mode: int) -> None:
    log.warning(
        "others may access a file with a secret; set its mode to 600", extra={"file": path, "mode": f"{mode:o}"}
    )
