"""Compiles the modules that play the peers and judge, which took half of the time of a world as Python.

They are compiled as they are, by Cython, with the types that a .pxd file beside each adds. Without `use_compiled` they
are plain Python modules, and the worlds are the same.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

__all__ = ["use_compiled"]

ROOT = Path(__file__).parents[2]
PEERS = ("tests.engine.entries", "tests.engine.events", "tests.engine.wire", "tests.engine.peers")
"""In the order in which they import each other."""
JUDGES = ("tests.history.checker", "tests.engine.doubts")


def use_compiled() -> None:
    """Import the compiled modules. Call it before one of them is imported as Python."""
    names = PEERS + JUDGES
    place = _place(names)
    if not place.is_dir():
        _build(place, names)
    for name in names:
        _load(name, place / f"{name}.so")


def _load(name: str, library: Path) -> None:
    """Import a compiled module in place of the Python file of its name."""
    spec = spec_from_file_location(name, library, loader=ExtensionFileLoader(name, str(library)))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _source(name: str) -> Path:
    return ROOT.joinpath(*name.split(".")).with_suffix(".py")


def _place(names: tuple[str, ...]) -> Path:
    """Return the directory of the compiled modules, which is another one when a source changes."""
    digest = hashlib.sha1(sys.version.encode())
    for path in (Path(__file__), *map(_source, names)):
        digest.update(path.read_bytes())
        if (types := path.with_suffix(".pxd")).exists():
            digest.update(types.read_bytes())
    return Path(tempfile.gettempdir()) / f"bookie-peers-{os.getuid()}-{digest.hexdigest()[:16]}"


def _build(place: Path, names: tuple[str, ...]) -> None:
    made = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
    for name in names:
        code, library = made / f"{name}.c", made / f"{name}.so"
        words = ["-3", "--module-name", name, str(_source(name)), "-o", str(code)]
        subprocess.run([sys.executable, "-m", "cython", *words], check=True, cwd=ROOT)
        flags = ["-O2", "-w", "-shared", "-fPIC", "-I" + sysconfig.get_path("include")]
        subprocess.run(["gcc", *flags, "-o", library, code], check=True)
        code.unlink()
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():  # else another process was quicker
            raise
        shutil.rmtree(made)
