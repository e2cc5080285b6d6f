// Serves parts of objects by reads of whole samples, which later parts join.
//
//   Read ─► joins the open read of that sample ─► Serve     now, or when the sample is there
//        ─► Ask ─► BatchService ─► Reply ─► Serve ─► LingerOn  it holds the sample for later parts
//                                              ─► End       all bytes were asked for
//
// The idea: a reader of shards asks for ranges with minutes between them, and each must not be a
// read of the whole shard at the store. So a read holds its sample until all its bytes were asked
// for. Memory that is held only for what may come is lent: CloseOne gives it back as soon as
// another read needs room, the least recently asked first, and first one that nobody else holds.
// `reads_` owns all reads; `open_` has those that parts may join, one a sample.

#include "sidecar/s3/object_reads.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace optcache::sidecar {
namespace {

constexpr Duration kAskAgain = std::chrono::milliseconds(10);

}  // namespace

void ObjectReads::Open(Feeder& feeder, KeyOrder& order) {
  feeder_ = &feeder;
  order_ = &order;
  // What is staged is needed later than the object that is being read.
  feeder.memory().SetGiveWay(
      [this](RoomFor what) { return CloseOne(what == RoomFor::kAsked ? 0 : 1); });
}

void ObjectReads::Close() {
  if (feeder_ != nullptr) feeder_->memory().SetGiveWay(nullptr);
  for (const auto& [client, read] : reads_)
    alarms_.Cancel(read.linger);
  open_.clear();
  lingering_ = 0;
  lingering_bytes_ = 0;
  reads_.clear();
}

void ObjectReads::Read(const DatasetPort& dataset, SampleId id, const ByteRange& part, Done done) {
  const Sample sample{.dataset = &dataset, .id = id};
  const ByteCount size = dataset.SizeOf(id);
  const bool whole = part.length == size;
  if (const auto found = open_.find(sample); !whole && found != open_.end()) {
    const ClientId client = found->second;
    OneRead& read = reads_.at(client);
    if (MayJoin(read, part)) {
      read.asked.Add(part);
      read.last_asked = ++parts_;
      read.waiting.push_back(std::move(done));
      ++joined_;
      if (read.buffer != nullptr) Serve(client);
      return;
    }
    End(client);
  }
  if (reads_.size() >= kReadsMax) {
    return done(Error(Code::kResourceExhausted,
                      fmt::format("{} reads wait already; ask again in a moment", reads_.size())));
  }
  const ClientId client = ++last_;
  OneRead& read = reads_[client];
  read.sample = sample;
  read.begun_at = alarms_.Now();
  read.first = part.first;
  read.asked.Add(part);
  read.last_asked = ++parts_;
  read.open = !whole;
  read.waiting.push_back(std::move(done));
  if (!whole) open_.emplace(sample, client);
  Ask(client);
}

// Until the sample has come, the read may not have taken its own place yet.
bool ObjectReads::MayJoin(const OneRead& read, const ByteRange& part) const {
  return read.buffer == nullptr || !order_->ReadsAgain(*read.sample.dataset, read.sample.id,
                                                       read.tag, part.first == read.first);
}

void ObjectReads::Ask(ClientId client) {
  const auto found = reads_.find(client);
  if (found == reads_.end()) return;
  const Sample sample = found->second.sample;
  const KeyTag tag = order_->Take(*sample.dataset, sample.id);
  const bool may_wait = alarms_.Now() - found->second.begun_at < kOrderMax;
  if (tag.reader == 0 && may_wait && order_->Awaits(*sample.dataset)) {
    alarms_.After(kAskAgain, [this, client] { Ask(client); });
    return;
  }
  found->second.tag = tag;
  feeder_->batches().Ask(client, {.request = client,
                                  .dataset = sample.dataset,
                                  .ids = {sample.id},
                                  .reader = tag.reader,
                                  .pass = tag.pass,
                                  .first = std::nullopt,
                                  .by_process = false});
}

void ObjectReads::Reply(ClientId client, std::uint64_t /*request*/, BatchId batch,
                        const std::vector<Served>& samples) {
  // The buffer keeps its room by itself. Later: the core is in the middle of its answers.
  if (batch != 0) {
    alarms_.At(alarms_.Now(), [this, client, batch] { feeder_->batches().Release(client, batch); });
  }
  const auto found = reads_.find(client);
  if (found == reads_.end()) return;
  const Served& served = samples.front();
  if (!served.status.ok()) return Fail(client, served.status);
  found->second.buffer = served.buffer;
  Serve(client);
}

void ObjectReads::Refuse(ClientId client, std::uint64_t /*request*/, const Status& why) {
  Fail(client, why);
}

void ObjectReads::Serve(ClientId client) {
  OneRead& read = reads_.at(client);
  const BufferRef buffer = read.buffer;
  const std::vector<Done> waiting = std::exchange(read.waiting, {});
  if (read.open && read.asked.count() < read.sample.dataset->SizeOf(read.sample.id)) {
    LingerOn(client, read);
    while (HoldsTooMuch())
      CloseOne(1);
  } else {
    End(client);
  }
  for (const Done& done : waiting)
    done(buffer);
}

void ObjectReads::LingerOn(ClientId client, OneRead& read) {
  if (read.linger == 0) {
    ++lingering_;
    lingering_bytes_ += read.buffer->bytes().size();
  }
  alarms_.Cancel(read.linger);
  read.linger = alarms_.After(kLinger, [this, client] { End(client); });
}

bool ObjectReads::HoldsTooMuch() const {
  const SampleMemory& memory = feeder_->memory();
  const ByteCount share = (memory.arena_capacity() + memory.overflow_capacity()) / kOpenShare;
  return lingering_ > kOpenMax || (lingering_ > 1 && lingering_bytes_ > share);
}

// Ends one of those that hold a sample only for what may come, if there are more than `keep`: the
// one whose last part was asked for before all others', and first one whose room is free at once.
// Unless `keep` is 0, the one whose part was asked for last is not among them.
bool ObjectReads::CloseOne(std::size_t keep) {
  if (lingering_ <= keep) return false;
  std::uint64_t newest = 0;
  for (const auto& [_, read] : reads_) {
    if (keep > 0 && read.linger != 0) newest = std::max(newest, read.last_asked);
  }
  const auto rank = [newest](const auto& entry) {
    const OneRead& read = entry.second;
    return std::tuple(read.linger == 0, read.last_asked == newest, read.buffer.use_count() > 1,
                      read.last_asked);
  };
  End(std::ranges::min_element(reads_, {}, rank)->first);
  return true;
}

void ObjectReads::End(ClientId client) {
  const auto found = reads_.find(client);
  if (found == reads_.end()) return;
  if (found->second.linger != 0) {
    --lingering_;
    lingering_bytes_ -= found->second.buffer->bytes().size();
  }
  alarms_.Cancel(found->second.linger);
  if (found->second.open) open_.erase(found->second.sample);
  reads_.erase(found);
}

void ObjectReads::Fail(ClientId client, const Status& why) {
  const auto found = reads_.find(client);
  if (found == reads_.end()) return;
  const std::vector<Done> waiting = std::move(found->second.waiting);
  End(client);
  for (const Done& done : waiting)
    done(Error(why));
}

}  // namespace optcache::sidecar
