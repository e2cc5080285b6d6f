from typing import Any, TypeVar

from . import Dataset, Sampler

T_co = TypeVar("T_co", covariant=True)

class DistributedSampler(Sampler[T_co]):
    num_samples: int
    epoch: int
    seed: int
    rank: int
    num_replicas: int
    shuffle: bool
    drop_last: bool
    dataset: Dataset[Any]
    def __init__(
        self,
        dataset: Dataset[Any],
        num_replicas: int | None = ...,
        rank: int | None = ...,
        shuffle: bool = ...,
        seed: int = ...,
        drop_last: bool = ...,
    ) -> None: ...
    def __len__(self) -> int: ...
    def set_epoch(self, epoch: int) -> None: ...
