"""What comes from outside neither ends a line nor tells a terminal what to do."""

from __future__ import annotations

import logging
import pickle

import optcache
import pytest


def test_a_log_shows_what_a_terminal_would_obey(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("optcache").warning("waiting: %s", "a\x1b[2J\x9b\x7f\nb\u202ec na\u00efve")
    assert caplog.messages == ["waiting: a\\x1b[2J\\x9b\\x7f\\nb\\u202ec na\u00efve"]


def test_an_error_shows_what_a_terminal_would_obey() -> None:
    error = optcache.SampleError("a\x1b[2J\n%s b", "not_found", 7)
    assert str(error) == "a\\x1b[2J\n%s b"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code, again.index) == (str(error), "not_found", 7)
