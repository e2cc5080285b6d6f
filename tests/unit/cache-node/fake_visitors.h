#pragma once

// Pods that come to a node's door: whose their tokens are, and what they connect by.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache-node/trust/token_check.h"
#include "net/connection.h"

namespace optcache::node {

class InstantReviewer final : public TokenReviewer {
 public:
  // An error: what it says of every token.
  Status outcome;
  int reviews = 0;

  // The token is "NAMESPACE POD MACHINE", perhaps after "HEAD.CLAIMS."; anything else is bad.
  void Review(const std::string& shown, Done done) override {
    ++reviews;
    if (!outcome.ok()) return done(Error(outcome));
    const std::string token = shown.substr(shown.rfind('.') + 1);
    const std::size_t first = token.find(' ');
    const std::size_t second = token.find(' ', first + 1);
    if (second == std::string::npos) return done(Error(Code::kPermissionDenied, "unknown token"));
    done(ReviewedToken{
        .username = "system:serviceaccount:" + token.substr(0, first) + ":default",
        .extra = {{"authentication.kubernetes.io/pod-name",
                   {token.substr(first + 1, second - first - 1)}},
                  {"authentication.kubernetes.io/node-name", {token.substr(second + 1)}}}});
  }
};

class FakeConnection final : public net::Connection {
 public:
  FakeConnection(wire::Role role, std::string address) : role_(role) {
    peer_.address = std::move(address);
  }
  void Send(std::uint32_t, const wire::Message& message) override { sent.push_back(message); }
  void Send(std::uint32_t, const wire::Message&, ByteSpan, std::shared_ptr<const void>) override {}
  void Close(Status status) override { closed_with = std::move(status); }
  bool closed() const override { return closed_with.has_value(); }
  ByteCount queued_bytes() const override { return queued; }
  std::size_t queued_frames() const override { return 0; }
  std::uint64_t received_bytes() const override { return received; }
  std::uint64_t id() const override { return number; }
  const std::string& peer_name() const override { return name; }
  wire::Role peer_role() const override { return role_; }
  wire::MemberId peer_member() const override { return member; }
  const std::string& address() const override { return peer_.address; }
  const net::PeerInfo& peer() const override { return peer_; }

  std::uint64_t number = 1;
  wire::MemberId member = 0;
  std::string name = "test";
  ByteCount queued = 0;
  std::uint64_t received = 0;
  std::vector<wire::Message> sent;  // without a payload
  std::optional<Status> closed_with;

 private:
  wire::Role role_;
  net::PeerInfo peer_;
};

// Of connections that are dialed and never made.
class DeafHandler final : public net::ConnectionHandler {
 public:
  void OnOpen(net::Connection& /*connection*/) override {}
  void OnMessage(net::Connection& /*from*/, std::uint32_t /*request_id*/,
                 wire::Message /*message*/) override {}
  void OnClosed(net::Connection& /*connection*/, const Status& /*status*/) override {}
};

}  // namespace optcache::node
