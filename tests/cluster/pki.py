"""Keys, certificates and kubeconfigs of the cluster's own parts, by openssl. For one day's use."""

from __future__ import annotations

import json
from pathlib import Path

from cluster import settings
from cluster.host import Word, run
from cluster.settings import Paths

DAYS = "365"
EXTENSIONS = """\
basicConstraints=CA:FALSE
keyUsage=digitalSignature,keyEncipherment
extendedKeyUsage=serverAuth,clientAuth
"""
# Those who get a kubeconfig, and their certificate's subject: /O= are groups, /CN= is the user.
USERS = {
    "admin": "/O=system:masters/CN=admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
}


def make_all(paths: Paths) -> None:
    pki = paths.pki
    _authority(pki)
    run(["openssl", "genrsa", "-out", pki / "sa.key", "2048"])
    run(["openssl", "rsa", "-in", pki / "sa.key", "-pubout", "-out", pki / "sa.pub"])
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    names.append("kubernetes.default.svc.cluster.local")
    addresses = ["127.0.0.1", settings.API_SERVICE_ADDRESS, settings.CONTROL_ADDRESS]
    alternatives = [f"DNS:{name}" for name in names] + [f"IP:{address}" for address in addresses]
    _leaf(pki, "apiserver", "/CN=kube-apiserver", alternatives)
    _leaf(pki, "apiserver-kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
    _leaf(pki, "front-proxy", "/CN=front-proxy")
    for user, subject in USERS.items():
        _leaf(pki, user, subject)
        _kubeconfig(paths, user)


def make_worker(paths: Paths, number: int) -> None:
    name = settings.worker_name(number)
    alternatives = [f"DNS:{name}", f"IP:{settings.worker_address(number)}"]
    _leaf(paths.pki, name, f"/O=system:nodes/CN=system:node:{name}", alternatives)
    _kubeconfig(paths, name)


def make_server(folder: Path, host: str) -> tuple[str, str, str]:
    """The certificates of an authority of its own and of a server, and the server's key, as PEM."""
    _authority(folder)
    _leaf(folder, "server", f"/CN={host}", [f"DNS:{host}"])
    names = ("ca.crt", "server.crt", "server.key")
    authority, certificate, key = ((folder / name).read_text() for name in names)
    return authority, certificate, key


def _authority(pki: Path) -> None:
    pki.mkdir(parents=True, exist_ok=True)
    _key(pki / "ca.key")
    subject = f"/CN={settings.PREFIX}-test-ca"
    command: list[Word] = ["openssl", "req", "-x509", "-new", "-key", pki / "ca.key", "-days", DAYS]
    run([*command, "-subj", subject, "-out", pki / "ca.crt"])


def _key(path: Path) -> None:
    run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path])


def _leaf(pki: Path, name: str, subject: str, alternatives: list[str] | None = None) -> None:
    key, request, extensions = (pki / f"{name}.{end}" for end in ("key", "csr", "ext"))
    _key(key)
    run(["openssl", "req", "-new", "-key", key, "-subj", subject, "-out", request])
    line = f"subjectAltName={','.join(alternatives)}\n" if alternatives else ""
    extensions.write_text(EXTENSIONS + line)
    command: list[Word] = ["openssl", "x509", "-req", "-in", request, "-CA", pki / "ca.crt"]
    command += ["-CAkey", pki / "ca.key", "-CAcreateserial", "-days", DAYS]
    run([*command, "-extfile", extensions, "-out", pki / f"{name}.crt"])
    request.unlink()
    extensions.unlink()


def _kubeconfig(paths: Paths, user: str) -> None:
    server = f"https://{settings.CONTROL_ADDRESS}:{settings.API_PORT}"
    certificate, key = (str(paths.pki / f"{user}.{end}") for end in ("crt", "key"))
    authority = str(paths.pki / "ca.crt")
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority": authority}}
        ],
        "users": [{"name": user, "user": {"client-certificate": certificate, "client-key": key}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "current-context": "test",
    }
    paths.kubeconfig(user).write_text(json.dumps(document, indent=1) + "\n")
