// Finds who hears a message.
//
//   OnMessage ──────────────────► Admit ─► Hearing(Get), Hearing(Lookup), ...
//   OnPayloadStart ─► OnPayload ─► Admit ─► Hearing(Put), Hearing(Push), Hearing(SampleReply)
//
// Admit says whether this client may say that; if not, Declining tells who waits for an answer that
// nothing comes. Both visit wire::Message with an overload for each message, and none for all: a
// message without its overloads does not compile. Those that no node gets share one, by the
// direction that they declare (About::directions); lib/wire refuses them before.
//
// OnPayloadStart finds the buffer of a payload, and its room, before its bytes are read. A
// connection receives one payload at a time, so `incoming_` has at most one for each. Answers of
// peers name no dataset: request ids are unique in the process, and only the dataset that asked
// takes one.

#include "cache-node/serving/message_router.h"

#include <concepts>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/log.h"
#include "coordination/desired_state.h"

namespace optcache::node {
namespace {

// The dataset that a message speaks of; 0 if it names none.
wire::DatasetKey DatasetOf(const wire::Message& message) {
  return std::visit(
      [](const auto& m) -> wire::DatasetKey {
        if constexpr (requires { m.dataset; }) {
          return m.dataset;
        } else {
          return 0;
        }
      },
      message);
}

template <typename M, typename... Messages>
concept OneOf = (std::same_as<M, Messages> || ...);

template <typename M>
concept NoNodeGets = (M::kAbout.directions & (wire::kSidecarToNode | wire::kNodeToNode)) == 0;

}  // namespace

struct MessageRouter::Call {
  net::Connection& from;
  ClientId client;
  std::uint32_t request_id;
  MonotonicTime now;
  // With a payload: the dataset whose budget it is taken from, and its bytes; null: there is no
  // room.
  std::shared_ptr<NodeDataset> dataset{};
  std::shared_ptr<cache::SampleBytes> bytes{};
  Status received{};
};

// Answers who waits for a word, for a dataset that is not served, or not yet, or not to that
// client.
class MessageRouter::Declining {
 public:
  Declining(MessageRouter& router, const Call& call, Code why)
      : router_(router), call_(call), why_(why) {}

  // Nothing is here.
  void operator()(const wire::Get& get) const {
    for (std::uint32_t i = 0; i < get.items.size(); ++i)
      Answer(wire::SampleReply{.index = i, .answer = wire::Answer::kMissDrop});
  }
  void operator()(const wire::Lookup& lookup) const {
    wire::LookupReply reply{.dataset = lookup.dataset};
    for (const SampleId id : lookup.ids)
      reply.items.push_back({.id = id});
    Answer(reply);
  }
  // Nothing is taken.
  void operator()(const wire::Put& put) const {
    Answer(wire::StoreReply{.dataset = put.dataset, .id = put.item.id, .reason = why_});
  }
  void operator()(const wire::StoreDemand& demand) const {
    router_.parts_.rates.OnRefused(call_.client, router_.PodOf(call_.client), demand.dataset);
  }
  // For these nobody waits.
  template <OneOf<wire::Hello, wire::Welcome, wire::Refusal, wire::SampleReply, wire::StoreReply,
                  wire::LeaseUpdate, wire::StreamAttach, wire::StreamProgress, wire::LookupReply,
                  wire::Holding, wire::Announce, wire::Push, wire::StreamOrder, wire::StreamTrace,
                  wire::StreamPassEnd, wire::StoreHealth, wire::Savings, wire::StoreShare>
                M>
  void operator()(const M& /*message*/) const {}

 private:
  void Answer(const wire::Message& message) const {
    router_.parts_.effects.Reply(call_.client, call_.request_id, message, nullptr);
  }

  MessageRouter& router_;
  const Call& call_;
  Code why_;
};

// Hands a message to the part that decides about it.
class MessageRouter::Hearing {
 public:
  Hearing(MessageRouter& router, const Call& call)
      : router_(router), parts_(router.parts_), call_(call) {}

  // --- Requests for samples, and answers ---

  void operator()(const wire::Get& get) const {
    const auto dataset = router_.Find(get.dataset);
    if (!dataset || !IsWithinLimits(dataset->cache())) return Unknown(get);
    if (get.stream != 0 && !get.items.empty()) {
      dataset->OnPassSeen(get.stream, get.items.back().pass);
      parts_.streams.OnServed(call_.client, get);
    }
    dataset->cache().OnGet({.client = call_.client,
                            .member = call_.from.peer_member(),
                            .borrower = router_.TermsOf(call_.client, *dataset).borrower},
                           call_.request_id, get, call_.now);
  }
  void operator()(const wire::SampleReply& reply) const {
    const cache::SampleRef bytes = call_.received.ok() ? call_.bytes : nullptr;
    for (const auto& [_, one] : parts_.datasets)
      one->cache().OnPeerReply(call_.request_id, reply, bytes, call_.now);
  }
  void operator()(const wire::Put& put) const {
    const PutTerms terms = router_.TermsOf(call_.client, *call_.dataset);
    const auto take = [put, request_id = call_.request_id, bytes = cache::SampleRef(call_.bytes),
                       asker = Asker{.client = call_.client, .borrower = terms.borrower},
                       within = std::weak_ptr(call_.dataset),
                       &clock = router_.clock_](const Status& status) {
      // Gone meanwhile, and its budget with it?
      if (const auto alive = within.lock())
        alive->cache().OnPut(asker, request_id, put, bytes, status, clock.Now());
    };
    if (!terms.to_prove || !call_.bytes || !call_.received.ok()) return take(call_.received);
    parts_.visitors->Prove(call_.client, call_.bytes, call_.dataset->digests()[put.item.id], take);
  }
  void operator()(const wire::StoreReply& stored) const {
    if (const auto dataset = router_.Find(stored.dataset))
      dataset->cache().OnStoreReply(call_.request_id, stored, call_.now);
  }
  void operator()(const wire::LeaseUpdate& update) const {
    const auto dataset = router_.Find(update.dataset);
    if (!dataset) return;
    if (call_.from.peer_role() == wire::Role::kNode) {
      dataset->cache().OnPeerLeaseUpdate(call_.from.peer_member(), update, call_.now);
    } else {
      dataset->cache().OnLeaseUpdate(call_.client, update, call_.now);
    }
  }

  // --- Between nodes ---

  void operator()(const wire::Lookup& lookup) const {
    const auto dataset = router_.Find(lookup.dataset);
    if (!dataset) return Unknown(lookup);
    dataset->cache().OnLookup(call_.client, call_.from.peer_member(), call_.request_id, lookup,
                              call_.now);
  }
  void operator()(const wire::LookupReply& found) const {
    if (const auto dataset = router_.Find(found.dataset))
      dataset->cache().OnLookupReply(call_.request_id, found, call_.now);
  }
  void operator()(const wire::Holding& holding) const {
    if (const auto dataset = router_.Find(holding.dataset))
      dataset->cache().OnHolding(call_.from.peer_member(), holding);
  }
  void operator()(const wire::Announce& announce) const {
    if (const auto dataset = router_.Find(announce.dataset))
      dataset->cache().OnAnnounce(announce, call_.now);
  }
  void operator()(const wire::Push& push) const {
    call_.dataset->cache().OnPush(call_.client, call_.request_id, push, call_.bytes,
                                  call_.received);
  }

  // --- What sidecars tell the coordinator ---

  void operator()(const wire::StreamAttach& attach) const { router_.Attach(call_.client, attach); }
  void operator()(const wire::StreamOrder& order) const {
    parts_.streams.OnOrder(call_.client, order);
  }
  // Whose list is not taken is in no plan.
  void operator()(const wire::StreamTrace& part) const {
    const Status status = parts_.streams.OnTrace(call_.client, part);
    const auto not_logged = status.ok() ? std::nullopt : router_.attach_log_.Pass(call_.now);
    if (!not_logged) return;
    Log(LogLevel::kWarning, "a list of ids is not taken, nothing is planned by it",
        {{"stream", fmt::format("{:016x}", part.stream)},
         {"rank", part.rank},
         {"pass", part.pass},
         {"why", status.ToString()},
         {"not_logged", *not_logged}});
  }
  void operator()(const wire::StreamPassEnd& end) const {
    parts_.streams.OnPassEnd(call_.client, end);
  }
  void operator()(const wire::StreamProgress& progress) const {
    parts_.streams.OnProgress(call_.client, progress, call_.now);
  }
  void operator()(const wire::StoreHealth& health) const {
    parts_.stores.OnHealth(call_.client, health, call_.now);
  }
  // If the dataset is not known, the sidecar tells it again.
  void operator()(const wire::Savings& savings) const {
    const auto* known = coordination::FindDataset(router_.hooks_.state(), savings.dataset);
    if (known != nullptr) parts_.savings.OnSavings(call_.client, known->name, savings);
  }
  void operator()(const wire::StoreDemand& demand) const {
    const auto* known = coordination::FindDataset(router_.hooks_.state(), demand.dataset);
    const std::string name = known == nullptr ? std::string() : known->name;
    const std::string pod = router_.PodOf(call_.client);
    if (parts_.rates.OnDemand(call_.client, pod, name, demand)) router_.shares_are_due_ = true;
  }

  // --- Never heard ---

  // Connections take it themselves, and end.
  void operator()(const wire::Refusal& /*refusal*/) const { EndFor(wire::Refusal::kAbout); }
  template <NoNodeGets M>
  void operator()(const M& /*message*/) const {
    EndFor(M::kAbout);
  }

 private:
  bool IsWithinLimits(const DatasetCache& cache) const {
    return parts_.authorizer == nullptr ||
           parts_.authorizer
               ->WithinLimits(call_.client, [&cache](ClientId one) { return cache.leases(one); })
               .ok();
  }
  template <typename M>
  void Unknown(const M& message) const {
    Declining(router_, call_, Code::kNotFound)(message);
  }
  void EndFor(const wire::About& about) const {
    const bool is_node = call_.from.peer_role() == wire::Role::kNode;
    call_.from.Close({Code::kInvalidArgument,
                      fmt::format("{} came from {} {}, but a node never gets that", about.name,
                                  is_node ? "node" : "sidecar", call_.from.peer_name())});
  }

  MessageRouter& router_;
  const Parts& parts_;
  const Call& call_;
};

// --- From connections ---------------------------------------------------------------------------

void MessageRouter::OnMessage(net::Connection& from, std::uint32_t request_id,
                              wire::Message message) {
  const Call call{
      .from = from, .client = IdOf(from), .request_id = request_id, .now = clock_.Now()};
  if (const Status status = Admit(call.client, message); !status.ok())
    return std::visit(Declining(*this, call, status.code()), message);
  std::visit(Hearing(*this, call), message);
}

net::PayloadSink MessageRouter::OnPayloadStart(net::Connection& from, std::uint32_t request_id,
                                               const wire::Message& message, ByteCount length) {
  if (!parts_.live_memory.Admits(cache::SampleBytes::LiveBytes(), length)) return {};
  const ClientId client = IdOf(from);
  Incoming incoming;
  if (const auto* reply = std::get_if<wire::SampleReply>(&message)) {
    for (const auto& [_, one] : parts_.datasets) {
      incoming.buffer = one->cache().ReceiveFromPeer(request_id, reply->index, length);
      if (incoming.buffer) break;
    }
  } else if (const auto* put = std::get_if<wire::Put>(&message)) {
    const auto dataset = Find(put->dataset);
    const bool is_refused =  // when the message has come
        parts_.authorizer != nullptr && !parts_.authorizer->MayStore(client, put->dataset);
    if (!dataset || is_refused) return {};
    const BorrowerId borrower = TermsOf(client, *dataset).borrower;
    incoming = {
        .buffer = dataset->cache().Receive({.id = put->item.id, .borrower = borrower}, length),
        .reserved_by = dataset};
  } else if (const auto* push = std::get_if<wire::Push>(&message)) {
    const auto dataset = Find(push->dataset);
    if (!dataset) return {};
    incoming = {.buffer = dataset->cache().ReceivePush(push->item.id, length),
                .reserved_by = dataset};
  }
  if (!incoming.buffer) return {};
  net::PayloadSink sink{.destination = incoming.buffer->writable(), .owner = incoming.buffer};
  incoming_[client] = std::move(incoming);
  return sink;
}

void MessageRouter::OnPayload(net::Connection& from, std::uint32_t request_id,
                              wire::Message message, const Status& received) {
  Call call{.from = from,
            .client = IdOf(from),
            .request_id = request_id,
            .now = clock_.Now(),
            .received = received};
  if (auto incoming = incoming_.extract(call.client)) {
    call.bytes = std::move(incoming.mapped().buffer);
    call.dataset = incoming.mapped().reserved_by.lock();
  } else {
    call.dataset = Find(DatasetOf(message));
  }
  const bool answers_us = std::holds_alternative<wire::SampleReply>(message);
  if (!answers_us && !call.dataset) return;  // gone meanwhile, and its budget with it
  if (const Status refused = Admit(call.client, message); !refused.ok()) {
    if (call.bytes) call.dataset->cache().Abandon(call.bytes);
    return std::visit(Declining(*this, call, refused.code()), message);
  }
  std::visit(Hearing(*this, call), message);
}

void MessageRouter::OnClosed(ClientId client) {
  if (const auto incoming = incoming_.extract(client)) {
    if (const auto dataset = incoming.mapped().reserved_by.lock())
      dataset->cache().Abandon(incoming.mapped().buffer);
  }
  for (const auto& [_, dataset] : parts_.datasets)
    dataset->cache().OnClientGone(client, clock_.Now());
  parts_.streams.OnClosed(client);
  parts_.stores.OnClosed(client);
  parts_.savings.OnClosed(client);
  parts_.rates.OnClosed(client);
  if (parts_.authorizer != nullptr) parts_.authorizer->OnClosed(client);
}

// --- Clients ------------------------------------------------------------------------------------

Status MessageRouter::Admit(ClientId client, wire::Message& message) {
  return parts_.visitors == nullptr ? OkStatus() : parts_.visitors->Admit(client, message);
}

std::shared_ptr<NodeDataset> MessageRouter::Find(wire::DatasetKey key) const {
  const auto found = parts_.datasets.find(key);
  return found == parts_.datasets.end() ? nullptr : found->second;
}

PutTerms MessageRouter::TermsOf(ClientId client, const NodeDataset& dataset) {
  if (parts_.visitors == nullptr) return {};
  return parts_.visitors->TermsOf(client, dataset.name(), !dataset.digests().empty());
}

std::string MessageRouter::PodOf(ClientId client) const {
  const Caller* const caller =
      parts_.authorizer == nullptr ? nullptr : parts_.authorizer->Find(client);
  return caller == nullptr ? std::string() : caller->pod_uid;
}

// Who cannot be listed reads without an order: others on the same connection do not suffer.
void MessageRouter::Attach(ClientId client, const wire::StreamAttach& attach) {
  if (parts_.visitors != nullptr) hooks_.used(attach.dataset_name);
  const Status status = parts_.streams.OnAttach(client, attach);
  const auto not_logged = status.ok() ? std::nullopt : attach_log_.Pass(clock_.Now());
  if (!not_logged) return;
  Log(LogLevel::kWarning, "stream not listed, it reads without an order",
      {{"stream", attach.stream_name}, {"why", status.ToString()}, {"not_logged", *not_logged}});
}

void MessageRouter::TellShares() {
  shares_are_due_ = false;
  for (const RateTable::Told& told : parts_.rates.Divide(clock_.Now()))
    parts_.effects.Reply(told.to, 0, told.share, nullptr);
}

void MessageRouter::LookAtClients() {
  if (parts_.authorizer != nullptr) {
    for (const JudgedAnew& judged : parts_.authorizer->JudgeAnew()) {
      if (judged.granted) {
        Attach(judged.client, judged.attach);
        if (judged.order) parts_.streams.OnOrder(judged.client, *judged.order);
      } else {
        parts_.streams.OnRevoked(judged.client, judged.attach.stream, judged.attach.rank);
      }
    }
    parts_.authorizer->CheckTokens();
  }
  if (shares_are_due_) TellShares();
}

}  // namespace optcache::node
