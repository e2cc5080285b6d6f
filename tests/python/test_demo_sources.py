"""Where the demo's images lie, and what the log of a bucket says of their reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

pytest.importorskip("torch")

import accounting  # noqa: E402
import demo  # noqa: E402
import sources  # noqa: E402
from harness import s3_server  # noqa: E402
from harness.cluster import Budget, ClusterOptions  # noqa: E402
from harness.dataset import Dataset  # noqa: E402
from sources import Bucket, WebServer  # noqa: E402

# Lines of versitygw, without the fields after the client's name.
LOG = """\
log starts 2026-11-27 02:12:35.626865527 +0000 UTC m=+0.065071382
AKIA data [27/November/2026:02:12:36 +0000] 127.0.0.1 AKIA Q5 s3_ListObjectsV2 - /data?list-type=2 200 - 444 0 0 0 - Boto3/1.43.11
AKIA data [27/November/2026:02:12:36 +0000] 127.0.0.1 AKIA N2 s3_GetObject train/a b/ü+"x.png /data/train/a%20b/%C3%BC%2B%22x.png 200 - 0 0 0 0 - Boto3/1.43.11 md/Botocore arn:aws:s3:::/data/train/a b/ü+"x.png Yes
AKIA data [27/November/2026:02:12:37 +0000] 127.0.0.1 AKIA U1 s3_HeadObject train/c.png /data/train/c.png 200 - 0 0 0 0 - Boto3/1.43.11
AKIA data [27/November/2026:02:12:37 +0000] 127.0.0.1 AKIA U2 s3_GetObject train/c.png /data/train/c.png?x-id=GetObject 200 - 0 0 0 0 - Boto3/1.43.11
AKIA data [27/November/2026:02:12:37 +0000] 127.0.0.1 AKIA U4 s3_GetObject c.png /data/c.png 200 - 0 0 0 0 - Boto3/1.43.11
AKIA data [27/November/2026:02:12:38 +0000] 127.0.0.1 AKIA U3 s3_GetObject train/gone.png /data/train/gone.png 404 NoSuchKey 0 0 0 0 - Boto3/1.43.11
"""
DATASET = Dataset(Path(), ('a b/ü+"x.png', "c.png", "gone.png"), (70, 30, 1))
BEGAN = 1795745556.0  # 2026-11-27 02:12:36 UTC


def test_reads_of_a_bucket_are_gets_of_whole_samples() -> None:
    sizes = dict(zip(DATASET.paths, DATASET.sizes, strict=True))
    requests = sources.parse_bucket_log(LOG, sizes)
    reads = accounting.sample_reads(requests, DATASET.paths)
    # What failed is a request, too.
    assert reads == [(BEGAN, 0, 70), (BEGAN + 1, 1, 30), (BEGAN + 2, 2, 0)]


def test_the_log_is_read_from_where_it_ended() -> None:
    class Server:
        text = LOG

        def log(self) -> str:
            return self.text

    server = Server()
    source = Bucket(DATASET, server)
    begin = source.log_size()
    server.text += LOG.splitlines()[4]
    assert source.reads(begin) == [(BEGAN + 1, 1, 30)]


def test_a_cache_reads_either_store_by_the_relay() -> None:
    given = ClusterOptions(Path(), "", "", 1, Budget(1, 1), Path(), Path())
    web = WebServer(DATASET, None).options(given, 7)
    assert web.source == (
        '{patience: 10m, http: {baseURL: "http://127.0.0.1:7/", listing: optcache-listing.txt}}'
    )
    assert Bucket(DATASET, None).options(given, 7).source == (
        '{patience: 10m, s3: {bucket: data, prefix: "train/", endpoint: "http://127.0.0.1:7"}}'
    )


@pytest.mark.parametrize("words", [["--source", "s3"], ["--no-code-change"]])
def test_without_a_server_of_s3_it_says_what_builds_one(monkeypatch, tmp_path, words) -> None:
    monkeypatch.setattr(s3_server, "_program", lambda: tmp_path / "versitygw")
    monkeypatch.setattr(s3_server.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["demo", *words])
    with pytest.raises(s3_server.HarnessError, match="./dev cluster programs s3 builds it with Go"):
        demo.run(demo.parse_arguments(), tmp_path)
