"""Which job this process is of, as far as its launcher says."""

from __future__ import annotations

import hashlib
import os

# The same in all ranks of a job: of torchrun and whatever sets up torch.distributed, and of Slurm.
_VARIABLES = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID")


def job() -> str:
    """A word that all ranks of a job share; empty: nothing says so."""
    said = [os.environ.get(name, "") for name in _VARIABLES]
    if not any(said):
        return ""
    return hashlib.sha256("\0".join(said).encode(errors="surrogateescape")).hexdigest()[:16]
