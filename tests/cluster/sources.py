"""Sources of Datasets beside the open store: a web server that wants keys, and a claim."""

from __future__ import annotations

import base64
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster import objects
from cluster.objects import Object
from cluster.workspace import Samples

SECRET_BYTES = 16
LISTING = "few.txt"
# As containers/store, with who read it, and whether with keys of any kind; $remote_user is what the client
# says where the status is 401.
NGINX = f"""\
daemon off;
worker_processes 1;
pid /tmp/nginx.pid;
error_log /dev/stderr;
events {{ worker_connections 1024; }}
http {{
  default_type application/octet-stream;
  client_body_temp_path /tmp/body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
  map $http_authorization $keys {{ "" without; default with; }}
  log_format readers escape=default 'read $status $remote_user $keys $uri';
  access_log /dev/stdout readers;
  server {{
    listen {objects.STORE_PORT};
    auth_basic REALM;
    auth_basic_user_file /etc/users/users;
    location = /healthz {{ auth_basic off; access_log off; return 200; }}
    location = /images/{LISTING} {{ alias /etc/store/{LISTING}; }}
    location /images/ {{ alias /srv/images/; }}
  }}
}}
"""


@dataclass(frozen=True)
class Keys:
    """Of one who reads the web server."""

    user: str
    password: str = field(default_factory=lambda: secrets.token_hex(SECRET_BYTES))

    def secret(self, space: str, name: str) -> Object:
        return _secret(space, name, {"username": self.user, "password": self.password})

    @property
    def traces(self) -> tuple[str, str]:
        """What of them must be nowhere: the password, and what HTTP makes of both."""
        both = f"{self.user}:{self.password}".encode()
        return self.password, base64.b64encode(both).decode()


def keyed_store(space: str, samples: Samples, readers: Sequence[Keys]) -> list[Object]:
    """nginx as Deployment and Service `store`, with a listing of these samples alone.

    It is for these readers alone; without any, for everybody.
    """
    deployment, service = objects.object_store(space)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["command"] = ["nginx", "-c", "/etc/store/nginx.conf", "-e", "/dev/stderr"]
    volumes: dict[str, Object] = {
        "store": {"configMap": {"name": "store"}},
        "users": {"secret": {"secretName": "users"}},
    }
    for name, source in volumes.items():
        container["volumeMounts"].append({"name": name, "mountPath": f"/etc/{name}", "readOnly": True})
        pod["volumes"].append({"name": name, **source})
    listing = "".join(f"{path}\n" for path in samples.dataset.paths)
    configuration: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "store", "namespace": space},
        "data": {"nginx.conf": NGINX.replace("REALM", "store" if readers else "off"), LISTING: listing},
    }
    users = "".join(f"{keys.user}:{{PLAIN}}{keys.password}\n" for keys in readers)
    return [configuration, _secret(space, "users", {"users": users}), deployment, service]


@dataclass(frozen=True)
class StoreRead:
    status: int
    user: str  # "-": none was said
    keys: bool  # of any kind: there was a header Authorization
    path: str


def reads_of(log: str) -> list[StoreRead]:
    """Lines of the keyed store; its other words are left out."""
    lines = [line.split(" ", 4) for line in log.splitlines() if line.startswith("read ")]
    return [StoreRead(int(status), user, keys == "with", path) for _, status, user, keys, path in lines]


def fill(folder: Path, samples: Samples) -> None:
    """The samples' files below it, which everybody may read."""
    shutil.rmtree(folder, ignore_errors=True)
    dataset = samples.dataset
    for path in dataset.paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(dataset.root / path, target)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def claim(space: str, name: str, volume: str, folder: Path) -> list[Object]:
    """A volume that is a folder of the machine, which all workers see, and the claim that has it."""
    access = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **access,
                "capacity": {"storage": "1Gi"},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": space, "name": name},
                "hostPath": {"path": str(folder), "type": "Directory"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": space},
            "spec": {**access, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
        },
    ]


def _secret(space: str, name: str, values: dict[str, str]) -> Object:
    metadata = {"name": name, "namespace": space}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}
