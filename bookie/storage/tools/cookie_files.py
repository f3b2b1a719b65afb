"""The cookies of one bookie side by side: list them, compare them, and rewrite one.

Listing changes nothing. Rewriting one is for a disk that was lost or replaced on purpose. It disables the very check
that keeps a bookie from denying entries that it has lost, so run the data integrity check afterwards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie.errors import CookieError, ToolRefused
from bookie.storage.cookies import FILE_NAME, Cookie, CookieStore, parse_cookie, write_cookie_file
from bookie.storage.layout import current

__all__ = ["compare_cookies", "CookieFound", "rewrite_cookie", "show_cookies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CookieFound:
    """One place where a cookie should be."""

    where: str
    """A path, or the metadata store."""
    cookie: Cookie | None
    problem: str = ""
    """Why there is no cookie, or how it differs from the others; empty if it is fine."""


def show_cookies(bookie_id: str, store: CookieStore | None, directories: Iterable[Path]) -> list[CookieFound]:
    """Return the cookies of the metadata store (unless None) and of each directory, in whatever state they are."""
    found = []
    if store is not None:
        where = f"the metadata store's cookie of {bookie_id}"
        entry = store.read(bookie_id)
        found.append(_parsed(where, entry[0] if entry is not None else None))
    for root in dict.fromkeys(directories):
        path = current(root) / FILE_NAME
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            found.append(_parsed(str(path), None))
        except OSError as error:
            problem = f"{path} cannot be read: {error.strerror}"
            found.append(CookieFound(where=str(path), cookie=None, problem=problem))
        else:
            found.append(_parsed(str(path), text))
    return found


def compare_cookies(found: Sequence[CookieFound], wanted: Cookie | None = None) -> list[CookieFound]:
    """Return `found` with each difference from `wanted` described; None compares with the first cookie found."""
    reference = wanted or next((one.cookie for one in found if one.cookie is not None), None)
    return [_compared(one, reference) for one in found]


def rewrite_cookie(directory: Path, cookie: Cookie, *, replace: bool = False) -> Path:
    """Write `cookie` into `directory` (as configured), and return the file. The caller holds the directory's lock.

    Raises ToolRefused if the directory has a different cookie, unless `replace` is set.
    """
    path = current(directory) / FILE_NAME
    if path.exists() and not replace:
        compared = _compared(_parsed(str(path), path.read_bytes()), cookie)
        if compared.problem:
            raise ToolRefused(f"{compared.problem}; replace it only if this directory belongs to this bookie (replace)")
        return path
    write_cookie_file(path, cookie.to_bytes())
    return path


def _parsed(where: str, text: bytes | None) -> CookieFound:
    if text is None:
        return CookieFound(where=where, cookie=None, problem=f"{where} is missing")
    try:
        return CookieFound(where=where, cookie=parse_cookie(text, where))
    except CookieError as error:
        return CookieFound(where=where, cookie=None, problem=str(error))


def _compared(one: CookieFound, reference: Cookie | None) -> CookieFound:
    difference = reference.difference(one.cookie) if reference is not None and one.cookie is not None else None
    if difference is None:
        return one
    name, ours, theirs = difference
    return CookieFound(
        where=one.where, cookie=one.cookie, problem=f"{one.where} says {name}={theirs!r} instead of {ours!r}"
    )
