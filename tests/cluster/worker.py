"""One worker: containerd, kubelet and kube-proxy in network, mount and host name namespaces.

A process that only sleeps holds the namespaces, so that each daemon can end and start again.
"""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import Any

from cluster import cgroups, network, pki, settings
from cluster.containerd import Seed, configuration, import_command
from cluster.host import Word, run, wait_until
from cluster.processes import Daemon, in_namespace, kill, wait_gone
from cluster.settings import Paths

START_SECONDS = 60.0
COMMAND_SECONDS = 900.0
DAEMONS = ("containerd", "kubelet", "kube-proxy")
# Of the kubelet's Lease, renewed every fourth of it.
LEASE_SECONDS = 8
# What the kubelet would set for the whole machine: its namespace shows it as set already.
KERNEL_SETTINGS = {
    "/proc/sys/vm/overcommit_memory": "1",
    "/proc/sys/kernel/panic": "10",
    "/proc/sys/kernel/panic_on_oops": "1",
    "/proc/sys/kernel/keys/root_maxkeys": "1000000",
    "/proc/sys/kernel/keys/root_maxbytes": "25000000",
}


class Worker:
    def __init__(self, paths: Paths, number: int) -> None:
        self.number = number
        self.name = settings.worker_name(number)
        self._paths = paths
        self._folder = paths.worker(number)
        self._seed = Seed(paths)
        log = paths.log
        self._holder = Daemon("holder", self._folder, log / f"{self.name}.log")
        self._daemons = {
            name: Daemon(name, self._folder, log / f"{self.name}-{name}.log") for name in DAEMONS
        }

    def start(self) -> None:
        """Starts what does not run of it; returns when containerd answers."""
        if self._holder.pid is None:
            self._make()
        config = self._folder / "etc"
        self._ensure("containerd", ["containerd", f"--config={config / 'containerd.toml'}"])
        wait_until(
            lambda: self.run("ctr", "version", check=False) == 0,
            f"containerd of {self.name} answers, see {self._daemons['containerd'].log}",
            START_SECONDS,
        )

    def join(self) -> None:
        """Starts kubelet and kube-proxy; the images that pods need are imported already."""
        config, kubeconfig = self._folder / "etc", self._paths.kubeconfig
        kubelet: list[Word] = [
            self._paths.program("kubelet"),
            f"--config={config / 'kubelet.json'}",
            f"--kubeconfig={kubeconfig(self.name)}",
            "--root-dir=/var/lib/kubelet",
            "--cert-dir=/var/lib/kubelet/pki",
            f"--hostname-override={self.name}",
            f"--node-ip={settings.worker_address(self.number)}",
            "--v=1",
        ]
        self._ensure("kubelet", kubelet)
        proxy: list[Word] = [self._paths.program("kube-proxy"), f"--config={config / 'proxy.json'}"]
        self._ensure("kube-proxy", proxy)

    def import_image(self, archive: Path) -> None:
        """Once: names of archives tell their content."""
        imported = self._folder / "imported"
        names = imported.read_text().split() if imported.exists() else []
        if archive.name not in names:
            self.run(*import_command(archive))
            imported.write_text("\n".join([*names, archive.name]) + "\n")

    def run(self, *command: Word, check: bool = True) -> int:
        """The exit code of a command that runs as a daemon of this worker would."""
        return run(self.inside(*command), check=check, seconds=COMMAND_SECONDS).returncode

    def inside(self, *command: Word) -> list[Word]:
        namespaces = f"/proc/{self._holder.pid}/ns"
        words = [f"--{kind}={namespaces}/{name}" for kind, name in (("mount", "mnt"), ("uts", "uts"))]
        return network.inside(settings.worker_namespace(self.number), *words, *command)

    def running(self) -> dict[str, bool]:
        return {name: daemon.pid is not None for name, daemon in self._daemons.items()}

    def stop_kubelet(self) -> None:
        self._daemons["kubelet"].stop(signal.SIGKILL)

    def lose_power(self) -> None:
        """Every process of it ends at once, pods as well; `start` and `join` bring it back."""
        self._daemons["kubelet"].stop(signal.SIGKILL)
        kill_worker(self.number)

    def _ensure(self, name: str, command: list[Word]) -> None:
        daemon = self._daemons[name]
        if daemon.pid is None:
            daemon.start(self.inside(*command))

    def _make(self) -> None:
        """Namespaces, and what is in them; after a loss of power, what that has left."""
        for name in ("etc/cni", "ipam", "kernel", "kubelet", "log", "opt"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        cgroups.make(self.number)
        made = self._folder / "made"
        if not made.exists():
            self._make_anew()
            made.touch()
        script = self._folder / "etc" / "mounts.sh"
        script.write_text(self._mounts())
        enter = network.inside(settings.worker_namespace(self.number))
        self._holder.start([*enter, "unshare", "--mount", "--uts", "bash", script])
        ready = self._folder / "ready"
        wait_until(ready.exists, f"namespaces of {self.name}, see {self._holder.log}", START_SECONDS)
        ready.unlink()

    def _make_anew(self) -> None:
        namespace = settings.worker_namespace(self.number)
        if namespace in network.ours():
            network.remove(namespace)  # of an earlier attempt that was cut off
        pki.make_worker(self._paths, self.number)
        network.make_worker(self.number)
        self._write_configuration()
        self._seed.plant(self._folder / "containerd")
        (self._folder / "imported").write_text("\n".join(self._seed.names()) + "\n")

    def _mounts(self) -> str:
        """What a worker sees instead of the machine's own, and then a long sleep."""
        quote, folder = shlex.quote, self._folder
        lines = [
            "set -euo pipefail",
            "mount --make-rshared /",
            "mount -t tmpfs tmpfs /run",
            "mkdir -p /run/containerd /run/netns /var/lib/kubelet",
            f"mount --bind {quote(str(folder / 'kubelet'))} /var/lib/kubelet",
            f"mount --bind {quote(str(folder / 'log'))} /var/log",
            "mkdir -p /var/log/pods /var/log/containers",
            f"hostname {self.name}",
        ]
        for path, value in KERNEL_SETTINGS.items():
            fake = folder / "kernel" / Path(path).name
            fake.write_text(value + "\n")
            lines.append(f"mount --bind {quote(str(fake))} {path}")
        lines += [f"touch {quote(str(folder / 'ready'))}", "exec sleep infinity"]
        return "\n".join(lines) + "\n"

    def _write_configuration(self) -> None:
        documents = {
            "kubelet.json": self._kubelet(),
            "proxy.json": self._proxy(),
            "cni/10-pods.conflist": self._pod_network(),
        }
        etc = self._folder / "etc"
        for name, document in documents.items():
            (etc / name).write_text(json.dumps(document, indent=1) + "\n")
        text = configuration(self._folder / "containerd", etc / "cni", self._folder / "opt")
        (etc / "containerd.toml").write_text(text)
        (etc / "resolv.conf").write_text("")

    def _pod_network(self) -> dict[str, Any]:
        bridge = {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "dataDir": str(self._folder / "ipam"),
                "ranges": [[{"subnet": settings.pod_range(self.number)}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}

    def _kubelet(self) -> dict[str, Any]:
        certificates = self._paths.pki
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": settings.worker_address(self.number),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(certificates / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(certificates / f"{self.name}.crt"),
            "tlsPrivateKeyFile": str(certificates / f"{self.name}.key"),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroups.path_of(self.number),
            "failCgroupV1": False,
            "failSwapOn": False,
            "maxOpenFiles": 20000,
            # Each worker offers all CPUs of the machine; limits would throttle, and say nothing.
            "cpuCFSQuota": False,
            # Tests read whole logs.
            "containerLogMaxSize": "500Mi",
            "healthzBindAddress": "127.0.0.1",
            "clusterDomain": "cluster.local",
            "clusterDNS": [settings.DNS_ADDRESS],
            "resolvConf": str(self._folder / "etc" / "resolv.conf"),
            "nodeLeaseDurationSeconds": LEASE_SECONDS,
            "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "10s",
            "syncFrequency": "5s",
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            "enforceNodeAllocatable": ["pods"],
        }

    def _proxy(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(self._paths.kubeconfig("proxy"))},
            "mode": "iptables",
            "hostnameOverride": self.name,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "conntrack": {"maxPerCore": 0, "min": 0},
        }


def kill_worker(number: int) -> None:
    """What is in its control groups and in its network namespace, whoever started it.

    containerd's shims go on when containerd ends; they are in that namespace, as it was.
    """
    cgroups.kill_all(number)
    namespace = settings.worker_namespace(number)
    if namespace in network.ours():
        pids = in_namespace("net", [network.inode(namespace)])
        kill(pids)
        wait_gone(pids)
    cgroups.kill_all(number)
