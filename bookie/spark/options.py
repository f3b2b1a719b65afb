"""Options of a format: text in any case becomes typed values, or one error with option, value and remedy. Any process.

Spark hands option names over in lower case, so a name is spelled once, where it is read, and compared without case.
"""

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import TypeVar

from bookie.client import ClientConfig
from bookie.errors import ConfigurationError

__all__ = ["Cluster", "Options", "Ranges", "within"]

T = TypeVar("T")
Ranges = tuple[tuple[int, int], ...]

IDS_MAX = 1_000_000
"""Of ids that are kept one by one. Ranges that only choose have no such limit."""
PASSED_ON = "bookkeeper."
BOOLEANS = {"true": True, "false": False}
UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def within(ranges: Ranges | None, number: int) -> bool:
    """Whether it is asked for. Ranges are ascending and apart, and may be very many."""
    if ranges is None:
        return True
    at = bisect_right(ranges, number, key=itemgetter(0))
    return at > 0 and number <= ranges[at - 1][1]


@dataclass(frozen=True)
class Cluster:
    """A cluster and the settings of its client: what a worker needs to open one. Pickled into tasks."""

    uri: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def with_settings(self, **more: str) -> "Cluster":
        """With settings of ours where the user gave none."""
        given = dict(self.settings)
        return Cluster(self.uri, tuple(sorted({**more, **given}.items())))


class Options:
    """What a user gave to a format. Each name is read once, then `finish` refuses what nobody read."""

    def __init__(self, format_name: str, given: Mapping[str, str]) -> None:
        self.format = format_name
        self._given = {name.lower(): value for name, value in given.items()}
        self._known: dict[str, str] = {}

    def wrong(self, name: str, remedy: str) -> ConfigurationError:
        """The error about an option; `remedy` says what would be right."""
        value = self._given.get(name.lower())
        said = f"option {name}" if value is None else f"option {name}={_shown(name, value)!r}"
        return ConfigurationError(f"{said} of format {self.format}: {remedy}")

    def text(self, name: str, default: str = "") -> str:
        """As it was given."""
        self._known[name.lower()] = name
        return self._given.get(name.lower(), default)

    def given(self, name: str) -> bool:
        """Whether the user gave it."""
        self._known[name.lower()] = name
        return name.lower() in self._given

    def required(self, name: str, example: str) -> str:
        """ConfigurationError when it is missing or empty."""
        value = self.text(name)
        if not value:
            raise self.wrong(name, f"is required, e.g. {example}")
        return value

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """One of a few words, in any case; as it stands among the choices."""
        by_lower = {choice.lower(): choice for choice in choices}
        value = self.text(name, default)
        if value.lower() not in by_lower:
            raise self.wrong(name, f"must be one of {', '.join(by_lower.values())}")
        return by_lower[value.lower()]

    def boolean(self, name: str, *, default: bool) -> bool:
        """true or false."""
        return self._one_of(name, BOOLEANS, default=default)

    def integer(self, name: str, default: T, *, low: int = 1, high: int = 2**63 - 1) -> int | T:
        """A whole number from `low` to `high`; the default may be None."""
        value = self.text(name)
        if not value:
            return default
        if not re.fullmatch(r"-?\d{1,19}", value) or not low <= int(value) <= high:
            raise self.wrong(name, f"must be a whole number from {low} to {high}")
        return int(value)

    def size(self, name: str, default: T, *, low: int = 1, high: int = 2**63 - 1) -> int | T:
        """Bytes, with k, m, g or t behind it for powers of 1024."""
        value = self.text(name)
        if not value:
            return default
        found = re.fullmatch(r"(\d{1,15})\s*([bkmgt]?)b?", value.strip().lower())
        number = int(found[1]) * UNITS[found[2] or "b"] if found else -1
        if not low <= number <= high:
            raise self.wrong(name, f"must be bytes from {low} to {high}, e.g. 4m")
        return number

    def seconds(self, name: str, default: str) -> float:
        """A time with its unit: 200ms, 30s, 15m, 24h, 7d."""
        found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)\s*(ms|s|m|min|h|d)", self.text(name, default).strip().lower())
        if found is None:
            raise self.wrong(name, "must be a time with its unit, e.g. 200ms, 30s, 15m, 24h")
        return float(found[1]) * SECONDS[found[2]]

    def ranges(self, name: str) -> Ranges | None:
        """Ids as `12,15-18`, ascending and apart; None: the option is not given."""
        text = self.text(name)
        if not text:
            return None
        found: list[tuple[int, int]] = []
        for part in text.replace(" ", "").split(","):
            ends = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", part)
            first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
            if first > last:
                raise self.wrong(name, "must be ids and ranges of ids, e.g. 12,15-18")
            found.append((first, last))
        merged: list[tuple[int, int]] = []
        for first, last in sorted(found):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        return tuple(merged)

    def ids(self, name: str, most: int = IDS_MAX) -> tuple[int, ...]:
        """The same, one by one, each once and ascending; () where it is not given. ConfigurationError: too many."""
        ranges = self.ranges(name) or ()
        count = sum(last + 1 - first for first, last in ranges)
        if count > most:
            raise self.wrong(name, f"names {count}, at most {most} can be named; use a log or a filter, or name fewer")
        return tuple(number for first, last in ranges for number in range(first, last + 1))

    def exactly_one(self, *names: str) -> str:
        """The name out of several that was given. ConfigurationError: none, or more than one."""
        there = [name for name in names if self.text(name)]
        if len(there) != 1:
            got = " and ".join(there) or "none"
            raise ConfigurationError(f"format {self.format}: give exactly one of {', '.join(names)}; got {got}")
        return there[0]

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Options that begin so, without the prefix, in lower case as Spark hands them over."""
        found = {name: value for name, value in self._given.items() if name.startswith(prefix.lower())}
        self._known.update({name: name for name in found})
        return {name[len(prefix) :]: value for name, value in found.items()}

    def cluster(self) -> Cluster:
        """`metadataServiceUri` and everything under `bookkeeper.`, checked as the client checks its settings."""
        uri = self.required("metadataServiceUri", "zk+hierarchical://h1:2181;h2:2181/ledgers")
        keys = {one.metadata["key"].lower(): one.metadata["key"] for one in fields(ClientConfig)}
        settings: dict[str, str] = {}
        for name, value in self.prefixed(PASSED_ON).items():
            if name not in keys:
                near = difflib.get_close_matches(name, keys, n=1)
                remedy = (
                    f"did you mean {PASSED_ON}{keys[near[0]]}?" if near else "see docs/client.md for those there are"
                )
                raise self.wrong(PASSED_ON + name, f"no such setting of the client; {remedy}")
            settings[keys[name]] = value
        try:
            ClientConfig.of(settings)
        except ConfigurationError as error:
            raise ConfigurationError(f"format {self.format}: option {PASSED_ON}{error}") from None
        return Cluster(uri, tuple(sorted(settings.items())))

    def finish(self) -> None:
        """ConfigurationError: an option that this format does not have."""
        for name in self._given:
            if name not in self._known:
                near = difflib.get_close_matches(name, self._known, n=1)
                raise self.wrong(name, f"no such option{f'; did you mean {self._known[near[0]]}?' if near else ''}")

    def _one_of(self, name: str, values: Mapping[str, bool], *, default: bool) -> bool:
        value = self.text(name)
        if not value:
            return default
        if value.lower() not in values:
            raise self.wrong(name, "must be true or false")
        return values[value.lower()]


def _shown(name: str, value: str) -> str:
    return "*****" if "pass" in name.lower() or "secret" in name.lower() else value
