"""The text of a cookie from a file, looked at before it goes anywhere."""

from pathlib import Path

from bookie.errors import IllegalOperation

__all__ = ["cookie_from"]


def cookie_from(file: Path, bookie: str) -> bytes:
    """CookieError when it is none, IllegalOperation when it is another bookie's."""
    from bookie.storage.cookies import parse_cookie  # noqa: PLC0415

    text = file.read_bytes()
    found = parse_cookie(text, str(file)).bookie_id
    if found != bookie:
        raise IllegalOperation(f"{file} is the cookie of bookie {found}, not of {bookie}; name the right one")
    return text
