"""Shards for MosaicML Streaming by its writer: `python -m bench.peers.pack FILES TARGET BYTES`.

FILES is JSON, the paths of the samples in order; shards of about BYTES come into the folder TARGET.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from streaming import MDSWriter

if __name__ == "__main__":
    files, target, size = sys.argv[1:]
    with MDSWriter(out=target, columns={"data": "bytes"}, size_limit=int(size)) as writer:
        for path in json.loads(Path(files).read_text()):
            writer.write({"data": Path(path).read_bytes()})
