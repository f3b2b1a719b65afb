"""Reads the text of a cookie from a file and validates it before it is sent anywhere."""

from pathlib import Path

from bookie.errors import IllegalOperation

__all__ = ["cookie_from"]


def cookie_from(file: Path, bookie: str) -> bytes:
    """Return the content of `file` if it is a valid cookie of `bookie`.

    Raises:
        CookieError: `file` does not hold a cookie.
        IllegalOperation: the cookie belongs to another bookie.
    """
    from bookie.storage.cookies import parse_cookie  # noqa: PLC0415

    text = file.read_bytes()
    found = parse_cookie(text, str(file)).bookie_id
    if found != bookie:
        raise IllegalOperation(f"{file} is the cookie of bookie {found}, not of {bookie}; name the file of {bookie}")
    return text
