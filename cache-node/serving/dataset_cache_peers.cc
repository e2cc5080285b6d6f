// Reads of what another node holds: asking for it, passing it on, answering other nodes, and what
// becomes of it all when another node has gone.

#include <algorithm>
#include <functional>
#include <utility>

#include "cache-node/serving/dataset_cache.h"

namespace optcache::node {

using wire::Answer;
using wire::GetMode;

namespace {

// Of reads whose plan has not come; beyond it they are in no forecast.
constexpr std::size_t kMaxUncovered = 262'144;
// Half of what a connection may queue (net::ConnectionLimits).
constexpr ByteCount kMaxRelayed = 512_MiB;

}  // namespace

// One sample may always pass; more only within the transit reserve, and within what a peer may have
// to queue for this node. Null: later.
DatasetCache::RelayShare DatasetCache::TakeRelayShare(ByteCount size) {
  const ByteCount most = std::min(config_.reserve, kMaxRelayed);
  if (*relay_bytes_ > 0 && *relay_bytes_ + size > most) return nullptr;
  *relay_bytes_ += size;
  return {relay_bytes_.get(), [count = relay_bytes_, size](const void*) { *count -= size; }};
}

void DatasetCache::FetchFrom(std::map<wire::MemberId, std::vector<Read>> by_holder,
                             MonotonicTime now) {
  for (auto& [holder, reads] : by_holder) {
    // A Get has one stream; reads of one round nearly always share it.
    while (!reads.empty()) {
      const StreamId stream = reads.front().stream;
      auto others = std::stable_partition(reads.begin(), reads.end(),
                                          [&](const Read& read) { return read.stream == stream; });
      others = std::min(others, reads.begin() + static_cast<std::ptrdiff_t>(
                                                    std::min(reads.size(), wire::kMaxItems)));
      Asked asked{
          .reads = {std::make_move_iterator(reads.begin()), std::make_move_iterator(others)},
          .to = holder,
          .deadline = now + deadlines_.peer};
      reads.erase(reads.begin(), others);
      wire::Get get{.dataset = config_.key, .stream = stream, .mode = GetMode::kPeer};
      for (const Read& read : asked.reads)
        get.items.push_back(read.item);
      const std::uint32_t request_id = effects_.NewRequestId();
      if (effects_.Send(holder, request_id, get, nullptr)) {
        fetches_[request_id] = std::move(asked);
      } else {
        for (const Read& read : asked.reads)
          AnswerMiss(read, 0, false);
      }
    }
  }
}

// What was asked, and gets no answer any more, is read from the store.
void DatasetCache::EndAsked(const std::function<bool(const Asked&)>& is_over,
                            std::uint64_t& counter) {
  for (auto* asked : {&lookups_, &fetches_}) {
    for (auto it = asked->begin(); it != asked->end();) {
      if (!is_over(it->second)) {
        ++it;
        continue;
      }
      ++counter;
      const Asked over = std::move(it->second);
      it = asked->erase(it);
      for (const Read& read : over.reads) {
        if (read.from != 0) AnswerMiss(read, 0, false);
      }
    }
  }
}

bool DatasetCache::AllAnswered(const std::vector<Read>& reads) {
  return std::ranges::all_of(reads, [](const Read& one) { return one.from == 0; });
}

// Readers who asked for it ask again while it goes on coming. Where they do not, others get its
// part of the reserve.
void DatasetCache::SetLateApart(MonotonicTime now) {
  for (auto it = fetches_.begin(); it != fetches_.end();) {
    auto& [request_id, asked] = *it;
    for (std::uint32_t i = 0; i < asked.reads.size() && now >= asked.deadline; ++i) {
      if (asked.reads[i].from == 0 || !asked.reads[i].arriving) continue;
      Read late = std::exchange(asked.reads[i], Read{});
      AnswerOnItsWay(late);
      late_[std::pair(request_id, i)] = {.id = late.item.id,
                                         .from = asked.to,
                                         .key = late.key(),
                                         .relay = std::move(late.relay),
                                         .until = now + deadlines_.peer};
    }
    it = AllAnswered(asked.reads) ? fetches_.erase(it) : std::next(it);
  }
}

void DatasetCache::ForgetLate(MonotonicTime now) {
  std::erase_if(late_, [now](const auto& one) { return now >= one.second.until; });
  std::erase_if(arrived_, [now](const auto& one) { return now >= one.second.until; });
}

// False: it is neither late nor has it come late.
bool DatasetCache::AnswerLate(const Read& read, MonotonicTime now) {
  const SampleId id = read.item.id;
  if (const auto arrived = arrived_.find(id); arrived != arrived_.end()) {
    Read answered = read;
    answered.relay = arrived->second.relay;
    AnswerFromPeer(answered, arrived->second.bytes, arrived->second.crc);
    return true;
  }
  const auto late =
      std::ranges::find_if(late_, [id](const auto& one) { return one.second.id == id; });
  if (late == late_.end()) return false;
  late->second.until = now + deadlines_.peer;
  AnswerOnItsWay(read);
  return true;
}

void DatasetCache::OnLateReply(const Late& late, const wire::SampleReply& reply,
                               cache::SampleRef bytes, MonotonicTime now) {
  if (reply.answer != Answer::kHere || !bytes) return;  // a reader that asks again begins again
  if (KeepFromPeer(late.key, late.id, bytes, reply.crc, now)) return;
  arrived_[late.id] = {.bytes = std::move(bytes),
                       .crc = reply.crc,
                       .relay = late.relay,
                       .until = now + deadlines_.peer};
}

void DatasetCache::OnLinkLost(wire::MemberId member) {
  std::erase_if(late_, [member](const auto& one) { return one.second.from == member; });
  EndAsked([member](const Asked& asked) { return asked.to == member; }, counters_.peer_losses);
}

void DatasetCache::OnPeerGone(wire::MemberId member) {
  OnLinkLost(member);
  counters_.leases_ended += directory_.EndLeasesOf(member);
}

void DatasetCache::VisitAwaited(const std::function<void(wire::MemberId)>& visit) const {
  for (const auto* asked : {&lookups_, &fetches_}) {
    for (const auto& [_, one] : *asked)
      visit(one.to);
  }
  for (const auto& [_, one] : late_)
    visit(one.from);
  directory_.VisitLessees([&](wire::MemberId member) {
    if (member != config_.self) visit(member);
  });
}

void DatasetCache::ServePeer(const Asker& from, std::uint32_t request_id, const wire::Get& get,
                             MonotonicTime now) {
  for (std::uint32_t i = 0; i < get.items.size(); ++i) {
    const wire::ReadItem& item = get.items[i];
    const cache::Entry* entry = tier_.Find(item.id);
    if (entry == nullptr) {
      holdings_.Lost(item.id);  // its home knows better than it did: nobody asks here again
      effects_.Reply(from.client, request_id,
                     wire::SampleReply{.index = i, .answer = Answer::kAbsent}, nullptr);
      continue;
    }
    AnswerPeer({.from = from.client,
                .request_id = request_id,
                .index = i,
                .stream = get.stream,
                .mode = GetMode::kPeer,
                .item = item,
                .deadline = now + deadlines_.peer,
                .member = from.member},
               *entry, now);
  }
}

void DatasetCache::AnswerPeer(const Read& read, const cache::Entry& entry, MonotonicTime now) {
  if (!entry.bytes) return ReadFromDisk(read, entry, now);
  effects_.Reply(read.from, read.request_id,
                 wire::SampleReply{.index = read.index, .answer = Answer::kHere, .crc = entry.crc},
                 entry.bytes);
  CountPredictedOfPeer(read.key(), entry.size);
  retention_manager_.AfterRead(read.key(), read.item.id, {.is_peer = true, .member = read.member},
                               now);
}

// It may be here all the same, but not in time.
void DatasetCache::AnswerAbsent(const Read& read) {
  effects_.Reply(read.from, read.request_id,
                 wire::SampleReply{.index = read.index, .answer = Answer::kAbsent}, nullptr);
}

// A read that has waited.
void DatasetCache::AnswerAgain(Read read, std::map<wire::MemberId, std::vector<Read>>& lookups,
                               MonotonicTime now) {
  if (read.mode != GetMode::kPeer) return Serve(std::move(read), lookups, now);
  const cache::Entry* entry = tier_.Find(read.item.id);
  if (entry == nullptr) return AnswerAbsent(read);
  AnswerPeer(read, *entry, now);
}

// A read by a rank of this node that is being answered.
void DatasetCache::CountRead(const Answered& read) {
  if (config_.retention != Retention::kOptimal || CountCovered(read)) return;
  if (read.key.stream != 0 && uncovered_.size() < kMaxUncovered) uncovered_.push_back(read);
}

void DatasetCache::OnNewPlan(MonotonicTime now) {
  std::erase_if(uncovered_, [this](const Answered& read) { return CountCovered(read); });
  if (uncovered_.size() == kMaxUncovered) uncovered_.clear();  // no plan comes for those
  retention_manager_.OnNewPlan(now);
}

// What the plan has said of it, and what came of it. False: no plan covers it.
bool DatasetCache::CountCovered(const Answered& read) {
  const auto decision = plan_lookup_.Find(read.key);
  if (!decision) return false;
  if (decision->beyond) return true;
  const ByteCount size = read.size;
  switch (read.outcome) {
    case Outcome::kLocal:
      ++counters_.covered_local;
      counters_.covered_bytes_local += size;
      break;
    case Outcome::kPeer:
      ++counters_.covered_peer;
      counters_.covered_bytes_peer += size;
      break;
    case Outcome::kMiss:
      ++counters_.covered_misses;
      counters_.covered_miss_bytes += size;
      break;
  }
  if (decision->holder == 0) {
    ++counters_.predicted_misses;
    counters_.predicted_miss_bytes += size;
  } else if (decision->here) {
    ++counters_.predicted_local;
    counters_.predicted_bytes_local += size;
  } else {
    ++counters_.predicted_peer;
    counters_.predicted_bytes_peer += size;
  }
  // What another node holds is sent on from there.
  if (decision->moves && (decision->here || decision->holder == 0))
    counters_.predicted_moved_bytes += size;
  return true;
}

// Of a read by a rank of another node that is answered here.
void DatasetCache::CountPredictedOfPeer(const ReadKey& key, ByteCount size) {
  if (config_.retention != Retention::kOptimal) return;
  const auto decision = plan_lookup_.Find(key);
  if (decision && decision->moves && decision->holder == config_.self)
    counters_.predicted_moved_bytes += size;
}

std::shared_ptr<cache::SampleBytes> DatasetCache::ReceiveFromPeer(std::uint32_t request_id,
                                                                  std::uint32_t index,
                                                                  ByteCount size) {
  const auto it = fetches_.find(request_id);
  if (it == fetches_.end() || index >= it->second.reads.size()) return nullptr;
  Read& read = it->second.reads[index];
  if (read.from == 0 || size != SizeOf(read.item.id)) return nullptr;
  read.arriving = true;
  return std::make_shared<cache::SampleBytes>(size);
}

void DatasetCache::OnPeerReply(std::uint32_t request_id, const wire::SampleReply& reply,
                               cache::SampleRef bytes, MonotonicTime now) {
  if (const auto late = late_.extract(std::pair(request_id, reply.index)))
    return OnLateReply(late.mapped(), reply, std::move(bytes), now);
  const auto it = fetches_.find(request_id);
  if (it == fetches_.end() || reply.index >= it->second.reads.size()) return;
  Read& read = it->second.reads[reply.index];
  if (read.from == 0) return;  // answered before
  Read answered = std::exchange(read, Read{});
  if (AllAnswered(it->second.reads)) fetches_.erase(it);
  if (reply.answer == Answer::kAbsent) return AnswerLater(std::move(answered), now);
  if (reply.answer != Answer::kHere || !bytes) return AnswerMiss(answered, 0, false);
  AnswerFromPeer(answered, bytes, reply.crc);
  (void)KeepFromPeer(answered.key(), answered.item.id, std::move(bytes), reply.crc, now);
}

void DatasetCache::AnswerFromPeer(const Read& read, const cache::SampleRef& bytes,
                                  std::uint32_t crc) {
  AnsweredFromElsewhere(read);
  ++counters_.hits_peer;
  counters_.hit_bytes_peer += bytes->size();
  passes_.OnPeerHit(read.key());
  CountRead({.key = read.key(), .size = bytes->size(), .outcome = Outcome::kPeer});
  // The share is given back once the bytes are sent on.
  using Relayed = std::pair<cache::SampleRef, RelayShare>;
  const cache::SampleRef relayed(std::make_shared<const Relayed>(bytes, read.relay), bytes.get());
  effects_.Reply(read.from, read.request_id,
                 wire::SampleReply{.index = read.index, .answer = Answer::kPeer, .crc = crc},
                 relayed);
}

// True if it is here from now on, because the plan says so.
bool DatasetCache::KeepFromPeer(const ReadKey& key, SampleId id, cache::SampleRef bytes,
                                std::uint32_t crc, MonotonicTime now) {
  if (!retention_manager_.PlanKeepsHere(key) || tier_.Find(id) != nullptr)
    return tier_.Find(id) != nullptr;
  if (!retention_manager_.MakeRoom({.id = id}, bytes->size())) return false;
  return retention_manager_.Keep(key, {.id = id}, std::move(bytes), crc, now).ok();
}

}  // namespace optcache::node
