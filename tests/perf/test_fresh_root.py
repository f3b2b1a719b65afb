"""Commands in a copy of a system, and the steps of a Dockerfile taken in such copies."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.fresh_root.image import ROOT, Image, context, instructions
from perf.fresh_root.root import Root, StepFailed

PROGRAMS = ("/bin/sh", "/bin/cat", "/usr/bin/env", "/usr/bin/id", "/usr/bin/install")
DOCKERFILE = """\
# a comment
FROM system AS build
WORKDIR /src
COPY conf/container.conf conf
RUN echo one > made \\
    # between
    && echo two >> made
FROM system
COPY --from=build /src /opt/src
ENV PATH=/opt/bin:$PATH CONF=/opt/src/conf
RUN install -d /data
USER 12:0
VOLUME /data
EXPOSE 1
ENTRYPOINT ["cat", "/opt/src/made"]
"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Path]:
    """A system that consists of a few programs of this one and their libraries."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the root directory and mount")
    mask = os.umask(0o022)  # directories that others may enter, as in a system
    place = tmp_path / "system"
    for name in ("proc", "dev", "etc"):
        (place / name).mkdir(parents=True)
    for name in PROGRAMS:
        libraries = subprocess.run(["ldd", name], capture_output=True, text=True, check=True).stdout
        for path in (name, *re.findall(r"(/\S+) \(0x", libraries)):
            (place / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place / path[1:])
    yield place
    os.umask(mask)


def test_instructions() -> None:
    """Continued lines are joined, comments are left out, also those between them."""
    found = instructions(DOCKERFILE)
    assert found[3] == ("RUN", "echo one > made && echo two >> made")
    assert [word for word, _ in found].count("FROM") == 2


def test_our_own_dockerfile_is_understood() -> None:
    """Each instruction is carried out or needs nothing; what .dockerignore names is no part of the context."""
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "ENTRYPOINT", "EXPOSE", "STOPSIGNAL"}
    assert {word for word, _ in instructions((ROOT / "Dockerfile").read_text())} <= known
    names = context()
    assert "setup.py" in names
    assert not [name for name in names if name.startswith(("tests/", "perf/", "docs/"))]


def test_steps_of_a_dockerfile(system: Path, tmp_path: Path) -> None:
    """Files go from stage to stage, the environment grows, and the command runs as the user."""
    image = Image(system, tmp_path / "stages")
    image.build(DOCKERFILE)
    said = image.root.run(
        " ".join(image.entry) + "; id -u; echo $PATH $CONF", user=image.user, environment=image.environment
    )
    made, two, user, variables = said.splitlines()
    assert (made, two, user) == ("one", "two", "12")
    assert variables.startswith("/opt/bin:/")
    assert variables.endswith(" /opt/src/conf")
    with pytest.raises(ValueError, match="VOLUME /nothing"):
        image.build("VOLUME /nothing")


def test_a_command_in_a_copy(system: Path, tmp_path: Path) -> None:
    """It is recorded by name, sees only loopback without a network, and cannot change the system; failures are told."""
    root = Root(tmp_path / "copy").copy(system)
    interfaces = root.run("cat /proc/net/dev", name="interfaces", network=False)
    assert re.findall(r"^ *(\w+):", interfaces, re.MULTILINE) == ["lo"]
    assert "127.0.0.1" in root.run("cat /proc/net/fib_trie", network=False)  # the interface is up
    root.run("echo changed > /etc/changed")
    assert root.path("/etc/changed").exists()
    assert not (system / "etc/changed").exists()
    assert [step.name for step in root.steps] == ["interfaces"]
    with pytest.raises(StepFailed, match=r"exit code 3: .*\nwhy"):
        root.run("echo why; exit 3")
