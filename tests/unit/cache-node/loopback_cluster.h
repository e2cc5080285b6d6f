#pragma once

// Several nodes' dataset caches in one thread, joined by a queue of messages. Node k is member k
// + 1.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "cache-node/serving/dataset_cache.h"
#include "support/manual_clock.h"
#include "wire/codec.h"

namespace optcache::node {

// What the tests let the plan say, by (stream, pass, position).
class ScriptedPlanLookup final : public PlanLookup {
 public:
  std::optional<PlanDecision> Find(const ReadKey& key) const override {
    const auto it = plan_lookup.find({key.stream, key.pass, key.position});
    return it == plan_lookup.end() ? std::nullopt : std::optional(it->second);
  }
  std::map<std::tuple<StreamId, PassNumber, Position>, PlanDecision> plan_lookup;
};

// What a sample is; what a borrower puts in its place is something else.
inline std::string BytesOf(SampleId id, std::uint32_t size, BorrowerId borrower = kNoBorrower) {
  std::string bytes(size, '\0');
  for (std::uint32_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(id * 31 + i + borrower);
  return bytes;
}

class LoopbackCluster {
 public:
  static constexpr ClientId kSidecar = 1;
  static constexpr ClientId kFirstNode = 100;

  struct Options {
    std::size_t nodes = 1;
    Retention retention = Retention::kOptimal;
    ByteCount capacity = 1000;
    ByteCount reserve = 100;
    std::vector<std::uint32_t> sizes;
    const PlanLookup* plans = nullptr;  // instead of what Plan says
    // Whose caches they are, made by the test and outliving this; else it makes its own.
    std::function<DatasetCache&(wire::MemberId, Effects&)> make{};
  };

  struct Reply {
    std::uint32_t request_id;
    wire::Message message;
    std::string payload;
  };

  explicit LoopbackCluster(Options options) : sizes_(options.sizes) {
    std::vector<wire::MemberId> members;
    for (std::size_t i = 0; i < options.nodes; ++i) {
      members.push_back(static_cast<wire::MemberId>(i + 1));
    }
    for (const wire::MemberId member : members) {
      nodes_.push_back(std::make_unique<Node>(*this, member, options));
    }
    for (auto& node : nodes_)
      node->cache.SetMembers(members);
  }

  DatasetCache& cache(std::size_t node) { return nodes_[node]->cache; }
  ScriptedPlanLookup& plan_lookup() { return plan_lookup_; }
  void Plan(StreamId stream, PassNumber pass, Position position, PlanDecision decision) {
    plan_lookup_.plan_lookup[{stream, pass, position}] = decision;
  }
  // Whose sidecars ask and put from now on.
  void Be(BorrowerId borrower) { borrower_ = borrower; }
  void Advance(Duration by) { clock_.Advance(by); }
  MonotonicTime now() const { return clock_.Now(); }
  void CutOff(std::size_t node) { nodes_[node]->reachable = false; }
  // It is cut off, and the others see all their connections with it end.
  void Kill(std::size_t node) {
    CutOff(node);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i != node) cache(i).OnPeerGone(static_cast<wire::MemberId>(node + 1));
    }
  }
  void LoseSidecar(std::size_t node) {
    nodes_[node]->sidecar_gone = true;
    cache(node).OnClientGone(kSidecar, clock_.Now());
    Settle();
  }

  // On which nodes the dataset is placed from now on. The others give them what they hold.
  void Place(const std::vector<wire::MemberId>& members) {
    std::vector<std::size_t> losers;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (cache(i).SetMembers(members)) losers.push_back(i);
    }
    for (const std::size_t node : losers)
      GiveAway(node);
    Settle();
  }
  // The node goes. How many samples it sends to others.
  std::size_t GiveAway(std::size_t node) {
    const std::size_t samples = cache(node).retention_manager().GiveAway(
        RetentionManager::OnDisk::kGoes, clock_.Now() + std::chrono::seconds(10), clock_.Now());
    Settle();
    return samples;
  }
  void UpdateLease(std::size_t node, ClientId client, wire::LeaseEvent event, SampleId id,
                   wire::LeaseId lease) {
    cache(node).OnLeaseUpdate(client, {.event = event, .leases = {{id, lease}}}, clock_.Now());
    Settle();
  }

  // Asks node `node` as its sidecar; the answers come with Settle.
  std::uint32_t Ask(std::size_t node, StreamId stream, std::vector<wire::ReadItem> items,
                    wire::GetMode mode = wire::GetMode::kStage) {
    const std::uint32_t request_id = next_request_++;
    cache(node).OnGet({.client = kSidecar, .borrower = borrower_}, request_id,
                      {.stream = stream, .mode = mode, .items = std::move(items)}, clock_.Now());
    return request_id;
  }
  // One item, all ticks and messages until the answer.
  wire::SampleReply Get(std::size_t node, StreamId stream, wire::ReadItem item,
                        wire::GetMode mode = wire::GetMode::kStage) {
    nodes_[node]->replies.clear();
    Ask(node, stream, {item}, mode);
    for (int i = 0; i < 600 && nodes_[node]->replies.empty(); ++i) {
      Settle();
      if (nodes_[node]->replies.empty()) Advance(std::chrono::milliseconds(10));
    }
    if (nodes_[node]->replies.empty()) return {.index = 999};
    last_payload_ = nodes_[node]->replies.front().payload;
    return std::get<wire::SampleReply>(nodes_[node]->replies.front().message);
  }
  const std::string& last_payload() const { return last_payload_; }
  std::vector<Reply>& replies(std::size_t node) { return nodes_[node]->replies; }

  // As the sidecar after a store read. True when accepted.
  bool Put(std::size_t node, StreamId stream, wire::ReadItem item, wire::LeaseId lease = 0) {
    DatasetCache& target = cache(node);
    const std::string bytes = BytesOf(item.id, sizes_[item.id], borrower_);
    auto buffer = target.Receive({.id = item.id, .borrower = borrower_}, bytes.size());
    if (buffer) std::copy_n(AsBytes(bytes).begin(), bytes.size(), buffer->writable().begin());
    nodes_[node]->replies.clear();
    target.OnPut({.client = kSidecar, .borrower = borrower_}, 0,
                 {.stream = stream, .item = item, .lease = lease, .crc = Crc32c(AsBytes(bytes))},
                 buffer, OkStatus(), clock_.Now());
    const bool accepted =
        std::get<wire::StoreReply>(nodes_[node]->replies.front().message).accepted;
    nodes_[node]->replies.clear();
    Settle();
    return accepted;
  }
  // What a sidecar does: asks, reads the store on a miss, puts back what is to be kept.
  // Returns true if the store was read.
  bool Read(std::size_t node, StreamId stream, wire::ReadItem item) {
    const auto reply = Get(node, stream, item, wire::GetMode::kUrgent);
    Settle();
    if (reply.answer == wire::Answer::kHere || reply.answer == wire::Answer::kPeer) return false;
    if (reply.answer == wire::Answer::kMissKeep) {
      Put(node, stream, item, reply.lease);
    } else if (reply.lease != 0) {
      cache(node).OnLeaseUpdate(
          kSidecar, {.event = wire::LeaseEvent::kDone, .leases = {{item.id, reply.lease}}},
          clock_.Now());
      Settle();
    }
    return true;
  }

  // Ticks all nodes and delivers messages until none is left.
  void Settle() {
    for (auto& node : nodes_)
      node->cache.Tick(clock_.Now());
    Deliver();
    for (auto& node : nodes_)
      node->cache.Tick(clock_.Now());
    Deliver();
  }

 private:
  struct Node final : Effects {
    Node(LoopbackCluster& owner, wire::MemberId self, const Options& options)
        : cluster(owner),
          member(self),
          cache(options.make ? options.make(self, *this) : MakeOwn(options)) {}

    DatasetCache& MakeOwn(const Options& options) {
      const PlanLookup& plan_lookup =
          options.plans != nullptr ? *options.plans : cluster.plan_lookup_;
      own = std::make_unique<DatasetCache>(DatasetConfig{.self = member,
                                                         .retention = options.retention,
                                                         .capacity = options.capacity,
                                                         .reserve = options.reserve,
                                                         .sizes = cluster.sizes_},
                                           ReadDeadlines{}, plan_lookup, *this);
      return *own;
    }

    std::uint32_t NewRequestId() override { return cluster.next_request_++; }
    bool Reply(ClientId to, std::uint32_t request_id, const wire::Message& message,
               const cache::SampleRef& payload) override {
      ExpectSendable(message, payload);
      if (to == kSidecar && sidecar_gone) return false;
      if (to == kSidecar) {
        replies.push_back(
            {request_id, message, payload ? std::string(AsText(payload->bytes())) : std::string()});
      } else {
        cluster.queue_.push_back(
            {member, static_cast<wire::MemberId>(to - kFirstNode), request_id, message, payload});
      }
      return true;
    }
    bool Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
              const cache::SampleRef& payload) override {
      ExpectSendable(message, payload);
      if (!reachable || !cluster.nodes_[to - 1]->reachable) return false;
      cluster.queue_.push_back({member, to, request_id, message, payload});
      return true;
    }

    LoopbackCluster& cluster;
    wire::MemberId member;
    bool reachable = true;
    bool sidecar_gone = false;
    std::unique_ptr<DatasetCache> own;
    DatasetCache& cache;
    std::vector<LoopbackCluster::Reply> replies;
  };
  struct Envelope {
    wire::MemberId from;
    wire::MemberId to;
    std::uint32_t request_id;
    wire::Message message;
    cache::SampleRef payload;
  };

  void Deliver() {
    while (!queue_.empty()) {
      const Envelope envelope = std::move(queue_.front());
      queue_.pop_front();
      if (nodes_[envelope.to - 1]->reachable && nodes_[envelope.from - 1]->reachable) {
        Hand(envelope);
      }
    }
  }
  void Hand(const Envelope& e) {
    DatasetCache& to = cache(e.to - 1);
    const ClientId from = kFirstNode + e.from;
    const MonotonicTime now = clock_.Now();
    if (const auto* get = std::get_if<wire::Get>(&e.message)) {
      to.OnGet({.client = from, .member = e.from}, e.request_id, *get, now);
    } else if (const auto* reply = std::get_if<wire::SampleReply>(&e.message)) {
      std::shared_ptr<cache::SampleBytes> copy;
      if (e.payload) copy = to.ReceiveFromPeer(e.request_id, reply->index, e.payload->size());
      if (copy) Copy(*e.payload, *copy);
      to.OnPeerReply(e.request_id, *reply, copy, now);
    } else if (const auto* lookup = std::get_if<wire::Lookup>(&e.message)) {
      to.OnLookup(from, e.from, e.request_id, *lookup, now);
    } else if (const auto* found = std::get_if<wire::LookupReply>(&e.message)) {
      to.OnLookupReply(e.request_id, *found, now);
    } else if (const auto* holding = std::get_if<wire::Holding>(&e.message)) {
      to.OnHolding(e.from, *holding);
    } else if (const auto* announce = std::get_if<wire::Announce>(&e.message)) {
      to.OnAnnounce(*announce, now);
    } else if (const auto* update = std::get_if<wire::LeaseUpdate>(&e.message)) {
      to.OnPeerLeaseUpdate(e.from, *update, now);
    } else if (const auto* stored = std::get_if<wire::StoreReply>(&e.message)) {
      to.OnStoreReply(e.request_id, *stored, now);
    } else if (const auto* push = std::get_if<wire::Push>(&e.message)) {
      auto buffer = to.ReceivePush(push->item.id, e.payload->size());
      if (buffer) Copy(*e.payload, *buffer);
      to.OnPush(from, e.request_id, *push, buffer, OkStatus());
    }
  }
  static void ExpectSendable(const wire::Message& message, const cache::SampleRef& payload) {
    std::vector<std::byte> frame;
    const Status sent = wire::AppendFrame(0, message, payload ? payload->size() : 0, frame);
    EXPECT_TRUE(sent.ok()) << sent.ToString();
  }
  static void Copy(const cache::SampleBytes& from, cache::SampleBytes& to) {
    std::copy(from.bytes().begin(), from.bytes().end(), to.writable().begin());
  }

  ManualClock clock_;
  ScriptedPlanLookup plan_lookup_;
  plan::Sizes sizes_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<Envelope> queue_;
  std::uint32_t next_request_ = 1;
  std::string last_payload_;
  BorrowerId borrower_ = kNoBorrower;
};

}  // namespace optcache::node
