"""Runs bkadmin in this process, and captures its exit code and output."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bookie_admin.bkadmin.main import run


@dataclass(frozen=True)
class Done:
    """The result of one call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output, parsed as JSON."""
        return json.loads(self.out)


BkAdmin = Callable[..., Done]


@pytest.fixture
def bkadmin(capsys: pytest.CaptureFixture[str]) -> BkAdmin:
    """Return a function that runs bkadmin with the given arguments."""

    def call(*words: object) -> Done:
        capsys.readouterr()
        code = run([str(word) for word in words])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return call
