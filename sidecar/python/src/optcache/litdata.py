"""Lightning's litdata reads its chunks through the cache:

    from litdata import StreamingDataset
    import optcache.litdata

    dataset = StreamingDataset(optcache.litdata.folder("optcache://images/train"))

The import makes optcache:// known to litdata in this process and in the workers of its loaders.
docs/user/fsspec.md has the addresses.
"""

from __future__ import annotations

import os
import tempfile

import fsspec
from litdata.streaming.downloader import Downloader, register_downloader
from litdata.streaming.resolver import Dir

from . import filesystem as filesystem  # registers optcache:// where there is no entry point

_PREFIX = "optcache://"


def folder(url: str) -> Dir:
    """A folder of a dataset, in the form in which StreamingDataset takes it: as a plain text, litdata
    would take it for a local folder.
    """
    if not url.startswith(_PREFIX):
        raise ValueError(f"{url!r} does not begin with {_PREFIX}")
    return Dir(url=url)


class OptcacheDownloader(Downloader):
    """Copies objects into litdata's folder of chunks. Thread-safe."""

    def download_file(self, remote_filepath: str, local_filepath: str) -> None:
        """As litdata asks for its index and its chunks. A file appears whole, or not at all."""
        if os.path.exists(local_filepath):
            return
        into = os.path.dirname(os.path.abspath(local_filepath))
        os.makedirs(into, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".optcache-", dir=into) as own:
            copy = os.path.join(own, "copy")
            fsspec.filesystem("optcache").get_file(remote_filepath, copy)
            os.replace(copy, local_filepath)


register_downloader(_PREFIX, OptcacheDownloader, overwrite=True)
