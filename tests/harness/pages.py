"""The pages for users, as tests take examples from them."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "docs" / "user"


def blocks(page: str, heading: str, language: str) -> list[str]:
    """The blocks of code in that language below that heading, up to the next heading."""
    text = (PAGES / page).read_text()
    pattern = rf"^##+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)"  # with one #, it may be a comment
    (section,) = re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def words(page: str, pattern: str) -> str:
    """The only words on the page that the pattern fits; it may have a group."""
    (found,) = re.findall(pattern, (PAGES / page).read_text())
    return str(found)
