"""A copy of a system in a directory, in which commands run as on a machine of their own: with its files, processes and,
if they may not reach the network, a loopback interface that no other process has.
"""

import os
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HOST_FILES = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
"""How this machine reaches package indexes; copied where they are there."""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
INSIDE = """
set -e
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
[ "$NETWORK" = yes ] || ip link set lo up
exec chroot --userspec="$AS" "$ROOT" /usr/bin/env -i "$@"
"""


class StepFailed(Exception):
    """A command ended with another exit code than 0. The text has the end of its output."""


@dataclass(frozen=True)
class Step:
    """What a step took: seconds, and seconds of CPU of all processes that it waited for."""

    name: str
    seconds: float
    cpu_seconds: float


@dataclass
class Root:
    """The copy.

    Attributes:
        directory: where it is.
        steps: what was run in it so far, for those commands that have a name.
    """

    directory: Path
    steps: list[Step] = field(default_factory=list)

    def copy(self, system: Path) -> "Root":
        """Fill the directory with a copy of `system`, which may be another root."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--reflink=auto", system, self.directory], check=True)
        for name in HOST_FILES:
            if Path(name).is_file():
                self.path(name).parent.mkdir(parents=True, exist_ok=True)
                self.path(name).write_bytes(Path(name).read_bytes())
        hosts = f"127.0.0.1 localhost {socket.gethostname()}\n"  # Java looks up its own machine's name
        self.path("/etc/hosts").write_text(hosts)
        return self

    def path(self, name: str) -> Path:
        """Return where the path `name` of the copy is, seen from outside."""
        return self.directory / name.lstrip("/")

    def run(
        self,
        command: str,
        *,
        name: str = "",
        network: bool = True,
        where: str = "/",
        user: str = "root",
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> str:
        """Run a shell command in the copy, and return its output. Processes that it leaves behind are ended.

        Args:
            command: the command, for `sh -c`.
            name: if given, the step is recorded in `steps` under this name.
            network: whether it may reach other machines.
            where: its directory.
            user: its user, by name or number.
            environment: its whole environment.

        Raises:
            StepFailed: it ended with another exit code than 0.
        """
        variables = [f"{key}={value}" for key, value in environment.items()]
        spaces = ["--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
        outside = {**os.environ, "ROOT": str(self.directory), "AS": user, "NETWORK": "yes" if network else "no"}
        inner = ["sh", "-c", 'cd "$1" && eval "$2"', "sh", where, command]
        before, cpu = time.monotonic(), _cpu()
        done = subprocess.run(
            ["unshare", *spaces, "sh", "-c", INSIDE, "sh", *variables, *inner],
            env=outside,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise StepFailed(f"exit code {done.returncode}: {command}\n{done.stdout[-4000:]}")
        if name:
            self.steps.append(Step(name, time.monotonic() - before, _cpu() - cpu))
        return done.stdout


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
