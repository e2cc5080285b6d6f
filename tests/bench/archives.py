"""Tar shards of a usual size in a bucket: what an epoch asks of the store, by samples or whole shards.

The cache shuffles single samples, in the order of DistributedSampler, and reads them by ranges.
webdataset reads shards in one piece, and shuffles within a buffer.
"""

from __future__ import annotations

from bench.context import REPOSITORY, Context
from bench.figures import Figure, at_most
from bench.peers import bucket as buckets
from bench.peers import venv
from bench.peers.loaders import REGION
from bench.peers.rows import HEADERS, OURS_TAR, Row
from bench.scene import unpack_default
from bench.stores import KEYS, Bench, Setting
from harness.errors import HarnessError
from harness.s3_server import S3Server, keys_in_environment, missing_program

PEER = "webdataset"
SHARE = 0.3
EPOCHS = 3


def run(context: Context) -> list[Figure]:
    if why := missing_program():
        raise HarnessError(why)
    python = venv.python()
    images = unpack_default(REPOSITORY / "build" / "demo-data")
    with (
        keys_in_environment(KEYS, REGION) as environment,
        S3Server(context.folder / "s3", KEYS, region=REGION) as server,
    ):
        context.say("filling the bucket")
        bucket = buckets.fill_archives(server, images, context.folder, few=context.quick)
        context.say(f"{bucket.samples} samples, {bucket.bytes / 1e6:.1f} MB, {buckets.ARCHIVES} tars")
        bench = Bench(context, server, bucket, python, environment, EPOCHS)
        rows = []
        for way in (OURS_TAR, PEER):
            rows.append(bench.measure(way, Setting("archives", SHARE)))
            context.say(rows[-1].words())
    return figures_of(*rows)


def figures_of(ours: Row, peer: Row) -> list[Figure]:
    """Beside the peer, and a loop that reads each sample by a request of its own and keeps nothing."""

    def beside(value: float) -> str:
        return f"{PEER} {value:.3f}; a GET a sample 1"

    later = len(ours.passes) - 1
    return [
        Figure(
            "archives: GETs an epoch after the first / samples",
            ours.gets_later / later / ours.samples,
            peer=beside(_gets(peer)),
            goal=at_most((1 - SHARE) * HEADERS),
        ),
        Figure(
            "archives: bytes an epoch after the first / data set",
            ours.bytes_later,
            peer=beside(peer.bytes_later),
            goal=at_most((1 - SHARE) * HEADERS + (HEADERS - 1)),
        ),
        Figure("archives: GETs of the first epoch / samples", ours.passes[0].counts.gets / ours.samples),
        Figure("archives: most bytes kept / data set", ours.cache, goal=at_most(SHARE * 1.02)),
    ]


def _gets(row: Row) -> float:
    """In an epoch, of one that keeps nothing."""
    return row.gets / len(row.passes) / row.samples
