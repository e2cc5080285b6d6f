"""Which server of S3 a run of the tests is against: versitygw, or the one that OPTCACHE_TEST_S3 names."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from harness import ceph, s3_server
from harness.ceph import Ceph
from harness.s3_server import BucketServer, S3Server

NAME = os.environ.get("OPTCACHE_TEST_S3", "versitygw")
IS_CEPH = {"versitygw": False, "ceph": True}[NAME]
Server: Callable[..., BucketServer] = Ceph if IS_CEPH else S3Server


def need_program() -> None:
    """versitygw is built the first time, which no test shall wait for."""
    if why := ceph.missing_program() if IS_CEPH else s3_server.missing_program():
        pytest.skip(why)
    if not IS_CEPH:
        s3_server.program()
