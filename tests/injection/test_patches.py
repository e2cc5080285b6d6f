"""The patches of tests/golden/injection, applied by Debian's python3-jsonpatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest
from conftest import CASES
from injector import Injector, patch_of


@pytest.mark.parametrize("name", CASES)
def test_the_patched_pod_is_the_golden_one(
    injectors: Callable[[Any], Injector], name: str
) -> None:
    case = CASES[name]
    response = injectors(case).review(case["pod"])
    assert response["allowed"] == (case["outcome"] != "denied")
    assert response["auditAnnotations"] == {"outcome": case["outcome"], "reason": case["reason"]}
    assert response.get("status", {}).get("message") == case.get("message")
    warnings = [f"optcache: {warning}" for warning in case.get("warnings", [])]
    assert response.get("warnings", []) == warnings
    patched = jsonpatch.apply_patch(case["pod"], patch_of(response))
    assert patched == case.get("patched", case["pod"])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "patched" in case])
def test_a_second_call_changes_nothing(injectors: Callable[[Any], Injector], name: str) -> None:
    case = CASES[name]
    response = injectors(case).review(case["patched"])
    assert response["allowed"]
    assert patch_of(response) == []
