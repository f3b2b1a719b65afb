"""The tables of keys in docs/configuration.md, generated from the keys. Pure; a test compares the page with them."""

from collections.abc import Iterator

from bookie.server.configuration.foreign_keys import IGNORED, LATER, REFUSED
from bookie.server.configuration.key import Key
from bookie.server.configuration.keys import GROUPS

__all__ = ["BEGIN", "END", "render"]

BEGIN = "<!-- keys: made by `bookie-server --keys`, compared by a test -->"
END = "<!-- end of keys -->"


def render() -> str:
    """Return Markdown: a table for each group, then the keys that are refused, have no effect, or are ignored."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for group in GROUPS:
        yield from (f"### {group.title}", "", "| key | default | value | meaning |", "|---|---|---|---|")
        yield from map(_row, group.keys)
        yield ""
    yield from ("### Accepted only at this value", "", "| key | value | why |", "|---|---|---|")
    for name, (allowed, reason) in REFUSED.items():
        yield f"| {name} | {allowed or 'unset'} | {reason} |"
    yield from ("", "### Without effect (the start logs a warning)", "", "| key | why |", "|---|---|")
    for name, reason in LATER.items():
        yield f"| {name} | {reason} |"
    yield from ("", "### Without a meaning here (accepted, logged at debug level)", "", "| keys | why |", "|---|---|")
    for reason, names in IGNORED.items():
        yield f"| {' '.join(sorted(names.split()))} | {reason} |"


def _row(key: Key) -> str:
    default = "**required**" if key.required else key.default or "unset"
    older = f" Older name: `{key.old}`." if key.old else ""
    differs = f" *Apache BookKeeper: {key.differs}.*" if key.differs else ""
    return f"| {key.name} | {default} | {key.expects()} | {key.doc}{older}{differs} |"
