"""The checks that watch over the tests catch what they are there for: each is shown its fault once."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.fixtures import leaks, sentinel


def test_a_leaked_descriptor_fails_its_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open file that nobody closes is named with what it points at."""
    monkeypatch.setattr(leaks, "SETTLE_S", 0.5)
    pytester.makepyfile("""
        import os
        kept = []
        def test_it():
            kept.append(os.open("/dev/null", os.O_RDONLY))
        def test_after():
            os.close(kept.pop())
    """)
    result = pytester.runpytest_inprocess("-p", "tests.fixtures.leaks")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*left behind: fd * -> /dev/null*"])


def test_a_leaked_thread_fails_its_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that outlives its test is named; one that is about to end is waited for."""
    monkeypatch.setattr(leaks, "SETTLE_S", 0.5)
    pytester.makepyfile("""
        import threading
        stop = threading.Event()
        def test_ends_soon():
            threading.Timer(0.1, int).start()
        def test_stays():
            threading.Thread(target=stop.wait).start()
        def test_release():
            stop.set()
    """)
    result = pytester.runpytest_inprocess("-p", "tests.fixtures.leaks")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_stays*", "*left behind: thread *"])


def dead_pid() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    return process.pid


def test_a_run_that_died_stops_the_next_one_once(pytester: pytest.Pytester) -> None:
    """The next run names the test in which the last one died and does nothing; the one after it runs."""
    pytester.makepyfile("def test_it(): pass")
    mark = pytester.path / ".pytest_cache" / "running"
    mark.parent.mkdir()
    mark.write_text(f"{dead_pid()} test_journal_commit.py::test_torn")
    words = ("-p", "tests.fixtures.sentinel", f"--rootdir={pytester.path}")
    stopped = pytester.runpytest_inprocess(*words)
    assert stopped.ret == 3
    stopped.stdout.fnmatch_lines(["*the last run died in test_journal_commit.py::test_torn*"])
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=1)
    assert not mark.exists()


def test_a_run_beside_this_one_is_left_alone(tmp_path: Path) -> None:
    """The mark of a living process says nothing about a crash."""
    mark = tmp_path / "running"
    mark.write_text(f"{os.getpid()} test_a.py::test_b")
    assert sentinel.died_in(mark) is None
    assert mark.exists()
