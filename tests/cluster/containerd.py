"""containerd's configuration; and its data with images that all workers begin with.

Three workers would unpack a training image three times. Instead it is imported once, into a seed
that is kept between clusters, and a worker begins with hard links to the seed's files: nothing ever
writes into an unpacked layer. Only containerd's two databases are copied.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from cluster.host import Word, run, wait_until
from cluster.processes import Daemon
from cluster.settings import Paths

PAUSE_IMAGE = "optcache.test/pause:1"
START_SECONDS = 60.0
IMPORT_SECONDS = 900.0


def configuration(data: Path, network: Path, plugins: Path) -> str:
    return f"""\
version = 2
root = "{data}"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{plugins}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{network}"
"""


def import_command(archive: Path) -> list[Word]:
    return ["ctr", "--namespace=k8s.io", "images", "import", archive]


class Seed:
    def __init__(self, paths: Paths) -> None:
        self._folder = paths.root / "seed"
        self._data = self._folder / "data"
        self._log = paths.root / "seed.log"

    def ensure(self, archives: Sequence[Path]) -> None:
        """Has these images; their archives' names tell their content."""
        imported = self._folder / "imported"
        wanted = [archive for archive in archives if archive.name not in self.names()]
        if not wanted:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "containerd.toml"
        config.write_text(configuration(self._data, self._folder / "cni", self._folder / "opt"))
        script = 'mount -t tmpfs tmpfs /run; exec containerd --config="$0"'
        daemon = Daemon("containerd", self._folder, self._log)
        pid = daemon.start(["unshare", "--mount", "--net", "sh", "-e", "-c", script, config])
        inside: list[Word] = ["nsenter", f"--mount=/proc/{pid}/ns/mnt"]
        try:
            wait_until(
                lambda: run([*inside, "ctr", "version"], check=False).returncode == 0,
                f"containerd answers, see {self._log}",
                START_SECONDS,
            )
            for archive in wanted:
                run([*inside, *import_command(archive)], seconds=IMPORT_SECONDS)
                with open(imported, "a", encoding="utf-8") as file:
                    file.write(f"{archive.name}\n")
        finally:
            daemon.stop(signal.SIGTERM)

    def names(self) -> list[str]:
        """Of the archives that have been imported."""
        imported = self._folder / "imported"
        return imported.read_text().split() if imported.exists() else []

    def plant(self, target: Path) -> None:
        """`target` becomes a worker's data, with all images of the seed."""
        shutil.rmtree(target, ignore_errors=True)
        run(["cp", "--archive", "--link", self._data, target], seconds=IMPORT_SECONDS)
        for database in target.glob("io.containerd.*/*.db"):
            source = self._data / database.relative_to(target)
            database.unlink()
            shutil.copy2(source, database)
