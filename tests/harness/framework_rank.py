"""One rank of a training job that a framework's trainer runs.

    python framework_rank.py FRAMEWORK FOLDER

with OPTCACHE_SOCKET, RANK, WORLD_SIZE and their like in the environment. In FOLDER it writes the
ids of each epoch (`ids-RANK.json`); the first batch waits until `go` is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import optcache
from optcache.torch import DataLoader, attach

BATCH = 8
EPOCHS = 4
WORKERS = 2
SEED = 11
PATIENCE_SECONDS = 400.0


class Ids(torch.utils.data.Dataset[int]):
    """Reads each sample and gives its number."""

    def __init__(self) -> None:
        self.samples = optcache.Dataset()

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> int:
        assert len(self.samples[index]) == self.samples.size(index)
        return int(index)


class Notes:
    """Of what a rank was given."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._epochs: list[list[int]] = []

    def begin(self) -> None:
        self._epochs.append([])

    def add(self, ids: torch.Tensor) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (self._folder / "go").exists() and time.monotonic() < end:
            time.sleep(0.02)
        self._epochs[-1] += ids.tolist()

    def write(self) -> None:
        path = self._folder / f"ids-{os.environ['RANK']}.json"
        path.write_text(json.dumps(self._epochs))


def run_lightning(notes: Notes) -> None:
    """The Trainer puts its own DistributedSampler into a loader that only shuffles."""
    import pytorch_lightning as lightning

    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def train_dataloader(self) -> Any:
            data = Ids()
            options: dict[str, Any] = {"shuffle": True, "num_workers": WORKERS}
            return DataLoader(data, BATCH, attach={"dataset": data.samples}, **options)

        def on_train_epoch_start(self) -> None:
            notes.begin()

        def training_step(self, batch: torch.Tensor, number: int) -> Any:
            notes.add(batch)
            return self.layer(batch[:, None].float()).mean() * 0

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    lightning.seed_everything(SEED)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ["WORLD_SIZE"]),
        strategy="ddp",
        max_epochs=EPOCHS,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model())


def run_composer(notes: Notes) -> None:
    """Its users make the sampler by dist.get_sampler; the Trainer calls set_epoch."""
    from composer import Callback, Trainer
    from composer.models import ComposerModel
    from composer.utils import dist, reproducibility

    class Model(ComposerModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, batch: torch.Tensor) -> Any:
            notes.add(batch)
            return self.layer(batch[:, None].float())

        def loss(self, outputs: Any, batch: Any) -> Any:
            return outputs.mean() * 0

    class Epochs(Callback):  # type: ignore[misc]
        def epoch_start(self, state: Any, logger: Any) -> None:
            notes.begin()

    reproducibility.seed_all(SEED)
    dist.initialize_dist("cpu")
    data = Ids()
    sampler = dist.get_sampler(data, shuffle=True)
    loader: Any = torch.utils.data.DataLoader(data, BATCH, sampler=sampler, num_workers=WORKERS)
    model = Model()
    trainer = Trainer(
        model=model,
        train_dataloader=attach(loader, dataset=data.samples),
        optimizers=torch.optim.SGD(model.parameters(), 0.1),
        max_duration=f"{EPOCHS}ep",
        device="cpu",
        callbacks=[Epochs()],
        progress_bar=False,
    )
    trainer.fit()


def run_accelerate(notes: Notes) -> None:
    """`prepare` shards the batches of a loader that only shuffles."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration, set_seed

    set_seed(SEED)
    accelerator = Accelerator(
        cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True)
    )
    data = Ids()
    loader: Any = torch.utils.data.DataLoader(data, BATCH, shuffle=True, num_workers=WORKERS)
    loader = attach(accelerator.prepare(loader), dataset=data.samples)
    for _ in range(EPOCHS):
        notes.begin()
        for batch in loader:
            notes.add(batch)


FRAMEWORKS: dict[str, Callable[[Notes], None]] = {
    "pytorch_lightning": run_lightning,
    "composer": run_composer,
    "accelerate": run_accelerate,
}


def main() -> None:
    torch.set_num_threads(1)
    framework, folder = sys.argv[1:]
    notes = Notes(Path(folder))
    FRAMEWORKS[framework](notes)
    notes.write()


if __name__ == "__main__":
    main()
