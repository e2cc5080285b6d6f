#include "handoff/channel.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "handoff/arena.h"
#include "handoff/memory_file.h"
#include "handoff/socket.h"
#include "support/manual_clock.h"

namespace optcache::handoff {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Answers as it is told and keeps what it is asked.
struct FakeHandler final : ChannelHandler {
  FakeHandler() : manifest(*MakeSealedCopy("manifest", AsBytes("the manifest"))) {}

  Result<OpenReply> OnOpen(ClientId, const OpenRequest& request) override {
    if (request.name == "later") return Error(Code::kUnavailable, "not indexed yet");
    return OpenReply{.dataset = 3,
                     .samples = 100,
                     .manifest_bytes = 12,
                     .name = "the one",
                     .notice = request.name == "noted" ? "mind this" : "",
                     .manifest_fd = manifest.get()};
  }
  Result<AttachReply> OnAttach(ClientId, const AttachRequest& request) override {
    if (request.world > 1) return Error(Code::kConflict, "another rank says world 1");
    return AttachReply{.stream = 77, .first_pass = 5, .loader = "train-2"};
  }
  Status OnTrace(ClientId, TraceRequest) override { return OkStatus(); }
  Status OnPass(ClientId, const PassRequest& request) override {
    passes.push_back(request);
    return OkStatus();
  }
  void OnGet(ClientId client, RequestId request, GetRequest get) override {
    gets.emplace_back(request, std::move(get));
    asker = client;
  }
  void OnRelease(ClientId, const std::vector<BatchId>& batches) override {
    released.insert(released.end(), batches.begin(), batches.end());
  }
  void OnDetach(ClientId, const DetachRequest& request) override { detached.push_back(request); }
  Result<ReadCounts> OnReadCounts(ClientId client, const ReadCountsRequest& request) override {
    if (request.dataset != 3) return ChannelHandler::OnReadCounts(client, request);
    return ReadCounts{.wait_us = 9};
  }
  void OnClientClosed(ClientId client) override { closed.push_back(client); }
  std::string WhyWaiting(ClientId, RequestId) override { return "reading the store"; }

  UniqueFd manifest;
  ClientId asker = 0;
  std::vector<PassRequest> passes;
  std::vector<std::pair<RequestId, GetRequest>> gets;
  std::vector<BatchId> released;
  std::vector<DetachRequest> detached;
  std::vector<ClientId> closed;
};

struct Heard {
  FrameType type{};
  RequestId request = 0;
  std::string body;
  UniqueFd fd;
};

class ChannelTest : public testing::Test {
 protected:
  ChannelTest()
      : arena_(*Arena::Create(64_KiB)),
        server_({.path = {}, .arena_fd = arena_.fd(), .arena_size = arena_.size()}, clock_,
                handler_) {}

  // A connected client; `near` is its end.
  ClientId Connect(UniqueFd& near) {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()), 0);
    near = UniqueFd(fds[0]);
    return server_.Adopt(UniqueFd(fds[1]));
  }
  ClientId ConnectAndHello() {
    const ClientId id = Connect(client_);
    Say(1, Hello{.pid = 1});
    EXPECT_EQ(Hear().type, FrameType::kWelcome);
    return id;
  }

  // Lets the server do all there is to do.
  void Run() {
    pollfd ready{.fd = server_.poll_fd(), .events = POLLIN, .revents = 0};
    while (::poll(&ready, 1, 0) > 0)
      server_.ProcessReady();
  }
  void SayBytes(ByteSpan bytes) {
    ASSERT_EQ(::send(client_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    Run();
  }
  void Say(RequestId request, const ClientMessage& message) {
    SayBytes(EncodeClientFrame(request, message));
  }

  std::string Receive(std::size_t bytes, UniqueFd& fd) {
    std::string all;
    while (all.size() < bytes) {
      std::string some(bytes - all.size(), '\0');
      alignas(cmsghdr) std::array<char, 64> control{};
      iovec piece{.iov_base = some.data(), .iov_len = some.size()};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t n = ::recvmsg(client_.get(), &message, 0);
      if (n <= 0) break;
      if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
        int received = -1;
        std::memcpy(&received, CMSG_DATA(header), sizeof(received));
        fd = UniqueFd(received);
      }
      all.append(some, 0, static_cast<std::size_t>(n));
      Run();
    }
    return all;
  }
  // The next frame; of type 0 if there is none.
  Heard Hear() {
    Heard heard;
    FrameHeader header;
    const std::string bytes = Receive(sizeof(header), heard.fd);
    if (bytes.size() < sizeof(header)) return heard;
    std::memcpy(&header, bytes.data(), sizeof(header));
    heard.type = header.type;
    heard.request = header.request;
    heard.body = Receive(header.body_bytes, heard.fd);
    return heard;
  }
  bool AtEnd() {
    char byte = 0;
    return ::recv(client_.get(), &byte, 1, 0) == 0;
  }
  // The server's word that it gives the client up, with `why` in it.
  void ExpectGivenUp(const std::string& why) {
    const Heard last = Hear();
    EXPECT_EQ(last.type, FrameType::kError);
    EXPECT_EQ(last.request, 0U);
    EXPECT_THAT(last.body, HasSubstr(why));
    EXPECT_TRUE(AtEnd());
  }
  double Refused(const std::string& reason) const {
    double value = -1;
    server_.VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double v) {
          const MetricLabels wanted = {{"reason", reason}};
          if (name == "optcache_channel_refused_total" && labels == wanted) value = v;
        });
    return value;
  }

  ManualClock clock_;
  FakeHandler handler_;
  Arena arena_;
  ChannelServer server_;
  UniqueFd client_;
};

TEST_F(ChannelTest, WelcomesWithTheArena) {
  Connect(client_);
  Say(1, Hello{.pid = 1});
  const Heard welcome = Hear();
  ASSERT_EQ(welcome.type, FrameType::kWelcome);
  EXPECT_EQ(welcome.request, 1U);
  ASSERT_EQ(welcome.body.size(), 16U);
  EXPECT_EQ(welcome.body[0], static_cast<char>(kMaxVersion));
  ASSERT_TRUE(welcome.fd.valid());

  const auto slot = arena_.Allocate(4);
  std::memcpy(arena_.Bytes(*slot).data(), "here", 4);
  std::array<char, 4> seen{};
  ASSERT_EQ(::pread(welcome.fd.get(), seen.data(), 4, static_cast<off_t>(slot->offset)), 4);
  EXPECT_EQ(std::string_view(seen.data(), 4), "here");
}

// Root is welcome everywhere; tests/integration/test_users.py has another user.
TEST_F(ChannelTest, WelcomesThoseUsersAloneThatItIsFor) {
  const std::uint32_t me = ::geteuid();
  for (const bool is_listed : {true, false}) {
    ChannelServer server({.arena_fd = arena_.fd(),
                          .arena_size = arena_.size(),
                          .users = std::vector<std::uint32_t>{is_listed ? me : me + 1}},
                         clock_, handler_);
    std::array<int, 2> fds{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    const UniqueFd client(fds[0]);
    server.Adopt(UniqueFd(fds[1]));
    const FrameBytes hello = EncodeClientFrame(1, Hello{.pid = 1});
    ASSERT_EQ(::send(client.get(), hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
    server.ProcessReady();
    FrameHeader header;
    ASSERT_EQ(::recv(client.get(), &header, sizeof(header), 0), ssize_t{sizeof(header)});
    EXPECT_EQ(header.type == FrameType::kWelcome, is_listed || me == 0);
  }
}

TEST_F(ChannelTest, OpensADatasetWithItsManifest) {
  ConnectAndHello();
  Say(2, OpenRequest{});
  const Heard opened = Hear();
  ASSERT_EQ(opened.type, FrameType::kOpened);
  EXPECT_EQ(opened.body[0], 3);
  std::array<char, 12> text{};
  ASSERT_EQ(::pread(opened.fd.get(), text.data(), text.size(), 0), 12);
  EXPECT_EQ(std::string_view(text.data(), 12), "the manifest");
}

TEST_F(ChannelTest, SaysWhatIsToBeKnownOfADataset) {
  ConnectAndHello();
  Say(2, OpenRequest{.name = "noted"});
  const Heard opened = Hear();
  ASSERT_EQ(opened.type, FrameType::kOpened);
  EXPECT_TRUE(opened.body.ends_with(std::string("the one\x09\0mind this", 18))) << opened.body;
}

TEST_F(ChannelTest, PassesAnErrorOnAsItIs) {
  ConnectAndHello();
  Say(2, OpenRequest{.name = "later"});
  const Heard error = Hear();
  EXPECT_EQ(error.type, FrameType::kError);
  EXPECT_EQ(error.request, 2U);
  EXPECT_EQ(error.body[0], static_cast<char>(Code::kUnavailable));
  EXPECT_THAT(error.body, HasSubstr("not indexed yet"));

  Say(3, AttachRequest{.world = 2});
  EXPECT_THAT(Hear().body, HasSubstr("another rank"));
}

TEST_F(ChannelTest, AnswersAttachAndPass) {
  ConnectAndHello();
  Say(2, AttachRequest{.loader = "train"});
  const Heard attached = Hear();
  EXPECT_EQ(attached.type, FrameType::kAttached);
  EXPECT_EQ(attached.body, std::string("\x4d\0\0\0\0\0\0\0\x05\0\0\0\7\0train-2", 21));
  Say(3, PassRequest{.stream = 77, .pass = 5, .length = 10});
  EXPECT_EQ(Hear().type, FrameType::kDone);
  ASSERT_EQ(handler_.passes.size(), 1U);
  Say(0, DetachRequest{.stream = 77});
  EXPECT_EQ(handler_.detached.size(), 1U);
}

TEST_F(ChannelTest, SaysWhatWasRead) {
  ConnectAndHello();
  Say(2, ReadCountsRequest{.dataset = 3});
  EXPECT_EQ(Hear().type, FrameType::kReads);
  Say(3, ReadCountsRequest{.dataset = 4});
  EXPECT_THAT(Hear().body, HasSubstr("counts no reads"));
}

TEST_F(ChannelTest, AClientOfVersionOneHearsNoName) {
  Connect(client_);
  Say(1, Hello{.max_version = 1});
  EXPECT_EQ(Hear().type, FrameType::kWelcome);
  Say(2, AttachRequest{.loader = "train"});
  EXPECT_EQ(Hear().body.size(), 12U);
}

TEST_F(ChannelTest, AnswersAGetWhenItIsReady) {
  ConnectAndHello();
  Say(8, GetRequest{.dataset = 3, .ids = {4, 5}});
  ASSERT_EQ(handler_.gets.size(), 1U);
  EXPECT_THAT(handler_.gets[0].second.ids, ElementsAre(4, 5));
  EXPECT_EQ(Hear().type, FrameType{});

  const auto copy = std::make_shared<const std::string>("by copy");
  server_.Reply(handler_.asker, 8,
                {.batch = 6,
                 .samples = {ArenaSample{.offset = 64, .length = 9},
                             InlineSample{.bytes = AsBytes(*copy), .pin = copy}}});
  const Heard samples = Hear();
  EXPECT_EQ(samples.type, FrameType::kSamples);
  EXPECT_EQ(samples.request, 8U);
  EXPECT_TRUE(samples.body.ends_with("by copy"));
  EXPECT_EQ(copy.use_count(), 1);
}

TEST_F(ChannelTest, TakesTheBatchOfAnAnswerBackThatIsTooLarge) {
  ConnectAndHello();
  Say(8, GetRequest{});
  const auto copy = std::make_shared<const std::string>(64_MiB, 'x');
  SamplesReply reply{.batch = 6, .samples = {ArenaSample{.offset = 64, .length = 9}}};
  while (reply.samples.size() * copy->size() <= kMaxReplyBytes + copy->size())
    reply.samples.emplace_back(InlineSample{.bytes = AsBytes(*copy), .pin = copy});
  server_.Reply(handler_.asker, 8, reply);
  const Heard error = Hear();
  EXPECT_EQ(error.request, 8U);
  EXPECT_THAT(error.body, HasSubstr("too large"));
  EXPECT_THAT(handler_.released, ElementsAre(6));
}

TEST_F(ChannelTest, FailsAWholeGet) {
  ConnectAndHello();
  Say(8, GetRequest{});
  server_.Fail(handler_.asker, 8, Status(Code::kNotFound, "no such dataset"));
  const Heard error = Hear();
  EXPECT_EQ(error.request, 8U);
  EXPECT_THAT(error.body, HasSubstr("no such dataset"));
}

TEST_F(ChannelTest, AnswersAGetOnce) {
  ConnectAndHello();
  Say(8, GetRequest{});
  server_.Fail(handler_.asker, 8, Status(Code::kNotFound, "once"));
  server_.Fail(handler_.asker, 8, Status(Code::kNotFound, "twice"));
  server_.Reply(handler_.asker, 9, {});
  server_.Reply(12345, 8, {});
  Hear();
  EXPECT_EQ(Hear().type, FrameType{});
}

TEST_F(ChannelTest, SendsALongAnswerAsTheClientReadsIt) {
  ConnectAndHello();
  Say(8, GetRequest{});
  const auto copy = std::make_shared<const std::string>(8 << 20, 'x');
  server_.Reply(handler_.asker, 8,
                {.batch = 0, .samples = {InlineSample{.bytes = AsBytes(*copy), .pin = copy}}});
  EXPECT_EQ(copy.use_count(), 2);
  EXPECT_GT(Hear().body.size(), 8U << 20U);
  EXPECT_EQ(copy.use_count(), 1);
}

TEST_F(ChannelTest, HandlesWhatWaitedBehindALongAnswer) {
  ConnectAndHello();
  Say(8, GetRequest{});
  const auto copy = std::make_shared<const std::string>(4 << 20, 'x');
  server_.Reply(handler_.asker, 8,
                {.batch = 0, .samples = {InlineSample{.bytes = AsBytes(*copy), .pin = copy}}});
  Say(9, OpenRequest{});
  EXPECT_EQ(Hear().type, FrameType::kSamples);
  Run();
  EXPECT_EQ(Hear().type, FrameType::kOpened);
}

TEST_F(ChannelTest, TellsAClientThatWaitsForLong) {
  ConnectAndHello();
  Say(8, GetRequest{});
  clock_.Advance(kWaitingInterval - seconds(1));
  server_.Tick();
  EXPECT_EQ(Hear().type, FrameType{});
  clock_.Advance(seconds(1));
  server_.Tick();
  server_.Tick();
  const Heard waiting = Hear();
  EXPECT_EQ(waiting.type, FrameType::kWaiting);
  EXPECT_EQ(waiting.request, 8U);
  EXPECT_THAT(waiting.body, HasSubstr("reading the store"));
  EXPECT_EQ(Hear().type, FrameType{});
}

TEST_F(ChannelTest, PassesReleasesOn) {
  ConnectAndHello();
  Say(0, ReleaseRequest{.batches = {5, 6}});
  EXPECT_THAT(handler_.released, ElementsAre(5, 6));
}

TEST_F(ChannelTest, SaysWhenAClientHasClosed) {
  const ClientId id = ConnectAndHello();
  EXPECT_EQ(server_.PeerOf(id)->pid, ::getpid());
  client_.Reset();
  Run();
  EXPECT_THAT(handler_.closed, ElementsAre(id));
  EXPECT_FALSE(server_.PeerOf(id));
  EXPECT_EQ(server_.clients(), 0U);
}

// The client may still look at the arena, so its batches are not free.
TEST_F(ChannelTest, GivesUpABrokenClientButKeepsItUntilItCloses) {
  const ClientId id = ConnectAndHello();
  SayBytes(AsBytes("GET / HTTP/1.1\r\n\r\n"));
  ExpectGivenUp("no frame");
  EXPECT_THAT(handler_.closed, IsEmpty());
  SayBytes(EncodeClientFrame(0, ReleaseRequest{.batches = {1}}));
  EXPECT_THAT(handler_.released, IsEmpty());
  EXPECT_EQ(Refused("protocol"), 1);

  client_.Reset();
  Run();
  EXPECT_THAT(handler_.closed, ElementsAre(id));
}

TEST_F(ChannelTest, GivesUpAClientThatStartsWithoutHello) {
  Connect(client_);
  Say(1, OpenRequest{});
  ExpectGivenUp("no Hello");
}

TEST_F(ChannelTest, ClosesAClientThatNeverWasWelcome) {
  const ClientId id = Connect(client_);
  SayBytes(AsBytes("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(handler_.closed, IsEmpty()) << "its last words come first";
  server_.Tick();
  EXPECT_THAT(handler_.closed, ElementsAre(id));
  ExpectGivenUp("no frame");
}

TEST_F(ChannelTest, GivesUpAClientThatSaysHelloTwice) {
  ConnectAndHello();
  Say(2, Hello{});
  ExpectGivenUp("second Hello");
}

TEST_F(ChannelTest, GivesUpAClientOfAnotherVersion) {
  Connect(client_);
  Say(1, Hello{.min_version = 7, .max_version = 9});
  ExpectGivenUp("versions 7 to 9");
}

TEST_F(ChannelTest, SpeaksTheHighestVersionOfBoth) {
  Connect(client_);
  Say(1, Hello{.min_version = 0, .max_version = 99});
  EXPECT_EQ(Hear().body[0], static_cast<char>(kMaxVersion));
}

TEST_F(ChannelTest, GivesUpAClientThatAsksForTooMuchAtOnce) {
  ConnectAndHello();
  for (RequestId request = 1; request <= kMaxWaitingGets; ++request) {
    Say(request, GetRequest{});
  }
  EXPECT_EQ(Hear().type, FrameType{});
  Say(1000, GetRequest{});
  ExpectGivenUp("too many");
  server_.Reply(handler_.asker, 1, {});
}

TEST_F(ChannelTest, GivesUpAClientThatReusesARequestNumber) {
  ConnectAndHello();
  Say(5, GetRequest{});
  Say(5, GetRequest{});
  ExpectGivenUp("one request number");
}

TEST_F(ChannelTest, GivesUpAClientThatIsSlow) {
  Connect(client_);
  clock_.Advance(kFrameDeadline);
  server_.Tick();
  ExpectGivenUp("did not say Hello");
  EXPECT_EQ(Refused("too_slow"), 1);
}

TEST_F(ChannelTest, CutsOffAClientThatDoesNotReadItsAnswers) {
  ConnectAndHello();
  Say(8, GetRequest{});
  const auto copy = std::make_shared<const std::string>(8 << 20, 'x');
  server_.Reply(handler_.asker, 8,
                {.batch = 0, .samples = {InlineSample{.bytes = AsBytes(*copy), .pin = copy}}});
  clock_.Advance(kWriteDeadline);
  server_.Tick();
  EXPECT_EQ(copy.use_count(), 1) << "nothing is kept for it";
  EXPECT_THAT(handler_.closed, IsEmpty());
  std::string rest(9 << 20, '\0');
  while (::recv(client_.get(), rest.data(), rest.size(), 0) > 0) {
  }
  EXPECT_TRUE(AtEnd());
}

TEST_F(ChannelTest, ServesAPath) {
  std::string folder = testing::TempDir() + "optcacheXXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/s";
  {
    auto server = ChannelServer::Listen(
        {.path = path, .arena_fd = arena_.fd(), .arena_size = arena_.size()}, clock_, handler_);
    ASSERT_TRUE(server) << server.error().ToString();
    const auto client = ConnectTo(path);
    ASSERT_TRUE(client);
    (*server)->ProcessReady();
    EXPECT_EQ((*server)->clients(), 1U);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace optcache::handoff
