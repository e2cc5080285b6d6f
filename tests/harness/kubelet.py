"""Runs containers of pods as processes of this machine, without root: a kubelet for tests.

What a pod says is what happens: its arguments, its environment and its volumes. A pod has an address of
its own on the loopback, on which its containers listen at their own ports; names of Services lead there by
an /etc/hosts that these processes alone see. Paths of mounts become folders in arguments and environment.
"""

from __future__ import annotations

import base64
import os
import random
import re
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.processes import last_lines, stop, wait_until

Object = dict[str, Any]
# asks(method, path, body): the object of the answer, {} if there is none.
Ask = Callable[[str, str, "Object | None"], Object]

END_SECONDS = 120.0
TERMINATION_PATH = "/dev/termination-log"  # where a container leaves its last word
# Mounts the first word over /etc/hosts, which this process alone sees then, and becomes the others.
WITH_HOSTS = 'mount --bind "$0" /etc/hosts; exec "$@"'


class Container:
    """A process that runs; its output is in `log`."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, address: str) -> None:
        self.process = process
        self.log = log
        self.address = address

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def runs(self) -> bool:
        """True, or HarnessError with its last words."""
        if self.process.poll() is not None:
            raise HarnessError(f"it has ended:\n{last_lines(self.log, 50)}")
        return True

    def answers(self, port: int, page: str) -> bool:
        """As its probe asks. HarnessError if it has ended."""
        self.runs()
        try:
            with urllib.request.urlopen(f"http://{self.address}:{port}/{page}", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class Kubelet:
    def __init__(self, ask: Ask, programs: Path, folder: Path) -> None:
        self._ask = ask
        self._programs = programs
        self._folder = folder
        self._hosts = folder / "hosts"
        self._hosts.write_text("127.0.0.1 localhost\n")
        self.running: list[Container] = []

    def serve(self, address: str, *names: str) -> None:
        """From now on the names of these Services lead there."""
        kept = [line for line in self._hosts.read_text().splitlines() if line.split()[1] not in names]
        # In place: the file itself is mounted.
        self._hosts.write_text("".join(f"{line}\n" for line in [*kept, *(f"{address} {name}" for name in names)]))

    def start(self, pod: Object, container: Object, program: str, *more: str) -> Container:
        """Starts `program` as that container of `pod`, which the API server has."""
        folder = self._folder_of(pod)
        mounts = self._mounts(pod, container, folder)
        address = pod["status"]["podIP"]
        environment = self._environment(pod, container, mounts)
        places = {**mounts, TERMINATION_PATH: self.termination_file(pod, container)}
        words = [_word(word, environment, places, address) for word in container.get("args", [])]
        alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        log = folder / f"{container['name']}.log"
        with open(log, "ab") as output:
            process = subprocess.Popen(
                [*alone, "sh", "-ec", WITH_HOSTS, self._hosts, self._programs / program, *words, *more],
                env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        started = Container(process, log, address)
        self.running.append(started)
        return started

    def run(self, pod: Object, container: Object, program: str) -> str:
        """As `start`, to its end; its termination message."""
        message = self.termination_file(pod, container)
        started = self.start(pod, container, program, "--termination-file", str(message))
        try:
            code = started.process.wait(END_SECONDS)
        finally:
            self.stop(started)
        if not message.exists():
            raise HarnessError(f"{program}: exit code {code}\n{last_lines(started.log, 50)}")
        return message.read_text()

    def stop(self, container: Container) -> int:
        self.running.remove(container)
        return stop(container.process)

    def stop_all(self) -> None:
        while self.running:
            self.stop(self.running[-1])

    def file(self, pod: Object, container: Object, path: str) -> Path:
        """Where a file of that container is."""
        mounts = self._mounts(pod, container, self._folder_of(pod))
        return Path(_on_this_machine(path, mounts))

    def termination_file(self, pod: Object, container: Object) -> Path:
        """The container's last word, once it has ended."""
        folder = self._folder_of(pod)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{container['name']}.termination"

    def _folder_of(self, pod: Object) -> Path:
        """By its name: a path of a socket may have 107 bytes."""
        return self._folder / pod["metadata"]["namespace"] / pod["metadata"]["name"]

    def _mounts(self, pod: Object, container: Object, folder: Path) -> dict[str, Path]:
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        mounts = {}
        for mount in container.get("volumeMounts", []):
            target = folder / "volumes" / mount["name"]
            if not target.exists():
                volume = volumes[mount["name"]]
                found = self._contents(pod, volume)
                target.mkdir(parents=True)
                for name, data in found.items():
                    (target / name).write_bytes(data)
            mounts[mount["mountPath"]] = target
        return mounts

    def _contents(self, pod: Object, volume: Object) -> dict[str, bytes]:
        """The files of a volume, by name. Like a kubelet, it waits for objects that do not exist yet."""
        space = f"/api/v1/namespaces/{pod['metadata']['namespace']}"
        if config := volume.get("configMap"):
            path = f"{space}/configmaps/{config['name']}"
            found = self._ask("GET", path, None) if config.get("optional") else self._wait_for(path)
            return {name: text.encode() for name, text in found.get("data", {}).items()}
        if secret := volume.get("secret"):
            found = self._wait_for(f"{space}/secrets/{secret['secretName']}")
            return {name: base64.b64decode(text) for name, text in found.get("data", {}).items()}
        if projected := volume.get("projected"):
            tokens = [source["serviceAccountToken"] for source in projected["sources"]]
            return {token["path"]: self._token(pod, token).encode() for token in tokens}
        if "emptyDir" not in volume:
            raise HarnessError(f"volume {volume} of {pod['metadata']['name']}: not known here")
        return {}

    def _wait_for(self, path: str) -> Object:
        wait_until(lambda: self._ask("GET", path, None) != {}, f"there is {path}")
        return self._ask("GET", path, None)

    def _token(self, pod: Object, wanted: Object) -> str:
        metadata = pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        account = pod["spec"]["serviceAccountName"]
        made = self._ask(
            "POST",
            f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": [wanted["audience"]],
                    "expirationSeconds": wanted["expirationSeconds"],
                    "boundObjectRef": bound,
                },
            },
        )
        return str(made["status"]["token"])

    def _environment(
        self, pod: Object, container: Object, mounts: Mapping[str, Path]
    ) -> dict[str, str]:
        fields = {
            "metadata.name": pod["metadata"]["name"],
            "metadata.namespace": pod["metadata"]["namespace"],
            "metadata.uid": pod["metadata"]["uid"],
            "spec.nodeName": pod["spec"].get("nodeName", ""),
            "status.podIP": pod["status"]["podIP"],
        }
        values = {}
        for variable in container.get("env", []):
            source = variable.get("valueFrom", {}).get("fieldRef")
            text = fields[source["fieldPath"]] if source else variable.get("value", "")
            values[variable["name"]] = _on_this_machine(text, mounts)
        return values


def new_address() -> str:
    """Of a pod, on the loopback; no two are alike."""
    chance = random.SystemRandom()
    return f"127.{chance.randrange(10, 250)}.{chance.randrange(256)}.{chance.randrange(2, 250)}"


def _word(word: str, environment: Mapping[str, str], mounts: Mapping[str, Path], address: str) -> str:
    word = re.sub(r"\$\((\w+)\)", lambda match: environment[match[1]], word).replace("$$", "$")
    return _on_this_machine(re.sub(r"\*:(\d+)$", rf"{address}:\1", word), mounts)


def _on_this_machine(text: str, mounts: Mapping[str, Path]) -> str:
    for path, folder in mounts.items():
        text = re.sub(rf"(^|=){re.escape(path)}(/|$)", rf"\g<1>{folder}\g<2>", text)
    return text
