// Opens the disk of a node, and gives each dataset its tier there.
//
// The idea: one folder, one budget, one pool of threads, and a DiskTier for each dataset. Open
// takes the folder's lock first, because a start removes segments that look torn, and those of a
// node that still runs look so. What it finds is adopted: samples on the disk outlive the process.
// A segment that cannot be read stays and counts, and the next start tries it again; its dataset
// may go and come back meanwhile, so numbers of segments are the disk's and not a tier's. A dataset
// that is gone leaves in two steps: KeepOnly erases its samples, and Tick waits until nothing of it
// is written any more. Threads post what they finished to the loop; guard_ ends that when the
// object is gone.

#include "cache-node/retention/node_disk.h"

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "cache/tiering.h"

namespace optcache::node {
namespace {

constexpr const char* kFolder = "/optcache";
constexpr const char* kLockFile = "/lock";

// Before anything is looked at: a start removes what looks torn, and may be half written by
// another.
Result<UniqueFd> LockFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error(ErrnoStatus(error.value(), "make " + folder));
  Result<UniqueFd> lock = LockFile(folder + kLockFile);
  if (!lock && lock.error().code() == Code::kConflict) {
    return Error(Code::kConflict, "the disk's folder " + folder +
                                      " is another node's, which still runs: end that one, or "
                                      "give each node a folder of its own with --disk");
  }
  return lock;
}

}  // namespace

NodeDisk::NodeDisk(net::EventLoop& loop, const Clock& clock, const std::string& folder,
                   ByteCount capacity, UniqueFd lock)
    : lock_(std::move(lock)),
      clock_(clock),
      folder_(folder),
      state_(capacity),
      threads_(clock, {}) {
  // The threads call it, so it asks the guard nothing: it has its token.
  const auto post = [&loop, life = guard_.token()](std::function<void()> call) {
    loop.Post([life, call = std::move(call)] {
      if (!life.expired()) call();
    });
  };
  files_ = std::make_unique<cache::SegmentFiles>(folder, threads_, clock, post);
}

Result<std::unique_ptr<NodeDisk>> NodeDisk::Open(net::EventLoop& loop, const Clock& clock,
                                                 const std::string& path, ByteCount capacity) {
  const std::string folder = path + kFolder;
  ASSIGN_OR_RETURN(UniqueFd lock, LockFolder(folder));
  ASSIGN_OR_RETURN(std::vector<cache::FoundSegment> found, cache::FindSegments(folder));
  std::unique_ptr<NodeDisk> disk(new NodeDisk(loop, clock, folder, capacity, std::move(lock)));
  const std::size_t segments = found.size();
  std::vector<Status> unread;
  for (cache::FoundSegment& segment : found) {
    if (!segment.status.ok()) unread.push_back(segment.status);
    disk->TierOf(segment.name.dataset)->Adopt(std::move(segment));
  }
  std::size_t samples = 0;
  for (const auto& [_, tier] : disk->tiers_)
    samples += tier->samples();
  Log(LogLevel::kInfo, "disk opened",
      {{"folder", folder},
       {"capacity", FormatBytes(capacity)},
       {"segments", segments - unread.size()},
       {"samples", samples}});
  if (!unread.empty()) {
    Log(LogLevel::kWarning,
        "segments cannot be read: they stay on the disk and take their room of its capacity, and "
        "the next start of this node tries them again",
        {{"folder", folder}, {"segments", unread.size()}, {"error", unread.front().ToString()}});
  }
  return disk;
}

std::shared_ptr<cache::DiskTier> NodeDisk::TierOf(std::uint64_t dataset) {
  auto& tier = tiers_[dataset];
  if (!tier) tier = std::make_shared<cache::DiskTier>(dataset, *files_, state_);
  return tier;
}

void NodeDisk::KeepOnly(const std::set<std::uint64_t>& datasets) {
  for (auto it = tiers_.begin(); it != tiers_.end();) {
    if (datasets.contains(it->first)) {
      ++it;
      continue;
    }
    it->second->EraseAll();
    leaving_.push_back(std::move(it->second));
    it = tiers_.erase(it);
  }
}

void NodeDisk::Tick() {
  for (const auto& [_, tier] : tiers_)
    tier->Tick();
  for (const auto& tier : leaving_)
    tier->EraseAll();  // what was still being written
  std::erase_if(leaving_, [](const auto& tier) { return tier->idle() && tier->samples() == 0; });
  SayWhatIsWrong();
}

void NodeDisk::SayWhatIsWrong() {
  const bool full = state_.rests(clock_.Now());
  if (full && !std::exchange(said_full_, true)) {
    Log(LogLevel::kWarning,
        "the disk is full before its capacity is used: writing rests for a minute; make room "
        "there, or give the node less with --disk-capacity",
        {{"folder", folder_},
         {"used", FormatBytes(state_.used())},
         {"capacity", FormatBytes(state_.capacity())}});
  }
  said_full_ = full;
  if (state_.failed() && !std::exchange(said_failed_, true)) {
    Log(LogLevel::kError, "the disk failed: nothing more is written to it until this node restarts",
        {{"read_errors", state_.counters().read_errors},
         {"write_errors", state_.counters().write_errors},
         {"bad_samples", state_.counters().bad_samples}});
  }
}

ByteCount NodeDisk::offered() const {
  return state_.failed() ? 0 : cache::DiskPayload(state_.usable());
}

void NodeDisk::VisitCounters(const CounterVisitor& visit) const {
  const cache::DiskCounters& c = state_.counters();
  const auto count = [&](const char* name, std::uint64_t value) {
    visit(MetricKind::kCounter, name, {}, static_cast<double>(value));
  };
  const auto error = [&](const char* kind, std::uint64_t value) {
    visit(MetricKind::kCounter, "optcache_disk_errors_total", {{"kind", kind}},
          static_cast<double>(value));
  };
  visit(MetricKind::kGauge, "optcache_disk_used_bytes", {}, static_cast<double>(state_.used()));
  visit(MetricKind::kGauge, "optcache_disk_capacity_bytes", {},
        static_cast<double>(state_.capacity()));
  visit(MetricKind::kGauge, "optcache_disk_out_of_use", {}, state_.failed() ? 1.0 : 0.0);
  count("optcache_disk_segments_total", c.segments);
  count("optcache_disk_written_bytes_total", c.file_bytes);
  count("optcache_disk_written_sample_bytes_total", c.payload_bytes);
  count("optcache_disk_reads_total", c.reads);
  count("optcache_disk_read_bytes_total", c.read_bytes);
  error("write", c.write_errors);
  error("read", c.read_errors);
  error("checksum", c.bad_samples);
  error("full", c.full);
}

}  // namespace optcache::node
