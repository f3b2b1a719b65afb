"""What every test run starts with: plugins, the check that compiled modules are ours and fresh, the report header."""

import gc
import importlib.util
import os
import signal
from collections import Counter
from collections.abc import Generator
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = {"interop": 30, "slow": 30, "thorough": 10}  # about how many tests without a mark take as long as one with it
FIXTURES = ("sentinel", "leaks", "faults", "java_peer", "zookeeper", "etcd", "bookies", "spark")

pytest_plugins = [
    "pytester",
    *(f"tests.fixtures.{name}" for name in FIXTURES if (ROOT / f"tests/fixtures/{name}.py").exists()),
]

# The same on every machine: with CI set, pytest prints megabytes of differences, and hypothesis draws nothing new.
# Runs that a change must pass always draw the same examples (.ci/run), while other runs look further.
os.environ.pop("CI", None)
settings.register_profile("bookie", deadline=None, print_blob=True, derandomize="BOOKIE_SAME_DRAWS" in os.environ)
settings.load_profile("bookie")
settings.register_profile("quick", settings.get_profile("bookie"), max_examples=25)  # make test


def stale_modules() -> list[str]:
    """Compiled modules that are missing, come from another tree, or are older than their source: one line each."""
    found = []
    for source in sorted((ROOT / "bookie/_fast").rglob("*.pyx")):
        name = ".".join(source.relative_to(ROOT).with_suffix("").parts)
        spec = importlib.util.find_spec(name)
        if spec is None and source.parent.name == "testing":
            continue  # tests of planned faults are skipped without it
        if spec is None or spec.origin is None:
            found.append(f"{name} is not compiled")
            continue
        library = Path(spec.origin)
        if library.parent != source.parent:
            found.append(f"{name} was loaded from {library.parent}, not from this tree")
        elif library.stat().st_mtime < source.stat().st_mtime:
            found.append(f"{name} is older than its source")
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test anything but the compiled modules of this tree. Ctrl-C means something again for what tests start:
    a shell that puts a run into the background lets all of it ignore that. Keys, tokens and users that tests write
    are theirs alone, or no bookie would take them.
    """
    os.umask(0o077)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if stale := stale_modules():
        pytest.exit("\n".join(["run `make build` first:", *stale]), returncode=4)


def pytest_collection(session: pytest.Session) -> None:
    """Do not look for garbage among modules and tests while they are loaded."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files that take longest begin first, since processes are handed one file after another.

    Otherwise a file with one long test, such as a Spark session, would be the last, and the other processes would wait.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    weight: Counter[Path] = Counter()
    for item in items:
        weight[item.path] += max([1, *(WEIGHTS.get(mark.name, 1) for mark in item.iter_markers())])
    items.sort(key=lambda item: (-weight[item.path], item.path))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect garbage from here on, and leave out of that what was loaded, since it stays until the end."""
    gc.freeze()
    gc.enable()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is under test: build flavour, checksum instruction, LMDB, and the Java peer or why there is none."""
    from bookie._fast.base import crc, process

    lines = [f"bookie: {process.flavour()} build, crc32c by {crc.implementation()}, lmdb {metadata.version('lmdb')}"]
    peer = config.pluginmanager.get_plugin("tests.fixtures.java_peer")
    if peer is not None:
        lines.append(f"java peer: {peer.describe()}")
    return lines


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where the Java peer is required, a test that had to do without it has failed. A browser may be missing."""
    report = yield
    required = os.environ.get("BOOKIE_REQUIRE_JAVA") == "1" and not item.get_closest_marker("browser")
    if required and report.skipped and item.get_closest_marker("interop") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report
