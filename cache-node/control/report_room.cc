#include "cache-node/control/report_room.h"

#include <fmt/format.h>

#include "base/check.h"

namespace optcache::node {

bool ReportRoom::HasShareFor(const std::string& name_space, std::size_t bytes) const {
  const auto found = shares_.find(name_space);
  const std::size_t has = found == shares_.end() ? 0 : found->second.bytes;
  return has + bytes <= kMaxListedBytesOfNamespace;
}

Status ReportRoom::Fits(const std::string& name_space, std::size_t bytes) const {
  if (!HasShareFor(name_space, bytes)) {
    return {Code::kResourceExhausted,
            fmt::format("the ranks of namespace {} take their share of this node's reports, {} "
                        "bytes",
                        name_space, kMaxListedBytesOfNamespace)};
  }
  if (bytes_ + bytes <= kMaxListedBytes) return OkStatus();
  return {Code::kResourceExhausted,
          fmt::format("the ranks that read through this node take all room in its reports, {} "
                      "bytes",
                      kMaxListedBytes)};
}

void ReportRoom::Take(const std::string& name_space, std::size_t bytes) {
  shares_[name_space].bytes += bytes;
  bytes_ += bytes;
}

void ReportRoom::Free(const std::string& name_space, std::size_t bytes) {
  const auto found = shares_.find(name_space);
  CHECK(found != shares_.end() && found->second.bytes >= bytes);
  found->second.bytes -= bytes;
  bytes_ -= bytes;
  if (found->second.bytes == 0) shares_.erase(found);
}

void ReportRoom::OnEnded(const std::string& name_space, const EndedRank& rank) {
  shares_[name_space].ended.insert(rank);
}

void ReportRoom::OnGone(const std::string& name_space, const EndedRank& rank) {
  shares_[name_space].ended.erase(rank);
}

std::optional<ReportRoom::EndedRank> ReportRoom::FirstEnded() const {
  std::optional<EndedRank> first;
  for (const auto& [_, share] : shares_) {
    if (share.ended.empty()) continue;
    if (!first || *share.ended.begin() < *first) first = *share.ended.begin();
  }
  return first;
}

std::optional<ReportRoom::EndedRank> ReportRoom::FirstEndedOf(const std::string& name_space) const {
  const auto found = shares_.find(name_space);
  if (found == shares_.end() || found->second.ended.empty()) return std::nullopt;
  return *found->second.ended.begin();
}

std::optional<ReportRoom::EndedRank> ReportRoom::GivesWay(const std::string& name_space,
                                                          std::size_t bytes) const {
  const auto own = FirstEndedOf(name_space);
  return own || !HasShareFor(name_space, bytes) ? own : FirstEnded();
}

}  // namespace optcache::node
