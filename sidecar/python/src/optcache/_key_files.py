"""Keys where they lie: a folder with a file for each, the environment, AWS's own files.

Nothing here has a key in a message. Texts are bytes by Latin-1, as headers take them.
"""

from __future__ import annotations

import base64
import binascii
import configparser
import hashlib
import os
import pathlib
from typing import NamedTuple, Optional

from ._faults import SourceFaltersError
from ._sigv4 import Credentials

_KEY_BYTES_MAX = 8 << 10
_AWS_FILE_BYTES_MAX = 1 << 20
_CUSTOMER_KEY_BYTES = 32
_PLACEHOLDER = "optcache-placeholder"  # opens nothing: docs/user/no-code-change.md


def bad_keys(where: str, why: str) -> SourceFaltersError:
    """Keys change under way, so what is wrong may pass."""
    return SourceFaltersError(f"the keys in {where}: {why}")


class KeyFolder:
    """A folder of keys, as Kubernetes mounts a Secret, as it is now."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        # A changed Secret is a new folder, to which the link ..data is turned: what is read from
        # there belongs together.
        data = os.path.join(folder, "..data")
        self._snapshot = os.path.realpath(data) if os.path.isdir(data) else folder

    def read(self, *names: str) -> Optional[str]:
        """The line in the first file that there is; None: there is none. Raises SourceFaltersError if
        it is no line of text.
        """
        for name in names:
            try:
                with open(os.path.join(self._snapshot, name), "rb") as file:
                    data = file.read(_KEY_BYTES_MAX + 1)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise bad_keys(self.folder, f"{name} cannot be read: {error.strerror}") from None
            return self._line(name, data)
        return None

    def _line(self, name: str, data: bytes) -> str:
        line = data.rstrip(b"\r\n").decode("latin-1")
        if not 0 < len(data) <= _KEY_BYTES_MAX or not _is_line(line):
            raise bad_keys(self.folder, f"{name} is empty, too long, or not one line of text")
        return line

    @property
    def ca_file(self) -> str:
        """Certificates to trust; empty: there are none."""
        path = os.path.join(self._snapshot, "ca.crt")
        return path if os.path.exists(path) else ""

    def fault(self, why: str) -> SourceFaltersError:
        """That, of this folder."""
        return bad_keys(self.folder, why)


def _is_line(text: str) -> bool:
    return bool(text) and all(" " <= c != "\x7f" for c in text)


def web_servers_keys(folder: KeyFolder) -> str:
    """The value of the header Authorization; empty: there is ca.crt alone. Raises
    SourceFaltersError.
    """
    token = folder.read("token")
    user, password = folder.read("username"), folder.read("password")
    if (user is None) != (password is None):
        raise folder.fault("username and password go together, one is missing")
    if token is not None and user is not None:
        raise folder.fault("there are a token and a username: leave one out")
    if token is not None:
        return f"Bearer {token}"
    if user is not None:
        if ":" in user:
            raise folder.fault("a username has no colon in it")
        return "Basic " + base64.b64encode(f"{user}:{password}".encode("latin-1")).decode()
    if not folder.ca_file:
        raise folder.fault("there is no token, no username and password, and no ca.crt")
    return ""


class BucketKeys(NamedTuple):
    """What a folder has for a bucket."""

    credentials: Optional[Credentials]
    customer_key: dict[str, str]  # headers; empty: there is none


def buckets_keys(folder: KeyFolder) -> BucketKeys:
    """Raises SourceFaltersError."""
    key_id = folder.read("accessKeyID", "AWS_ACCESS_KEY_ID")
    secret = folder.read("secretAccessKey", "AWS_SECRET_ACCESS_KEY")
    token = folder.read("sessionToken", "AWS_SESSION_TOKEN")
    customer_key = folder.read("sseCustomerKey", "OPTCACHE_SSE_CUSTOMER_KEY")
    if (key_id is None) != (secret is None):
        raise folder.fault("accessKeyID and secretAccessKey go together, one is missing")
    if key_id is None and token is not None:
        raise folder.fault("there is a sessionToken, but no accessKeyID")
    if key_id is None and customer_key is None and not folder.ca_file:
        raise folder.fault(
            "there is no accessKeyID, no secretAccessKey, no sseCustomerKey, and no ca.crt"
        )
    headers = {} if customer_key is None else customer_key_headers(customer_key, folder.folder)
    if key_id is None or secret is None:
        return BucketKeys(None, headers)
    return BucketKeys(Credentials(key_id, secret, token or ""), headers)


def customer_key_headers(text: str, where: str) -> dict[str, str]:
    """Of a key of the customer's by which objects are encrypted (SSE-C). Raises
    SourceFaltersError.
    """
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _CUSTOMER_KEY_BYTES:
        raise bad_keys(where, "sseCustomerKey is not the base64 of 32 bytes")
    begin = "x-amz-server-side-encryption-customer"
    return {
        f"{begin}-algorithm": "AES256",
        f"{begin}-key": text,
        f"{begin}-key-md5": base64.b64encode(hashlib.md5(key).digest()).decode(),
    }


def variable(name: str) -> str:
    """Of the environment; empty: it is not set."""
    return os.fsencode(os.environ.get(name, "")).decode("latin-1")


def of_environment() -> Optional[Credentials]:
    """Keys in the variables of AWS; None: there are none. Raises SourceFaltersError."""
    key_id, secret = variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
    if key_id == _PLACEHOLDER or not (key_id or secret):
        return None
    return _checked(key_id, secret, variable("AWS_SESSION_TOKEN"), "the environment")


def of_aws_files() -> Optional[Credentials]:
    """Keys that stand in AWS's files, for the profile of the environment; None: there are none.
    Raises SourceFaltersError.
    """
    named = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    in_config = named if named == "default" else f"profile {named}"
    for setting, file, section in (
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", named),
        ("AWS_CONFIG_FILE", "config", in_config),
    ):
        path = os.environ.get(setting) or os.path.join("~", ".aws", file)
        words = _section(os.path.expanduser(path), section)
        key_id = words.get("aws_access_key_id", "")
        secret = words.get("aws_secret_access_key", "")
        if key_id or secret:
            return _checked(key_id, secret, words.get("aws_session_token", ""), path)
    return None


def _section(path: str, section: str) -> dict[str, str]:
    """Of a file of AWS's; empty: there is none."""
    parser = configparser.ConfigParser(
        delimiters=("=",), inline_comment_prefixes=("#", ";"), strict=False, interpolation=None
    )
    try:
        if os.path.getsize(path) > _AWS_FILE_BYTES_MAX:
            raise bad_keys(path, "the file is too long")
        parser.read_string(pathlib.Path(path).read_text(encoding="latin-1"))
    except OSError:
        return {}
    except configparser.Error:  # whose text repeats the line
        raise bad_keys(path, "a line is neither a section nor NAME = VALUE") from None
    return dict(parser[section]) if parser.has_section(section) else {}


def _checked(key_id: str, secret: str, token: str, where: str) -> Credentials:
    if not key_id or not secret:
        raise bad_keys(where, "access key ID and secret access key go together, one is missing")
    if not all(map(_is_line, filter(None, (key_id, secret, token)))):
        raise bad_keys(where, "one is not one line of text")
    return Credentials(key_id, secret, token)
