"""Whatever arrives at a socket of ours: it is hung up on and counted, and training goes on."""

from __future__ import annotations

import hashlib
import random
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import optcache
import pytest
from harness import garbage, lies
from harness.cluster import Cluster
from harness.dataset import Dataset, dataset_key
from harness.garbage import Door, Page
from harness.processes import wait_until
from torch.utils.data import DataLoader

from optcache.torch import attach

BATCH = 16
AT_ONCE_S = 5.0  # on a busy machine
LATE_S = 12.0  # after its deadline: it is looked at in steps, on a busy machine


@dataclass(frozen=True)
class Place:
    """A door, whose page counts what happens there, and what to expect of it."""

    door: Door
    page: str
    counter: str
    broken: dict[str, str]  # labels of what breaks the protocol
    huge: dict[str, str]
    slow: dict[str, str]  # of what misses a deadline
    hello_s: float  # for the first words
    frame_s: float  # for what comes later
    idle_s: float = 0  # for their first byte, and then nothing is counted; 0: as hello_s

    def count(self, labels: dict[str, str]) -> float:
        return Page(self.page).sum(self.counter, **labels)

    def deadline_s(self, attack: str) -> float:
        """When the server hangs up; 0: at once."""
        return {
            "half_then_silence": self.hello_s,
            "slow_hello": self.hello_s,
            "silence": self.idle_s or self.hello_s,
            "slow_after_hello": self.frame_s,
        }.get(attack, 0.0)


def wire(cluster: Cluster) -> Place:
    code = {"side": "server", "code": "invalid_argument"}
    return Place(
        door=garbage.wire_door(cluster.status()["members"][0]["address"]),
        page=cluster.metrics_url("node-0"),
        counter="optcache_net_closed_connections_total",
        broken=code,
        huge=code,
        slow={"side": "server", "code": "deadline_exceeded"},
        hello_s=5,
        frame_s=30,
    )


def http(page: str, door: str = "") -> Place:
    return Place(
        door=garbage.http_door(door or page),
        page=page,
        counter="optcache_http_responses_total",
        broken={"code": "400"},
        huge={"code": "413"},
        slow={"code": "408"},
        hello_s=10,
        frame_s=10,
        idle_s=60,
    )


def handoff(cluster: Cluster) -> Place:
    return Place(
        door=garbage.handoff_door(cluster.socket(0)),
        page=cluster.metrics_url("sidecar-0"),
        counter="optcache_channel_refused_total",
        broken={"reason": "protocol"},
        huge={"reason": "protocol"},
        slow={"reason": "too_slow"},
        hello_s=10,
        frame_s=10,
    )


PLACES: dict[str, Callable[[Cluster], Place]] = {
    "node": wire,
    "node-http": lambda cluster: http(cluster.metrics_url("node-0")),
    "coordinator": lambda cluster: http(f"{cluster.url}/metrics", door=cluster.control),
    "sidecar": handoff,
    "sidecar-http": lambda cluster: http(cluster.metrics_url("sidecar-0")),
}


class Reader:
    """Reads and checks samples in random order until the end of its `with`."""

    def __init__(self, dataset: Dataset, socket: Path, chance: random.Random) -> None:
        self._expected = [hashlib.sha256(dataset.read(i)).digest() for i in range(len(dataset.paths))]
        self._source = optcache.Dataset(socket=str(socket))
        self._chance = chance
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None
        self.samples = 0

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=60)
        assert not self._thread.is_alive(), "the reader hangs"
        if self._error is not None:
            raise self._error

    def check(self) -> None:
        """It has gone on reading since it was asked."""
        before = self.samples
        wait_until(lambda: self.samples > before or self._error is not None, "samples are read")

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.01):
                self._read([self._chance.randrange(len(self._expected)) for _ in range(BATCH)])
        except BaseException as error:
            self._error = error

    def _read(self, ids: list[int]) -> None:
        for index, sample in zip(ids, self._source.__getitems__(ids), strict=True):
            assert hashlib.sha256(sample).digest() == self._expected[index], f"sample {index}"
            self.samples += 1


@pytest.fixture
def cluster(start_cache: Callable[..., Cluster]) -> Iterator[Cluster]:
    """A cache whose processes all live on to the end, started with the usual limit on files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, soft), hard))
    running = start_cache()
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    processes = running.pids()
    yield running
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert running.pids() == processes


@pytest.mark.long
def test_garbage_is_hung_up_on_and_counted(
    cluster: Cluster, dataset: Dataset, chance: random.Random, long: bool
) -> None:
    places = {name: make(cluster) for name, make in PLACES.items()}
    before = {
        name: (place.count(place.broken), place.count(place.huge), place.count(place.slow))
        for name, place in places.items()
    }
    attacks = [
        (name, attack)
        for name, place in places.items()
        for attack in garbage.ATTACKS
        if long or place.deadline_s(attack.__name__) < 60
    ]
    with Reader(dataset, cluster.socket(0), chance) as reader, ThreadPoolExecutor(64) as enemies:
        running = {
            (name, attack.__name__): enemies.submit(
                attack, places[name].door, random.Random(f"{name} {attack} {chance.random()}")
            )
            for name, attack in attacks
        }
        took = {which: future.result() for which, future in running.items()}
        reader.check()
    for (name, attack), seconds in took.items():
        deadline = places[name].deadline_s(attack)
        least = deadline - 0.5 if deadline else 0.0
        most = deadline + LATE_S if deadline else AT_ONCE_S
        assert least <= seconds <= most, f"{name}: {attack} is closed after {seconds:.1f} s"
    for name, place in places.items():
        broken, huge, slow = before[name]
        slow_attacks = 3 if place.idle_s else 4
        assert place.count(place.broken) - broken >= 2, name
        assert place.count(place.huge) - huge >= 1, name
        assert place.count(place.slow) - slow == slow_attacks, name


@pytest.mark.parametrize("name", PLACES)
def test_a_good_client_may_send_byte_by_byte(cluster: Cluster, name: str) -> None:
    assert PLACES[name](cluster).door.welcomes_single_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "clients", "refused", "at_once"),
    [
        ("node", 4200, "optcache_net_refused_connections_total", True),
        ("node-http", 400, "optcache_http_refused_connections_total", True),
        ("coordinator", 3000, "", True),
        ("sidecar", 4200, "optcache_channel_refused_total", False),
        ("sidecar-http", 400, "optcache_http_refused_connections_total", True),
    ],
)
def test_a_crowd_is_held_off(
    cluster: Cluster,
    dataset: Dataset,
    chance: random.Random,
    name: str,
    clients: int,
    refused: str,
    at_once: bool,
) -> None:
    place = PLACES[name](cluster)
    with Reader(dataset, cluster.socket(0), chance) as reader:
        with garbage.crowd(place.door, clients):
            reader.check()
            if at_once:
                assert place.door.welcomes()
            if refused:
                assert Page(place.page).sum(refused) > 0
            # Those who say nothing lose their places.
            wait_until(place.door.welcomes, "a good client gets in")
            reader.check()


@pytest.mark.parametrize("role", [lies.SIDECAR, lies.NODE])
def test_what_is_well_formed_and_untrue_does_no_harm(
    cluster: Cluster, dataset: Dataset, chance: random.Random, role: int, long: bool
) -> None:
    status = cluster.status()
    known = status["datasets"][0]
    key = dataset_key(known["name"], known["manifest"])
    place = wire(cluster)
    refused = place.count(place.broken)
    with Reader(dataset, cluster.socket(0), chance) as reader:
        for _ in range(50 if long else 5):
            frames = lies.told_by(role, key, len(dataset.paths), chance)
            garbage.tell(place.door, lies.hello(role), frames)
            reader.check()
    assert place.count(place.broken) == refused, "all of it was listened to"


def test_who_attaches_and_ends_in_a_loop_keeps_no_node_from_reporting(
    cluster: Cluster, dataset: Dataset, chance: random.Random
) -> None:
    known = cluster.status()["datasets"][0]
    key = dataset_key(known["name"], known["manifest"])
    members = [member["id"] for member in cluster.status()["members"]]
    frames = lies.attaching_and_ending(key, 1100)
    with Reader(dataset, cluster.socket(0), chance) as reader:
        garbage.tell(wire(cluster).door, lies.hello(lies.SIDECAR), frames)
        reader.check()
    samples = optcache.Dataset(socket=str(cluster.socket(0)))
    loader = attach(DataLoader(samples, batch_size=8, collate_fn=list), dataset=samples)
    next(iter(loader))
    wait_until(lambda: bool(cluster.status()["datasets"][0]["streams"]), "its stream is known")
    assert "the coordinator refused a report" not in cluster.log_of("node-0")
    assert [member["id"] for member in cluster.status()["members"]] == members
