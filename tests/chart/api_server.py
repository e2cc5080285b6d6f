"""A kube-apiserver with its etcd on the loopback: nothing runs in it, it only takes objects."""

from __future__ import annotations

import json
import secrets
import ssl
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import processes
from harness.errors import HarnessError
from harness.ports import free_port

READY_SECONDS = 300.0
COMMAND_SECONDS = 300.0

AUDIT_POLICY = Path(__file__).resolve().parents[1] / "cluster" / "addons" / "audit-policy.yaml"

Object = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    code: int  # of the process, or of HTTP
    out: str
    err: str = ""

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class ApiServer:
    programs: Path  # the folder of etcd, kube-apiserver, kubectl and helm
    folder: Path  # empty, for data, logs and the kubeconfig
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    port: int = 0
    token: str = ""

    def start(self) -> None:
        client, peer, secure = (free_port() for _ in range(3))
        self._spawn(
            "etcd",
            f"--data-dir={self.folder}/etcd",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        key = self.folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self.port, self.token = secure, secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n')
        self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{client}",
            "--bind-address=127.0.0.1",
            f"--secure-port={secure}",
            f"--cert-dir={self.folder}/certificates",
            f"--token-auth-file={self.folder}/tokens.csv",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            f"--audit-policy-file={AUDIT_POLICY}",
            f"--audit-log-path={self.audit_log}",
            # Nothing here makes a ServiceAccount `default`, without which no pod is taken.
            "--disable-admission-plugins=ServiceAccount",
        )
        self._write_kubeconfig()
        processes.wait_until(self._ready, "kube-apiserver is ready", READY_SECONDS)

    def stop(self) -> None:
        """The API server first: it hangs without its etcd."""
        while self.running:
            processes.stop(self.running.pop())

    def kubectl(self, *arguments: str, stdin: Object | None = None) -> Answer:
        return self._run("kubectl", *arguments, stdin=stdin)

    def helm(self, *arguments: str) -> Answer:
        return self._run("helm", *arguments)

    def request(
        self, method: str, path: str, body: Object | None = None, **headers: str
    ) -> Answer:
        """What the API server itself says, without kubectl. `body` is strictly validated."""
        query = ""
        if body is not None:
            query = f"{'&' if '?' in path else '?'}fieldValidation=Strict&fieldManager=test"
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}{query}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        # The certificate that kube-apiserver made for itself.
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, timeout=120, context=context) as response:
                return Answer(response.status, response.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode())

    def _run(self, program: str, *arguments: str, stdin: Object | None = None) -> Answer:
        done = subprocess.run(
            [self.programs / program, f"--kubeconfig={self.kubeconfig}", *arguments],
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"},
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def _spawn(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.log").open("wb") as log:
            self.running.append(
                subprocess.Popen(
                    [self.programs / program, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,
                )
            )

    def _ready(self) -> bool:
        for process in self.running:
            if process.poll() is not None:
                log = self.folder / f"{Path(str(process.args[0])).name}.log"  # type: ignore[index]
                raise HarnessError(f"ended at once:\n{processes.last_lines(log)}")
        return self.kubectl("get", "--raw=/readyz").code == 0

    def _write_kubeconfig(self) -> None:
        cluster = {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }
        self.kubeconfig.write_text(json.dumps(config))
        self.kubeconfig.chmod(0o600)
