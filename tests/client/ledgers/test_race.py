"""Ask one replica after the other: order, late ones, the most informative error, and answers that are discarded."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bookie.client.ledgers.coverage import Coverage, ask_all
from bookie.client.ledgers.race import Patience, Race, weightier
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    DigestMismatch,
    NoSuchEntry,
    NoSuchLedger,
    ReadError,
    RequestTimeout,
)

NEVER = Patience(0, 0, 2)
SOON = Patience(0.01, 0.01, 1)


class Answers:
    """Bookies whose answers the test gives. `asked` has them in the order of the requests."""

    def __init__(self, **given: "int | BookKeeperError") -> None:
        self.given = given
        self.asked: list[str] = []
        self.waiting: dict[str, asyncio.Future[int]] = {}
        self.slow: list[str] = []
        self._arrived = asyncio.Event()

    async def until_waiting(self, bookie: str) -> None:
        """Wait until a bookie was asked and waits for the test."""
        while bookie not in self.waiting:
            self._arrived.clear()
            await self._arrived.wait()

    async def ask(self, bookie: str) -> int:
        """Return the given answer, or wait for the test to give it."""
        self.asked.append(bookie)
        if bookie not in self.given:
            self.waiting[bookie] = asyncio.get_running_loop().create_future()
            self._arrived.set()
            return await self.waiting[bookie]
        answer = self.given[bookie]
        if isinstance(answer, BookKeeperError):
            raise answer
        return answer

    def race(self, patience: Patience = NEVER, *, heard: set[str] | None = None, enough: int = 0) -> Race[int, int]:
        """Race over the replicas a, b and c; 13 is a bad answer."""

        def judge(bookie: str, answer: int) -> int:
            if answer == 13:
                raise DigestMismatch(bookie)
            return answer

        return Race("abc", self.ask, judge, patience, heard=heard, enough_missing=enough, on_slow=self.slow.append)


def run(work: Callable[[], Awaitable[None]]) -> None:
    """Run on an event loop of its own."""

    async def main() -> None:
        await work()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "asked", "wins"),
    [
        ({"a": 1}, "a", 1),
        ({"a": ReadError("a"), "b": 2}, "ab", 2),
        ({"a": 13, "b": 13, "c": 3}, "abc", 3),
        ({"a": NoSuchEntry("a"), "b": BookieUnavailable("b"), "c": 3}, "abc", 3),
    ],
)
def test_next_replica(given: dict[str, int | BookKeeperError], asked: str, wins: int) -> None:
    """BR3, L14: one replica is asked at a time, the next one only after an error or an invalid digest."""

    async def work() -> None:
        answers = Answers(**given)
        assert await answers.race().run() == wins
        assert "".join(answers.asked) == asked

    run(work)


UNAVAILABLE, MISSING, NO_LEDGER = BookieUnavailable("x"), NoSuchEntry("x"), NoSuchLedger("x")
READ, DIGEST, TIMEOUT = ReadError("x"), DigestMismatch("x"), RequestTimeout("x")


@pytest.mark.parametrize(
    ("errors", "reported"),
    [
        ((MISSING, MISSING, MISSING), MISSING),
        ((MISSING, UNAVAILABLE, MISSING), UNAVAILABLE),
        ((UNAVAILABLE, MISSING, NO_LEDGER), UNAVAILABLE),
        ((UNAVAILABLE, DIGEST, READ), DIGEST),
        ((MISSING, NO_LEDGER, READ), READ),
        ((READ, MISSING, DIGEST), READ),
        ((TIMEOUT, UNAVAILABLE, DIGEST), TIMEOUT),
    ],
)
def test_the_error_that_tells_most(errors: tuple[BookKeeperError, ...], reported: BookKeeperError) -> None:
    """The first error counts, except that absence and unreachable bookies yield to other errors."""

    async def work() -> None:
        answers = Answers(**dict(zip("abc", errors, strict=True)))
        with pytest.raises(BookKeeperError) as raised:
            await answers.race().run()
        assert raised.value is reported

    run(work)
    assert weightier(None, MISSING) is MISSING


def test_closing_the_client_ends_it() -> None:
    """After ClientClosed no other replica is asked."""

    async def work() -> None:
        answers = Answers(a=ClientClosed("closed"))
        with pytest.raises(ClientClosed):
            await answers.race().run()
        assert answers.asked == ["a"]

    run(work)


def test_enough_are_without_it() -> None:
    """Recovery's rule: the race ends when enough bookies deny the entry, whatever the others answer."""

    async def work() -> None:
        answers = Answers(a=NoSuchEntry("a"), b=NoSuchLedger("b"), c=3)
        with pytest.raises(NoSuchLedger):
            await answers.race(enough=2).run()
        assert answers.asked == ["a", "b"]

    run(work)


def test_br11_a_late_answer_is_dropped() -> None:
    """BR11: the second replica is asked when the first is late, and wins; the first is noted as slow."""

    async def work() -> None:
        answers = Answers(b=2)
        assert await answers.race(SOON).run() == 2
        assert (answers.asked, answers.slow) == (["a", "b"], ["a"])
        await asyncio.sleep(0)
        assert answers.waiting["a"].cancelled()

    run(work)


def test_br11_the_late_one_may_win() -> None:
    """BR11: the first of two answers counts, once; an error of the second replica asks no third one meanwhile."""

    async def work() -> None:
        answers = Answers()
        racing = asyncio.ensure_future(answers.race(Patience(0.01, 3600, 1e6)).run())
        await answers.until_waiting("b")
        answers.waiting["b"].set_exception(ReadError("b"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert answers.asked == ["a", "b"]
        answers.waiting["a"].set_result(1)
        assert await racing == 1

    run(work)


def test_a_bookie_that_was_heard_is_waited_for() -> None:
    """A bookie that has answered another request of the call is busy, not lost, so no other one is asked instead."""

    async def work() -> None:
        answers = Answers()
        racing = asyncio.ensure_future(answers.race(Patience(0.001, 0.001, 1), heard={"a"}).run())
        await asyncio.sleep(0.02)
        assert answers.asked == ["a"]
        answers.waiting["a"].set_result(1)
        assert await racing == 1

    run(work)


@pytest.mark.parametrize("late", [False, True])
def test_an_answer_that_cannot_be_judged(late: bool) -> None:
    """An unexpected error ends the race, whichever replica's answer causes it."""

    async def work() -> None:
        answers = Answers(b=2) if late else Answers(a=ReadError("a"), b=2)

        def judge(_: str, answer: int) -> int:
            raise ValueError(f"not foreseen: {answer}")

        race = Race("abc", answers.ask, judge, SOON if late else NEVER)
        with pytest.raises(ValueError, match="not foreseen: 2"):
            await asyncio.wait_for(race.run(), 30)

    run(work)


def test_a_caller_who_leaves() -> None:
    """Outstanding requests are cancelled with the call."""

    async def work() -> None:
        answers = Answers()
        racing = asyncio.ensure_future(answers.race().run())
        await answers.until_waiting("a")
        racing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await racing
        await asyncio.sleep(0)
        assert answers.waiting["a"].cancelled()

    run(work)


@pytest.mark.parametrize("first", ["answers", "fails"])
def test_a_request_that_is_cancelled_by_itself(first: str) -> None:
    """It has failed: the first replica's answer counts, and the third one is asked if that fails as well."""

    async def work() -> None:
        answers = Answers(c=3)
        racing = asyncio.ensure_future(answers.race(Patience(0.01, 3600, 1e6)).run())
        await answers.until_waiting("b")
        answers.waiting["b"].cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        if first == "answers":
            answers.waiting["a"].set_result(1)
        else:
            answers.waiting["a"].set_exception(ReadError("a"))
        assert await asyncio.wait_for(racing, 30) == (1 if first == "answers" else 3)
        assert answers.asked == (["a", "b"] if first == "answers" else ["a", "b", "c"])

    run(work)


@pytest.mark.parametrize(
    ("sizes", "unknown", "holds"),
    [
        ((3, 3, 2), (0,), True),
        ((3, 3, 2), (0, 1), False),
        ((3, 2, 2), (0,), True),
        ((3, 2, 2), (0, 1), False),
        ((5, 3, 2), (0, 3), False),
        ((5, 2, 2), (0, 2), True),
        ((1, 1, 1), (0,), False),
    ],
)
def test_coverage(sizes: tuple[int, int, int], unknown: tuple[int, ...], holds: bool) -> None:
    """Fewer bookies than an ack quorum are unknown in each write set; absence is an answer, other errors are not."""
    coverage = Coverage(*sizes)
    for index in range(sizes[0]):
        coverage.take(index, ReadError("x") if index in unknown else NoSuchEntry("x") if index % 2 else None)
    assert coverage.holds == holds


def test_all_are_asked_at_once() -> None:
    """It ends with the answer that is enough, or when all have ended; outstanding requests are then cancelled."""

    async def work() -> None:
        answers = Answers(a=1, b=ReadError("b"))
        reported: list[tuple[int, int | None, str]] = []

        def take(place: int, answer: int | None, error: BookKeeperError | None) -> bool:
            reported.append((place, answer, str(error or "")))
            return len(reported) == 2

        assert await ask_all("abc", answers.ask, take)
        assert sorted(reported) == [(0, 1, ""), (1, None, "b")]
        await asyncio.sleep(0)
        assert answers.waiting["c"].cancelled()
        assert not await ask_all("ab", answers.ask, lambda *_: False)

    run(work)
