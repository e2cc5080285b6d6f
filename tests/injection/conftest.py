"""The corpus of pods, and injectors to ask."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from injector import Injector

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    path.stem: json.loads(path.read_text())
    for path in sorted((ROOT / "tests/golden/injection").glob("*.json"))
}


@pytest.fixture(scope="session")
def injectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Any], Injector]]:
    """By case: the one of its version of Kubernetes."""
    program = os.environ.get("OPTCACHE_WEBHOOK_SERVER")
    if program is None:
        pytest.skip("OPTCACHE_WEBHOOK_SERVER does not name webhook_test_server")
    folders = tmp_path_factory.mktemp("native"), tmp_path_factory.mktemp("legacy")
    with (
        Injector(program, folders[0]) as native,
        Injector(program, folders[1], legacy=True) as legacy,
    ):
        yield lambda case: legacy if case.get("legacy") else native
