"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, in one network namespace."""

from __future__ import annotations

import json
import signal
from typing import Any

from cluster import network, settings
from cluster.host import Word, run, utc, wait_until
from cluster.processes import Daemon
from cluster.settings import Paths

READY_SECONDS = 120.0
# A node is NotReady after GRACE, and its pods are evicted EVICTION later. That is soon, so that tests
# see a lost machine soon; where no case loses one, a kubelet may be late on a machine that is busy.
GRACE_SECONDS = 60 if settings.SMOKE else 20
EVICTION_SECONDS = 15
AUDIT_LOG_MAX_MEGABYTES = "2000"


class ControlPlane:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        folder = paths.run / "control"
        names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        # From and until: it may answer before it knows who has which rights.
        self.starts: list[tuple[str, str]] = []
        self._daemons = {
            name: Daemon(name, folder, paths.log / f"{name}.log") for name in names
        }

    def start(self) -> None:
        """Starts what does not run; returns when the API server is ready."""
        self.start_etcd()
        self.start_api_server()
        self._ensure("kube-controller-manager", self._controller_manager())
        self._ensure("kube-scheduler", self._scheduler())

    def start_etcd(self) -> None:
        self._ensure("etcd", self._etcd())

    def start_api_server(self) -> None:
        began = utc()
        self._ensure("kube-apiserver", self._api_server())
        log = self._daemons["kube-apiserver"].log
        wait_until(self.is_ready, f"kube-apiserver is ready, see {log}", READY_SECONDS)
        self.starts.append((began, utc()))

    def stop_api_server(self) -> None:
        """At once, as if its machine had lost power."""
        self._daemons["kube-apiserver"].stop(signal.SIGKILL)

    def is_ready(self) -> bool:
        kubeconfig = f"--kubeconfig={self._paths.kubeconfig()}"
        command: list[Word] = [self._paths.program("kubectl"), kubeconfig, "get", "--raw", "/readyz"]
        command = network.inside(settings.CONTROL_NAMESPACE, *command)
        return run(command, check=False, seconds=30).returncode == 0

    def running(self) -> dict[str, bool]:
        return {name: daemon.pid is not None for name, daemon in self._daemons.items()}

    def compact_etcd(self) -> None:
        """Forgets all revisions but the last: whoever watches from an older one is told 410."""
        status = self._ask_etcd("maintenance/status", {})
        revision = status["header"]["revision"]
        self._ask_etcd("kv/compaction", {"revision": revision, "physical": True})

    def _ask_etcd(self, method: str, request: dict[str, Any]) -> Any:
        url = f"http://127.0.0.1:{settings.ETCD_PORT}/v3/{method}"
        command: list[Word] = ["curl", "--silent", "--fail", url, "--data", json.dumps(request)]
        return json.loads(run(network.inside(settings.CONTROL_NAMESPACE, *command)).stdout)

    def _ensure(self, name: str, arguments: list[str]) -> None:
        daemon = self._daemons[name]
        if daemon.pid is None:
            program = self._paths.program(name)
            daemon.start(network.inside(settings.CONTROL_NAMESPACE, program, *arguments))

    def _etcd(self) -> list[str]:
        client = f"http://127.0.0.1:{settings.ETCD_PORT}"
        peer = f"http://127.0.0.1:{settings.ETCD_PORT + 1}"
        return [
            "--name=test",
            f"--data-dir={self._paths.run / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        pki = self._paths.pki
        tolerated = EVICTION_SECONDS
        return [
            "--bind-address=0.0.0.0",
            f"--secure-port={settings.API_PORT}",
            f"--advertise-address={settings.CONTROL_ADDRESS}",
            f"--etcd-servers=http://127.0.0.1:{settings.ETCD_PORT}",
            "--etcd-compaction-interval=0",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--service-account-key-file={pki / 'sa.pub'}",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--api-audiences=https://kubernetes.default.svc",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--service-cluster-ip-range={settings.SERVICE_RANGE}",
            f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
            f"--kubelet-certificate-authority={pki / 'ca.crt'}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={pki / 'ca.crt'}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
            f"--proxy-client-key-file={pki / 'front-proxy.key'}",
            "--allow-privileged=true",
            # Webhooks are reached at their pods: no kube-proxy runs beside the control plane.
            "--enable-aggregator-routing=true",
            f"--default-not-ready-toleration-seconds={tolerated}",
            f"--default-unreachable-toleration-seconds={tolerated}",
            f"--audit-policy-file={settings.HERE / 'addons' / 'audit-policy.yaml'}",
            f"--audit-log-path={self._paths.audit_log}",
            f"--audit-log-maxsize={AUDIT_LOG_MAX_MEGABYTES}",
        ]

    def _clients(self, user: str) -> list[str]:
        kubeconfig = self._paths.kubeconfig(user)
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
        ]

    def _controller_manager(self) -> list[str]:
        pki = self._paths.pki
        return [
            *self._clients("controller-manager"),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={pki / 'sa.key'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            f"--requestheader-client-ca-file={pki / 'ca.crt'}",
            "--node-monitor-period=2s",
            f"--node-monitor-grace-period={GRACE_SECONDS}s",
        ]

    def _scheduler(self) -> list[str]:
        return self._clients("scheduler")
