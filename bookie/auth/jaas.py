"""A parser for the file in which Java keeps logins (`java.security.auth.login.config`): sections, modules, options.

    Bookie {
        org.apache.zookeeper.server.auth.DigestLoginModule required
            user_bookkeeper="secret";
    };

It reads only what DIGEST-MD5 needs. Errors show line numbers and section names, and nothing else of the file.
"""

import re

from bookie.errors import ConfigurationError
from bookie.secret_files import SecretRefused, read_secret_text

__all__ = ["read_section"]

WORDS = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
      | (?P<mark>[{};=])
      | "(?P<quoted>(?:[^"\\\n]|\\.)*)"
      | (?P<word>[^\s{};="]+)""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(.)")
Token = tuple[str, str, int]


def read_section(path: str, section: str, *, strict: bool = True) -> dict[str, str]:
    """Return the options of all modules in `section`, merged. Raises ConfigurationError, also if others may access
    the file; unless `strict`, that is only logged.
    """
    try:
        text = read_secret_text(path, strict=strict)
    except SecretRefused as refused:
        raise ConfigurationError(f"{path}: {refused}") from None
    sections = _Parser(path, _tokens(path, text)).sections()
    if section not in sections:
        raise ConfigurationError(f"{path}: the section {section} is missing; add `{section} {{ ... }};`")
    return sections[section]


def _tokens(path: str, text: str) -> list[Token]:
    found, at, line = [], 0, 1
    while at < len(text):
        match = WORDS.match(text, at)
        if not match:
            raise ConfigurationError(f"{path}, line {line}: a quoted string or comment is not closed; close it")
        kind = match.lastgroup or ""
        if kind == "quoted":
            found.append((kind, ESCAPE.sub(r"\1", match[kind]), line))
        elif kind != "skip":
            found.append((kind, match[kind], line))
        line += match[0].count("\n")
        at = match.end()
    return found


class _Parser:
    def __init__(self, path: str, tokens: list[Token]) -> None:
        self._path = path
        self._tokens = tokens
        self._at = 0

    def sections(self) -> dict[str, dict[str, str]]:
        """Return the options by section."""
        found: dict[str, dict[str, str]] = {}
        while self._at < len(self._tokens):
            name = self._value()
            self._expect("{")
            options: dict[str, str] = {}
            while not self._is("}"):
                options |= self._module()
            self._expect("}")
            self._expect(";")
            found[name] = options
        return found

    def _module(self) -> dict[str, str]:
        """Parse `class flag name=value ... ;`."""
        self._value()
        self._value()
        options: dict[str, str] = {}
        while not self._is(";"):
            name = self._value()
            self._expect("=")
            options[name] = self._value()
        self._expect(";")
        return options

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise ConfigurationError(f"{self._path}: the file ends inside a section; close every section with `}};`")
        return self._tokens[self._at]

    def _is(self, mark: str) -> bool:
        return self._next()[:2] == ("mark", mark)

    def _expect(self, mark: str) -> None:
        if not self._is(mark):
            raise ConfigurationError(f"{self._path}, line {self._next()[2]}: `{mark}` is missing; insert it")
        self._at += 1

    def _value(self) -> str:
        kind, text, line = self._next()
        if kind == "mark":
            raise ConfigurationError(f"{self._path}, line {line}: a name or value is missing; insert it")
        self._at += 1
        return text
