"""A dataset that says how often each of its samples was computed, by any process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

VALUE_ELEMENTS = 500


class Faces:
    """Sample i is a tensor of i's, and i itself."""

    def __init__(self, folder: Path, size: int, seconds: float = 0.0) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.size = size
        self.seconds = seconds
        self.fail = False

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with open(self.folder / str(index), "ab") as file:
            file.write(b"%d\n" % os.getpid())
        time.sleep(self.seconds)
        if self.fail:
            raise KeyError(f"sample {index} is broken")
        return torch.full((VALUE_ELEMENTS,), float(index)), index

    def computed(self) -> dict[int, int]:
        """How often, by index."""
        return {int(file.name): file.read_bytes().count(b"\n") for file in self.folder.iterdir()}

    def total(self) -> int:
        return sum(self.computed().values())

    def computing(self, index: int) -> int:
        """Process that began it last; 0: none."""
        path = self.folder / str(index)
        return int(path.read_text().split()[-1]) if path.exists() else 0
