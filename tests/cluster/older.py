"""An older commit, chart and programs, for cases in which parts of different age meet."""

from __future__ import annotations

import shutil
from pathlib import Path

from cluster import settings
from cluster.host import Word, run
from cluster.recipes import COMPONENTS, Tree
from cluster.settings import REPOSITORY, Paths

TAG = "older"
GIT_SECONDS = 60.0
BUILD_SECONDS = 3600.0


def missing(commit: str = settings.OLDER_COMMIT, repository: Path = REPOSITORY) -> str:
    """Why they cannot be had, a sentence; "" if they can."""
    words: list[Word] = ["git", "-C", repository, "cat-file", "-e", f"{commit}^{{commit}}"]
    done = run(words, check=False, seconds=GIT_SECONDS)
    if done.returncode == 0:
        return ""
    return f"commit {commit[:7]} is not in this clone (git fetch --unshallow): {done.stderr.strip()}"


def check_out(folder: Path, commit: str = settings.OLDER_COMMIT, repository: Path = REPOSITORY) -> None:
    """`folder` becomes the tree of that commit; nothing is done where it is that already."""
    stamp = folder / ".commit"
    if stamp.exists() and stamp.read_text() == commit:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = folder / ".tar"
    run(["git", "-C", repository, "archive", f"--output={archive}", commit], seconds=GIT_SECONDS)
    run(["tar", "-C", folder, "-xf", archive], seconds=GIT_SECONDS)
    archive.unlink()
    stamp.write_text(commit)


def build(paths: Paths) -> Tree:
    """All COMPONENTS of it: many minutes the first time, then nothing."""
    folder = paths.root / "older"
    check_out(folder)
    cmake: list[Word] = ["nice", "-n", "19", "cmake"]  # a cluster that runs beside it keeps its time
    # A compiler of now may warn of what it did not then.
    run([*cmake, "--preset", "dev", "-DOPTCACHE_WERROR=OFF"], seconds=BUILD_SECONDS, folder=folder)
    targets = [f"{part}/all" for part in COMPONENTS]
    run([*cmake, "--build", "--preset", "dev", "--target", *targets], seconds=BUILD_SECONDS, folder=folder)
    return Tree(folder, folder / "build" / "dev" / "bin", TAG)
