#include <cstddef>
#include <utility>

#include "base/random.h"
#include "simulation/cluster.h"

namespace optcache::simulation {
namespace {

class HomedCluster final : public Cluster {
 public:
  HomedCluster(const ClusterInput& input, NeedsFuture needs_future, const MakePolicy& make_policy)
      : homes_(input.run.nodes), home_of_(input.run.sample_count), name_(input.run.sample_count) {
    NameSamples(input);
    if (needs_future == NeedsFuture::kYes) LookAhead(input.run);
    for (Home& home : homes_)
      policies_.push_back(make_policy(home));
  }

  Result<Outcome> Read(const simulation::Read& read) override {
    const NodeIndex home = home_of_[read.sample];
    const SampleId name = name_[read.sample];
    const bool elsewhere = home != read.reader;
    if (policies_[home]->Read(name)) {
      return Outcome{.from = elsewhere ? Outcome::From::kPeer : Outcome::From::kOwnNode};
    }
    return Outcome{.moved = elsewhere && policies_[home]->Holds(name)};
  }

 private:
  void NameSamples(const ClusterInput& input) {
    std::vector<std::vector<std::uint32_t>> sizes(homes_.size());
    for (SampleId sample = 0; sample < home_of_.size(); ++sample) {
      const auto home = static_cast<NodeIndex>(Random::Mix(sample + 1ULL) % homes_.size());
      home_of_[sample] = home;
      name_[sample] = static_cast<SampleId>(sizes[home].size());
      sizes[home].push_back(input.sizes[sample]);
    }
    for (std::size_t home = 0; home < homes_.size(); ++home) {
      homes_[home].room = {.sizes = plan::Sizes(std::move(sizes[home])),
                           .capacity = input.capacities[home]};
      homes_[home].seed = home;
    }
  }

  void LookAhead(const Reads& run) {
    std::vector<std::vector<SampleId>> reads(homes_.size());
    for (const simulation::Read& read : run.reads)
      reads[home_of_[read.sample]].push_back(name_[read.sample]);
    for (std::size_t home = 0; home < homes_.size(); ++home) {
      homes_[home].future = plan::FutureOf(std::move(reads[home]), homes_[home].room.sizes.count());
    }
  }

  std::vector<Home> homes_;
  std::vector<NodeIndex> home_of_;  // by sample
  std::vector<SampleId> name_;      // by sample: its number at its home
  std::vector<std::unique_ptr<plan::Policy>> policies_;
};

}  // namespace

std::unique_ptr<Cluster> MakeHomedCluster(const ClusterInput& input, NeedsFuture needs_future,
                                          const MakePolicy& make_policy) {
  return std::make_unique<HomedCluster>(input, needs_future, make_policy);
}

}  // namespace optcache::simulation
