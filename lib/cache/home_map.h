#pragma once

// Which member is a sample's home: rendezvous hashing (Thaler, Ravishankar 1998), so that a member
// that joins or leaves moves only its own share. Every node computes the same.

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace optcache::cache {

using MemberId = std::uint32_t;

// A value; cheap to copy for a few hundred members.
class HomeMap {
 public:
  HomeMap() = default;
  HomeMap(std::uint64_t dataset, std::vector<MemberId> members);

  bool empty() const { return members_.empty(); }
  const std::vector<MemberId>& members() const { return members_; }
  std::uint64_t dataset() const { return dataset_; }

  // The home of `id`. At least one member must be there.
  MemberId Home(SampleId id) const;

 private:
  std::uint64_t dataset_ = 0;
  std::vector<MemberId> members_;
};

}  // namespace optcache::cache
