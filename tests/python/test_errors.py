"""The exceptions of the package, by name."""

from __future__ import annotations

import contextlib
import importlib
import sys

import pytest

import optcache


def exceptions() -> set[type[BaseException]]:
    for front in ("optcache.filesystem", "optcache.torch"):
        with contextlib.suppress(ImportError):  # fsspec or PyTorch, which need not be there
            importlib.import_module(front)
    modules = [module for name, module in sys.modules.items() if name.startswith("optcache.")]
    return {
        thing
        for module in modules
        for thing in list(vars(module).values())
        if isinstance(thing, type)
        and issubclass(thing, BaseException)
        and thing.__module__.startswith("optcache")
    }


def test_names_of_exceptions_end_in_error() -> None:
    assert optcache.SampleError in exceptions()
    assert [e.__name__ for e in exceptions() if not e.__name__.endswith("Error")] == []


@pytest.mark.parametrize("module", ["optcache", "optcache.errors"])
def test_the_old_name_of_an_exception_warns(module: str) -> None:
    with pytest.warns(DeprecationWarning, match="SidecarUnavailableError") as caught:
        old = importlib.import_module(module).SidecarUnavailable
    assert old is optcache.SidecarUnavailableError
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match="SidecarGone"):
        importlib.import_module(module).SidecarGone
