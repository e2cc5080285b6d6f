#include "operator/reconcile/placement/fair_share.h"

#include <algorithm>
#include <limits>

namespace optcache::reconcile {
namespace {

constexpr double kSlack = 1e-9;  // of a member: what floating point may leave or take

// All claims rise together, as water; one stops when it has what it wants, or when one of its
// members is full.
class Filling {
 public:
  Filling(std::span<const ByteCount> offers, std::span<const Claim> claims)
      : claims_(claims), used_(offers.size(), 0.0), shares_(claims.size(), 0.0) {
    for (const Claim& claim : claims) {
      double offered = 0;
      for (const std::size_t member : claim.members)
        offered += static_cast<double>(offers[member]);
      offered_.push_back(offered);
      rising_.push_back(offered > 0 && claim.wanted > 0);
    }
  }

  std::vector<ByteCount> Run() {
    while (std::ranges::find(rising_, true) != rising_.end()) {
      const double level = NextStop();
      Rise(level);
      Stop();
    }
    std::vector<ByteCount> shares;
    for (std::size_t i = 0; i < claims_.size(); ++i)
      shares.push_back(std::min(claims_[i].wanted, static_cast<ByteCount>(shares_[i])));
    return shares;
  }

 private:
  // A byte of claim i takes 1 / offered_[i] of each of its members.
  std::vector<double> Speeds() const {
    std::vector<double> speeds(used_.size(), 0.0);
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (!rising_[i]) continue;
      for (const std::size_t member : claims_[i].members)
        speeds[member] += 1 / offered_[i];
    }
    return speeds;
  }

  double NextStop() const {
    double rise = std::numeric_limits<double>::max();
    const std::vector<double> speeds = Speeds();
    for (std::size_t member = 0; member < used_.size(); ++member) {
      if (speeds[member] > 0)
        rise = std::min(rise, std::max(0.0, 1 - used_[member]) / speeds[member]);
    }
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (rising_[i]) rise = std::min(rise, static_cast<double>(claims_[i].wanted) - shares_[i]);
    }
    return rise;
  }

  void Rise(double by) {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (!rising_[i]) continue;
      shares_[i] += by;
      for (const std::size_t member : claims_[i].members)
        used_[member] += by / offered_[i];
    }
  }

  void Stop() {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      const bool full = std::ranges::any_of(
          claims_[i].members, [&](std::size_t member) { return used_[member] >= 1 - kSlack; });
      if (full || shares_[i] >= static_cast<double>(claims_[i].wanted) * (1 - kSlack))
        rising_[i] = false;
    }
  }

  std::span<const Claim> claims_;
  std::vector<double> offered_;  // by the members of each claim
  std::vector<double> used_;     // of each member, 0 to 1
  std::vector<double> shares_;
  std::vector<bool> rising_;
};

}  // namespace

std::vector<ByteCount> FairShares(std::span<const ByteCount> offers,
                                  std::span<const Claim> claims) {
  return Filling(offers, claims).Run();
}

}  // namespace optcache::reconcile
