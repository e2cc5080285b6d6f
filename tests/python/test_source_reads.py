"""Samples read from a web server or from files without the sidecar."""

from __future__ import annotations

import errno
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from recording_server import RecordingHandler, RecordingServer, running

import optcache
from optcache import _http_reads, _source_reads
from optcache._faults import SourceFaltersError
from optcache._http_reads import HttpSource
from optcache._manifest import Member, Place
from optcache._members import pack
from optcache._source_reads import FileSource, SourceReads, read_samples

BODY = bytes(range(256)) * 16
ETAG = '"v1"'


class List:
    """A manifest of one object: as a whole, and parts of it."""

    name = "test"

    def __init__(
        self,
        parts: Optional[list[Member]] = None,
        etag: str = ETAG,
        digest: Optional[bytes] = None,
        key: Optional[bytes] = None,
        modified_ns: int = 0,
    ) -> None:
        self._parts = parts or [Member(b"", 0, len(BODY))]
        self._place = Place("a b/é.png", len(BODY), modified_ns, etag)
        self._digest = digest
        self._key = key

    def place(self, index: int) -> Place:
        return self._place

    def members(self, index: int) -> list[Member]:
        return self._parts

    def key(self, index: int) -> Optional[bytes]:
        return self._key

    def sample_digest(self, index: int) -> Optional[bytes]:
        return self._digest


class Web(RecordingServer):
    """Answers by `answers`, then rightly."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.answers: list[Callable[[Handler], None]] = []
        self.connections = 0
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()


class Handler(RecordingHandler):
    server: Web

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def answer(self) -> None:
        with self.server.lock:
            answer = self.server.answers.pop(0) if self.server.answers else right
            self.server.at_once += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.at_once)
        answer(self)
        with self.server.lock:
            self.server.at_once -= 1


def right(handler: Handler) -> None:
    asked = handler.headers.get("Range")
    if asked is None:
        handler.say(200, BODY, ETag=ETAG)
        return
    first, last = map(int, asked.removeprefix("bytes=").split("-"))
    told = f"bytes {first}-{last}/{len(BODY)}"
    handler.say(206, BODY[first : last + 1], ETag=ETAG, Content_Range=told)


def status(code: int) -> Callable[[Handler], None]:
    return lambda handler: handler.say(code, b"no")


def whole(handler: Handler) -> None:
    handler.say(200, BODY, ETag=ETAG)


def cut(handler: Handler) -> None:
    handler.say(200, BODY[:100], length=len(BODY), ETag=ETAG)
    handler.close_connection = True


def cut_to(count: int) -> Callable[[Handler], None]:
    """The first bytes of a part that was asked for."""

    def answer(handler: Handler) -> None:
        first, last = map(int, handler.headers["Range"].removeprefix("bytes=").split("-"))
        told = f"bytes {first}-{last}/{len(BODY)}"
        body = BODY[first : first + count]
        handler.say(206, body, length=last + 1 - first, ETag=ETAG, Content_Range=told)
        handler.close_connection = True

    return answer


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


def flipped(handler: Handler) -> None:
    handler.say(200, bytes(255 - byte for byte in BODY), ETag=ETAG)


def to(where: str) -> Callable[[Handler], None]:
    return lambda handler: handler.say(302, b"", Location=where)


@pytest.fixture
def web() -> Iterator[Web]:
    with running(Web()) as server:
        yield server


def read(web: Web, listed: Any = None, count: int = 1) -> list[bytes]:
    return read_samples(HttpSource(web.url), listed or List(), range(count))


def test_an_object(web: Web) -> None:
    assert read(web) == [BODY]
    (asked,) = web.asked
    assert asked["path"] == "/data/a%20b/%C3%A9.png"
    assert asked["if-match"] == ETAG and "range" not in asked


def test_a_part_of_an_archive(web: Web) -> None:
    assert read(web, List([Member(b"", 512, 100)])) == [BODY[512:612]]
    assert web.asked[0]["range"] == "bytes=512-611"


def test_a_group_is_one_request(web: Web) -> None:
    members = [Member(b"jpg", 512, 3), Member(b"cls", 1024, 0), Member(b"txt", 1536, 2)]
    expected = pack(b"k", [(b"jpg", BODY[512:515]), (b"cls", b""), (b"txt", BODY[1536:1538])])
    assert read(web, List(members, key=b"k")) == [expected]
    assert len(web.asked) == 1


def test_an_empty_member_is_not_asked_for(web: Web) -> None:
    assert read(web, List([Member(b"", 512, 0)])) == [b""]
    assert not web.asked


def test_a_weak_etag_is_compared_and_not_sent(web: Web) -> None:
    assert read(web, List(etag='W/"v1"')) == [BODY]
    assert "if-match" not in web.asked[0]
    with pytest.raises(optcache.SampleError, match="changed"):
        read(web, List(etag='W/"v2"'))


def test_a_time_is_compared(web: Web) -> None:
    def dated(handler: Handler) -> None:
        handler.say(200, BODY, Last_Modified="Thu, 01 Jan 1970 00:01:40 GMT")

    web.answers = [dated, dated]
    assert read(web, List(etag="", modified_ns=100_000_000_000)) == [BODY]
    with pytest.raises(optcache.SampleError, match="changed"):
        read(web, List(etag="", modified_ns=101_000_000_000))


def test_connections_are_used_again_and_few(web: Web) -> None:
    assert read(web, count=40) == [BODY] * 40
    assert web.connections <= _source_reads.CONCURRENT_MAX
    assert web.most_at_once <= _source_reads.CONCURRENT_MAX


def too_long_without_a_length(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("ETag", ETAG)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(BODY + b"!")
    handler.close_connection = True


FALTERS = {
    "503": status(503),
    "500": status(500),
    "429": status(429),
    "408": status(408),
    "cut": cut,
    "nothing": hang_up,
    "too long": lambda handler: handler.say(200, BODY + b"!", ETag=ETAG),
    "too long, no length": too_long_without_a_length,
    "another range": lambda handler: handler.say(
        206, BODY[:100], ETag=ETAG, Content_Range="bytes 0-99/4096"
    ),
}


@pytest.mark.parametrize("answer", FALTERS.values(), ids=FALTERS)
def test_what_may_pass(web: Web, answer: Callable[[Handler], None]) -> None:
    listed = List([Member(b"", 512, 100)]) if answer is FALTERS["another range"] else List()
    web.answers = [answer] * 2
    with pytest.raises(SourceFaltersError):
        while web.answers:  # a connection that was idle is made again at once
            read(web, listed)
    web.answers = []
    assert read(web) == [BODY]


def try_twice(web: Web, listed: Any) -> tuple[SourceFaltersError, list[bytes]]:
    reads = SourceReads(HttpSource(web.url), listed, [0])
    with pytest.raises(SourceFaltersError) as caught:
        reads.read()
    return caught.value, reads.read()


def test_a_body_that_broke_is_continued(web: Web) -> None:
    web.answers = [cut]
    falters, samples = try_twice(web, List())
    assert samples == [BODY] and falters.progressed
    asked = web.asked[1]
    assert asked["range"] == f"bytes=100-{len(BODY) - 1}" and asked["if-match"] == ETAG


def test_a_part_that_broke_is_continued_again_and_again(web: Web) -> None:
    reads = SourceReads(HttpSource(web.url), List([Member(b"", 512, 100)]), [0])  # type: ignore[arg-type]
    web.answers = [cut_to(60), status(503), cut_to(10)]
    progressed = []
    while web.answers:
        with pytest.raises(SourceFaltersError) as caught:
            reads.read()
        progressed.append(caught.value.progressed)
    assert reads.read() == [BODY[512:612]]
    assert progressed == [True, False, True]
    ranges = [asked["range"] for asked in web.asked]
    assert ranges == ["bytes=512-611", "bytes=572-611", "bytes=572-611", "bytes=582-611"]


def test_a_server_without_ranges_sends_a_body_that_broke_again(web: Web) -> None:
    web.answers = [cut, whole]
    assert try_twice(web, List())[1] == [BODY]


def test_a_body_that_broke_and_then_changed(web: Web) -> None:
    web.answers = [cut, status(412)]
    with pytest.raises(optcache.SampleError, match="changed since it was indexed"):
        try_twice(web, List())


def test_without_a_strong_etag_a_body_begins_at_its_first_byte(web: Web) -> None:
    web.answers = [cut]
    falters, samples = try_twice(web, List(etag='W/"v1"'))
    assert samples == [BODY] and not falters.progressed
    assert "range" not in web.asked[1]


def of_another_version(handler: Handler) -> None:
    """A part, of a server that ignores If-Match and tells no ETag."""
    first, last = map(int, handler.headers["Range"].removeprefix("bytes=").split("-"))
    told = f"bytes {first}-{last}/{len(BODY)}"
    handler.say(206, bytes(last + 1 - first), Content_Range=told)


def test_a_rest_that_may_be_of_another_version_is_not_used(web: Web) -> None:
    web.answers = [cut, of_another_version]
    reads = SourceReads(HttpSource(web.url), List(), [0])
    for _ in range(2):
        with pytest.raises(SourceFaltersError):
            reads.read()
    assert reads.read() == [BODY]
    assert [asked.get("range") for asked in web.asked] == [None, f"bytes=100-{len(BODY) - 1}", None]


def test_a_body_that_broke_without_an_etag_is_not_continued(web: Web) -> None:
    web.answers = [cut_without_an_etag]
    reads = SourceReads(HttpSource(web.url), List(), [0])
    with pytest.raises(SourceFaltersError, match=f"only 100 of {len(BODY)} bytes"):
        reads.read()
    assert reads.read() == [BODY]
    assert "range" not in web.asked[1]


def cut_without_an_etag(handler: Handler) -> None:
    handler.say(200, BODY[:100], length=len(BODY))
    handler.close_connection = True


def test_the_bytes_of_a_continued_body_are_all_told(web: Web) -> None:
    web.answers = [cut, cut_to(10)]
    reads = SourceReads(HttpSource(web.url), List(), [0])
    for count in (100, 110):
        with pytest.raises(SourceFaltersError, match=f"only {count} of {len(BODY)} bytes"):
            reads.read()


def test_a_continued_body_is_compared_with_its_digest(web: Web) -> None:
    web.answers = [
        lambda handler: handler.say(200, bytes(100), length=len(BODY), ETag=ETAG),
    ]
    assert try_twice(web, List(digest=hashlib.sha256(BODY).digest()))[1] == [BODY]
    last = web.asked[-1]
    assert "range" not in last and last["cache-control"] == "no-cache"


def test_samples_that_came_are_not_asked_for_again(web: Web) -> None:
    reads = SourceReads(HttpSource(web.url), List(), range(3))  # type: ignore[arg-type]
    web.answers = [right, right, status(503)]
    with pytest.raises(SourceFaltersError) as caught:
        reads.read()
    assert caught.value.progressed
    asked = len(web.asked)
    assert reads.read() == [BODY] * 3
    assert asked == 3 and len(web.asked) == 4


@pytest.mark.parametrize("told, seconds", [("7", 7), ("86400", 60), ("soon", 0), ("-1", 0)])
def test_the_server_says_when_to_ask_again(web: Web, told: str, seconds: float) -> None:
    web.answers = [lambda handler: handler.say(503, b"", Retry_After=told)]
    with pytest.raises(SourceFaltersError) as caught:
        read(web)
    assert caught.value.retry_after_s == seconds


def test_a_server_that_is_not_there() -> None:
    server = Web()
    server.server_close()
    with pytest.raises(SourceFaltersError, match="refused"):
        read_samples(HttpSource(server.url), List(), [0])  # type: ignore[arg-type]


REFUSALS = {
    "401": (status(401), "HTTP 401", "unavailable"),
    "403": (status(403), "HTTP 403", "unavailable"),
    "404": (status(404), "HTTP 404", "unavailable"),
    "501": (status(501), "HTTP 501", "unavailable"),
    "412": (status(412), "changed since it was indexed", "conflict"),
    "ftp": (to("ftp://127.0.0.1/a"), "a redirection that is not followed", "unavailable"),
    "file": (to("file:///etc/passwd"), "a redirection that is not followed", "unavailable"),
    "user": (to("http://me@127.0.0.1/a"), "a redirection that is not followed", "unavailable"),
    "another size": (lambda h: h.say(200, BODY + b"!"), "4097 bytes", "conflict"),
    "another ETag": (lambda h: h.say(200, BODY, ETag='"v2"'), "changed", "conflict"),
}


@pytest.mark.parametrize("answer, says, code", REFUSALS.values(), ids=REFUSALS)
def test_what_does_not_pass(
    web: Web, answer: Callable[[Handler], None], says: str, code: str
) -> None:
    web.answers = [answer]
    with pytest.raises(optcache.SampleError, match=says) as caught:
        read(web)
    assert (caught.value.code, caught.value.index) == (code, 0)
    assert web.url in str(caught.value)


def test_a_server_that_ignores_ranges(web: Web) -> None:
    web.answers = [whole]
    with pytest.raises(optcache.SampleError, match="ignores ranges"):
        read(web, List([Member(b"", 512, 100)]))


def test_redirections(web: Web) -> None:
    web.answers = [to("/elsewhere?x=1")]
    assert read(web) == [BODY]
    assert web.asked[1]["path"] == "/elsewhere?x=1"
    web.answers = [to("/again")] * 10
    with pytest.raises(optcache.SampleError, match="more than 5 redirections"):
        read(web)


def test_no_redirection_leaves_tls() -> None:
    class Answer:
        status = 302

        def read(self, count: int) -> bytes:
            return b""

        def getheader(self, name: str) -> str:
            return "http://host/a"

    with pytest.raises(OSError, match="not followed"):
        _http_reads._redirected("https://host/a", Answer())  # type: ignore[arg-type]
    assert _http_reads._redirected("http://host/b", Answer()) == "http://host/a"  # type: ignore[arg-type]


def test_digests(web: Web) -> None:
    digest = hashlib.sha256(BODY).digest()
    web.answers = [flipped]
    assert read(web, List(digest=digest)) == [BODY]  # read once more, past caches
    assert [asked.get("cache-control") for asked in web.asked] == [None, "no-cache"]
    web.answers = [flipped] * 2
    with pytest.raises(optcache.SampleError, match="other bytes than were indexed") as caught:
        read(web, List(digest=digest))
    assert caught.value.code == "data_loss"


def test_without_digests_a_sample_is_read_once(web: Web) -> None:
    """Bytes that changed under the same ETag are not noticed then."""
    web.answers = [flipped]
    assert read(web) != [BODY]
    assert len(web.asked) == 1


@pytest.mark.parametrize("member", [Member(b"", 0, len(BODY)), Member(b"", 512, 100)])
def test_digests_of_files(tmp_path: Path, member: Member) -> None:
    """Also of a part of an archive."""
    right_bytes = BODY[member.offset : member.offset + member.size]
    listed: Any = List([member], digest=hashlib.sha256(right_bytes).digest())
    file = tmp_path / "a b" / "é.png"
    file.parent.mkdir()
    file.write_bytes(BODY)
    assert read_samples(FileSource(str(tmp_path)), listed, [0]) == [right_bytes]
    file.write_bytes(bytes(255 - byte for byte in BODY))
    with pytest.raises(optcache.SampleError, match="other bytes than were indexed") as caught:
        read_samples(FileSource(str(tmp_path)), listed, [0])
    assert caught.value.code == "data_loss"


def test_a_stalled_server(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http_reads, "_SILENCE_S", 0.2)
    release = threading.Event()
    web.answers = [lambda handler: (release.wait(30), None)[1]]
    with pytest.raises(SourceFaltersError, match="timed out"):
        read(web)
    release.set()


def test_a_trickling_server(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http_reads, "_TRANSFER_S", -1e6)
    with pytest.raises(SourceFaltersError, match="too slowly"):
        read(web)


def test_members_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "é.png").write_bytes(BODY)
    listed: Any = List([Member(b"x", 512, 3), Member(b"y", 1024, 2)], key=b"k")
    (sample,) = read_samples(FileSource(str(tmp_path)), listed, [0])
    assert sample == pack(b"k", [(b"x", BODY[512:515]), (b"y", BODY[1024:1026])])


@pytest.mark.parametrize("number, passes", [(errno.EIO, True), (errno.ENOENT, False)])
def test_a_mount_that_falters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool
) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(number, "made up")

    monkeypatch.setattr(FileSource, "_read", fail)
    with pytest.raises(SourceFaltersError if passes else optcache.SampleError, match="made up"):
        read_samples(FileSource(str(tmp_path)), List(), [0])  # type: ignore[arg-type]
