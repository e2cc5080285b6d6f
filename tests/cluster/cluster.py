"""The cluster as a whole: up, down, and what runs of it."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

from cluster import cgroups, network, pki, programs, recipes, settings, worker
from cluster.containerd import Seed
from cluster.control_plane import ControlPlane
from cluster.errors import ClusterError
from cluster.host import Word, missing, run, wait_until
from cluster.images import BASE_IMAGE, Image, ImageStore
from cluster.processes import in_namespace, kill, naming, wait_gone
from cluster.settings import Paths
from cluster.worker import Worker

READY_SECONDS = 180.0
DNS_IMAGE = "optcache.test/coredns:1"
# Which checkout's cluster it is that runs on this machine.
OWNER = Path("/run/optcache-cluster")


class Cluster:
    def __init__(self, paths: Optional[Paths] = None) -> None:
        self.paths = paths or Paths.default()
        self.control = ControlPlane(self.paths)
        self.images = ImageStore(self.paths)

    @property
    def _made(self) -> Path:
        """Is there once keys and network of the control plane are complete."""
        return self.paths.run / "made"

    @property
    def workers(self) -> list[Worker]:
        numbers = sorted(int(path.name[1:]) for path in self.paths.run.glob("n[0-9]*"))
        return [Worker(self.paths, number) for number in numbers]

    def prepare(self, images: Sequence[Image] = ()) -> list[Path]:
        """All that takes minutes and outlives a cluster: programs, and archives of these images."""
        if lacks := missing():
            raise ClusterError("\n".join(lacks))
        programs.ensure(self.paths)
        archives = [self.images.pause()]
        archives += [self.images.build(image) for image in (self._dns_image(), *images)]
        with _locked(self.paths):
            Seed(self.paths).ensure(archives)
        return archives

    def up(self, workers: int = settings.WORKERS, images: Sequence[Image] = ()) -> None:
        """Starts what does not run of it yet; returns when all workers are Ready.

        They have these images, which do not change often: kept unpacked between clusters.
        """
        archives = self.prepare(images)
        with _locked(self.paths):
            self._claim()
            self._start_control()
            for number in range(1, workers + 1):
                self._start_worker(Worker(self.paths, number), archives)
        self._wait_ready(workers)

    def down(self) -> None:
        """Leaves no process, namespace, mount or control group, whatever state it was in."""
        for number in self._worker_numbers():
            worker.kill_worker(number)
        control = settings.CONTROL_NAMESPACE
        if control in network.ours():
            pids = in_namespace("net", [network.inode(control)])
            kill(pids)
            wait_gone(pids)
        for namespace in network.ours():
            network.remove(namespace)
        cgroups.remove_all()
        self.images.release()
        shutil.rmtree(self.paths.run, ignore_errors=True)
        OWNER.unlink(missing_ok=True)

    def remains(self) -> list[str]:
        """What there is of a cluster, in words: nothing after `down`."""
        lines = Path("/proc/mounts").read_text().splitlines()
        mounts = [line.split(" ")[1] for line in lines]
        ours = tuple(f"{path}/" for path in (self.paths.run, self.paths.images))
        found: dict[str, Sequence[object]] = {
            "network namespace": network.ours(),
            "interface": network.links(),
            "control group": cgroups.ours(),
            "mount": [mount for mount in mounts if mount.startswith(ours)],
            "process": naming(self.paths.run),
            "file": [path for path in (self.paths.run, OWNER) if path.exists()],
        }
        return [f"{kind} {what}" for kind, these in found.items() for what in these]

    def load(self, image: Image) -> None:
        """Makes the image, if it must, and gives it to all workers."""
        archive = self.images.build(image)
        with ThreadPoolExecutor() as pool:
            list(pool.map(Worker.import_image, self.workers, itertools.repeat(archive)))

    def status(self) -> str:
        if not self.is_up():
            return "no cluster runs here: ./dev cluster up"
        lines = []
        parts = {"control plane": self.control.running()}
        parts.update({each.name: each.running() for each in self.workers})
        for name, running in parts.items():
            states = (f"{part} {'runs' if runs else 'DOES NOT RUN'}" for part, runs in running.items())
            lines.append(f"{name:14} {', '.join(states)}")
        lines.append(f"logs           {self.paths.log}")
        return "\n".join(lines)

    def is_up(self) -> bool:
        return settings.CONTROL_NAMESPACE in network.ours() and self.paths.run.is_dir()

    def tool(self, program: str, words: Iterable[Word]) -> list[Word]:
        """The command that runs kubectl or helm as the cluster's administrator."""
        plugins = recipes.present().programs  # kubectl-optcache
        environment = (f"KUBECONFIG={self.paths.kubeconfig()}", f"PATH={plugins}:{os.environ['PATH']}")
        command: list[Word] = ["env", *environment, self.paths.program(program), *words]
        return network.inside(settings.CONTROL_NAMESPACE, *command)

    def kubectl(
        self, *words: Word, stdin: Optional[str] = None, check: bool = True, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return run(self.tool("kubectl", words), stdin=stdin, check=check, seconds=seconds)

    def helm(
        self, *words: Word, check: bool = True, seconds: float = 300
    ) -> subprocess.CompletedProcess[str]:
        return run(self.tool("helm", words), check=check, seconds=seconds)

    def get(self, *words: Word) -> Any:
        """The object or list that `kubectl get` shows."""
        return json.loads(self.kubectl("get", "--output=json", *words).stdout)

    def apply(self, *documents: Any) -> None:
        """Objects as Python values, server-side."""
        text = "\n---\n".join(json.dumps(document) for document in documents)
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)

    def check_free(self) -> None:
        """Refuses where another checkout's cluster runs."""
        owner = Path(OWNER.read_text().strip()) if OWNER.exists() else None
        if owner and owner != self.paths.root and network.ours():
            raise ClusterError(
                f"the cluster of {owner} runs on this machine, which can carry one: end it there, "
                "or here, by ./dev cluster down"
            )

    def _claim(self) -> None:
        """The machine's place for a cluster; ends what a crash left of ours."""
        self.check_free()
        if not (self.is_up() and self._made.exists()):
            self.down()
        OWNER.write_text(f"{self.paths.root}\n")

    def _start_control(self) -> None:
        if not self._made.exists():
            shutil.rmtree(self.paths.log, ignore_errors=True)
            self.paths.log.mkdir(parents=True)
            pki.make_all(self.paths)
            network.make_control()
            self._made.touch()
        self.control.start()
        self.kubectl("apply", "--server-side", f"--filename={settings.HERE / 'addons' / 'coredns.yaml'}")

    def _start_worker(self, each: Worker, archives: Sequence[Path]) -> None:
        each.start()
        for archive in archives:
            each.import_image(archive)
        each.join()

    def _wait_ready(self, workers: int) -> None:
        def ready() -> bool:
            words = ["-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"]
            shown = self.kubectl("get", "nodes", *words, check=False).stdout
            dns = self.kubectl(
                "get", "-n=kube-system", "deployment/coredns", "-o=jsonpath={.status.readyReplicas}",
                check=False,
            ).stdout
            return shown.split().count("True") >= workers and dns == "1"

        wait_until(ready, f"all workers and CoreDNS are ready, see {self.paths.log}", READY_SECONDS)

    def _worker_numbers(self) -> list[int]:
        prefix = settings.worker_namespace(0)[:-1]
        named = {int(name[len(prefix):]) for name in network.ours() if name.startswith(prefix)}
        return sorted(named | set(cgroups.workers()))

    def _dns_image(self) -> Image:
        folder = self.paths.images / "coredns"
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "coredns"
        if not program.exists() or program.stat().st_mtime < self.paths.program("coredns").stat().st_mtime:
            shutil.copy2(self.paths.program("coredns"), program)
        dockerfile = folder / "Dockerfile"
        dockerfile.write_text('FROM scratch\nCOPY coredns /coredns\nENTRYPOINT ["/coredns"]\n')
        return Image(DNS_IMAGE, folder, dockerfile)


@contextlib.contextmanager
def _locked(paths: Paths) -> Iterator[None]:
    paths.root.mkdir(parents=True, exist_ok=True)
    with open(paths.root / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
