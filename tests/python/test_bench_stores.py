"""The benchmark of stores: its arithmetic, and the link by which its loops read."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import archives  # noqa: E402
from bench.peers import crew  # noqa: E402
from bench.peers.crew import Counts, Pass  # noqa: E402
from bench.peers.loaders import Job, touch  # noqa: E402
from bench.peers.rows import Cold, Row, cold_figures, figures_of  # noqa: E402
from harness import slow_link  # noqa: E402
from harness.cpu import cpu_seconds, cpu_seconds_below  # noqa: E402
from harness.slow_link import QUEUE_BYTES_MAX, SlowLink  # noqa: E402

SAMPLES, BYTES = 1000, 10**9


def row(
    way: str, share: float, setting: str, *, later: int, seconds: float, cpu: float, compute=0.0, rate=BYTES
):
    """Of three passes, each after the first reading so many of the samples."""

    def one(count: int) -> Pass:
        counts = Counts(BYTES * count // SAMPLES, count, count + 1, cpu)
        return Pass(seconds, SAMPLES, BYTES, 7, counts)

    passes = [one(SAMPLES), one(later), one(later)]
    return Row(way, setting, share, compute, SAMPLES, BYTES, passes, int(share * BYTES), rate=rate)


def verdicts(rows: list[Row]) -> dict[str, str]:
    return {figure.name.partition(": ")[2]: figure.verdict for figure in figures_of(rows)}


def test_what_is_read_ahead_of_the_next_epoch_is_not_counted_twice():
    ahead = row("optcache", 0.3, "c", later=700, seconds=1, cpu=1)
    first, *others = ahead.passes
    moved = Counts(BYTES // 10, 100, 100, 0)
    more = Pass(1, SAMPLES, BYTES, 7, first.counts.minus(Counts(*(-n for n in (moved.bytes, 100, 100, 0)))))
    less = Pass(1, SAMPLES, BYTES, 7, others[0].counts.minus(moved))
    shifted = Row(**{**vars(ahead), "passes": [more, less, others[1]]})
    assert shifted.bytes_later == pytest.approx(ahead.bytes_later) == pytest.approx(0.7)
    assert shifted.gets_later == ahead.gets_later == 1400


@pytest.mark.parametrize(("later", "verdict"), [(700, "met"), (730, "not met")])
def test_bytes_are_held_against_what_must_be_read(later: int, verdict: str):
    rows = [row("optcache", 0.3, "c", later=later, seconds=1, cpu=1)]
    assert verdicts(rows)["bytes an epoch after the first / data set"] == verdict


@pytest.mark.parametrize(("cpu", "verdict"), [(2.0, "met"), (2.1, "not met")])
def test_processor_time_is_held_against_the_peer_that_keeps_nothing(cpu: float, verdict: str):
    ours = row("optcache", 0.3, "c", later=700, seconds=1, cpu=cpu)
    peer = row("s3torchconnector", 0.3, "c", later=1000, seconds=1, cpu=2.0)
    said = verdicts([ours, peer])
    assert said["CPU a GB, first epoch"] == said["CPU a GB, epochs after the first"] == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(1.9, "met"), (2.1, "not met")])
def test_a_late_store_is_held_against_the_fastest_loader_of_shards(seconds: float, verdict: str):
    rows = [
        row("optcache", 0.3, "+10 ms", later=700, seconds=seconds, cpu=1),
        row("webdataset", 0.3, "+10 ms", later=1000, seconds=3, cpu=1),
        row("MosaicML Streaming", 0.3, "+10 ms", later=1000, seconds=2, cpu=1),
        row("s3torchconnector", 0.3, "+10 ms", later=1000, seconds=1, cpu=1),
    ]
    assert verdicts(rows)["an epoch after the first"] == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(4.1, "met"), (4.2, "not met")])
def test_a_narrow_link_is_held_against_the_computation(seconds: float, verdict: str):
    rows = [row("optcache", 0.3, "narrow", later=700, seconds=seconds, cpu=1, compute=4.0)]
    assert verdicts(rows)["epoch after the first / compute"] == verdict
    assert verdicts(rows)["epoch after the first / the larger of these two"] == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(7.2, "met"), (7.3, "not met")])
def test_a_narrow_link_is_held_against_its_bandwidth_where_that_takes_longer(
    seconds: float, verdict: str
):
    rate = BYTES / 10  # so 0.7 of the bytes take 7 s
    rows = [row("optcache", 0.3, "c", later=700, seconds=seconds, cpu=1, compute=4.0, rate=rate)]
    assert rows[0].link_seconds == pytest.approx(7)
    said = verdicts(rows)
    assert said["epoch after the first / the larger of these two"] == verdict
    assert said["epoch after the first / compute"] == "not met"


@pytest.mark.parametrize(("cpu", "verdict"), [(4.7, "met"), (4.9, "not met")])
def test_a_narrow_link_leaves_processors_to_spare(cpu: float, verdict: str):
    rows = [row("optcache", 0.3, "narrow", later=700, seconds=4.0, cpu=cpu, compute=4.0)]
    assert verdicts(rows)["CPU of 2 cores, epochs after the first"] == verdict


@pytest.mark.parametrize(("later", "verdict"), [(0, "met"), (1, "not met")])
def test_where_all_fits_nothing_is_asked_for_again(later: int, verdict: str):
    rows = [row("optcache", 1.0, "c = 1", later=later, seconds=1, cpu=1)]
    assert verdicts(rows)["GETs after the first epoch, hedges apart"] == verdict


@pytest.mark.parametrize(("later", "verdict"), [(700, "met"), (720, "not met")])
def test_archives_are_held_against_what_does_not_fit(later: int, verdict: str):
    ours = row("optcache, tar", 0.3, "archives", later=later, seconds=1, cpu=1)
    peer = row("webdataset", 0.3, "archives", later=1000, seconds=1, cpu=1)
    figures = archives.figures_of(ours, peer)
    assert [figure.verdict for figure in figures] == [verdict, verdict, "", "met"]
    assert figures[0].value == pytest.approx(later / SAMPLES)
    assert figures[0].peer == "webdataset 1.000; a GET a sample 1"


def test_a_peer_alone_is_no_figure_of_ours():
    assert figures_of([row("webdataset", 0.3, "c", later=1000, seconds=1, cpu=1)]) == []


def test_cold_passes_are_held_against_one_request_a_sample():
    once, hedged, twice = Cold(1000, 0, 0, 1000), Cold(1015, 0, 15, 1000), Cold(1015, 0, 5, 1000)
    assert [figure.verdict for figure in cold_figures(once, twice, 4, 2)] == ["met", "", "not met"]
    assert [figure.verdict for figure in cold_figures(hedged, hedged, 4, 2)] == ["met", "", "met"]


RANK = """\
#!/bin/sh
echo ready
for epoch in 1 2; do
  read go
  echo '{"began": 1.0, "ended": 3.5, "samples": 4, "bytes": 40, "touched": 2}'
done
read go
"""


def test_passes_are_what_all_ranks_got(tmp_path: Path):
    rank = tmp_path / "rank"
    rank.write_text(RANK)
    rank.chmod(0o755)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kept").write_bytes(bytes(99))
    job = Job(
        way="fake",
        rank=0,
        world=2,
        workers=1,
        batch=1,
        epochs=2,
        step_seconds=0.0,
        endpoint="",
        bucket="",
        objects="",
        shards="",
        packed="",
        cache=str(tmp_path / "cache"),
        cache_bytes=0,
        socket="",
    )
    looks = iter([Counts(10, 1, 1, 0.5), Counts(50, 4, 6, 1.0), Counts(70, 5, 8, 2.0)])
    passes, _ = crew.run(rank, [job, job], tmp_path, {}, [], lambda groups: next(looks))
    assert passes == [
        Pass(2.5, 8, 80, 4, Counts(40, 3, 5, 0.5)),
        Pass(2.5, 8, 80, 4, Counts(20, 1, 2, 1.0)),
    ]
    assert crew._bytes_below(tmp_path / "cache") == 99


def test_a_byte_of_every_page_is_looked_at():
    data = bytearray(3 * 4096 + 1)
    assert touch(data) == (len(data), 0)
    for page in range(4):
        data[page * 4096] = page + 1
    assert touch(data) == (len(data), 10)


def test_processor_time_of_a_group_has_its_children_that_ended():
    import os
    import subprocess

    burn = "sum(range(20_000_000))"
    words = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{burn}']); input()"
    with subprocess.Popen(
        [sys.executable, "-c", words], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        before = os.times().children_user  # of other tests
        subprocess.run([sys.executable, "-c", burn], check=True)
        own = os.times().children_user - before
        for seconds in (lambda: cpu_seconds([process.pid]), lambda: cpu_seconds_below(os.getpid())):
            while seconds() < own / 2:
                assert process.poll() is None
        process.communicate(b"\n")


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets, and then ends the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    while some := connection.recv(1 << 16):
                        connection.sendall(some)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("delay", [0.0, 0.001])
@pytest.mark.parametrize("rate", [0.0, 1e9])
def test_the_link_carries_every_byte_in_order_and_counts_answers(echo: int, delay: float, rate: float):
    data = random.Random(0).randbytes(3 * QUEUE_BYTES_MAX)
    with SlowLink(echo, delay, rate) as link:
        for times in (1, 2):
            with socket.create_connection(("127.0.0.1", link.port), timeout=60) as client:
                sender = threading.Thread(
                    target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR))
                )
                sender.start()
                with client.makefile("rb") as answer:
                    assert answer.read() == data
                sender.join()
            assert link.answered_bytes() == times * len(data)


def test_the_links_rate_can_be_set_for_a_while(echo: int):
    data = random.Random(0).randbytes(300_000)

    def carry() -> float:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", link.port), timeout=60) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            with client.makefile("rb") as answer:
                assert answer.read() == data
        return time.monotonic() - began

    with SlowLink(echo) as link:
        with link.at_rate(1e6):
            assert carry() >= 0.3
        with link.at_rate(1):  # a byte a second, which nothing is carried at
            pass
        carry()
        assert link.answered_bytes() == 2 * len(data)


def test_bytes_that_wait_in_line_have_not_passed():
    line = slow_link._Link(delay=5.0, rate=100.0)
    assert line.arrival(now=1.0, size=200) == 3.0 + 5.0
    assert line.arrival(now=1.0, size=50) == 3.5 + 5.0
    assert [line.passed(now) for now in (1.0, 2.0, 3.5, 9.0)] == [0, 100, 250, 250]


def test_bytes_in_line_leave_it_at_the_rate_at_which_they_came():
    line = slow_link._Link(delay=0.0, rate=100.0)
    assert line.arrival(now=1.0, size=200) == 3.0
    line.rate = 10.0
    assert line.arrival(now=1.0, size=10) == 4.0
    line.rate = 0.0
    assert [line.passed(now) for now in (1.0, 2.0, 3.0, 3.5, 4.0)] == [0, 100, 200, 205, 210]


def test_the_end_of_an_answer_to_a_client_that_is_gone_is_no_error():
    class Gone:
        def is_closing(self) -> bool:
            return False

        def write_eof(self) -> None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

        def resume_reading(self) -> None:
            pass

    async def answer_ends() -> None:
        link = slow_link._Link(delay=0.0, rate=0.0)
        server, client = slow_link._End(link, answers=True), slow_link._End(link, answers=False)
        server.transport, client.transport = Gone(), Gone()
        server.other = client
        assert server.eof_received()

    asyncio.run(answer_ends())


def test_the_link_ends_connections_to_a_server_that_is_gone():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with SlowLink(port) as link:
        with socket.create_connection(("127.0.0.1", link.port), timeout=60) as client:
            try:
                assert client.recv(1) == b""
            except ConnectionResetError:
                pass
