"""bkadmin in this process: its exit code, and what it wrote."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from admin.bkadmin.main import run


@dataclass(frozen=True)
class Done:
    """One call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it wrote for programs."""
        return json.loads(self.out)


BkAdmin = Callable[..., Done]


@pytest.fixture
def bkadmin(capsys: pytest.CaptureFixture[str]) -> BkAdmin:
    """Call it with words."""

    def call(*words: object) -> Done:
        capsys.readouterr()
        code = run([str(word) for word in words])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return call
