// Keeps the Datasets that are wanted and the manifests that jobs still read, and says where they
// go.
//
// The idea: an entry is a Dataset with one manifest. The manifest of the spec is the present one,
// and others retire: they end some time after their last stream, or when there are too many. Room
// is divided in two steps. SplitCapacities divides what members offer among Datasets, whenever
// offers or wishes have changed. ShareGrants divides a Dataset's part among its manifests at each
// tick, by the ranks that read them.
//
// Invariants: a Dataset that is wanted has one present manifest and at most kMaxRetiringOfDataset
// others. A member that leaves, or on which a Dataset is not placed any more, keeps a share of
// nothing while it holds samples, so that the next plan says where these go (WithDeparting).

#include <algorithm>
#include <utility>

#include "capacity/capacity_split.h"
#include "coordinator/coordinator.h"
#include "dataset/digest.h"

namespace optcache::coordination {
namespace {

// As is wanted of the Dataset now, but with what is of the manifest.
DatasetSpec WithManifestOf(const DatasetSpec& manifest, DatasetSpec wanted) {
  wanted.manifest_digest = manifest.manifest_digest;
  wanted.key = manifest.key;
  wanted.samples = manifest.samples;
  wanted.bytes = manifest.bytes;
  return wanted;
}

}  // namespace

void Coordinator::SetDatasets(std::vector<DatasetSpec> specs, MonotonicTime now) {
  Datasets before = std::exchange(datasets_, {});
  for (DatasetSpec& spec : specs) {
    const DatasetId present{.name = spec.name, .manifest_digest = spec.manifest_digest};
    for (auto old = before.lower_bound({.name = spec.name, .manifest_digest = {}});
         old != before.end() && old->first.name == spec.name; ++old) {
      DatasetEntry& entry = datasets_[old->first] = std::move(old->second);
      entry.spec = WithManifestOf(entry.spec, spec);
      if (!entry.retiring_since) entry.retiring_since = now;
    }
    datasets_[present].spec = std::move(spec);
    datasets_[present].retiring_since.reset();
    EndSurplus(present.name);
  }
  placement_is_due_ = true;
}

// The present one, then those that retire, the oldest first; none: the Dataset is not wanted.
std::vector<Coordinator::DatasetEntry*> Coordinator::ManifestsOf(std::string_view dataset) {
  std::vector<DatasetEntry*> manifests;
  for (auto at = datasets_.lower_bound({.name = std::string(dataset), .manifest_digest = {}});
       at != datasets_.end() && at->first.name == dataset; ++at) {
    manifests.push_back(&at->second);
  }
  std::ranges::stable_sort(manifests, {}, &DatasetEntry::retiring_since);
  return manifests;
}

bool Coordinator::Names(std::string_view manifest_digest) const {
  return std::ranges::any_of(datasets_, [manifest_digest](const auto& item) {
    return item.first.manifest_digest == manifest_digest;
  });
}

Coordinator::DatasetEntry* Coordinator::Present(std::string_view dataset) {
  const std::vector<DatasetEntry*> manifests = ManifestsOf(dataset);
  return manifests.empty() ? nullptr : manifests.front();
}

// Of a manifest that this coordinator has not seen, since it has taken another's place: a node
// serves it, and a stream reads it there. nullptr: nobody vouches for it, or there is no room.
Coordinator::DatasetEntry* Coordinator::Adopt(const Report& from, const StreamReport& stream,
                                              MonotonicTime now) {
  const std::vector<DatasetEntry*> manifests = ManifestsOf(stream.dataset);
  if (manifests.empty() || manifests.size() > kMaxRetiringOfDataset) return nullptr;
  for (const auto* list : {&from.datasets, &from.retiring}) {
    for (const DatasetReport& served : *list) {
      const bool is_read =
          served.name == stream.dataset && !served.manifest_digest.empty() &&
          dataset::KeyOf(served.name, served.manifest_digest) == stream.dataset_key;
      if (!is_read) continue;
      DatasetEntry& entry =
          datasets_[{.name = served.name, .manifest_digest = served.manifest_digest}];
      entry.spec = WithManifestOf({.name = served.name,
                                   .manifest_digest = served.manifest_digest,
                                   .key = stream.dataset_key,
                                   .samples = served.total_samples,
                                   .bytes = served.total_bytes},
                                  manifests.front()->spec);
      entry.retiring_since = now;
      placement_is_due_ = true;
      return &entry;
    }
  }
  return nullptr;
}

// Beyond the limit one that nobody reads goes, else the oldest, whose jobs read the store from then
// on.
void Coordinator::EndSurplus(const std::string& dataset) {
  std::vector<DatasetEntry*> manifests = ManifestsOf(dataset);
  while (manifests.size() > 1 + kMaxRetiringOfDataset) {
    const auto oldest = manifests.begin() + 1;
    const auto unread = std::find_if(oldest, manifests.end(), [](const DatasetEntry* manifest) {
      return manifest->registry.empty();
    });
    const auto goes = unread == manifests.end() ? oldest : unread;
    for (const auto& [id, stream] : (*goes)->registry.streams())
      manifests.front()->registry.Refuse(stream.name());
    datasets_.erase({.name = dataset, .manifest_digest = (*goes)->spec.manifest_digest});
    manifests.erase(goes);
  }
}

// A job that was started again reads the present manifest: its stream of before has ended. A while
// after its Dataset has got another a sidecar may have the manifest that has not announced its
// stream yet, which costs no payload bytes.
void Coordinator::EndRetiring(MonotonicTime now) {
  for (auto& [id, dataset] : datasets_) {
    if (dataset.retiring_since) dataset.registry.EndIdle(Present(id.name)->registry.streams());
  }
  std::erase_if(datasets_, [&](const auto& item) {
    const DatasetEntry& dataset = item.second;
    return dataset.retiring_since && dataset.registry.empty() &&
           now - *dataset.retiring_since > options_.stream_silence;
  });
}

void Coordinator::PlaceDatasets(MonotonicTime now) {
  if (!placement_is_due_) return;
  placement_is_due_ = false;
  SplitCapacities();
  for (auto& [id, dataset] : datasets_)
    PlaceManifest(dataset, now);
}

void Coordinator::SplitCapacities() {
  std::vector<Member> members;
  members.reserve(members_.entries().size());
  for (const auto& [id, entry] : members_.entries())
    members.push_back(entry.member);
  std::vector<CapacityWish> wishes;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.retiring_since) continue;
    wishes.push_back(WishOf(dataset.spec));
  }
  const auto shares = SplitCapacity(members, wishes);
  auto share = shares.begin();
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.retiring_since) continue;
    for (DatasetEntry* const manifest : ManifestsOf(id.name))
      manifest->granted = WithDeparting(*share, manifest->granted, id.name);
    ++share;
  }
}

// Whether a member that departs serves the Dataset; of one that stays a member, with samples.
bool Coordinator::StaysListed(const Member& member, std::string_view dataset) const {
  return std::ranges::any_of(datasets_, [&](const auto& item) {
    if (item.first.name != dataset) return false;
    const PassHistory::Reports& reports = item.second.passes.reports();
    const auto said = reports.find(member.id);
    return said != reports.end() && (member.leaving || said->second.samples > 0);
  });
}

// Members that leave, and those on which it is placed no more, have a share of nothing, but what
// they hold is in the next plan's base: it says where that goes. The latter only until they have
// given it away.
std::vector<MemberCapacity> Coordinator::WithDeparting(std::vector<MemberCapacity> shares,
                                                       const std::vector<MemberCapacity>& before,
                                                       const std::string& dataset) const {
  for (const auto& [id, entry] : members_.entries()) {
    const auto place = std::ranges::lower_bound(shares, id, {}, &MemberCapacity::member);
    if (place != shares.end() && place->member == id) continue;
    const bool leaves = entry.member.leaving;
    const bool had_share = std::ranges::binary_search(before, id, {}, &MemberCapacity::member);
    if (!leaves && !had_share) continue;
    if (StaysListed(entry.member, dataset))
      shares.insert(place, {.member = id, .departs = !leaves});
  }
  return shares;
}

// By the ranks of the streams that are read. What a stream that begins is due it gets when those of
// the other manifests have been planned with less.
void Coordinator::ShareGrants() {
  for (const auto& [id, present] : datasets_) {
    if (present.retiring_since) continue;
    const std::vector<DatasetEntry*> manifests = ManifestsOf(id.name);
    if (manifests.size() == 1) {
      manifests.front()->capacities = present.granted;
      continue;
    }
    std::vector<ManifestClaim> claims;
    for (const DatasetEntry* const manifest : manifests) {
      ManifestClaim& claim = claims.emplace_back();
      claim.in_force = manifest->planned_capacities;
      for (const auto& [stream_id, stream] : manifest->registry.streams())
        claim.ranks += stream.world();
    }
    auto shares = ShareGrant(present.granted, claims);
    for (std::size_t i = 0; i < manifests.size(); ++i)
      manifests[i]->capacities = std::move(shares[i]);
  }
}

CapacityWish Coordinator::WishOf(const DatasetSpec& spec) const {
  CapacityWish wish{
      .bytes = spec.capacity, .members = {}, .shares = {}, .with_disk = spec.with_disk};
  if (!spec.placed) return wish;
  wish.members.emplace();
  for (const auto& [id, entry] : members_.entries()) {
    const auto place = std::ranges::lower_bound(*spec.placed, entry.member.name);
    if (place == spec.placed->end() || *place != entry.member.name) continue;
    wish.members->push_back(id);
    const auto index = static_cast<std::size_t>(place - spec.placed->begin());
    if (index < spec.shares.size()) wish.shares.push_back(spec.shares[index]);
  }
  return wish;
}

void Coordinator::PlaceManifest(DatasetEntry& dataset, MonotonicTime now) const {
  std::vector<ManifestCandidate> candidates;
  for (const auto& [id, entry] : members_.entries()) {
    if (entry.member.manifest_url.empty() || entry.member.leaving) continue;
    candidates.push_back(
        {.member = id,
         .placed = std::ranges::binary_search(dataset.granted, id, {}, &MemberCapacity::member),
         .holds = std::ranges::binary_search(entry.manifests, dataset.spec.manifest_digest)});
  }
  dataset.placement.Place(candidates, now);
}

}  // namespace optcache::coordination
