"""Names and arguments of the release before: they still work, and a warning says what to write instead."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable, Optional, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def attributes(module: str, **renamed: tuple[str, Any]) -> Callable[[str], Any]:
    """A module's __getattr__.

    Args:
        renamed: new name and value, by old name.
    """

    def get(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        new, value = renamed[name]
        warn(f"{module}.{name} is now {module}.{new}")
        return value

    return get


def arguments(
    by_place: Optional[str] = None, /, **renamed: tuple[str, Any]
) -> Callable[[Function], Function]:
    """A decorator for a function that takes these arguments in another way now.

    Args:
        by_place: the keyword argument that was also taken by its place, behind those that still are.
        renamed: of keyword arguments, by old name, the new one, and which value stood for None.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            places: int = cast(Any, function).__code__.co_argcount
            if by_place is not None and by_place not in given and len(args) == places + 1:
                given[by_place] = args[-1]
                args = args[:-1]
                warn(f"{function.__name__}: {by_place} is a keyword now: write {by_place}=")
            for old in renamed.keys() & given.keys():
                new, stood_for_none = renamed[old]
                if new in given:
                    raise TypeError(f"{function.__name__}: {old}= is the old name of {new}=: give one")
                value = given.pop(old)
                given[new] = None if value == stood_for_none else value
                warn(f"{function.__name__}: {old}= is now {new}=")
            return function(*args, **given)

        return cast(Function, call)

    return decorate


def warn(sentence: str) -> None:
    """Says what to write now, of the code that has called the function that calls this."""
    warnings.warn(
        f"{sentence}. The old way will be removed in the next release.",
        DeprecationWarning,
        stacklevel=3,
    )
