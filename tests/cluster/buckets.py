"""A real server of S3 in the cluster: versitygw with the demo's images as a bucket, for several keys."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Optional
from urllib.parse import unquote

from cluster import objects, pki, recipes
from cluster.cluster import Cluster
from cluster.objects import Object
from cluster.training import StoreReads
from cluster.workspace import Samples

BUCKET = "images"
REGION = "us-east-1"
NAME = "s3"
START_SECONDS = 120.0
SECRET_BYTES = 20
TIME_FORMAT = "%d/%B/%Y:%H:%M:%S %z"
# versitygw's log: owner, bucket, [time], address, who asked, id, operation, key, path, status.
LINE = re.compile(
    r"\S+ (?P<bucket>\S+) \[(?P<time>[^]]*)\] \S+ (?P<who>\S+) \S+ s3_(?P<operation>\S+) .*? "
    r"(?P<path>/\S*) (?P<status>\d{3}) "
)


@dataclass(frozen=True)
class Keys:
    """Of one who reads buckets."""

    access: str
    secret: str = field(default_factory=lambda: secrets.token_hex(SECRET_BYTES))

    def values(self, authority: str = "") -> dict[str, str]:
        """What a Dataset's Secret has, with the certificate that signs the server's."""
        values = {"accessKeyID": self.access, "secretAccessKey": self.secret}
        return {**values, "ca.crt": authority} if authority else values


@dataclass(frozen=True)
class Request:
    who: str  # "-": nobody that the server knows
    operation: str
    path: str  # decoded, with the bucket
    status: int
    time: float  # seconds since 1970, of the whole second in which it was answered


def requests_of(log: str) -> Iterator[Request]:
    """Lines of versitygw's log; its other words are left out."""
    for line in log.splitlines():
        if found := LINE.match(line):
            path = unquote(found["path"].partition("?")[0])
            time = datetime.strptime(found["time"], TIME_FORMAT).timestamp()
            yield Request(found["who"], found["operation"], path, int(found["status"]), time)


def sample_reads(log: str, sizes: Mapping[str, int]) -> StoreReads:
    """What was read of samples. They are read whole; the log does not say bytes."""
    bodies = [
        sizes[request.path]
        for request in requests_of(log)
        if request.operation == "GetObject" and request.status == 200 and request.path in sizes
    ]
    return StoreReads(len(bodies), sum(bodies))


class BucketServer:
    """Deployment and Service `s3` of a namespace. With a folder for its keys, by https."""

    def __init__(self, cluster: Cluster, space: str, folder: Optional[Path] = None) -> None:
        self._cluster = cluster
        self._space = space
        self._secure = folder is not None
        self.authority = ""
        self._certificate: dict[str, str] = {}
        if folder is not None:
            authority, certificate, key = pki.make_server(folder, self.host)
            self.authority = authority
            self._certificate = {"tls.crt": certificate, "tls.key": key}

    @property
    def host(self) -> str:
        return f"{NAME}.{self._space}.svc"

    def source(self, secret: str) -> Object:
        """For `spec` of a Dataset, with the name of the Secret that has its keys."""
        endpoint = f"{'https' if self._secure else 'http'}://{self.host}"
        bucket = {"bucket": BUCKET, "endpoint": endpoint, "region": REGION}
        return {"s3": {**bucket, "secretRef": {"name": secret}}}

    def start(self, readers: Sequence[Keys]) -> None:
        self._cluster.load(recipes.bucket_server(self._cluster.paths))
        self.allow(readers)
        documents = [self._deployment(), self._service()]
        if self._secure:
            documents.append(secret(self._space, "s3-certificate", self._certificate))
        self._cluster.apply(*documents)
        rollout = ("rollout", "status", f"--namespace={self._space}", f"deployment/{NAME}")
        words = (*rollout, f"--timeout={START_SECONDS:.0f}s")
        self._cluster.kubectl(*words, seconds=START_SECONDS + 30)

    def allow(self, readers: Sequence[Keys]) -> None:
        """These alone; a server that runs knows it as soon as the kubelet has brought the Secret."""
        accounts = {
            keys.access: {
                "access": keys.access,
                "secret": keys.secret,
                "role": "admin",
                "userID": 0,
                "groupID": 0,
                "projectID": 0,
            }
            for keys in readers
        }
        users = {"users.json": json.dumps({"accessAccounts": accounts})}
        self._cluster.apply(secret(self._space, "s3-users", users))

    def log(self, since: str) -> str:
        """A line for each request since that second of `host.utc`."""
        words = (f"--namespace={self._space}", f"deployment/{NAME}", "--tail=-1", f"--since-time={since}")
        return self._cluster.kubectl("logs", *words).stdout

    def reads(self, since: str, samples: Samples) -> StoreReads:
        return sample_reads(self.log(since), samples.sizes)

    def _deployment(self) -> Object:
        secure = ["--cert=/etc/s3/tls.crt", "--key=/etc/s3/tls.key"] if self._secure else []
        owner = {"ROOT_ACCESS_KEY_ID": "owner", "ROOT_SECRET_ACCESS_KEY": secrets.token_hex(SECRET_BYTES)}
        mounts = [{"name": "tmp", "mountPath": "/tmp"}, _mount("users", "/etc/s3-users")]
        volumes: list[Object] = [
            {"name": "tmp", "emptyDir": {}},
            {"name": "users", "secret": {"secretName": "s3-users"}},
        ]
        if self._secure:
            mounts.append(_mount("certificate", "/etc/s3"))
            volumes.append({"name": "certificate", "secret": {"secretName": "s3-certificate"}})
        scheme = "HTTPS" if self._secure else "HTTP"
        port = objects.STORE_PORT
        container: Object = {
            "name": "versitygw",
            "image": recipes.BUCKET_SERVER,
            "imagePullPolicy": "Never",
            "args": [
                f"--port=:{port}",
                f"--region={REGION}",
                "--health=/healthz",
                "--access-log=-",
                "--keep-alive",
                "--quiet",
                "--iam-dir=/etc/s3-users",
                "--iam-cache-disable",
                *secure,
                "posix",
                "--sidecar=/tmp",
                "/srv/buckets",
            ],
            "env": [{"name": name, "value": value} for name, value in owner.items()],
            "ports": [{"containerPort": port}],
            "readinessProbe": {
                "httpGet": {"path": "/healthz", "port": port, "scheme": scheme},
                "periodSeconds": 1,
            },
            "securityContext": {**objects.CONTAINER_SECURITY, "readOnlyRootFilesystem": True},
            "volumeMounts": mounts,
        }
        labels = {"app": NAME}
        pod: Object = {
            "securityContext": objects.POD_SECURITY,
            "nodeSelector": {"kubernetes.io/hostname": "node1"},  # another is the one that cases switch off
            "containers": [container],
            "volumes": volumes,
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": self._space},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }

    def _service(self) -> Object:
        port = 443 if self._secure else 80
        return objects.service(self._space, NAME, {"app": NAME}, port, objects.STORE_PORT)


def secret(space: str, name: str, values: dict[str, str]) -> Object:
    metadata = {"name": name, "namespace": space}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}


def _mount(name: str, path: str) -> Object:
    return {"name": name, "mountPath": path, "readOnly": True}
