"""What the cluster's cases conclude from logs: ranks' records and nginx's access log."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from cluster import demo, training  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

SAMPLES, WORLD, EPOCHS = 23, 3, 2
DIGESTS = [f"{number:064x}" for number in range(SAMPLES)]


def line(event: str, at: float = 1.0, **fields: object) -> str:
    return json.dumps({"event": event, "at": at, **fields})


def log_of(rank: int, done: bool = True) -> list[str]:
    sampler = DistributedSampler(range(SAMPLES), num_replicas=WORLD, rank=rank, seed=0)
    lines = [line("imported", rank=rank, cached=True)]
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        lines.append(line("epoch", 2.0, epoch=epoch))
        ids = list(sampler)
        for step in range(0, len(ids), 4):
            part = ids[step : step + 4]
            lines.append(line("batch", 2.5, ids=part, sha256=[DIGESTS[i] for i in part]))
    return lines + ([line("done")] if done else [])


def ranks_of(*logs: list[str]) -> list[training.Rank]:
    return [training.read_rank("\n".join(log)) for log in logs]


def test_a_job_that_read_everything_is_right() -> None:
    ranks = ranks_of(log_of(2), log_of(0), log_of(1))
    assert list(training.wrong_bytes(ranks, DIGESTS)) == []
    assert list(training.wrong_orders(ranks, SAMPLES, WORLD, EPOCHS)) == []
    assert ranks[0].first_batch_seconds == 0.5


def test_a_wrong_digest_is_found() -> None:
    log = log_of(0)
    log[2] = log[2].replace('"sha256": ["', '"sha256": ["f')
    (sentence,) = training.wrong_bytes(ranks_of(log), DIGESTS)
    assert sentence.startswith("rank 0, epoch 0: 1 samples have wrong bytes")


def test_a_lost_batch_and_a_missing_rank_are_found() -> None:
    log = log_of(0)
    del log[2]
    sentences = list(training.wrong_orders(ranks_of(log, log_of(1)), SAMPLES, WORLD, EPOCHS))
    assert sentences == [
        "the ranks are [0, 1], and should be 3",
        "rank 0, epoch 0: not the order of DistributedSampler",
    ]


def test_a_rank_that_was_killed_is_not_done() -> None:
    log = [*log_of(0, done=False), '{"event": "batch", "at": 3.0, "ids": [1,']
    ranks = ranks_of(log, log_of(1), log_of(2))
    sentences = list(training.wrong_orders(ranks, SAMPLES, WORLD, EPOCHS))
    assert sentences == ["rank 0 read 2 of 2 epochs to the end"]


def test_only_reads_of_samples_count() -> None:
    sizes = {"/images/a b.png": 10, "/images/c.png": 20}
    log = """\
1.0 GET 200 10 /images/a b.png 10.78.1.2
1.0 HEAD 200 0 /images/c.png 10.78.1.2
1.0 GET 206 7 /images/c.png 10.78.1.2
1.0 GET 404 5 /images/c.png 10.78.1.2
1.0 GET 200 99 /images/index.txt 10.78.1.2
nginx: a line of its own
"""
    assert training.store_reads(log, sizes) == training.StoreReads(2, 17)


@pytest.mark.parametrize(
    ("store_bytes", "wrong", "right"),
    [(1700, [], True), (1708, [], True), (1709, [], False), (1700, ["rank 0 read 1 of 2 epochs"], False)],
)
def test_a_demo_is_right_within_its_bound(store_bytes: int, wrong: list[str], right: bool) -> None:
    """1000 bytes of which 30 % fit, twice: 1700 at least."""
    outcome = demo.Outcome(
        samples=10,
        total_bytes=1000,
        epochs=2,
        store_bytes=store_bytes,
        shown_hit_ratio="0.15",
        epoch_seconds=[1.0, 1.0],
        wrong=wrong,
    )
    assert outcome.right == right
    assert ("TOO MUCH" in demo.report(outcome)) == (store_bytes > 1708)
