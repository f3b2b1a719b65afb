"""Prints the results of a command to standard output: as a table for people, or as JSON or YAML for programs."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, ClassVar

import click

__all__ = ["Bytes", "Count", "done", "Moment", "progress_bar", "rounded", "show", "show_again", "show_long", "State"]

UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
THOUSAND = 1000
ROUNDS_UP = 999.5
"""From here on, a number with three digits rounds to a thousand."""
DECIMAL = re.compile(r"(?<=\d)_(?=\d)")
SMALL = 1e-4
"""Below this, a number without an exponent would have mostly zeros."""
PAGE_ROWS = 1000
"""A long table is printed in pages of this many rows; the first page decides on the columns."""
LINE_MAX = 4
"""A mapping with more items than this is printed with one item per line."""
Row = Mapping[str, Any]


class Bytes(int):
    """A number of bytes: a plain integer for programs, with a decimal unit for people."""

    def __str__(self) -> str:
        value, unit = float(self), 0
        while value >= ROUNDS_UP and unit < len(UNITS) - 1:
            value, unit = value / THOUSAND, unit + 1
        return f"{rounded(value, 3)} {UNITS[unit]}"


class Count(int):
    """How many of something there are: a plain integer for programs, with separators of thousands for people."""

    def __str__(self) -> str:
        return f"{int(self):,}"


class State(str):
    """A state: plain text for programs and files, in its colour on a terminal."""

    __slots__ = ()
    COLOURS: ClassVar = {"writable": "green", "read-only": "yellow", "absent": "red"}


class Moment(int):
    """A time in milliseconds since 1970: a plain integer for programs, the local time for people; 0 means never."""

    def __str__(self) -> str:
        if not self:
            return "never"
        return datetime.fromtimestamp(int(self) / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S%z")


def rounded(value: float, digits: int = 4) -> str:
    """Return a number for people, rounded to some digits, but not above its point; only tiny ones have an exponent."""
    if not math.isfinite(value) or 0 < abs(value) < SMALL:
        return f"{value:.{digits}g}"
    if not value:
        return "0"
    after = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{after}f}"
    return text.rstrip("0").rstrip(".") if after else text


def show(output: str, name: str, rows: Iterable[Row] | None = None, **facts: Any) -> None:
    """Print rows and single facts.

    Args:
        output: the format: `table`, `json` or `yaml`.
        name: the name of the rows, which is their key in JSON and YAML.
        rows: the rows, or None if there are only facts.
        facts: single values, printed after the table.
    """
    found = None if rows is None else [dict(row) for row in rows]
    if output != "table":
        whole = facts if found is None else {name: found, **facts}
        click.echo(_structured(output, whole))
        return
    if found:
        _Table(found).print(found)
    elif found is not None:
        click.echo(f"no {name}")
    _print_facts(facts)


def show_long(
    output: str, name: str, rows: Iterable[Row], facts: Callable[[], Mapping[str, Any]] = dict[str, Any]
) -> None:
    """Print any number of rows as they are produced, and then the facts, which are requested after the last row.

    Nothing is printed before the first page of rows is complete, so an error before it leaves no output. JSON and YAML
    have one row per line.
    """
    each = iter(rows)
    pages = iter(lambda: list(islice(each, PAGE_ROWS)), [])
    page = next(pages, [])
    if output == "table":
        table = _Table(page)
        for more in chain([page] if page else [], pages):
            table.print(more)
        if not page:
            click.echo(f"no {name}")
        _print_facts(facts())
        return
    head, lead, between = (f'{{\n  "{name}": [', "\n    ", ",") if output == "json" else (f"{name}:", "\n- ", "")
    click.echo(head + between.join(lead + _line(row) for row in page), nl=False)
    for more in pages:
        click.echo("".join(between + lead + _line(row) for row in more), nl=False)
    if output == "json":
        click.echo("\n  ]" + "".join(f',\n  "{key}": {_line(value)}' for key, value in facts().items()) + "\n}")
    else:
        found = facts()
        click.echo(("" if page else " []") + (f"\n{_structured(output, found)}" if found else ""))


def _print_facts(facts: Mapping[str, Any]) -> None:
    for key, value in facts.items():
        if isinstance(value, Mapping) and len(value) > LINE_MAX:
            click.echo(f"{_label(key, [value])}:")
            for part, one in value.items():
                click.echo(f"  {part}: {_text(one)}")
        else:
            click.echo(f"{_label(key, [value])}: {_text(value)}")


def show_again(output: str, name: str, rows: Iterable[Row] | None = None, **facts: Any) -> None:
    """Print one result of a series: a line of JSON, a document of YAML, or a table after a separator line."""
    whole = facts if rows is None else {name: [dict(row) for row in rows], **facts}
    if output == "json":
        click.echo(_line(whole))
    elif output == "yaml":
        click.echo(f"---\n{_structured(output, whole)}")
    else:
        click.echo("---")
        show(output, name, whole.pop(name, None), **whole)


def done(output: str, text: str, **facts: Any) -> None:
    """Print a line of text for people, or the facts for programs."""
    click.echo(text if output == "table" else _structured(output, facts))


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float, float | None], None]]:
    """Show a progress bar on standard error if that is a terminal; yield a function to call with (done, total). The
    total is None if nobody knows it.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line(value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except ValueError:  # JSON has no nan and no infinity
        return json.dumps(_finite(value), default=_plain)


def _structured(output: str, whole: Any) -> str:
    plain = json.dumps(_finite(whole), indent=2, default=_plain)
    if output == "json":
        return plain
    import yaml  # noqa: PLC0415

    return str(yaml.safe_dump(json.loads(plain), sort_keys=False, allow_unicode=True)).rstrip("\n")


def _finite(value: Any) -> Any:
    """Return the value with null in place of nan and the infinities, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (frozenset, set)):
        return sorted(value)
    return str(value)


def _label(name: str, values: Iterable[Any]) -> str:
    """Return a name for people: "p99.9 ms" for `p99_9_ms`, and without the suffix of a unit that is not shown."""
    if any(isinstance(one, Moment) for one in values):
        name = name.removesuffix("_ms")
    return DECIMAL.sub(".", name).replace("_", " ")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, State):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(one)}" for key, one in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(map(_text, value)) or "-"
    return str(value)


def _painted(text: str) -> str:
    """Return a state in its colour, which `click.echo` removes where it does not print to a terminal."""
    return click.style(str(text), fg=State.COLOURS.get(text)) if isinstance(text, State) else text


class _Table:
    """A table whose columns are those of its first rows; later rows can make them wider."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._names = list(dict.fromkeys(name for row in rows for name in row))
        heads = [_label(name, (row.get(name) for row in rows)) for name in self._names]
        self._right = [all(isinstance(row.get(name), (int, float, type(None))) for row in rows) for name in self._names]
        self._widths = [len(head) for head in heads]
        self._heads: list[list[str]] = [heads]

    def print(self, rows: Iterable[Row]) -> None:
        """Print rows; the first call also prints the header."""
        lines = [*self._heads, *([_text(row.get(name)) for name in self._names] for row in rows)]
        self._heads = []
        self._widths = [max(least, *(len(line[k]) for line in lines)) for k, least in enumerate(self._widths)]
        columns = list(zip(self._widths, self._right, strict=True))
        whole = []
        for line in lines:
            parts = (
                " " * (n - len(one)) + one if right else _painted(one) + " " * (n - len(one))
                for one, (n, right) in zip(line, columns, strict=True)
            )
            whole.append("  ".join(parts).rstrip())
        click.echo("\n".join(whole))
