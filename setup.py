"""How the compiled modules are built; everything static is in pyproject.toml."""

import os
import re
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # an isolated build does not have this directory on its path
import build_proto  # noqa: E402

DEBUG = os.environ.get("BOOKIE_DEBUG") == "1"
SANITIZE = os.environ.get("BOOKIE_SANITIZE", "")  # sanitizers of the compiler: "address,undefined", or "thread"
FAULTS = DEBUG or os.environ.get("BOOKIE_FAULTS") == "1"  # also build the package that only tests use
JOBS = os.cpu_count() or 1

SHARED = "bookie._fast._cyutility"
C_SOURCES = {
    "bookie._fast.base.crc": ["bookie/_fast/csrc/crc32c.c"],
    "bookie._fast.wire.digest": ["bookie/_fast/csrc/sha1.c"],
}

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": DEBUG,
    "legacy_implicit_noexcept": False,
}
# Crash reports need only lines and functions; full -g would take a third of the compile time.
CHECKS = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
COMPILE = ["-O1" if DEBUG or SANITIZE else "-O3", "-g1"]
if DEBUG:
    COMPILE.append("-DBOOKIE_DEBUG=1")
if SANITIZE:
    COMPILE += ["-fno-omit-frame-pointer", "-fno-sanitize=alignment", *CHECKS]
if SANITIZE == "thread":
    COMPILE.append("-Wno-tsan")  # fences only order atomic accesses; none of them prevents a race of plain memory
LINK = re.compile(r"\[([^]]+)\]\((?!https?://)[^)]+\)")
QUIET = ["-Wno-unused-function", "-Wno-sign-compare", "-Wno-format-truncation"]  # warnings about generated code


def extensions() -> list[Extension]:
    modules = []
    for source in sorted((HERE / "bookie/_fast").rglob("*.pyx")):
        path = source.relative_to(HERE)
        if path.parent.name == "testing" and not FAULTS:
            continue
        name = ".".join(path.with_suffix("").parts)
        files = [path.as_posix(), *C_SOURCES.get(name, [])]
        modules.append(
            Extension(
                name,
                files,
                include_dirs=["bookie/_fast"],
                define_macros=[("_GNU_SOURCE", "1"), *([("BOOKIE_FAULTS", "1")] if FAULTS else [])],
                extra_compile_args=[*COMPILE, *QUIET, "-fno-strict-aliasing"],
                extra_link_args=CHECKS,
                libraries=["pthread"],
            )
        )
    # Contains code, mostly memoryviews, of which every module would have a copy otherwise: a third of the C code and
    # half of its compile time.
    shared = f"{SHARED.replace('.', '/')}.c"
    modules.append(Extension(SHARED, [shared], extra_compile_args=[*COMPILE, *QUIET], extra_link_args=CHECKS))
    return modules


class BuildModules(build_ext):
    """Translates the modules to C when they are built. Metadata and source distributions need no C code."""

    def run(self) -> None:
        translated = cythonize(
            extensions(),
            compiler_directives=DIRECTIVES,
            nthreads=JOBS,
            quiet=True,
            shared_utility_qualified_name=SHARED,
            build_dir="build/cython-debug" if DEBUG else "build/cython",
        )
        sources = {module.name: module.sources for module in translated}
        for module in self.extensions:
            module.sources[:] = sources[module.name]
        super().run()


class BuildPython(build_py):
    """Adds the sample files of conf/ to the package; `bkadmin samples` prints them."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            shutil.copytree(HERE / "conf", Path(self.build_lib) / "bookie/samples", dirs_exist_ok=True)


def description() -> str:
    """Return README.md for a package index, where links to files of the repository lead nowhere: their texts remain."""
    title, text = LINK.sub(r"\1", (HERE / "README.md").read_text()).split("\n", 1)
    return f"{title}\n\nFiles that this page names are in the project's repository.\n{text}"


build_proto.generate()
setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    # `make` compiles the modules in place first, and installs only metadata and commands then.
    ext_modules=[] if os.environ.get("BOOKIE_MODULES_BUILT") == "1" else extensions(),
    cmdclass={"build_ext": BuildModules, "build_py": BuildPython},
    options={"build_ext": {"parallel": JOBS}, "egg_info": {"egg_base": "."}},
)
