"""The house rules that a program can check; CONTRIBUTING.md gives the reason for each.

The tests read the tracked files of the project, and new ones that are not ignored. They run nothing of it.
"""

import ast
import graphlib
import re
import statistics
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FAST = ROOT / "bookie/_fast"

LINES_MAX = {".py": 500, ".pyx": 600, ".pxd": 100}
PY_MEDIAN_MAX = 150
FUNCTION_MAX = 70

# Files and functions that were over their limit when the rule was introduced, with their size then. They may shrink,
# but never grow. The aim is an empty table.
RATCHET: dict[str, int] = {}

BANNED_CYTHON = {
    r"^\s*DEF\s": "a compile-time constant: use `cdef enum` in the .pxd",
    r"^\s*IF\s.+:\s*$": "a compile-time branch: use C macros in csrc/",
    r"^\s*include\s+[\"']": "textual inclusion: give the module a .pxd and cimport it",
    r"^\s*cdef (?!extern|class|struct|enum|union)[^=]*\)\s*nogil\b": "would take the GIL after each call: add noexcept",
    r"^\s*from \.+\w* cimport": "cimport by full path",
}
BANNED_EVERYWHERE = {
    r"\bFIX" + r"ME\b|\bTO" + r"DO\b|\bX" + r"XX\b": "finish it or file it",
    r"(?<![\w.~-])/(home|root|work|mnt|Users)/": "a path of somebody's machine",
    r"(?i)\bissues? #?\d": "say what the matter is; a number means nothing to the reader",
}
BANNED_IN_TESTS = {
    r"\btime\.sleep\(": "wait for the event itself: a condition, a join, a poll with a deadline",
    r"scope=.package.": "there are no packages here, so it would last to the end of the run: module",
}
# Hosts in links for readers. Everything else is downloaded by package managers.
HOSTS = re.compile(
    r"https?://(?!"
    r"(www\.)?apache\.org|bookkeeper\.apache\.org|maven\.apache\.org/(POM|xsd)|www\.w3\.org|github\.com|keepachangelog\.com"
    r"|localhost|127\.0\.0\.1|\[?::1|[\w.-]+\.example|example\.|\$|\{|<|\.\.\.)[\w.-]+"
)
COMPILED_CLASS = re.compile(r"^((?:@.*\n)*)cdef class (\w+).*\n((?:(?:    .*)?\n)*)", re.MULTILINE)
SPOKEN = {".py", ".pyx", ".pxd", ".pyi", ".c", ".h", ".md", ".toml", ".conf", ".proto", ".java", ".xml", ".sh", ""}


def tracked() -> list[Path]:
    """Files under version control and new ones that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


FILES = tracked()
SOURCES = [path for path in FILES if path.suffix in LINES_MAX]
MODULES = [path for path in SOURCES if path.suffix == ".pyx"]


def name(path: Path) -> str:
    """The file as a reader names it."""
    return path.relative_to(ROOT).as_posix()


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and physical lines of each function of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def cython_functions(text: str) -> Iterator[tuple[str, int]]:
    """The same for Cython: a function lasts until a line that is indented no deeper than its head."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        head = re.match(r"(\s*)(?:cdef|cpdef|def)\b[^=]*?(\w+)\(", line)
        if not head or re.match(r"\s*cdef (extern|class|struct|enum|union)\b", line):
            continue
        last = at
        for number in range(at + 1, len(lines)):
            body = lines[number]
            if not body.strip():
                continue
            if len(body) - len(body.lstrip()) <= len(head[1]) and not body.lstrip().startswith(")"):
                break
            last = number
        yield head[2], last - at + 1


def offences(paths: list[Path], banned: dict[str, str]) -> list[str]:
    """Lines that a pattern forbids, with the remedy."""
    found = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found += [
                f"{name(path)}:{number}: {why}: {line.strip()}" for what, why in banned.items() if re.search(what, line)
            ]
    return found


def test_files_are_small() -> None:
    """A file over its limit hides a second idea; one that was over it before may only shrink."""
    over = []
    for path in SOURCES:
        lines = len(path.read_text().splitlines())
        limit = RATCHET.get(name(path), LINES_MAX[path.suffix])
        if lines > limit:
            over.append(f"{name(path)}: {lines} lines, at most {limit}")
    assert not over, "\n".join(over)


def test_the_ratchet_is_tight() -> None:
    """An entry of RATCHET that is no longer needed, or larger than its file, goes."""
    loose = []
    for file, lines in RATCHET.items():
        path = ROOT / file
        now = len(path.read_text().splitlines()) if path.exists() else 0
        if now < lines:
            loose.append(f"{file}: {now} lines now, RATCHET says {lines}")
    assert not loose, "\n".join(loose)


def test_the_usual_python_file_is_short() -> None:
    """The median, so that a few long tables do not excuse the rest."""
    sizes = [len(path.read_text().splitlines()) for path in SOURCES if path.suffix == ".py"]
    assert statistics.median(sizes) <= PY_MEDIAN_MAX


def test_functions_are_short() -> None:
    """A function that needs scrolling does two things."""
    over = []
    for path in SOURCES:
        functions = python_functions if path.suffix == ".py" else cython_functions
        for function, lines in functions(path.read_text()):
            if lines > FUNCTION_MAX:
                over.append(f"{name(path)}: {function} has {lines} lines, at most {FUNCTION_MAX}")
    assert not over, "\n".join(over)


def test_each_file_opens_with_a_docstring() -> None:
    """What it is for, which thread runs it, who owns its memory."""
    silent = []
    for path in SOURCES:
        text = path.read_text()
        if not text.strip():
            continue
        spoken = ast.get_docstring(ast.parse(text)) if path.suffix == ".py" else text.startswith('"""')
        if not spoken:
            silent.append(name(path))
    assert not silent, "\n".join(silent)


LISTED = sorted({path.parent for path in FILES if path.name == "__init__.py" and ROOT / "tests" not in path.parents})


@pytest.mark.parametrize("package", LISTED, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_that_lists_its_modules_lists_all(package: Path) -> None:
    """The docstring of a package is where a newcomer begins, so a module that is missing there would not be found."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = {path.stem for path in FILES if path.parent == package and path.suffix in {".py", ".pyx"}}
    modules -= {"__init__", "__main__"}
    lines = {name for name in modules if re.search(rf"^ *([\w, ]+, )?{name}(,|  | [a-z])", text, re.MULTILINE)}
    if len(lines) > len(modules) / 2:
        missing = sorted(name for name in modules if not re.search(rf"\b{name}\b", text))
        assert not missing, f"not in the docstring: {', '.join(missing)}"


def test_each_test_says_what_it_holds() -> None:
    """A failing test is read by somebody who did not write it."""
    silent = []
    for path in SOURCES:
        if not path.name.startswith(("test_", "bench_")) or path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node):
                silent.append(f"{name(path)}: {node.name}")
    assert not silent, "\n".join(silent)


def test_cython_keeps_to_the_language_we_chose() -> None:
    """No preprocessor of Cython's, no hidden GIL, full paths."""
    found = offences([path for path in SOURCES if path.suffix in {".pyx", ".pxd"}], BANNED_CYTHON)
    assert not found, "\n".join(found)


def test_objects_that_end_still_have_their_attributes() -> None:
    """What the collector finds is cleared before `__dealloc__`, whose methods and loops then meet None, unless told."""
    found = []
    for path in MODULES:
        for decorators, cls, body in COMPILED_CLASS.findall(path.read_text()):
            ending = re.search(r"^    def __dealloc__\(self\):\n((?:(?: {5}.*)?\n)*)", body, re.MULTILINE)
            if ending and re.search(r"\bself\.\w+\(|\bin self\.", ending[1]) and "no_gc_clear" not in decorators:
                found.append(f"{name(path)}: {cls} needs @cython.no_gc_clear")
    assert not found, "\n".join(found)


def test_nothing_unfinished_or_local_is_left() -> None:
    """No loose ends, no paths of one machine, no hosts but those a reader is sent to."""
    paths = [path for path in FILES if path.suffix in SPOKEN and path.name != "LICENSE"]
    found = offences([path for path in paths if path.name != "test_tidy.py"], BANNED_EVERYWHERE)
    for path in paths:
        found += [f"{name(path)}: {url[0]}" for url in HOSTS.finditer(path.read_text()) if path.name != "test_tidy.py"]
    assert not found, "\n".join(found)


def test_tests_wait_for_events() -> None:
    """A sleep is either too short on a busy machine or too long on a free one."""
    tests = [path for path in SOURCES if name(path).startswith("tests/") and path.name != "test_tidy.py"]
    found = offences(tests, BANNED_IN_TESTS)
    assert not found, "\n".join(found)


def test_public_names_are_sorted() -> None:
    """`__all__` is a table of contents."""
    unsorted = []
    for path in SOURCES:
        if path.suffix != ".py":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
            ):
                names = ast.literal_eval(node.value)
                if list(names) != sorted(names, key=str.lower):
                    unsorted.append(f"{name(path)}: {', '.join(sorted(names, key=str.lower))}")
    assert not unsorted, "\n".join(unsorted)


@cache
def docstrings_of_tests() -> dict[str, str]:
    """What each file of tests says of itself, by its name."""
    paths = (ROOT / "tests").rglob("test_*.py")
    return {path.stem: ast.get_docstring(ast.parse(path.read_text())) or "" for path in paths}


def dotted(module: Path) -> str:
    """A compiled module as its package names it: `entrylog.scan`."""
    return ".".join(module.relative_to(FAST).with_suffix("").parts)


def has_test(module: Path) -> bool:
    """Whether a test file is named after the module, alone or behind its package, or names it in its docstring."""
    prefixes = (f"test_{module.stem}", f"test_{module.parent.name}_{module.stem}")
    return any(
        stem.startswith(prefixes) or re.search(rf"\b{re.escape(dotted(module))}\b", said)
        for stem, said in docstrings_of_tests().items()
    )


@pytest.mark.parametrize("module", MODULES, ids=dotted)
def test_each_compiled_module_is_whole(module: Path) -> None:
    """A module has a contract and a test."""
    missing = [] if module.with_suffix(".pxd").exists() else [".pxd"]
    if not has_test(module):
        missing.append(f"tests/fast/test_{module.parent.name}_{module.stem}.py")
    assert not missing, f"{name(module)} lacks {', '.join(missing)}"


def test_no_python_module_hides_a_compiled_one() -> None:
    """Beside a compiled module a Python file of its name would never be imported."""
    stray = [name(path) for path in FAST.rglob("*.py") if path.stem != "__init__"]
    assert not stray


def leans_on() -> dict[str, list[str]]:
    """For each compiled package those that its docstring names after "Leans on"."""
    found = {}
    for path in sorted(FAST.rglob("__init__.py")):
        package = ".".join(path.parent.relative_to(FAST).parts)
        said = re.search(r"^Leans on: ([\w., ]+)\.$", path.read_text(), re.MULTILINE)
        if package:
            assert said, f"{name(path)} does not say what the package leans on"
            found[package] = [] if said[1] == "nothing" else said[1].split(", ")
    return found


def packages_in_order() -> list[str]:
    """The packages as the docstring of bookie/_fast lists them, lowest first."""
    return re.findall(r"^    (\w+)  +\w", (FAST / "__init__.py").read_text(), re.MULTILINE)


def test_compiled_packages_lean_on_lower_ones_only() -> None:
    """The list in bookie/_fast/__init__.py is complete, and no docstring of a package names one below it there."""
    order, wrong = packages_in_order(), []
    for package, used in leans_on().items():
        own = package.partition(".")[0]
        if own not in order:
            wrong.append(f"{own} is missing from the list in bookie/_fast/__init__.py")
        wrong += [
            f"{package} must not lean on {one}" for one in used if order.index(one.partition(".")[0]) > order.index(own)
        ]
    assert not wrong, "\n".join(wrong)


def test_compiled_modules_keep_to_their_packages() -> None:
    """A module cimports only its own package and those that the package's docstring names."""
    allowed, wrong = leans_on(), []
    for path in sorted({*MODULES, *FAST.rglob("*.pxd")}):
        package = dotted(path).rpartition(".")[0]
        for used in re.findall(r"^\s*from bookie\._fast\.([\w.]+) c?import", path.read_text(), re.MULTILINE):
            owner = used.rpartition(".")[0]
            if owner not in (package, *allowed.get(package, ())):
                wrong.append(f"{name(path)} cimports {used}; {package} does not lean on {owner}")
    assert not wrong, "\n".join(wrong)


def test_compiled_modules_have_no_circles() -> None:
    """Within a package, too, a module is understood without those that use it."""
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for path in {*MODULES, *FAST.rglob("*.pxd")}:
        used = re.findall(r"^\s*from bookie\._fast\.([\w.]+) cimport", path.read_text(), re.MULTILINE)
        sorter.add(dotted(path), *(one for one in used if one != dotted(path)))
    sorter.prepare()


def test_compiled_modules_import_nothing_of_ours() -> None:
    """The ground floor is handed what it needs; it never reaches up by name."""
    up = re.compile(r"^\s*(?:from|import) bookie\.(?!_fast)[\w.]+", re.MULTILINE)
    found = [f"{name(path)}: {hit[0].strip()}" for path in MODULES for hit in up.finditer(path.read_text())]
    assert not found, "\n".join(found)


def test_only_the_layers_above_use_compiled_modules() -> None:
    """The admin plane and the Spark source see the client and the server's control, never bytes."""
    users = ("admin/", "bookie/spark/")
    found = offences(
        [path for path in SOURCES if name(path).startswith(users)], {r"\bbookie\._fast\b": "goes through the client"}
    )
    assert not found, "\n".join(found)


def test_generated_code_is_not_kept() -> None:
    """Protobuf modules are made by the build from proto/, so that they cannot differ from it."""
    kept = [name(path) for path in FILES if "_pb2" in path.name]
    assert not kept, "\n".join(kept)
