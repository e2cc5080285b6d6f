// HttpClient::Stream, mostly against a server that does what the test tells it byte by byte.

#include <poll.h>

#include "support/growing_deadline.h"
#include "unit/net/tls_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kChunkedHead =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string Chunk(std::string_view text) {
  std::array<char, 20> size = {};
  std::snprintf(size.data(), size.size(), "%zx", text.size());
  return std::string(size.data()) + "\r\n" + std::string(text) + "\r\n";
}

// One connection at a time, by plain blocking sockets. cpprestsdk's thread does the other side.
class ByteServer {
 public:
  ByteServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), any, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), any, &length), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/watch";
  }

  const std::string& url() const { return url_; }

  // Takes the next connection and the head of its request.
  std::string Accept() {
    connection_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return ReadHead();
  }
  std::string ReadHead() {
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n") && ::recv(connection_.get(), &byte, 1, 0) == 1)
      head += byte;
    return head;
  }
  void Send(std::string_view bytes) {
    EXPECT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // What the socket takes without waiting.
  std::size_t TrySend(std::string_view bytes) {
    const ssize_t n =
        ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : static_cast<std::size_t>(n);
  }
  // Does the socket take more, now or within half a second?
  bool Writable() const {
    pollfd wanted = {.fd = connection_.get(), .events = POLLOUT, .revents = 0};
    return ::poll(&wanted, 1, 500) == 1;
  }
  void Close() { connection_.Reset(); }
  void Reset() {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    ::setsockopt(connection_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    connection_.Reset();
  }
  // Has the client gone?
  bool Abandoned() {
    char byte = 0;
    const ssize_t n = ::recv(connection_.get(), &byte, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN);
  }

 private:
  UniqueFd listener_;
  UniqueFd connection_;
  std::string url_;
};

// What a stream told.
struct Told {
  std::optional<int> status;
  HttpHeaders headers;
  std::string bytes;
  std::optional<Status> end;

  HttpStreamEvents Events() {
    return {.on_response =
                [this](int code, const HttpHeaders& all) {
                  EXPECT_FALSE(status.has_value());
                  status = code;
                  headers = all;
                },
            .on_bytes =
                [this](ByteSpan piece) {
                  EXPECT_TRUE(status.has_value());
                  bytes += AsText(piece);
                },
            .on_end =
                [this](const Status& how) {
                  EXPECT_FALSE(end.has_value());
                  end = how;
                }};
  }
};

class HttpStreamTest : public testing::Test {
 protected:
  // A stream whose head has come.
  std::unique_ptr<HttpStream> Open(HttpStreamEvents events, HttpStreamLimits limits = {}) {
    auto stream = client->Stream({.url = server.url()}, limits, std::move(events));
    server.Accept();
    server.Send(kChunkedHead);
    return stream;
  }
  void RunUntilAbandoned() {
    RunUntil(loop, [&] { return server.Abandoned(); });
  }

  EventLoop loop;
  ByteServer server;
  Told told;
  std::unique_ptr<HttpClient> client = MakeHttpClient(loop, {.max_streams = 2});
};

TEST_F(HttpStreamTest, TellsWhatComesWhenItComes) {
  const auto stream = Open(told.Events());
  RunUntil(loop, [&] { return told.status.has_value(); });
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(FindHeader(told.headers, "content-type"), "application/json");
  EXPECT_EQ(told.bytes, "");
  server.Send(Chunk("one\n"));
  RunUntil(loop, [&] { return told.bytes == "one\n"; });
  server.Send(Chunk("two\n") + Chunk("three\n"));
  RunUntil(loop, [&] { return told.bytes == "one\ntwo\nthree\n"; });
  EXPECT_FALSE(told.end.has_value());
  server.Send("0\r\n\r\n");
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_TRUE(told.end->ok()) << told.end->message();
}

TEST_F(HttpStreamTest, AsksForWhatItIsGiven) {
  const auto stream =
      client->Stream({.url = server.url() + "?watch=1", .headers = {{"Authorization", "Bearer x"}}},
                     {}, told.Events());
  const std::string head = server.Accept();
  EXPECT_TRUE(head.starts_with("GET /watch?watch=1 HTTP/1.1\r\n")) << head;
  EXPECT_NE(head.find("Authorization:Bearer x\r\n"), std::string::npos) << head;
}

TEST_F(HttpStreamTest, BytesMayBeCutAnywhere) {
  const auto stream = client->Stream({.url = server.url()}, {}, told.Events());
  server.Accept();
  const std::string all = std::string(kChunkedHead) + Chunk("{\"a\":1}\n") + Chunk("x") +
                          Chunk(std::string(300, 'y')) + "0\r\n\r\n";
  for (const char byte : all)
    server.Send({&byte, 1});
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_TRUE(told.end->ok());
  EXPECT_EQ(told.bytes, "{\"a\":1}\nx" + std::string(300, 'y'));
}

TEST_F(HttpStreamTest, ABodyOfKnownLengthIsToldToo) {
  const auto stream = client->Stream({.url = server.url()}, {}, told.Events());
  server.Accept();
  server.Send("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone");
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_TRUE(told.end->ok());
  EXPECT_EQ(told.status, 410);
  EXPECT_EQ(told.bytes, "gone");
}

TEST_F(HttpStreamTest, ABodyMayBeEmpty) {
  const auto stream = Open(told.Events());
  server.Send("0\r\n\r\n");
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_TRUE(told.end->ok());
  EXPECT_EQ(told.bytes, "");
}

TEST_F(HttpStreamTest, WhoTakesPiecesElsewhereSaysWhenToGoOn) {
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(100), [&](Duration idle_deadline) {
    told = {};
    HttpStreamEvents events = told.Events();
    std::function<void()> go_on;
    events.on_piece = [&](const std::string& bytes, std::function<void()> next) {
      told.bytes += bytes;
      go_on = std::move(next);
    };
    const auto stream = Open(std::move(events), {.idle_deadline = idle_deadline});
    server.Send(Chunk("one\n"));
    RunUntil(loop, [&] { return told.bytes == "one\n" || told.end.has_value(); });
    server.Send(Chunk("two\n") + "0\r\n\r\n");
    RunFor(loop, 2 * idle_deadline);
    if (told.end.has_value() || !go_on) return false;
    EXPECT_EQ(told.bytes, "one\n");
    std::exchange(go_on, nullptr)();
    RunUntil(loop, [&] { return go_on || told.end.has_value(); });
    if (!go_on) return false;
    EXPECT_EQ(told.bytes, "one\ntwo\n");
    go_on();
    RunUntil(loop, [&] { return told.end.has_value(); });
    go_on();  // Has no effect.
    return told.end && told.end->ok();
  })) << "it is not the server that is slow";
}

TEST_F(HttpStreamTest, AServerThatDiesIsAnError) {
  for (const bool reset : {false, true}) {
    told = {};
    const auto stream = Open(told.Events());
    server.Send(Chunk("one\n") + "20\r\nhalf a chu");
    RunUntil(loop, [&] { return told.bytes == "one\n"; });
    reset ? server.Reset() : server.Close();
    RunUntil(loop, [&] { return told.end.has_value(); });
    EXPECT_EQ(told.end->code(), Code::kUnavailable);
    EXPECT_TRUE(told.end->message().starts_with(server.url())) << told.end->message();
  }
}

TEST_F(HttpStreamTest, AServerThatDiesBeforeItsHeadIsAnError) {
  const auto stream = client->Stream({.url = server.url()}, {}, told.Events());
  server.Accept();
  server.Close();
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_EQ(told.end->code(), Code::kUnavailable);
  EXPECT_FALSE(told.status.has_value());
}

TEST_F(HttpStreamTest, WhatIsNotHttpIsAnError) {
  const auto stream = client->Stream({.url = server.url()}, {}, told.Events());
  server.Accept();
  server.Send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_EQ(told.end->code(), Code::kUnavailable);
}

TEST_F(HttpStreamTest, ASilentServerEndsAtTheDeadlineOfTheHead) {
  const auto stream =
      client->Stream({.url = server.url()}, {.response_deadline = milliseconds(30)}, told.Events());
  server.Accept();
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_EQ(told.end->code(), Code::kDeadlineExceeded);
  EXPECT_EQ(told.end->message(), server.url() + ": no response in time");
  RunUntilAbandoned();
}

TEST_F(HttpStreamTest, AServerThatFallsSilentEndsAtTheIdleDeadline) {
  const auto stream = Open(told.Events(), {.idle_deadline = milliseconds(100)});
  server.Send(Chunk("one\n"));
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_EQ(told.end->code(), Code::kDeadlineExceeded);
  EXPECT_EQ(told.end->message(), server.url() + ": nothing came in time");
  RunUntilAbandoned();
}

TEST_F(HttpStreamTest, DestroyingItEndsIt) {
  auto stream = Open(told.Events());
  RunUntil(loop, [&] { return told.status.has_value(); });
  server.Send(Chunk("never told"));
  stream.reset();
  RunUntilAbandoned();
  EXPECT_EQ(told.bytes, "");
  EXPECT_FALSE(told.end.has_value());
}

TEST_F(HttpStreamTest, ItMayBeDestroyedBeforeItsHead) {
  auto stream = client->Stream({.url = server.url()}, {}, told.Events());
  server.Accept();
  stream.reset();
  RunUntilAbandoned();
  EXPECT_FALSE(told.end.has_value());
}

TEST_F(HttpStreamTest, ItMayBeDestroyedInEachOfItsEvents) {
  for (const std::string_view event : {"head", "bytes", "end"}) {
    std::unique_ptr<HttpStream> stream;
    std::vector<std::string_view> seen;
    const auto see = [&](std::string_view what) {
      seen.push_back(what);
      if (what == event) stream.reset();
    };
    stream = Open({.on_response = [&](int, const HttpHeaders&) { see("head"); },
                   .on_bytes = [&](ByteSpan) { see("bytes"); },
                   .on_end = [&](const Status&) { see("end"); }});
    server.Send(Chunk("one\n"));
    if (event == "end") server.Close();
    RunUntil(loop, [&] { return !seen.empty() && seen.back() == event; });
    if (event != "end") RunUntilAbandoned();
    EXPECT_EQ(seen.back(), event);
  }
}

TEST_F(HttpStreamTest, TheClientMayDieInAnEvent) {
  bool died = false;
  const auto stream = Open({.on_response = [](int, const HttpHeaders&) {},
                            .on_bytes =
                                [&](ByteSpan) {
                                  client.reset();
                                  died = true;
                                },
                            .on_end = [](const Status&) { FAIL() << "called after its death"; }});
  server.Send(Chunk("one\n"));
  RunUntil(loop, [&] { return died; });
  RunUntilAbandoned();
}

TEST_F(HttpStreamTest, NothingIsToldAfterTheClientsDeath) {
  const auto stream = Open(told.Events());
  client.reset();
  RunUntilAbandoned();
  EXPECT_FALSE(told.status.has_value());
  EXPECT_FALSE(told.end.has_value());
}

TEST_F(HttpStreamTest, OnlySoManyAtATime) {
  const auto one = client->Stream({.url = server.url()}, {}, Told().Events());
  const auto two = client->Stream({.url = server.url()}, {}, Told().Events());
  auto three = client->Stream({.url = server.url()}, {}, told.Events());
  EXPECT_FALSE(told.end.has_value());  // Not from within Stream.
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_EQ(told.end->code(), Code::kResourceExhausted);
}

TEST_F(HttpStreamTest, NotAUrl) {
  const auto stream = client->Stream({.url = "nonsense"}, {}, told.Events());
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_EQ(told.end->code(), Code::kInvalidArgument);
}

// What the loop has not taken waits in the sockets, so that a fast server becomes slow.
TEST_F(HttpStreamTest, AServerThatIsFasterThanTheLoopHasToWait) {
  const auto stream = Open(told.Events());
  RunUntil(loop, [&] { return told.status.has_value(); });
  const std::string chunk = Chunk(std::string(64'000, 'z'));
  std::string rest;
  std::size_t chunks = 0;
  // The loop stands still. 64 MiB are more than any socket's buffers.
  while (chunks < 1024 && server.Writable()) {
    if (rest.empty()) {
      rest = chunk;
      ++chunks;
    }
    rest.erase(0, server.TrySend(rest));
  }
  EXPECT_LT(chunks, 1024U);
  std::function<void()> send_rest = [&] {
    rest.erase(0, server.TrySend(rest));
    if (!rest.empty()) loop.Post(send_rest);
  };
  send_rest();
  RunUntil(loop, [&] { return told.bytes.size() == chunks * 64'000; });
}

// --- Kept connections ---------------------------------------------------------------------------

class KeptConnections : public HttpStreamTest {
 protected:
  std::optional<Result<HttpResponse>> Begin(const std::string& method) {
    answer.reset();
    client->Send({.method = method, .url = server.url()}, kPatience,
                 [this](Result<HttpResponse> response) { answer = std::move(response); });
    return answer;
  }
  void Answer(std::string_view body) {
    server.Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                std::string(body));
    RunUntil(loop, [this] { return answer.has_value(); });
  }
  std::optional<Result<HttpResponse>> answer;
};

TEST_F(KeptConnections, AreUsedAgain) {
  Begin("GET");
  server.Accept();
  Answer("one");
  Begin("GET");
  EXPECT_TRUE(server.ReadHead().starts_with("GET /watch"));  // the same connection
  Answer("two");
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->body, "two");
}

TEST_F(KeptConnections, AStaleOneIsReplaced) {
  for (const bool reset : {false, true}) {
    Begin("GET");
    server.Accept();
    Answer("one");
    reset ? server.Reset() : server.Close();
    Begin("GET");
    server.Accept();
    Answer("two");
    ASSERT_TRUE(answer->has_value()) << answer->error().message();
    EXPECT_EQ((*answer)->body, "two");
    server.Close();
  }
}

// --- Over TLS -----------------------------------------------------------------------------------

class HttpsStream : public TlsFixture {};

TEST_F(HttpsStream, TellsTheWholeBody) {
  Listen();
  const std::string body(3'000'000, 'b');
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, body));
  };
  const auto client = Client();
  Told told;
  const auto stream = client->Stream({.url = base + "/"}, {}, told.Events());
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_TRUE(told.end->ok()) << told.end->message();
  EXPECT_TRUE(told.bytes == body);
}

TEST_F(HttpsStream, AServerThatIsNotTrustedIsAnError) {
  Listen();
  const auto client = Client({}, "another-name");
  Told told;
  const auto stream = client->Stream({.url = base + "/"}, {}, told.Events());
  RunUntil(loop, [&] { return told.end.has_value(); });
  EXPECT_EQ(told.end->code(), Code::kPermissionDenied);
}

}  // namespace
}  // namespace optcache::net
