"""The pages of docs/ say what works: their commands and programs run, and their links lead somewhere.

Blocks marked `sh` are run here, line by line, against three bookies; what needs another machine, or rights that tests
do not have, is marked otherwise: its words are compared with what the programs take.
"""

import importlib.util
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest
import yaml

import bookie.client.aio
from bookie.client import Channel, Digest
from bookie.local import LocalCluster
from bookie.server.main import main as bookie_server
from bookie.spark.bkpipe import bkpipe
from bookie.storage.tools.list_records import LogRecords
from bookie_admin.bkadmin.main import bkadmin, run

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")
pytest_plugins = ["bookie.local.fixtures"]

DOCS = Path(__file__).resolve().parent.parent / "docs"
SPARK = DOCS.parent / "bookie/spark"
PAGES = ("quick-start.md", "operations.md", "tune.md", "monitor.md", "troubleshoot.md", "admin.md")
SERVERS = {"bkadmin standalone -n 3"}
"""Commands that do not end by themselves: the cluster of these tests stands for it."""
OF_FILES = "export BOOKIE_CONF="
PROGRAMS = {"bkadmin": bkadmin, "bkpipe": bkpipe, "bookie-server": bookie_server}
SAID = re.compile(r"(?:^ *|`)((?:bkadmin|bkpipe|bookie-server|python -m|make) [^`\n]+)", re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")
TARGETS = re.compile(r"^([\w-]+):", re.MULTILINE)
PLACEHOLDERS = {"JOB"}


def blocks(page: str, kind: str) -> list[str]:
    """The fenced blocks of a page that are marked so."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def code() -> str:
    """The source of the product, with neighbouring string literals joined."""
    files = (file for folder in ("bookie", "admin") for file in sorted((DOCS.parent / folder).rglob("*.py*")))
    text = "\n".join(file.read_text() for file in files if file.suffix in {".py", ".pyx"})
    return re.sub(r'"\s*\n\s*f?"', "", text)


def quoted(page: str) -> list[str]:
    """The texts of several words that are quoted in the first column of the tables of a page."""
    rows = (line.split("|")[1] for line in (DOCS / page).read_text().splitlines() if line.startswith("| "))
    return [text for row in rows for text in re.findall(r"`([^`]+)`", row) if " " in text]


@pytest.mark.parametrize("page", ["fatal.md", "troubleshoot.md"])
def test_messages_are_as_the_code_has_them(page: str) -> None:
    """An operator finds the line of a log or an error in the documentation; `...` stands for what varies."""
    texts, source = quoted(page), code()
    assert texts
    for text in texts:
        for part in re.split(r"\.\.\.|: | port=", text):
            assert part.strip() in source, f"{text!r} of {page}: the code says nothing like {part!r}"


def test_fatal_messages_are_listed() -> None:
    """docs/fatal.md has every message with which the latch is set."""
    listed = tuple(text.partition("...")[0] for text in quoted("fatal.md"))
    messages = re.findall(r'fatal(?:_set|\.trip)\(f?"([^"{]+)', code())
    assert messages
    assert [message for message in messages if not message.startswith(listed)] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page: str, bookie_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `bkadmin` line ends with 0; loads are cut short."""
    monkeypatch.setenv("BOOKIE_METADATA_URI", bookie_cluster.uri)
    monkeypatch.setenv("BOOKIE_ADMIN", bookie_cluster.uri)
    lines = [line for block in blocks(page, "sh") if OF_FILES not in block for line in block.splitlines()]
    assert lines
    for line in lines:
        if line not in SERVERS:
            short = ["0.1" if before == "-d" else word for before, word in pairwise(["", *words_of(line)])]
            assert run(short) == 0, line


def test_commands_on_the_files_of_a_bookie_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a bookie that was stopped, with its own log and journal in place of those of the page."""
    digest = Digest.of()
    with LocalCluster(1, directory=tmp_path) as cluster:
        (bookie,) = cluster
        with Channel.connect(*bookie.address) as channel:
            channel.add(7, 0, b"x", digest=digest, lac=-1, length=1)
    current = bookie.directory / "ledgers/current"
    (log,) = (one.stem for one in current.glob("*.log") if any(LogRecords(one, ledger=7)))
    journal = next((bookie.directory / "journal/current").glob("*.txn")).stem
    monkeypatch.setenv("BOOKIE_CONF", str(bookie.conf))
    monkeypatch.setenv("BOOKIE_METADATA_URI", f"lmdb://{tmp_path}/metadata")
    (block,) = [one for one in blocks("operations.md", "sh") if OF_FILES in one]
    for line in block.splitlines()[1:]:
        words = [{"1f": log, "19a3f2c41d0": journal}.get(word, word) for word in words_of(line)]
        assert run([*words, *(["--yes"] if words[0].startswith("rebuild") else [])]) == 0, line


def words_of(line: str) -> list[str]:
    """Return the words of a command line after `bkadmin`."""
    name, *words = shlex.split(line, comments=True)
    assert name == "bkadmin", line
    return words


@pytest.mark.parametrize("page", [*DOCS.rglob("*.md"), DOCS.parent / "README.md"], ids=lambda page: page.stem)
def test_command_lines_are_right(page: Path) -> None:
    """Also those that nothing here can run: programs, commands and options, modules and targets are there."""
    for line in SAID.findall(page.read_text()):
        program, *words = shlex.split(line, comments=True)
        if program == "python":
            assert importlib.util.find_spec(words[1]), line
        elif program == "make":
            assert words[0] in TARGETS.findall((DOCS.parent / "Makefile").read_text()), line
        elif not PLACEHOLDERS & set(words) and "--help" not in words:
            command: click.Command | None = PROGRAMS[program]
            if isinstance(command, click.Group):
                _, words, _ = command.make_parser(click.Context(command)).parse_args(words)
                _, command, words = command.resolve_command(click.Context(command), words)
            assert command, line
            command.make_parser(click.Context(command)).parse_args(words)


def test_the_programs_of_the_quick_start_run(
    bookie_cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both, the first one on the cluster that its reader has started."""
    for text in blocks("quick-start.md", "python"):
        here = text.replace("grpc://127.0.0.1:3182", bookie_cluster.uri).replace("LocalCluster(3", "LocalCluster(2")
        (tmp_path / "program.py").write_text(here)
        runpy.run_path(str(tmp_path / "program.py"))
    said = capsys.readouterr().out.splitlines()
    assert said[:10] == [f"{number} b'entry {number}'" for number in range(10)]
    assert said[10].startswith("grpc://127.0.0.1:")


ROOT = DOCS.parent
FAST = ROOT / "bookie/_fast"
PAGES_OF_FILES = [
    *DOCS.rglob("*.md"),
    *(DOCS.parent / name for name in ("README.md", "CONTRIBUTING.md", "perf/README.md")),
]
FILE = re.compile(r"`((?:\.ci|admin|bookie|conf|docs|perf|proto|tests)/(?!.*NAME)[\w./-]*)`")
SOURCE = re.compile(r"(?<![\w/])((?:base|wire|entrylog|index|journal|cache|store|server)/\w+)\.pyx")
SOURCES = {".py", ".pyx", ".pxd", ".conf", ".proto"}
MODULE = re.compile(r"\bmodules? `([\w.]+)`(?:, `([\w.]+)`)?(?: and `([\w.]+)`)?")


@pytest.mark.parametrize("page", PAGES_OF_FILES, ids=lambda page: page.stem)
def test_files_and_modules_are_there(page: Path) -> None:
    """Files and directories that a page names, and compiled modules, which it names without `bookie._fast`."""
    text = page.read_text()
    for name in FILE.findall(text):
        assert any((ROOT / f"{name}{suffix}").exists() for suffix in ("", ".pyx", ".pxd", ".py")), name
    modules = {name.replace(".", "/") for found in MODULE.findall(text) for name in found if "." in name}
    for name in modules | set(SOURCE.findall(text)):
        assert any((FAST / f"{name}{suffix}").exists() for suffix in (".pyx", ".pxd")), name


def test_how_to_pages_name_what_exists() -> None:
    """Functions, tables, fields and tests, and files that are named without their directory."""
    folders = ("admin", "bookie", "conf", "proto", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in SOURCES]
    names = {file.name for file in (*files, *ROOT.iterdir())}
    words = {word for file in files for word in re.findall(r"\w+", file.read_text())}
    words.update(re.findall(r"\w+", (DOCS / "metrics.md").read_text()))
    for page in (DOCS / "how-to").glob("*.md"):
        for text in re.findall(r"`([^`/\n]+)`", page.read_text()):
            if re.fullmatch(r"[\w-]+\.[a-z]+", text) and f".{text.partition('.')[2]}" in {*SOURCES, ".md"}:
                assert text in names, f"{page.name}: {text}"
            else:
                assert set(re.findall(r"[A-Za-z_]\w+", text)) <= words, f"{page.name}: {text}"


def test_every_page_is_found() -> None:
    """By the site's navigation or from a page; links between pages lead to pages and headings that are there, none to a
    directory, which a site does not list.
    """
    navigation = re.findall(r"[\w/.-]+\.md", yaml.safe_dump(yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text())))
    assert all((DOCS / page).is_file() for page in navigation)
    linked = set(navigation)
    for page in DOCS.rglob("*.md"):
        assert not re.findall(r"\]\([\w./-]*/\)", page.read_text()), page.name
        for target, heading in re.findall(r"\]\(([\w./-]*\.md)?(#[\w-]+)?\)", page.read_text()):
            other = (page.parent / target).resolve() if target else page
            assert other.is_file(), f"{page.name}: {target}"
            assert other.is_relative_to(DOCS), f"{page.name}: {target} is no page of the site; write its path as code"
            assert not heading or heading[1:] in headings(other), f"{page.name}: {target}{heading}"
            linked.add(str(other.relative_to(DOCS)))
    assert {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} <= linked


def test_tables_are_whole() -> None:
    """The first rows of a table are its head and a rule, or it is shown as text. All rows have as many cells."""
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            head, rule = f"{table}\n\n".splitlines()[:2]
            assert re.fullmatch(r"\|(:?-+:?\|)+", rule.replace(" ", "")), f"{page.name}: {head}"
            for row in table.splitlines():
                assert len(CELL.findall(row)) == rule.count("|"), f"{page.name}: {row}"


def test_spark_options_are_listed() -> None:
    """docs/spark.md names every option that a format reads."""
    read = re.compile(
        r"\b(?:options|given)\.(?:boolean|choice|ids|integer|ranges|required|seconds|size|text)\(\"(\w+)\""
    )
    page = (DOCS / "spark.md").read_text()
    for file in (path for part in ("formats", "sink", "source") for path in (SPARK / part).glob("*.py")):
        for option in read.findall(file.read_text()):
            assert re.search(rf"\b{option}\b", page), f"{file.name}: {option}"


def test_spark_options_say_what_they_are_for() -> None:
    """Each option of the source and the sink is for batches, streams or both; streams refuse those for batches."""
    rows = re.findall(r"^\| (`[^|]+) \| (batch|stream|both) \| ", (DOCS / "spark.md").read_text(), re.MULTILINE)
    kinds = {option: kind for names, kind in rows for option in re.findall(r"`([\w.*]+)`", names)}
    refused = re.findall(r'^        "(\w+)[^"]*": ', (SPARK / "source/stream.py").read_text(), re.MULTILINE)
    assert len(refused) == 3
    assert {option for option, kind in kinds.items() if kind == "batch"} == set(refused)
    assert {"maxOffsetsPerTrigger", "minOffsetsPerTrigger"} <= {one for one, kind in kinds.items() if kind == "stream"}
    for file in (path for part in ("sink", "source") for path in (SPARK / part).glob("*settings.py")):
        for option in re.findall(r'options\.\w+\(\s*"(\w+)"', file.read_text()):
            assert option in kinds or option == "allowFencing", option


def test_decisions_are_listed() -> None:
    """The list of decisions names each page with its title."""
    listed = (DOCS / "decisions/README.md").read_text()
    for page in (DOCS / "decisions").glob("0*.md"):
        number, _, title = page.read_text().partition("\n")[0].removeprefix("# ").partition(" ")
        assert f"- [{number}]({page.name}): {title}\n" in listed


def headings(page: Path) -> set[str]:
    """The anchors of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).strip().replace(" ", "-") for one in found}


def test_the_reference_has_every_public_name() -> None:
    """The pages of docs/api name all that the package and its `aio` export, and only what exists."""
    said = re.findall(r"^::: ([\w.]+)", "".join(page.read_text() for page in (DOCS / "api").glob("*.md")), re.MULTILINE)
    for package in (bookie.client, bookie.client.aio):
        assert {f"{package.__name__}.{name}" for name in package.__all__} <= set(said)
    for name in said:
        assert pkgutil.resolve_name(name), name


@pytest.mark.thorough
def test_the_pages_of_commands_are_the_help() -> None:
    """`python -m tests.command_pages` writes them again. It runs alone: click keeps the options of help."""
    command = [sys.executable, "-m", "tests.command_pages", "--check"]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
