#pragma once

// Parts of objects out of the core's samples: a request for a part reads the whole sample, and
// several who ask for parts of one sample within a short time read it once.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sidecar/clients/feeder.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "sidecar/s3/byte_range.h"
#include "sidecar/s3/byte_set.h"
#include "sidecar/s3/key_order.h"

namespace optcache::sidecar {

// Clients that are no connections of training processes have ids from here on.
inline constexpr ClientId kObjectClients = ClientId{1} << 63U;

// A request for the whole of an object is a read of its own. One for a part joins the read that is
// open for the sample, if there is one. A read stays open until all bytes of the sample have been
// asked for, a rank reads the sample again in its order, no part was asked for during kLinger, or
// its memory is needed: what is held only for what may come gives way to every request. Not
// thread-safe: belongs to the event loop's thread.
class ObjectReads final : public ClientPort {
 public:
  static constexpr std::size_t kReadsMax = 1024;  // that have not ended
  // That hold a sample only for what may come. Their samples are in a quarter of the memory for
  // samples at most; one is held always.
  static constexpr std::size_t kOpenMax = 64;
  static constexpr ByteCount kOpenShare = 4;
  // Training may go on for minutes between two parts: row groups of one file, for example.
  static constexpr Duration kLinger = std::chrono::minutes(15);
  // An order that is being made is waited for this long.
  static constexpr Duration kOrderMax = std::chrono::seconds(2);

  // The whole sample; its memory is free when the last reference is gone. Or why there is none.
  using Done = std::function<void(Result<BufferRef>)>;

  explicit ObjectReads(Alarms& alarms) : alarms_(alarms) {}
  // Before the first Read. Both outlive it.
  void Open(Feeder& feeder, KeyOrder& order);
  // Calls back no more.
  void Close();

  // `done` is called once, now or later. kResourceExhausted: too many wait already.
  void Read(const DatasetPort& dataset, SampleId id, const ByteRange& part, Done done);

  std::size_t reads() const { return reads_.size(); }
  std::uint64_t joined() const { return joined_; }

  // From the core.
  void Reply(ClientId client, std::uint64_t request, BatchId batch,
             const std::vector<Served>& samples) override;
  void Refuse(ClientId client, std::uint64_t request, const Status& why) override;

 private:
  struct Sample {
    const DatasetPort* dataset = nullptr;
    SampleId id = 0;
    auto operator<=>(const Sample&) const = default;
  };
  struct OneRead {
    Sample sample;
    MonotonicTime begun_at{};
    KeyTag tag;                    // once the core is asked
    ByteCount first = 0;           // where its first part begins
    ByteSet asked;                 // in all parts
    std::uint64_t last_asked = 0;  // rises with every part of any read
    bool open = false;             // for further parts
    BufferRef buffer;              // once it has come
    std::vector<Done> waiting;
    Alarms::Id linger = 0;  // 0: it does not hold the sample for what may come
  };

  bool MayJoin(const OneRead& read, const ByteRange& part) const;
  void Ask(ClientId client);
  void Serve(ClientId client);
  void LingerOn(ClientId client, OneRead& read);
  bool HoldsTooMuch() const;
  bool CloseOne(std::size_t keep);
  void End(ClientId client);
  void Fail(ClientId client, const Status& why);

  Alarms& alarms_;
  Feeder* feeder_ = nullptr;
  KeyOrder* order_ = nullptr;
  ClientId last_ = kObjectClients;
  std::uint64_t parts_ = 0;            // asked for so far
  std::map<ClientId, OneRead> reads_;  // in the order in which they began
  std::map<Sample, ClientId> open_;
  std::size_t lingering_ = 0;
  ByteCount lingering_bytes_ = 0;
  std::uint64_t joined_ = 0;
};

}  // namespace optcache::sidecar
