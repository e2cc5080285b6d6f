"""Keys by which this process reads a source itself, where it has been given them.

They stay with the sidecar unless the owner of this process lets it have them: by the variable
OPTCACHE_FALLBACK_KEYS, which the injector sets for the pod's annotation optcache.io/fallback-keys; or
outside Kubernetes, where the sidecar is of this process's own user. Each request looks for them
again, since they change. Nothing here keeps or shows a key; docs/formats/sources.md has the order.
"""

from __future__ import annotations

import functools
import os
import time
import urllib.parse
from collections.abc import Callable
from typing import NamedTuple, Optional

from . import _web_identity
from ._faults import SourceFaltersError
from ._key_files import (
    KeyFolder,
    bad_keys,
    buckets_keys,
    customer_key_headers,
    of_aws_files,
    of_environment,
    variable,
    web_servers_keys,
)
from ._sigv4 import Credentials, signed_headers
from ._sources import Served, WithKeys

VARIABLE = "OPTCACHE_FALLBACK_KEYS"
ANNOTATION = "optcache.io/fallback-keys"
_IDENTITY_TOKEN = os.path.join("_identity", "sts-token")  # below that folder


def _nothing() -> None:
    """Of keys that are looked for at each request."""


class Proof(NamedTuple):
    """What a request brings along, for that moment."""

    headers: dict[str, str]
    ca_file: str
    forget: Callable[[], None] = _nothing  # the store says that the keys have expired


class SourceKeys(NamedTuple):
    """Where the keys of one dataset's source are."""

    name: str
    way: WithKeys
    ca_file: str = ""  # certificates to trust, unless a folder of keys has others

    @property
    def given(self) -> bool:
        """Whether this process has been given them; in a folder that is still to come, too."""
        if self.way.keys_folder and os.environ.get(VARIABLE):
            return True
        folder = self._folder()
        if (folder or self.way.keys_folder) and not os.access(folder, os.R_OK | os.X_OK):
            return False
        identity = self._identity("")
        if identity is not None:
            return os.access(identity.token_file, os.R_OK)
        if folder:
            return True
        try:
            return self._ambient() is not None
        except SourceFaltersError:
            return True  # and a read says what is wrong with them

    def prove(self, url: str) -> Proof:
        """Of a GET of that address, which is one of the source. Raises SourceFaltersError."""
        path = self._folder()
        if not path and (self.way.keys_folder or not self.way.region):
            raise bad_keys(self._looked_at, "there is no such folder")
        folder = KeyFolder(path) if path else None
        ca_file = (folder.ca_file if folder else "") or self.ca_file
        if folder is not None and not self.way.region:
            value = web_servers_keys(folder)
            return Proof({"Authorization": value} if value else {}, ca_file)
        parts = urllib.parse.urlsplit(url)
        identity = self._identity(ca_file)
        credentials, headers = self._of_bucket(folder, identity, parts)
        if self.way.requester_pays:
            headers["x-amz-request-payer"] = "requester"
        if credentials is not None:
            headers = signed_headers(
                parts.netloc, parts.path, headers, self.way.region, credentials, time.time()
            )
        if identity is None or credentials is None:
            return Proof(headers, ca_file)
        forget = functools.partial(_web_identity.forget, identity, credentials)
        return Proof(headers, ca_file, forget)

    def _of_bucket(
        self,
        folder: Optional[KeyFolder],
        identity: Optional[_web_identity.Identity],
        parts: urllib.parse.SplitResult,
    ) -> tuple[Optional[Credentials], dict[str, str]]:
        """The keys, and the headers of a customer's key; None: requests are not signed."""
        credentials: Optional[Credentials] = None
        customer_key: dict[str, str] = {}
        if folder is not None:
            credentials, customer_key = buckets_keys(folder)
        elif self._may_be_ambient and (text := variable("OPTCACHE_SSE_CUSTOMER_KEY")):
            customer_key = customer_key_headers(text, "the environment")
        if customer_key and parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
            raise bad_keys(self._looked_at, "sseCustomerKey needs https://")
        if identity is not None:
            return _web_identity.keys_of(identity), customer_key
        if credentials is not None or (folder is not None and not customer_key):
            return credentials, customer_key
        credentials = self._ambient()
        if credentials is None and not customer_key:
            raise bad_keys(self._looked_at, "there are none")
        return credentials, customer_key

    @property
    def _is_ours(self) -> bool:
        return self.way.is_ours and not in_pod()

    @property
    def _may_be_ambient(self) -> bool:
        trusted = bool(os.environ.get(VARIABLE)) if in_pod() else self.way.is_ours
        return self.way.ambient and trusted

    @property
    def _looked_at(self) -> str:
        given = os.environ.get(VARIABLE)
        if given:
            return os.path.join(given, self.name)
        return self.way.keys_folder or "the environment and AWS's files"

    def _folder(self) -> str:
        """Empty: there is none."""
        given = os.environ.get(VARIABLE)
        if given and not {"", ".", ".."} & set(self.name.split("/")):
            path = os.path.join(given, self.name)
            if os.path.isdir(path):
                return path
        return self.way.keys_folder if self._is_ours and os.path.isdir(self.way.keys_folder) else ""

    def _identity(self, ca_file: str) -> Optional[_web_identity.Identity]:
        """None: it is by others."""
        if not self.way.sts_endpoint:
            return None
        given = os.environ.get(VARIABLE)
        files = [os.path.join(given, _IDENTITY_TOKEN)] if given else []
        files += [self.way.token_file] if self._is_ours else []
        files += [os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE", "")] if self._may_be_ambient else []
        file = next(filter(os.path.exists, files), "")
        if not file:
            return None
        return _web_identity.Identity(self.way.sts_endpoint, self.way.role_arn, file, ca_file)

    def _ambient(self) -> Optional[Credentials]:
        return (of_environment() or of_aws_files()) if self._may_be_ambient else None


def in_pod() -> bool:
    """Whether Kubernetes runs this process."""
    return "KUBERNETES_SERVICE_HOST" in os.environ


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or (
        host.startswith("127.") and not host.strip("0123456789.")
    )


def keys_of(served: Served) -> Optional[SourceKeys]:
    """Those of a source that is kept; None: this process has not been given them."""
    if served.with_keys is None:
        return None
    keys = SourceKeys(served.name, served.with_keys, served.ca_file)
    return keys if keys.given else None


def why_kept(served: Optional[Served]) -> str:
    """Why this process waits for the sidecar though it has the dataset's list entry, and what would
    help; empty if there is nothing to say.
    """
    if served is None or not served.kept or keys_of(served) is not None:
        return ""
    why = f"Its source is not read instead: {served.kept}"
    if served.with_keys is None:
        return why
    given = os.environ.get(VARIABLE)
    if given:
        keys = SourceKeys(served.name, served.with_keys)
        around = ", in its environment and in AWS's files" if keys._may_be_ambient else ""
        return f"{why}. This process finds none in {os.path.join(given, served.name)}{around}"
    if in_pod():
        return f'{why}. The pod\'s annotation {ANNOTATION}: "true" gives them to its containers, too'
    more = ""
    if not served.with_keys.is_ours:
        more = "; the sidecar's user chooses the server that gets them"
    elif served.with_keys.ambient and not served.with_keys.keys_folder:
        more = ", and so do AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return f"{why}. {VARIABLE}=FOLDER gives them to this process, in FOLDER/{served.name}{more}"
