"""A real API server with the chart in it, and operators that run beside it with the chart's rights."""

from __future__ import annotations

import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, ApiServer
from harness import processes
from harness.errors import HarnessError
from harness.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / (os.environ.get("OPTCACHE_CLUSTER_BIN") or "build/cluster/bin")
SYSTEM = "optcache"
WAIT_SECONDS = 180.0

Object = dict[str, Any]


@dataclass
class Operator:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    webhook: int
    control: int
    pages: int
    host: str = "127.0.0.1"

    def page(self, path: str) -> Answer:
        try:
            with urllib.request.urlopen(f"http://{self.host}:{self.pages}{path}", timeout=60) as page:
                return Answer(page.status, page.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode())
        except OSError as error:
            return Answer(0, str(error))

    def metric(self, name: str) -> float:
        """The sum over its labels."""
        lines = [line for line in self.page("/metrics").out.splitlines() if line.startswith(name)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def words(self) -> str:
        return self.log.read_text(errors="replace")


class Cluster:
    """What there is to ask of the API server, and to say to it."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.api = api
        self.folder = folder
        self.operators: list[Operator] = []

    def get(self, path: str) -> Object:
        answer = self.api.request("GET", path)
        found: Object = answer.json() if answer.code == 200 else {}
        return found

    def create(self, path: str, item: Object) -> Object:
        answer = self.api.request("POST", path, item)
        assert answer.code in (200, 201), answer.out
        made: Object = answer.json()
        return made

    def patch(self, path: str, body: Object) -> None:
        answer = self.api.request(
            "PATCH", path, body, **{"Content-Type": "application/merge-patch+json"}
        )
        assert answer.code == 200, answer.out

    def namespace(self, name: str) -> None:
        self.create("/api/v1/namespaces", {"metadata": {"name": name}})

    def end_pod(self, namespace: str, pod: str, container: str, message: str, *, init: bool = False) -> None:
        """Its container ended well with this termination message, as kubelet tells it."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ended = {"exitCode": 0, "reason": "Completed", "message": message, "finishedAt": now}
        state = {
            "name": container, "ready": False, "restartCount": 0, "image": "i", "imageID": "i",
            "state": {"terminated": ended},
        }  # fmt: skip
        statuses = "initContainerStatuses" if init else "containerStatuses"
        status: Object = {"phase": "Succeeded", statuses: [state]}
        self.patch(f"/api/v1/namespaces/{namespace}/pods/{pod}/status", {"status": status})

    def finish_job(self, namespace: str, job: str, message: str) -> None:
        """Its pod JOB-x ended well with this termination message, as kubelet and Job controller tell it."""
        self.end_pod(namespace, f"{job}-x", "index", message)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}
        self.patch(f"/apis/batch/v1/namespaces/{namespace}/jobs/{job}/status", {"status": status})

    def token(self, account: str, audience: str | None = None, pod: Object | None = None) -> str:
        spec: Object = {"expirationSeconds": 3600}
        if audience is not None:
            spec["audiences"] = [audience]
        if pod is not None:
            metadata = pod["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        made = self.create(
            f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{account}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        return str(made["status"]["token"])

    def start_operator(self, name: str, *flags: str, host: str = "") -> Operator:
        """With a `host` of its own (an address on loopback) at the ports of the chart."""
        program = os.environ.get("OPTCACHE_OPERATOR")
        if program is None:
            pytest.skip("OPTCACHE_OPERATOR does not name optcache-operator")
        account = self.folder / f"{name}-account"
        account.mkdir()
        (account / "token").write_text(self.token("optcache-operator"))
        (account / "namespace").write_text(SYSTEM)
        # kube-apiserver signed it itself.
        certificate = self.api.folder / "certificates" / "apiserver.crt"
        (account / "ca.crt").write_text(certificate.read_text())
        webhook, control, pages = (9443, 8443, 8080) if host else (free_port() for _ in range(3))
        host = host or "127.0.0.1"
        log = self.folder / f"{name}.log"
        environment = {
            "POD_NAME": name,
            "POD_NAMESPACE": SYSTEM,
            "POD_IP": host,
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.api.port),
        }
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    program,
                    "--sidecar-image=optcache/sidecar:test",
                    f"--webhook-address={host}:{webhook}",
                    f"--control-address={host}:{control}",
                    f"--metrics-address={host}:{pages}",
                    f"--service-account={account}",
                    "--shutdown-delay=100ms",
                    *flags,
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        operator = Operator(name, process, log, webhook, control, pages, host)
        self.operators.append(operator)
        return operator

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            processes.wait_until(condition, what, WAIT_SECONDS)
        except HarnessError as error:
            logs = "\n".join(processes.last_lines(each.log, 40) for each in self.operators)
            raise AssertionError(f"{error}\n{logs}") from error

    def stop(self) -> None:
        for operator in self.operators:
            processes.stop(operator.process)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of ours."""
    program = os.environ.get("OPTCACHE_OPERATOR")
    if program is None:
        pytest.skip("OPTCACHE_OPERATOR does not name optcache-operator")
    return Path(program).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    for name in ("etcd", "kube-apiserver", "kubectl", "helm"):
        if not (PROGRAMS / name).is_file():
            pytest.skip(f"no {name} in {PROGRAMS}: set OPTCACHE_CLUSTER_BIN")
    api = ApiServer(PROGRAMS, tmp_path_factory.mktemp("api-server"))
    made = Cluster(api, tmp_path_factory.mktemp("operators"))
    try:
        api.start()
        done = api.helm(
            "install", "optcache", str(ROOT / "charts/optcache"), "--namespace", SYSTEM,
            "--create-namespace", "--set=image.prefix=registry.example.com/team/",
        )  # fmt: skip
        assert done.code == 0, done.err
        yield made
    finally:
        made.stop()
        api.stop()


@pytest.fixture(scope="module")
def leader(cluster: Cluster) -> Operator:
    operator = cluster.start_operator("optcache-operator-0")
    cluster.wait(lambda: operator.page("/readyz").code == 200, "the operator is ready")
    return operator


def ask(
    operator: Operator, method: str, path: str, trust: str, folder: Path, **request: Any
) -> Answer:
    """The control port's answer; `chain` and `key` (PEM) are the client's, `token` a bearer's."""
    context = ssl.create_default_context(cadata=trust)
    context.check_hostname = False
    if "chain" in request:
        (folder / "client.crt").write_text(request["chain"])
        (folder / "client.key").write_text(request["key"])
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    headers = {}
    if "token" in request:
        headers["Authorization"] = f"Bearer {request['token']}"
    body = request.get("body")
    sent = urllib.request.Request(
        f"https://127.0.0.1:{operator.control}{path}",
        method=method,
        headers=headers,
        data=None if body is None else body.encode(),
    )
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=context), NoRedirects
    )
    try:
        with opener.open(sent, timeout=120) as response:
            return Answer(response.status, response.read().decode())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.read().decode(), error.headers.get("Location", ""))


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None
