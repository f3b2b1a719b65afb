"""Parses the options of a format into typed values. An error names the option, its value and the remedy. Any process.

Spark passes the names of options in lower case, so a name is spelled out only where it is read, and names are compared
without regard to case.
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
"""The most ids that are held one by one. Ranges that only select have no such limit."""
PASSED_ON = "bookkeeper."
BOOLEANS = {"true": True, "false": False}
UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def within(ranges: Ranges | None, number: int) -> bool:
    """Return whether `number` lies in one of the ranges, which are ascending and disjoint; True if `ranges` is None."""
    if ranges is None:
        return True
    at = bisect_right(ranges, number, key=itemgetter(0))
    return at > 0 and number <= ranges[at - 1][1]


@dataclass(frozen=True)
class Cluster:
    """A cluster and the settings of its client: all that a worker needs to open one. It is pickled into tasks.

    Attributes:
        uri: the metadata service URI.
        settings: pairs of key and value.
    """

    uri: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def with_settings(self, **more: str) -> "Cluster":
        """Return a copy with these settings added, where the user gave none."""
        given = dict(self.settings)
        return Cluster(self.uri, tuple(sorted({**more, **given}.items())))


class Options:
    """The options that a user gave to a format. Each one is read by its name; then `finish` refuses those that were
    not read.

    All methods that read an option raise ConfigurationError if its value is invalid.
    """

    def __init__(self, format_name: str, given: Mapping[str, str]) -> None:
        self.format = format_name
        self._given = {name.lower(): value for name, value in given.items()}
        self._known: dict[str, str] = {}

    def wrong(self, name: str, remedy: str) -> ConfigurationError:
        """Return the error about an option; `remedy` says what would be right."""
        value = self._given.get(name.lower())
        said = f"option {name}" if value is None else f"option {name}={_shown(name, value)!r}"
        return ConfigurationError(f"{said} of format {self.format}: {remedy}")

    def text(self, name: str, default: str = "") -> str:
        """Return the value of an option as text."""
        self._known[name.lower()] = name
        return self._given.get(name.lower(), default)

    def given(self, name: str) -> bool:
        """Return whether the user gave the option."""
        self._known[name.lower()] = name
        return name.lower() in self._given

    def required(self, name: str, example: str) -> str:
        """Return the value of an option that must be given.

        Raises:
            ConfigurationError: the option is missing or empty.
        """
        value = self.text(name)
        if not value:
            raise self.wrong(name, f"is required, for example {example}")
        return value

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """Return one of `choices`, compared without regard to case, as it is spelled there."""
        by_lower = {choice.lower(): choice for choice in choices}
        value = self.text(name, default)
        if value.lower() not in by_lower:
            raise self.wrong(name, f"must be one of {', '.join(by_lower.values())}")
        return by_lower[value.lower()]

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return an option that is `true` or `false`."""
        return self._one_of(name, BOOLEANS, default=default)

    def integer(self, name: str, default: T, *, low: int = 1, high: int = 2**63 - 1) -> int | T:
        """Return an integer from `low` to `high`, or the default, which may be None."""
        value = self.text(name)
        if not value:
            return default
        if not re.fullmatch(r"-?\d{1,19}", value) or not low <= int(value) <= high:
            raise self.wrong(name, f"must be a whole number from {low} to {high}")
        return int(value)

    def size(self, name: str, default: T, *, low: int = 1, high: int = 2**63 - 1) -> int | T:
        """Return a number of bytes, which may be given with the suffix k, m, g or t for powers of 1024."""
        value = self.text(name)
        if not value:
            return default
        found = re.fullmatch(r"(\d{1,15})\s*([bkmgt]?)b?", value.strip().lower())
        number = int(found[1]) * UNITS[found[2] or "b"] if found else -1
        if not low <= number <= high:
            raise self.wrong(name, f"must be a number of bytes from {low} to {high}, for example 4m")
        return number

    def seconds(self, name: str, default: str) -> float:
        """Return a duration in seconds, given with its unit: 200ms, 30s, 15m, 24h, 7d."""
        found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)\s*(ms|s|m|min|h|d)", self.text(name, default).strip().lower())
        if found is None:
            raise self.wrong(name, "must be a duration with its unit, for example 200ms, 30s, 15m, 24h")
        return float(found[1]) * SECONDS[found[2]]

    def ranges(self, name: str) -> Ranges | None:
        """Return ids given as `12,15-18` as ascending, disjoint ranges; None if the option is not given."""
        text = self.text(name)
        if not text:
            return None
        found: list[tuple[int, int]] = []
        for part in text.replace(" ", "").split(","):
            ends = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", part)
            first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
            if first > last:
                raise self.wrong(name, "must be ids and ranges of ids, for example 12,15-18")
            found.append((first, last))
        merged: list[tuple[int, int]] = []
        for first, last in sorted(found):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        return tuple(merged)

    def ids(self, name: str, most: int = IDS_MAX) -> tuple[int, ...]:
        """Return ids one by one, ascending and without duplicates; () if the option is not given.

        Raises:
            ConfigurationError: there are more than `most` ids.
        """
        ranges = self.ranges(name) or ()
        count = sum(last + 1 - first for first, last in ranges)
        if count > most:
            raise self.wrong(
                name, f"names {count} ids; at most {most} can be named: name fewer, or use a log or a filter"
            )
        return tuple(number for first, last in ranges for number in range(first, last + 1))

    def exactly_one(self, *names: str) -> str:
        """Return which of several options was given.

        Raises:
            ConfigurationError: none or more than one of them was given.
        """
        there = [name for name in names if self.text(name)]
        if len(there) != 1:
            got = " and ".join(there) or "none"
            raise ConfigurationError(f"format {self.format}: give exactly one of {', '.join(names)}; got {got}")
        return there[0]

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Return the options with this prefix, by the rest of their names in lower case."""
        found = {name: value for name, value in self._given.items() if name.startswith(prefix.lower())}
        self._known.update({name: name for name in found})
        return {name[len(prefix) :]: value for name, value in found.items()}

    def cluster(self) -> Cluster:
        """Return the cluster of `metadataServiceUri`, with the settings under `bookkeeper.`, which the client checks.

        Raises:
            ConfigurationError: the URI is missing, or a setting does not exist or is invalid.
        """
        uri = self.required("metadataServiceUri", "zk+hierarchical://h1:2181;h2:2181/ledgers")
        keys = {one.metadata["key"].lower(): one.metadata["key"] for one in fields(ClientConfig)}
        settings: dict[str, str] = {}
        for name, value in self.prefixed(PASSED_ON).items():
            if name not in keys:
                near = difflib.get_close_matches(name, keys, n=1)
                remedy = f"did you mean {PASSED_ON}{keys[near[0]]}?" if near else "docs/client.md lists the settings"
                raise self.wrong(PASSED_ON + name, f"no such setting of the client; {remedy}")
            settings[keys[name]] = value
        try:
            ClientConfig.of(settings)
        except ConfigurationError as error:
            raise ConfigurationError(f"format {self.format}: option {PASSED_ON}{error}") from None
        return Cluster(uri, tuple(sorted(settings.items())))

    def finish(self) -> None:
        """Raise ConfigurationError if an option was given that this format does not have."""
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
