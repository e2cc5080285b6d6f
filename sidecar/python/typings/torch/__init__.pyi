# What type checks here know of PyTorch: the classes that ours derive from. All else is Any, so that
# they say the same whichever release is installed, or none. tests/python/test_types.py compares with
# a real one.
from typing import Any

def __getattr__(name: str) -> Any: ...
