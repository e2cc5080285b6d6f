"""Samples of tar shards as the `webdataset` package gives them, but by number."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional, Union

from ._batches import Sample
from ._members import unpack
from .dataset import Dataset

Members = dict[str, Any]


class _Taken:
    """Makes a dict of a sample, and of that what the user wants. May be pickled."""

    def __init__(self, views: bool, transform: Optional[Callable[[Members], Any]]) -> None:
        self.views = views
        self.transform = transform

    def __call__(self, sample: Sample) -> Any:
        key, members = unpack(sample)
        taken: Members = {"__key__": os.fsdecode(key)}
        for name, data in members:
            taken[os.fsdecode(name)] = data if self.views else bytes(data)
        return taken if self.transform is None else self.transform(taken)


class WebDataset(Dataset):
    """The samples of tar shards (format Tar), each a dict of the files that have one name up to the
    first dot, by what follows the dot:

        ds = optcache.WebDataset()
        ds[0]   # {"__key__": "train/0001", "jpg": b"...", "cls": b"3"}

    Numbers are those of `webdataset` reading the shards one after the other, by path. It is a
    Dataset, so a DataLoader's sampler shuffles all of it, not what happens to be in a buffer, and
    `optcache.torch.attach` announces it. What the bytes mean is up to `transform`.
    """

    def __init__(
        self,
        name: Optional[str] = None,
        socket: Optional[str] = None,
        views: bool = False,
        transform: Optional[Callable[[Members], Any]] = None,
        computed: Union[bool, str] = False,
        wait: Optional[float] = None,
    ) -> None:
        """Opens a dataset.

        Args:
            name: as for Dataset.
            socket: as for Dataset.
            views: give read-only views of the sidecar's memory instead of bytes: nothing is copied.
            transform: makes of a sample's dict what is given out.
            computed: as for Dataset; keep what `transform` makes.
            wait: as for Dataset.

        Raises:
            ValueError: `computed` without `transform`.
            OptcacheError: as for Dataset; or its samples are not groups of members.
        """
        if computed and transform is None:
            raise ValueError("WebDataset: computed= keeps the results of transform=. Set transform=, too")
        taken = _Taken(views, transform)
        super().__init__(name, socket, transform=taken, computed=computed, wait=wait)
        self.manifest.check_groups()
