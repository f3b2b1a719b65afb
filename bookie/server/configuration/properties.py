"""The syntax of a configuration file: Java properties, with `${env:NAME}` replaced from the environment.

Pure functions; any thread. The rules are those of java.util.Properties: `#` and `!` begin a comment, a backslash at
the end of a line continues it, the first unescaped `=`, `:` or blank ends the key, `\\t \\n \\r \\f` and `\\u` with
four hexadecimal digits are escapes, and any other escaped character stands for itself. Two things differ: the file
is UTF-8, and a key that is set twice is reported.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["interpolate", "parse", "PropertiesError", "Property"]

BLANK = " \t\f"
LINE_END = re.compile(r"\r\n|\n|\r")
KEY_END = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
VARIABLE = re.compile(r"\$\{([^}]*)\}")
NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """A syntax error; the message begins with the line number."""


@dataclass(frozen=True, slots=True)
class Property:
    """An assignment of a file. The value is unescaped but not interpolated; `line` counts from 1."""

    key: str
    value: str
    line: int


def parse(text: str) -> list[Property]:
    """Return all assignments of `text` in order, including repeated keys. Raises PropertiesError."""
    return [_assignment(line, number) for line, number in _logical_lines(text)]


def interpolate(value: str, environment: Mapping[str, str]) -> str:
    """Return `value` with each `${env:NAME}` replaced. Raises PropertiesError for unset names and other `${...}`."""

    def resolve(match: re.Match[str]) -> str:
        kind, _, name = match[1].partition(":")
        if kind != "env" or not name:
            raise PropertiesError(f"{match[0]} is not supported; only ${{env:NAME}} is replaced")
        if name not in environment:
            raise PropertiesError(f"{match[0]}: the environment variable {name} is not set")
        return environment[name]

    return VARIABLE.sub(resolve, value)


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield lines without comments and blank lines, continued ones joined, each with the number of its first line."""
    pending: str | None = None
    first = 0
    for number, natural in enumerate(LINE_END.split(text), 1):
        line = natural.lstrip(BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            pending, first = "", number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        if pending + line:
            yield pending + line, first
        pending = None
    if pending:
        yield pending, first


def _assignment(line: str, number: int) -> Property:
    key_end = KEY_END.match(line)
    assert key_end
    separator = SEPARATOR.match(line, key_end.end())
    assert separator
    return Property(_unescape(key_end[0], number), _unescape(line[separator.end() :], number), number)


def _unescape(text: str, number: int) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] != "u":
            return NAMED.get(code, code)
        if not re.fullmatch(r"u[0-9a-fA-F]{4}", code):
            raise PropertiesError(f"line {number}: \\{code} is not \\u and four hexadecimal digits")
        return chr(int(code[1:], 16))

    units = ESCAPE.sub(replace, text)
    try:  # \\u names UTF-16 units, and two of them may form one character
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise PropertiesError(f"line {number}: half of a surrogate pair in {text!r}") from None
