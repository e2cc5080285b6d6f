"""What the cluster's cases conclude from logs: ranks' records and the stores' access logs."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from cluster import buckets, demo, training  # noqa: E402
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
        source="s3",
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


BUCKET_LOG = """\
initializing S3 access logs with '-' file
log starts 2026-11-23 12:13:59.760237536 +0000 UTC m=+0.030875411
owner images [23/November/2026:12:14:01 +0000] 10.78.1.7 reader FFGK5U0WEDQYXO5J s3_GetObject a/1.jpg /images/a/1.jpg 200 - 0 0 0 0 - - - 1xm= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/images/a/1.jpg Yes
owner images [23/November/2026:12:14:01 +0000] 10.78.1.7 reader U0M8AGAYJNE7DAFF s3_HeadObject a/1.jpg /images/a/1.jpg 200 - 0 0 0 0 - - - fOH= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/images/a/1.jpg Yes
- images [23/November/2026:12:14:01 +0000] 10.78.1.7 - LK8F9VOE01PHPL7F s3_GetObject a/1.jpg /images/a/1.jpg 403 InvalidAccessKeyId 0 0 0 0 - - - 7km= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/images/a/1.jpg Yes
owner images [23/November/2026:12:14:02 +0000] 10.78.1.7 reader PSS5EASVSZY6LFIU s3_ListObjectsV2 - /images/?list-type=2&max-keys=1000 200 - 430 0 0 0 - optcache - PTr= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/images/ Yes
owner images [23/November/2026:12:14:03 +0000] 10.78.1.7 reader 3J5UZR3TI308UW4K s3_GetObject b/a+b c.jpg /images/b/a%2Bb%20c.jpg 200 - 0 0 0 0 - - - +Lf= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/images/b Yes
"""


def test_a_bucket_says_who_asked_for_what() -> None:
    requests = list(buckets.requests_of(BUCKET_LOG))
    assert [(request.who, request.operation, request.status) for request in requests] == [
        ("reader", "GetObject", 200),
        ("reader", "HeadObject", 200),
        ("-", "GetObject", 403),
        ("reader", "ListObjectsV2", 200),
        ("reader", "GetObject", 200),
    ]
    assert requests[-1].path == "/images/b/a+b c.jpg"


def test_reads_of_a_bucket_are_whole_samples_that_were_given() -> None:
    sizes = {"/images/a/1.jpg": 6, "/images/b/a+b c.jpg": 10}
    assert buckets.sample_reads(BUCKET_LOG, sizes) == training.StoreReads(2, 16)
    assert buckets.sample_reads(BUCKET_LOG, {"/images/a/1.jpg": 6}) == training.StoreReads(1, 6)
