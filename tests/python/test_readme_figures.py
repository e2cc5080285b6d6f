"""The README says what its pictures show: the files beside them have what was measured."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "tests" / "demo"), str(ROOT / "tests")]

from report import PolicyResult, Setup, limit_factor, read_json, time_factor  # noqa: E402

Scene = tuple[Setup, list[PolicyResult]]


def named(scene: Scene) -> dict[str, PolicyResult]:
    """By name, and with its share what Optimal does with a wider store."""
    setup, results = scene
    found = {f"{result.name} {result.store_share}": result for result in results}
    return found | {it.name: it for it in results if it.store_share == results[0].store_share}


def bound_factor(result: PolicyResult) -> float:
    return result.store_bytes / result.bound_bytes


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def of_one_job(scene: Scene) -> Iterator[str]:
    setup, run = scene[0], named(scene)
    times = {name: time_factor(setup, result) for name, result in run.items()}
    yield f"ranks read {setup.samples:,} real images"
    yield f"after the first takes {times['None']:.2f} times as long"
    yield f"LRU cache it takes {times['LRU']:.2f} times as long"
    yield f"optcache (*Optimal*) {times['Optimal']:.2f} times"
    yield f"That is {limit_factor(setup, run['Optimal']):.3f} times the least time"
    yield f"delivers 75 %, it is met: {limit_factor(setup, run['Optimal 0.75']):.3f} times"
    yield f"Optimal reads {bound_factor(run['Optimal']):.3f} times the bound"
    yield f"LRU reads {bound_factor(run['LRU']):.2f} times the bound"


def of_several_jobs(scene: Scene) -> Iterator[str]:
    setup, run = scene[0], named(scene)
    optimal, pin = run["Optimal"], run["Pin"]
    times = {name: time_factor(setup, result) for name, result in run.items()}
    warm = time_factor(replace(setup, first_epoch=1), optimal)
    yield f"It reads {optimal.store_bytes / 1e6:.0f} MB from the store"
    yield f"(Pin) reads {pin.store_bytes / 1e6:.0f} MB"
    yield f"wait {percent(optimal.times.waiting_share)} of the time, not {percent(pin.times.waiting_share)}"
    yield f"The first picture has {percent(optimal.hit_ratio_observed)},"
    yield f"differ in size, read {percent(bound_factor(optimal) - 1, 1)} more"
    yield f"jobs read {setup.samples:,} images each"
    yield f"an epoch takes {times['None']:.2f} times as long"
    yield f"With LRU it takes {times['LRU']:.2f} times as long"
    yield f"with Pin {times['Pin']:.2f} times, and with Optimal {times['Optimal']:.2f} times"
    yield f"after the first takes {warm:.2f} times as long with Optimal"
    yield f"Optimal reads {bound_factor(optimal):.3f} times the bound, and the goal"
    yield f"Pin reads {bound_factor(pin):.2f} times the bound"


@pytest.mark.parametrize(("name", "figures"), [("demo", of_one_job), ("sweep", of_several_jobs)])
def test_readme_has_the_figures_of_its_pictures(name: str, figures) -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    measured = read_json(ROOT / "docs" / "images" / f"{name}.json")
    assert [words for words in figures(measured) if words not in readme] == []
