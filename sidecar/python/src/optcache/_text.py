"""Text from outside, as a terminal or a log may show it."""

from __future__ import annotations

import logging


def visible(text: str, kept: str = "") -> str:
    """The text with an escape for each character that is not printable, but those `kept`.

    So it neither ends a line nor tells a terminal what to do.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in kept
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


class VisibleLines(logging.Filter):
    """Makes all that a logger is given visible."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = visible(record.getMessage())
        record.args = ()
        return True
