// Accounts for the manifest files on the state volume, and chooses which go when room is needed.
//
// A manifest is in `held_` from Reserve on, with its whole size, so that no reservation takes
// `bytes_` beyond the limit. Settle marks it as written or removes it. A manifest that a desired
// state names is never removed for another, nor is one that is being written. Of the others, those
// that another node or an earlier run brought go first, then the oldest of the namespace that has
// the most bytes. A namespace that brings many can thus drive out its own, and those of a namespace
// that has more.

#include "cache-node/manifests/manifest_store.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "dataset/digest.h"

namespace optcache::node {
namespace {

namespace fs = std::filesystem;

constexpr ByteCount kManifestBytesMax = 4_GiB;  // as much as a sidecar takes

}  // namespace

ManifestStoreLimits LimitsOf(ByteCount state_size) {
  const ByteCount bytes = state_size / 4 * 3;
  return {.bytes = bytes, .manifest_bytes = std::min(bytes / 2, kManifestBytesMax)};
}

Result<ManifestStore> ManifestStore::Open(std::string folder, const Clock& clock,
                                          ManifestStoreLimits limits) {
  ManifestStore store(std::move(folder), clock, limits);
  std::error_code error;
  fs::create_directories(store.folder_, error);
  if (error) return Error(ErrnoStatus(error.value(), "make " + store.folder_));
  for (const auto& entry : fs::directory_iterator(store.folder_, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (!dataset::IsHexDigest(name) || !entry.is_regular_file(ignored)) {
      fs::remove_all(entry.path(), ignored);
      continue;
    }
    const ByteCount bytes = entry.file_size(ignored);
    if (ignored) continue;  // gone meanwhile
    const Held held{.bytes = bytes, .unnamed_since = clock.Now(), .written = true};
    store.held_[name] = held;
    store.bytes_ += held.bytes;
  }
  if (error) return Error(ErrnoStatus(error.value(), "read " + store.folder_));
  return store;
}

bool ManifestStore::Has(const std::string& digest) const {
  const auto found = held_.find(digest);
  return found != held_.end() && found->second.written;
}

ByteCount ManifestStore::BytesOf(const std::string& digest) const {
  const auto found = held_.find(digest);
  return found == held_.end() ? 0 : found->second.bytes;
}

Status ManifestStore::CheckSize(ByteCount bytes) const {
  if (bytes <= limits_.manifest_bytes) return OkStatus();
  return {Code::kResourceExhausted,
          fmt::format("the manifest has {}, a node takes {}: give nodes a larger state volume "
                      "(node.stateSize of the chart), up to {} for one",
                      FormatBytes(bytes), FormatBytes(limits_.manifest_bytes),
                      FormatBytes(kManifestBytesMax))};
}

Status ManifestStore::Reserve(const std::string& digest, ByteCount bytes,
                              const std::string& owner) {
  if (held_.contains(digest)) return {Code::kConflict, "this manifest is being written already"};
  RETURN_IF_ERROR(CheckSize(bytes));
  while (!owner.empty()) {
    const Unnamed mine = CountUnnamed()[owner];
    if (mine.manifests < limits_.unnamed_per_owner && mine.bytes + bytes <= limits_.manifest_bytes)
      break;
    const auto oldest = OldestUnnamed(owner);
    if (oldest == held_.end()) {
      return {Code::kResourceExhausted,
              fmt::format("this node is receiving other manifests of namespace {}", owner)};
    }
    Remove(oldest);
  }
  while (held_.size() >= limits_.manifests || bytes_ + bytes > limits_.bytes) {
    const auto victim = Victim(owner, bytes);
    if (victim == held_.end()) {
      return {Code::kResourceExhausted,
              fmt::format("no room for a manifest of {} beside {} others with {} of {}: give nodes "
                          "a larger state volume (node.stateSize of the chart)",
                          FormatBytes(bytes), held_.size(), FormatBytes(bytes_),
                          FormatBytes(limits_.bytes))};
    }
    Remove(victim);
  }
  held_[digest] = {.bytes = bytes, .unnamed_since = clock_->Now(), .owner = owner};
  bytes_ += bytes;
  return OkStatus();
}

std::map<std::string, ManifestStore::Unnamed> ManifestStore::CountUnnamed() const {
  std::map<std::string, Unnamed> by_owner;
  for (const auto& [_, held] : held_) {
    if (held.named) continue;
    Unnamed& owners = by_owner[held.owner];
    ++owners.manifests;
    owners.bytes += held.bytes;
  }
  return by_owner;
}

// First what another node or an earlier run brought, then of the namespace that has most.
ManifestStore::Table::iterator ManifestStore::Victim(const std::string& owner, ByteCount bytes) {
  const auto nobodys = OldestUnnamed("");
  if (nobodys != held_.end()) return nobodys;
  auto victim = held_.end();
  ByteCount most = owner.empty() ? 0 : CountUnnamed()[owner].bytes + bytes;
  if (!owner.empty()) victim = OldestUnnamed(owner);
  for (const auto& [other, unnamed] : CountUnnamed()) {
    if (other == owner || unnamed.bytes < most) continue;
    const auto oldest = OldestUnnamed(other);
    if (oldest == held_.end()) continue;
    most = unnamed.bytes;
    victim = oldest;
  }
  return victim;
}

// One that is being written stays.
ManifestStore::Table::iterator ManifestStore::OldestUnnamed(const std::string& owner) {
  auto oldest = held_.end();
  for (auto one = held_.begin(); one != held_.end(); ++one) {
    const Held& held = one->second;
    if (held.named || !held.written || held.owner != owner) continue;
    if (oldest == held_.end() || held.unnamed_since < oldest->second.unnamed_since) oldest = one;
  }
  return oldest;
}

void ManifestStore::Settle(const std::string& digest, bool written) {
  const auto found = held_.find(digest);
  if (found == held_.end()) return;
  if (written) {
    found->second.written = true;
  } else {
    Remove(found);
  }
}

void ManifestStore::Drop(const std::string& digest) {
  const auto found = held_.find(digest);
  if (found != held_.end()) Remove(found);
}

std::vector<std::string> ManifestStore::Digests() const {
  std::vector<std::string> digests;
  for (const auto& [digest, held] : held_) {
    if (held.written) digests.push_back(digest);
  }
  return digests;
}

void ManifestStore::KeepNamed(const std::set<std::string>& named) {
  const MonotonicTime now = clock_->Now();
  for (auto one = held_.begin(); one != held_.end();) {
    Held& held = one->second;
    const auto here = one++;
    if (!named.contains(here->first) && held.named) held.unnamed_since = now;
    held.named = named.contains(here->first);
    const bool old = now - held.unnamed_since >= limits_.keep_unnamed;
    if (!held.named && held.written && old) Remove(here);
  }
}

void ManifestStore::Remove(Table::iterator manifest) {
  std::error_code ignored;
  fs::remove(FileOf(manifest->first), ignored);
  bytes_ -= manifest->second.bytes;
  held_.erase(manifest);
}

void ManifestStore::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kGauge, "optcache_manifests_held", {}, static_cast<double>(held_.size()));
  visitor(MetricKind::kGauge, "optcache_manifests_held_bytes", {}, static_cast<double>(bytes_));
}

}  // namespace optcache::node
