#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/unique_fd.h"
#include "net/dialer.h"
#include "net/event_loop.h"
#include "net/server.h"
#include "wire/codec.h"

namespace optcache::net {

// For what has to happen: a busy machine may take its time.
inline constexpr Duration kPatience = std::chrono::minutes(2);

// Runs the loop until something is true, which it must be in time.
inline void RunUntil(EventLoop& loop, const std::function<bool()>& done) {
  bool late = false;
  const Timer limit = loop.After(kPatience, [&] {
    late = true;
    loop.Stop();
  });
  std::function<void()> look;
  Timer next;
  look = [&] {
    if (done()) return loop.Stop();
    next = loop.After(std::chrono::microseconds(200), look);
  };
  look();
  loop.Run();
  ASSERT_FALSE(late) << "it did not happen within two minutes";
}

inline void RunFor(EventLoop& loop, Duration time) {
  const Timer end = loop.After(time, [&] { loop.Stop(); });
  loop.Run();
}

// For tests that are not about the deadline.
inline DialOptions Patient(wire::Hello hello = {}) {
  return {.hello = std::move(hello), .connect_deadline = kPatience, .welcome_deadline = kPatience};
}

// Keeps what it hears; answers Gets with `sample` and takes payloads unless told otherwise.
class Recorder : public ConnectionHandler {
 public:
  struct Payload {
    wire::Message message;
    std::vector<std::byte> bytes;
    Status status;
  };

  void OnOpen(Connection& connection) override {
    ++opened;
    open[connection.id()] = &connection;
    if (on_open) on_open(connection);
  }
  void OnMessage(Connection& connection, std::uint32_t request_id, wire::Message message) override {
    messages.emplace_back(request_id, message);
    if (on_message) on_message(connection, request_id, message);
  }
  PayloadSink OnPayloadStart(Connection&, std::uint32_t, const wire::Message&,
                             ByteCount length) override {
    ++payloads_started;
    if (refuse_payloads) return {};
    sink = std::make_shared<std::vector<std::byte>>(length);
    return {.destination = *sink, .owner = sink};
  }
  void OnPayload(Connection& connection, std::uint32_t request_id, wire::Message message,
                 Status status) override {
    payloads.push_back({.message = message, .bytes = {}, .status = std::move(status)});
    if (!refuse_payloads) payloads.back().bytes = *sink;
    if (on_payload) on_payload(connection, request_id);
  }
  void OnClosed(Connection& connection, const Status& status) override {
    open.erase(connection.id());
    closed.push_back(status);
    if (on_closed) on_closed(connection);
  }

  std::function<void(Connection&)> on_open;
  std::function<void(Connection&, std::uint32_t, const wire::Message&)> on_message;
  std::function<void(Connection&, std::uint32_t)> on_payload;
  std::function<void(Connection&)> on_closed;
  bool refuse_payloads = false;

  int opened = 0;
  int payloads_started = 0;
  std::map<std::uint64_t, Connection*> open;
  std::vector<std::pair<std::uint32_t, wire::Message>> messages;
  std::vector<Payload> payloads;
  std::vector<Status> closed;
  std::shared_ptr<std::vector<std::byte>> sink;
};

// A client that may say what it likes: a plain blocking socket.
class RawClient {
 public:
  // `from` is one of the machine's own addresses, 127.0.0.0/8 among them.
  explicit RawClient(std::uint16_t port, const char* from = "127.0.0.1")
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, from, &own.sin_addr), 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  explicit RawClient(UniqueFd connected) : fd_(std::move(connected)) {}
  void Send(ByteSpan bytes) const {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void Send(const wire::Message& message) const {
    std::vector<std::byte> frame;
    EXPECT_TRUE(wire::AppendFrame(0, message, 0, frame).ok());
    Send(frame);
  }
  // Everything until the end of the stream; only after the server has closed.
  std::vector<std::byte> ReadAll() const {
    std::vector<std::byte> all;
    std::vector<std::byte> some(4096);
    for (;;) {
      const ssize_t n = ::recv(fd_.get(), some.data(), some.size(), 0);
      if (n <= 0) return all;
      all.insert(all.end(), some.begin(), some.begin() + n);
    }
  }
  void Close() { fd_.Reset(); }
  UniqueFd Release() { return std::move(fd_); }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

inline std::shared_ptr<std::vector<std::byte>> Sample(std::size_t size, unsigned salt = 0) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  for (std::size_t i = 0; i < size; ++i)
    (*bytes)[i] = static_cast<std::byte>(i * 31 + salt);
  return bytes;
}

inline void SendSample(Connection& connection, std::uint32_t request_id,
                       const std::shared_ptr<std::vector<std::byte>>& sample,
                       std::uint32_t index = 0) {
  connection.Send(
      request_id,
      wire::SampleReply{.index = index, .answer = wire::Answer::kHere, .crc = Crc32c(*sample)},
      *sample, sample);
}

}  // namespace optcache::net
