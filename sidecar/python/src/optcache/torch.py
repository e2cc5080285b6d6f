"""For PyTorch: a drop-in for torchvision's ImageFolder, and `attach` for DataLoaders.

    from optcache.torch import ImageFolder, attach
    train = ImageFolder(transform=...)
    loader = attach(DataLoader(train, sampler=DistributedSampler(train), num_workers=8))
"""

from ._attach import Attached, AttachedBatchSampler, DataLoader, LoaderControl, attach
from ._batches import BatchIndex
from ._image_folder import ImageFolder, default_loader
from ._sidecar_stats import SidecarStats

__all__ = [
    "Attached",
    "AttachedBatchSampler",
    "BatchIndex",
    "DataLoader",
    "ImageFolder",
    "LoaderControl",
    "SidecarStats",
    "attach",
    "default_loader",
]
