"""What the soak makes of faults, waits and deaths; the soak itself is in tests/integration."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness import waits
from harness.chaos import (
    COORDINATOR,
    CUT_OFF,
    FROZEN,
    KILLED,
    REFUSED,
    Fault,
    Span,
    crashes,
    process_faults,
    store_faults,
)
from harness.cluster import deaths_in
from harness.errors import HarnessError
from harness.job import EpochRecord
from harness.tcp_machine import TcpCoordinator

STORE = Span(Fault("store", "503", seconds=20), began=100, ended=120)
NODE = Span(Fault("node", KILLED), began=200, ended=201)


def records(*found: tuple[float, float]) -> list[list[EpochRecord]]:
    """Of a rank for each wait, which is given by its end and its length."""
    return [[EpochRecord(steps=[ended - seconds, ended])] for ended, seconds in found]


def test_each_kind_of_fault_comes_as_often() -> None:
    faults = [*itertools.islice(process_faults(random.Random(1), 2), 33)]
    assert set(Counter(fault.kind for fault in faults).values()) == {3}
    assert {fault.machine for fault in faults} == {0, 1}
    assert faults == [*itertools.islice(process_faults(random.Random(1), 2), 33)]


def test_each_kind_of_part_is_cut_off_where_there_is_a_network() -> None:
    of_processes = itertools.islice(process_faults(random.Random(1), 2, cuts=True), 140)
    of_store = itertools.islice(store_faults(random.Random(1), 2, cuts=True), 100)
    cuts = [fault for fault in (*of_processes, *of_store) if fault.how == CUT_OFF]
    assert Counter(fault.part for fault in cuts) == Counter(node=10, sidecar=10, coordinator=10, store=10)
    assert all(1 <= fault.seconds <= 30 for fault in cuts)
    assert {fault.sides for fault in cuts} == {
        ("node-0", ""),
        ("node-1", ""),
        ("sidecar-0", "node-0"),
        ("sidecar-1", "node-1"),
        ("sidecar-0", "store"),
        ("sidecar-1", "store"),
        ("coordinator", ""),
    }


def test_each_kind_of_fault_of_the_store_comes_as_often() -> None:
    faults = [*itertools.islice(store_faults(random.Random(1), 2), 27)]
    kinds = Counter(fault.how for fault in faults)
    assert {REFUSED, FROZEN} < kinds.keys()
    assert set(kinds.values()) == {3}


def test_a_machine_is_its_node_and_its_sidecar() -> None:
    assert Fault("machine", FROZEN, 1).processes == ["node-1", "sidecar-1"]
    assert Fault(COORDINATOR, FROZEN).kind == "coordinator frozen"


def test_a_wait_counts_for_the_faults_that_it_fell_into() -> None:
    lines = waits.table([STORE, NODE], records((119, 18), (203, 2.5), (300, 0.3))).splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["node", "killed", "1", "2.50"],
        ["store", "503", "1", "18.00"],
        ["no", "fault", "0.30"],
    ]


def test_cuts_are_rows_of_their_own() -> None:
    cuts = [Span(Fault(part, CUT_OFF), began, began + 9) for part, began in (("node", 100), ("store", 300))]
    lines = waits.table(cuts, records((104, 3), (310, 8))).splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["node", "cut", "off", "1", "3.00"],
        ["store", "cut", "off", "1", "8.00"],
    ]


def test_a_wait_for_a_store_that_is_away_may_be_long() -> None:
    assert [*waits.too_long([STORE, NODE], records((125, 25)), 10)] == []
    assert len([*waits.too_long([NODE], records((125, 25)), 10)]) == 1


def test_no_wait_is_longer_than_what_is_promised_or_allowed() -> None:
    promised = waits.limit_seconds({})
    assert promised == waits.PROMISED_SECONDS == 10
    assert len([*waits.too_long([], records((125, 10.5)), promised)]) == 1
    assert [*waits.too_long([], records((125, 9.5)), promised)] == []
    allowed = waits.limit_seconds({"OPTCACHE_CHAOS_WAIT_SECONDS": "30"})
    assert [*waits.too_long([], records((125, 29.5)), allowed)] == []
    assert len([*waits.too_long([], records((125, 30.5)), allowed)]) == 1


def test_what_two_faults_of_the_store_share_counts_once() -> None:
    other = Span(Fault("store", "reset"), began=105, ended=130)
    (line,) = waits.too_long([STORE, other], records((170, 70)), 30)
    assert line.startswith("a rank waited 70.0 s, 35.0 s of it while the store answered")
    inner = Span(Fault("store", "reset"), began=105, ended=106)
    assert [*waits.away([other, STORE, inner])] == [(125, 25), (135, 10)]


def test_only_a_store_at_which_reads_hang_costs_long_after_its_end() -> None:
    for how in ("stalled", CUT_OFF):
        hanging = Span(Fault("store", how), began=100, ended=120)
        assert [*waits.too_long([hanging], records((156, 56)), 30)] == []
    assert len([*waits.too_long([STORE], records((156, 56)), 30)]) == 1


@pytest.mark.parametrize("cuts", [False, True])
def test_the_store_answers_most_of_the_time(cuts: bool) -> None:
    """Else too long waits are not found."""
    for seed in range(5):
        now, spans = 0.0, []
        faults = store_faults(random.Random(seed), 2, cuts)
        for fault in itertools.takewhile(lambda _: now < 3600, faults):
            began = now + fault.pause
            now = began + fault.seconds
            spans.append(Span(fault, began, now))
        assert sum(seconds for _, seconds in waits.away(spans)) < 0.5 * now


def test_deaths_are_read_from_the_log() -> None:
    log = "1 node-0 died (signal 9), starts again in 0.3 s; it wrote x\nnode-0 started again\n"
    assert deaths_in(log * 2) == Counter({("node-0", "signal 9"): 2})


def test_crashes_of_every_process_are_found() -> None:
    logs = {name: f"ready\n{name}: CHECK failed: x\n" for name in ("node-0", "sidecar-0", COORDINATOR)}
    chaos: Any = SimpleNamespace(machines=1, cluster=SimpleNamespace(log_of=logs.__getitem__))
    assert {*crashes(chaos)} == {f"{name}: {name}: CHECK failed: x" for name in logs}


def coordinator_that(does: str, folder: Path) -> TcpCoordinator:
    """A coordinator's program that listens, and then does as the shell is told."""
    program = folder / "coordinator_test_server"
    program.write_text(f"#!/bin/sh\necho url http://127.0.0.1:1\n{does}\n")
    program.chmod(0o755)
    return TcpCoordinator(folder, folder / "coordinator.log")


def test_a_coordinator_that_had_ended_by_itself_is_told(tmp_path: Path) -> None:
    coordinator = coordinator_that("echo CHECK failed: x >&2; exit 3", tmp_path)
    os.waitid(os.P_PID, coordinator.pid, os.WEXITED | os.WNOWAIT)
    for end in (coordinator.kill, coordinator.close):
        with pytest.raises(HarnessError, match=r"status 3:\n +CHECK failed: x"):
            end()


def test_a_coordinator_that_runs_is_killed(tmp_path: Path) -> None:
    coordinator_that("exec cat", tmp_path).kill()
    coordinator_that("exec cat", tmp_path).close()
