"""The programs of a cluster, and a real API server for each file of tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_server import ApiServer

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / (os.environ.get("OPTCACHE_CLUSTER_BIN") or "build/cluster/bin")


def need(*names: str) -> Path:
    for name in names:
        if not (PROGRAMS / name).is_file():
            pytest.skip(f"no {name} in {PROGRAMS}: set OPTCACHE_CLUSTER_BIN")
    return PROGRAMS


@pytest.fixture(scope="session")
def helm() -> Path:
    return need("helm") / "helm"


@pytest.fixture(scope="module")
def bare_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    programs = need("etcd", "kube-apiserver", "kubectl", "helm")
    server = ApiServer(programs, tmp_path_factory.mktemp("api-server"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def api(bare_api: ApiServer) -> ApiServer:
    """With the CRDs."""
    for crd in sorted((ROOT / "manifests" / "crds").glob("*.yaml")):
        done = bare_api.kubectl("apply", "--server-side", f"--filename={crd}")
        assert done.code == 0, done.err
    wait = ("--for=condition=Established", "--timeout=300s")
    crds = [f"crd/{plural}.optcache.io" for plural in ("datasets", "cacheplans", "warmups")]
    done = bare_api.kubectl("wait", *crds, *wait)
    assert done.code == 0, done.err
    return bare_api
