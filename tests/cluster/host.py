"""Other programs, run to their end; and whether this machine can carry a cluster at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional, Union

from cluster.errors import ClusterError

# What comes soon is seen soon; what takes long is not asked for all the time.
POLL_SECONDS, POLL_SECONDS_MAX = 0.05, 1.0
MESSAGE_LINES = 20
TIMED_OUT = 124  # as of timeout(1)

Word = Union[str, Path]


def run(
    command: Sequence[Word],
    *,
    stdin: Optional[str] = None,
    seconds: float = 120,
    check: bool = True,
    environment: Optional[dict[str, str]] = None,
    folder: Optional[Path] = None,
) -> subprocess.CompletedProcess[str]:
    """ClusterError with the last lines it wrote, if it fails or takes too long.

    Without `check` that is not an error: the exit code is then TIMED_OUT where it took too long.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env={**os.environ, **(environment or {})},
            cwd=folder,
        )
    except subprocess.TimeoutExpired as error:
        message = f"not done after {seconds:.0f} s: {' '.join(words)}"
        if check:
            raise ClusterError(message) from error
        return subprocess.CompletedProcess(words, TIMED_OUT, "", message)
    except FileNotFoundError as error:
        raise ClusterError(f"there is no program {words[0]}") from error
    if check and done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-MESSAGE_LINES:]
        raise ClusterError(f"{' '.join(words)}: exit code {done.returncode}\n" + "\n".join(lines))
    return done


def wait_until(
    condition: Callable[[], object], what: Callable[[], str] | str, seconds: float
) -> None:
    """ClusterError: `what` did not come true in time.

    A command within `condition` that fails is asked again: the API server may be busy.
    """
    deadline = time.monotonic() + seconds
    pause = POLL_SECONDS
    while True:
        last = ""
        try:
            if condition():
                return
        except ClusterError as error:
            last = f"\n{error}"
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise ClusterError(f"not within {seconds:.0f} s: {text}{last}")
        time.sleep(pause)
        pause = min(1.5 * pause, POLL_SECONDS_MAX)


def utc() -> str:
    """Now, as the API server writes it in its audit log, to the microsecond: in order as text, too."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


COMMANDS = (
    "buildah conntrack containerd ctr debootstrap ip iptables nsenter openssl runc unshare".split()
)


def missing() -> list[str]:
    """What this machine lacks for a cluster, a sentence each."""
    if os.geteuid() != 0:
        return ["a cluster needs root, for namespaces, cgroups and mounts: run it by sudo"]
    lacks = []
    if absent := [name for name in COMMANDS if not shutil.which(name)]:
        lacks.append(f"programs are missing: {', '.join(absent)}")
    if not Path("/usr/lib/cni/bridge").exists():
        lacks.append("the plugins of containernetworking-plugins are not in /usr/lib/cni")
    probe = ["unshare", "--net", "--mount", "--uts", "ip", "link", "add", "type", "veth"]
    if run(probe, check=False).returncode != 0:
        lacks.append("network and mount namespaces are not allowed here (CAP_SYS_ADMIN, CAP_NET_ADMIN)")
    if not os.access("/sys/fs/cgroup", os.W_OK):
        lacks.append("/sys/fs/cgroup is read-only: in a container, it must be mounted writable")
    return lacks
