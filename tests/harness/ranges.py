"""Files of other libraries, whose samples are ranges: written as those libraries write them."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

# The types of Megatron-LM's tokens, by their codes.
TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 8: "<u2"}


def write_megatron(
    root: Path, name: str, code: int, sequences: list[bytes], documents: Sequence[int] = ()
) -> None:
    """As docs/formats/ranges.md has the layout; documents begin at these sequences, or at each."""
    size = np.dtype(TYPES[code]).itemsize
    documents = documents or range(len(sequences) + 1)
    places = np.cumsum([0, *map(len, sequences)], dtype="<i8")
    (root / f"{name}.bin").write_bytes(b"".join(sequences))
    with (root / f"{name}.idx").open("wb") as idx:
        idx.write(b"MMIDIDX\0\0")
        idx.write(struct.pack("<QBQQ", 1, code, len(sequences), len(documents)))
        idx.write(np.array([len(s) // size for s in sequences], dtype="<i4").tobytes())
        idx.write(places[:-1].tobytes())
        idx.write(np.array(documents, dtype="<i8").tobytes())


def write_mds(folder: Path, shards: list[list[bytes]], **changes: Any) -> None:
    """As MDSWriter lays shards out: number of samples, their places, the columns, the samples."""
    config = b'{"column_encodings": ["bytes"]}'
    index = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, samples in enumerate(shards):
        places = [4 * (len(samples) + 2) + len(config)]
        for sample in samples:
            places.append(places[-1] + len(sample))
        head = struct.pack(f"<{len(places) + 1}I", len(samples), *places)
        name = f"shard.{number:05}.mds"
        (folder / name).write_bytes(head + config + b"".join(samples))
        raw = {"basename": name, "bytes": places[-1], "hashes": {}}
        shard: dict[str, Any] = {"format": "mds", "raw_data": raw, "samples": len(samples)}
        index.append({**shard, "zip_data": None, "compression": None, **changes})
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": index}))
