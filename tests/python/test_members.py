"""Samples of several members, byte by byte as docs/formats/members.md says."""

from __future__ import annotations

import pickle
import random

import pytest
from optcache._members import pack, unpack
from optcache.errors import OptcacheError
from optcache.webdataset import _Taken

# The same as in tests/unit/dataset/members_test.cc.
HEAD = (
    b"OMB1\2\0\0\0\6\0\0\0\x38\0\0\0"
    b"\2\1\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
    b"\3\0\0\0\3\0\0\0a/0001jpgcls\0\0\0\0"
)


def test_lies_as_the_format_says() -> None:
    sample = pack(b"a/0001", [(b"jpg", b"x" * 0x102), (b"cls", b"7")])
    assert sample == HEAD + b"x" * 0x102 + bytes(6) + b"7" + bytes(7)


def test_gives_back_what_it_was_given() -> None:
    chance = random.Random(1)
    for _ in range(200):
        members = [
            (chance.randbytes(chance.randrange(9)), chance.randbytes(chance.randrange(50)))
            for _ in range(chance.randrange(1, 6))
        ]
        key = chance.randbytes(chance.randrange(1, 20))
        got_key, got = unpack(memoryview(pack(key, members)))
        assert (got_key, [(name, bytes(data)) for name, data in got]) == (key, members)


@pytest.mark.parametrize("sample", [b"", b"OMB1", b"\xff\xd8" + bytes(100)])
def test_says_what_is_no_such_sample(sample: bytes) -> None:
    with pytest.raises(OptcacheError, match="format Tar"):
        unpack(sample)


def test_notices_a_cut() -> None:
    with pytest.raises(OptcacheError, match="damaged"):
        unpack(pack(b"k", [(b"a", b"12345678")])[:-8])


def test_becomes_a_dict_and_what_the_user_wants() -> None:
    sample = memoryview(pack("é".encode(), [(b"jpg", b"123"), (b"\xff", b"")]))
    assert _Taken(False, None)(sample) == {"__key__": "é", "jpg": b"123", "\udcff": b""}
    views = _Taken(True, None)(sample)
    assert isinstance(views["jpg"], memoryview) and views["jpg"] == b"123"
    taken = pickle.loads(pickle.dumps(_Taken(False, len)))
    assert taken(sample) == 3
