"""Check the types of arguments, so that a wrong one is refused where it is given. Any thread.

The texts name the argument, its value and the remedy; the value of a password is not shown.
"""

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from bookie.errors import IncorrectParameter

__all__ = ["binary", "custom_metadata", "flag", "IDS_END", "integer", "integers"]

IDS_END = 1 << 63
"""Ids of ledgers and of entries are below this."""


def integer(name: str, value: Any) -> int:
    """Return an argument that must be an integer; numpy's are accepted. Raises IncorrectParameter."""
    if type(value) is int:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise IncorrectParameter(f"{name}={value!r}: it must be an integer, not {_kind(value)}") from None


def integers(name: str, values: Any) -> tuple[int, ...]:
    """Return an argument that must be several integers. Raises IncorrectParameter."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise IncorrectParameter(f"{name}={values!r}: it must be a list of integers, not {_kind(values)}")
    return tuple(integer(name, one) for one in values)


def binary(name: str, value: Any) -> bytes:
    """Return a copy of an argument that must be bytes. Raises IncorrectParameter, which does not show the value."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    hint = f'; write {name}=b"...", or use text.encode()' if isinstance(value, str) else ""
    raise IncorrectParameter(f"{name}: it must be bytes, not {_kind(value)}{hint}")


def flag(name: str, value: Any) -> bool:
    """Return an argument that must be True or False. Raises IncorrectParameter."""
    if isinstance(value, bool):
        return value
    raise IncorrectParameter(f"{name}={value!r}: it must be True or False, not {_kind(value)}")


def custom_metadata(value: Any) -> dict[str, bytes]:
    """Return a copy of custom metadata, which must be bytes by text. Raises IncorrectParameter."""
    if not isinstance(value, Mapping):
        raise IncorrectParameter(f"custom_metadata={value!r}: it must be a mapping of text to bytes")
    for key in value:
        if not isinstance(key, str):
            raise IncorrectParameter(f"custom_metadata: the key {key!r} must be text, not {_kind(key)}")
    return {key: binary(f"custom_metadata[{key!r}]", one) for key, one in value.items()}


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
