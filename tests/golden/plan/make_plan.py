#!/usr/bin/env python3
"""Makes opt4torch.safetensors by OPT4TorchDataset and the package safetensors.

Needs torch, safetensors, and OPT4TorchDataset's src folder on PYTHONPATH:

    PYTHONPATH=OPT4TorchDataset/src tests/golden/plan/make_plan.py

The file here has the order of torch 1.13 and was written by safetensors 0.8.0; its table is by a
transcription of the planner of commit 4a8f0ea7, since there is no package to install. Its one-process runtime hits 49 of the 100 reads, its shared one 41.
"""

from __future__ import annotations

from pathlib import Path

from OPT4TorchDataSet.cachelib import generate_precomputed_file

generate_precomputed_file(
    dataset_size=20,
    total_iterations=100,
    persist_path=Path(__file__).with_name("opt4torch.safetensors"),
    random_seed=3,
    replacement=True,
    maxsize=5,
)
