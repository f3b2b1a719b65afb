"""The measurements and their targets: a row for each kind of work."""

from dataclasses import dataclass, field, replace
from typing import Literal

Kind = Literal["add", "cached", "cold", "process"]
Subject = Literal["java", "ours", "busy", "bound", "syncs"]
"""The subjects. `busy` is our bookie while two Python threads of its process spin; `bound` is a program that does only
the I/O, and `syncs` one that writes and syncs without a client.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A limit for the ratio `subject` / `against` of one figure, or for the figure itself if `against` is None."""

    figure: str
    """The path of the figure in the result, for instance `latency_us.p99`."""
    subject: Subject = "ours"
    against: Subject | None = "java"
    row: str = ""
    """The row under whose load `against` is measured, in the same pair; empty: this row's."""
    at_least: float | None = None
    at_most: float | None = None

    def text(self) -> str:
        """Return the limit as text."""
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:.3g}"

    def met(self, value: float) -> bool:
        """Return whether `value` meets the limit."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the comparison, which measures one kind of work.

    `load` has bkload's mode and options; sizes, ranges and times come from the plan.
    """

    name: str
    kind: Kind
    load: tuple[str, ...] = ()
    size: int = 1024
    bound: Literal["add", "lone", "read", "file"] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    """Configuration keys of our bookie for this row only."""
    targets: tuple[Target, ...] = ()
    java: bool = True
    """Whether Apache BookKeeper's bookie supports the operation."""
    apart: bool = False
    """Keep the server off the client's CPU. On the same CPU, two processes that alternate spare each other the
    wake-up.
    """

    @property
    def spins(self) -> bool:
        """Whether client and server poll instead of sleeping."""
        return "--spin" in self.load

    def involves(self, subject: Subject) -> bool:
        """Return whether a target refers to this subject; `busy` and `syncs` are measured for such rows only."""
        return any(subject in (target.subject, target.against) for target in self.targets)


RATE, CPU, P99 = "entries_s", "server.cpu_s_per_million", "latency_us.p99"
# Two CPUs are shared by client, bookie and the spinning threads.
BUSY = Target(figure=P99, subject="busy", against="ours", at_most=1.5)


def adds(size: int, *more: Target) -> Row:
    """Synced adds, 1,000 outstanding."""
    targets = (
        Target(figure=RATE, at_least=4),
        Target(figure=P99, at_most=1 / 8),
        Target(figure=P99, subject="bound", at_most=1 / 8),  # whether the machine allows it
        Target(figure=RATE, against="bound", at_least=0.5),
        *more,
    )
    load = ("add", "--outstanding", "1000", "--ledgers", "10")
    return Row(name=f"add {size} B, 1000 outstanding", kind="add", load=load, size=size, bound="add", targets=targets)


def spread(ledgers: int) -> Row:
    """Synced adds that go to each of many ledgers in turn, compared with those to ten."""
    few = adds(1024).name
    load = ("add", "--outstanding", "1000", "--ledgers", str(ledgers))
    targets = (Target(figure=RATE, at_least=2), Target(figure=RATE, against="ours", row=few, at_least=0.7))
    return Row(name=f"add 1024 B to {ledgers:,} ledgers, 1000 outstanding", kind="add", load=load, targets=targets)


def batches(entries: int, outstanding: int) -> Row:
    """Batch reads from cache."""
    one = (Target(figure=RATE, at_least=2),)
    four = (
        Target(figure=RATE, at_least=4),
        Target(figure=CPU, at_most=1 / 5),
        Target(figure=RATE, against="bound", at_least=0.6),
    )
    load = ("batch", "--batch", str(entries), "--outstanding", str(outstanding))
    return Row(name=f"batch of {entries} from cache, {outstanding} outstanding", kind="cached", load=load,
               bound="read", targets=one if outstanding == 1 else four)  # fmt: skip


def cold(entries: int, outstanding: int, *more: Target) -> Row:
    """Sequential batch reads from disk."""
    targets = (Target(figure=RATE, at_least=4), Target(figure=RATE, against="bound", at_least=0.6), *more)
    load = ("batch", "--batch", str(entries), "--outstanding", str(outstanding))
    return Row(name=f"batch of {entries} from disk, {outstanding} outstanding", kind="cold", load=load, bound="file",
               targets=targets)  # fmt: skip


def v3(row: Row, share: float, over_java: float | None) -> Row:
    """The same load in V3: at least this share of our V2 rate, and this multiple of Java's V3 rate."""
    targets = [Target(figure=RATE, against="ours", row=row.name, at_least=share)]
    if over_java is not None:
        targets.append(Target(figure=RATE, at_least=over_java))
    return replace(row, name=f"{row.name}, V3", load=(*row.load, "--protocol", "3"), bound=None,
                   targets=tuple(targets), java=over_java is not None)  # fmt: skip


READS = Row(
    name="read from cache, 1000 outstanding",
    kind="cached",
    load=("read", "--outstanding", "1000"),
    bound="read",
    targets=(Target(figure=RATE, at_least=3), Target(figure=CPU, at_most=1 / 4), BUSY),
)

ROWS = (
    adds(128),
    adds(1024, BUSY),
    v3(adds(1024), 0.8, 4),
    spread(10_000),
    spread(100_000),
    adds(4096),
    Row(name="add 1024 B, 1 outstanding", kind="add", load=("add", "--outstanding", "1"), bound="lone",
        targets=(Target(figure=RATE, at_least=10), Target(figure=RATE, against="syncs", at_least=0.8),
                 Target(figure=RATE, against="bound", at_least=0.8))),
    batches(100, 4),
    v3(batches(100, 4), 0.9, None),
    batches(500, 4),
    batches(100, 1),
    batches(500, 1),
    READS,
    v3(READS, 0.8, 4),
    Row(name="read from cache, 1 outstanding", kind="cached", load=("read", "--outstanding", "1"), bound="read",
        apart=True, targets=(Target(figure=RATE, at_least=1),)),
    Row(name="read from cache, 1 outstanding, polling", kind="cached", load=("read", "--outstanding", "1", "--spin"),
        bound="read", apart=True, settings={"serverSpinMicros": "50"},
        targets=(Target(figure=RATE, at_least=4), Target(figure=RATE, against="bound", at_least=0.6))),
    cold(100, 1),
    cold(100, 4, BUSY),
    cold(500, 1),
    cold(500, 4),
    Row(name="start to first answer", kind="process", targets=(Target(figure="seconds", at_most=1 / 5),)),
    Row(name="resident memory, caches full", kind="process", targets=(Target(figure="rss_mb", at_most=1 / 2),)),
    Row(name="location index", kind="process",
        targets=(Target(figure="bytes_per_entry", against=None, at_most=8),)),
)  # fmt: skip
