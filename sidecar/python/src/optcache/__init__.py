"""Training data from the optcache sidecar.

    import optcache
    ds = optcache.Dataset()     # of the environment that the sidecar's injection sets
    ds[0]                       # a view of the first sample's bytes

For PyTorch see `optcache.torch`, which is imported only when asked for.
"""

import logging
from typing import TYPE_CHECKING

from . import _deprecated
from ._announce import AnnouncedOrder, announce
from ._known_orders import Shuffle
from ._stats import Stats, stats
from ._text import VisibleLines
from .computed import Computed, cached
from .dataset import Dataset
from .errors import OptcacheError, SampleError, SidecarUnavailableError
from .webdataset import WebDataset

__version__ = "0.1.0"

logging.getLogger("optcache").addFilter(VisibleLines())

if TYPE_CHECKING:
    SidecarUnavailable = SidecarUnavailableError
else:
    __getattr__ = _deprecated.attributes(
        __name__, SidecarUnavailable=("SidecarUnavailableError", SidecarUnavailableError)
    )

__all__ = [
    "AnnouncedOrder",
    "Computed",
    "Dataset",
    "OptcacheError",
    "SampleError",
    "Shuffle",
    "SidecarUnavailableError",
    "Stats",
    "WebDataset",
    "__version__",
    "announce",
    "cached",
    "stats",
]
