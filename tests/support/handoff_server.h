#pragma once

// Stands in for the sidecar in tests of the Python package: a folder's files through a real
// ChannelServer and a real arena.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "dataset/manifest.h"
#include "handoff/arena.h"
#include "handoff/channel.h"

namespace optcache {

struct HandoffServerOptions {
  std::string folder;
  Duration delay{};       // before each answer
  Duration open_delay{};  // from the start; until then there is "no dataset yet"
  bool quiet = false;     // report no events
  // Whose bytes are those of another, as it says.
  std::optional<SampleId> stand_in;
  bool stage = false;  // lay all samples into the arena at the start, for good
};

// Writes one line of JSON an event to standard output. A slot that comes back is overwritten at
// once, so that a view which outlived it shows. Not thread-safe: belongs to one loop.
class HandoffServer final : public handoff::ChannelHandler {
 public:
  static Result<std::unique_ptr<HandoffServer>> Make(HandoffServerOptions options,
                                                     handoff::Arena arena, const Clock& clock);
  ~HandoffServer() override;

  // The channel that this answers through; set once.
  void Serve(handoff::ChannelServer& channel) { channel_ = &channel; }
  // Answers what is due.
  void RunDue();

  const handoff::Arena& arena() const { return arena_; }

  Result<handoff::OpenReply> OnOpen(handoff::ClientId client,
                                    const handoff::OpenRequest& request) override;
  Result<handoff::AttachReply> OnAttach(handoff::ClientId client,
                                        const handoff::AttachRequest& request) override;
  Status OnPass(handoff::ClientId client, const handoff::PassRequest& request) override;
  Status OnTrace(handoff::ClientId client, handoff::TraceRequest request) override;
  void OnGet(handoff::ClientId client, handoff::RequestId request,
             handoff::GetRequest get) override;
  void OnRelease(handoff::ClientId client, const std::vector<handoff::BatchId>& batches) override;
  void OnDetach(handoff::ClientId client, const handoff::DetachRequest& request) override;
  Result<handoff::ReadCounts> OnReadCounts(handoff::ClientId client,
                                           const handoff::ReadCountsRequest& request) override;
  void OnClientClosed(handoff::ClientId client) override;
  std::string WhyWaiting(handoff::ClientId client, handoff::RequestId request) override;

 private:
  using Batch = std::vector<handoff::Slot>;
  struct DueAnswer {
    MonotonicTime at;
    handoff::ClientId client = 0;
    handoff::RequestId request = 0;
    handoff::GetRequest get;
  };

  HandoffServer(HandoffServerOptions options, handoff::Arena arena, dataset::Manifest manifest,
                UniqueFd manifest_file, const Clock& clock);

  Status Stage();
  handoff::ServedSample Read(SampleId id, Batch& batch);
  void Answer(const DueAnswer& due);
  void FreeBatch(const Batch& batch);
  void Report(const std::string& event, const std::string& fields = {}) const;

  HandoffServerOptions options_;
  handoff::Arena arena_;
  dataset::Manifest manifest_;
  UniqueFd manifest_file_;
  const Clock& clock_;
  MonotonicTime started_at_;
  std::vector<handoff::Slot> staged_;  // by sample; empty if not staged
  handoff::ChannelServer* channel_ = nullptr;
  std::map<std::pair<handoff::ClientId, handoff::BatchId>, Batch> batches_;
  handoff::BatchId last_batch_ = 0;
  handoff::ReadCounts::Part delivered_;
  std::deque<DueAnswer> due_;
  bool warned_ = false;
};

}  // namespace optcache
