"""The steps of a Dockerfile, taken in copies of a system instead of the images that it names. Only the instructions of
our own file are known.
"""

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from perf.fresh_root.root import ENVIRONMENT, Root

ROOT = Path(__file__).resolve().parents[2]
NOTHING_TO_DO = {"EXPOSE", "STOPSIGNAL"}


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile with their arguments, without comments, and with whole lines."""
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    split = (line.split(None, 1) for line in lines if line.strip())
    return [(word, " ".join(rest.split())) for word, rest in split]


def context() -> list[str]:
    """Return the files of the repository that the image is built from: those that .dockerignore does not leave out."""
    left_out = {line for line in (ROOT / ".dockerignore").read_text().splitlines() if re.fullmatch(r"[\w.]+", line)}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and name.partition("/")[0] not in left_out]


@dataclass
class Image:
    """What the instructions made.

    Attributes:
        system: a copy of a system with Python, which stands for all images that the file names.
        directory: where copies are made.
    """

    system: Path
    directory: Path
    stages: dict[str, Root] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    where: str = "/"
    user: str = "root"
    entry: list[str] = field(default_factory=list)

    @property
    def root(self) -> Root:
        """The stage that was begun last."""
        return list(self.stages.values())[-1]

    def build(self, text: str) -> None:
        """Carry out all instructions. Raises StepFailed if a command fails, ValueError for unknown instructions."""
        for word, rest in instructions(text):
            if word not in NOTHING_TO_DO:
                self._carry_out(word, rest)

    def _carry_out(self, word: str, rest: str) -> None:
        match word:
            case "FROM":
                name = rest.partition(" AS ")[2] or "final"
                self.stages[name] = Root(self.directory / name).copy(self.system)
                self.environment, self.where, self.user = dict(ENVIRONMENT), "/", "root"
            case "RUN":
                self.root.run(rest, name=rest[:40], where=self.where, user=self.user, environment=self.environment)
            case "WORKDIR":
                self.where = rest
                self.root.path(rest).mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(rest.split())
            case "ENV":
                for part in shlex.split(rest):
                    key, _, value = part.partition("=")
                    self.environment[key] = value.replace("$PATH", self.environment["PATH"])
            case "USER":
                self.user = rest
            case "VOLUME":
                if not self.root.path(rest).is_dir():
                    raise ValueError(f"VOLUME {rest}: there is no such directory, so it would belong to root")
            case "ENTRYPOINT":
                self.entry = json.loads(rest)
            case _:
                raise ValueError(f"{word}: an instruction that is not known here")

    def _copy(self, words: list[str]) -> None:
        source, target = words[-2:]
        goal = self.root.path(target if target.startswith("/") else f"{self.where}/{target}")
        goal.parent.mkdir(parents=True, exist_ok=True)
        if words[0].startswith("--from="):
            origin = self.stages[words[0].removeprefix("--from=")].path(source)
            subprocess.run(["cp", "-a", origin, goal], check=True)
        elif source == ".":
            for name in context():
                (goal / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, goal / name)
        else:
            shutil.copy2(ROOT / source, goal)
