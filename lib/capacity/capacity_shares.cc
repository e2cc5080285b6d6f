#include "capacity/capacity_shares.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "capacity/water_filling.h"

namespace optcache::coordination {
namespace {

using Rises = std::vector<WaterFilling::Rise>;

bool IsRead(const CapacityClaim& claim) {
  return !claim.benefit.empty();
}

bool ShareAMember(const CapacityClaim& one, const CapacityClaim& other) {
  auto in_other = other.members.begin();
  return std::ranges::any_of(one.members, [&](std::size_t member) {
    in_other = std::lower_bound(in_other, other.members.end(), member);
    return in_other != other.members.end() && *in_other == member;
  });
}

// The claims by what their next bytes save, those that save most first; what is worth the same
// rises together.
std::vector<Rises> ByMarginalBenefit(std::span<const CapacityClaim> claims) {
  struct Piece {
    double slope = 0;
    WaterFilling::Rise rise;
  };
  std::vector<Piece> pieces;
  for (std::size_t claim = 0; claim < claims.size(); ++claim) {
    for (const MarginalBenefit& benefit : claims[claim].benefit) {
      if (benefit.slope <= 0) break;
      pieces.push_back(
          {.slope = benefit.slope,
           .rise = {.claim = claim, .until = std::min(benefit.until, claims[claim].maximum)}});
    }
  }
  std::ranges::stable_sort(pieces, std::greater<>(), &Piece::slope);
  std::vector<Rises> classes;
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    const double least = piece->slope * (1 - kSameMarginalBenefit);
    std::map<std::size_t, ByteCount> untils;
    for (; piece != pieces.end() && piece->slope >= least; ++piece) {
      ByteCount& until = untils[piece->rise.claim];
      until = std::max(until, piece->rise.until);
    }
    Rises& rises = classes.emplace_back();
    for (const auto& [claim, until] : untils)
      rises.push_back({.claim = claim, .until = until});
  }
  return classes;
}

// Why it has no more: whose bytes on its members go first.
std::string WhyNoMore(std::size_t self, std::span<const CapacityClaim> claims,
                      std::span<const CapacityShare> shares) {
  const CapacityClaim& claim = claims[self];
  const double next = NextSlope(claim.benefit, shares[self].total);
  const CapacityClaim* rival = nullptr;
  double most = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (i == self || shares[i].total == 0 || !ShareAMember(claim, claims[i])) continue;
    const double slope = LastSlope(claims[i].benefit, shares[i].total);
    if (rival != nullptr && (slope < most || (slope == most && rival->dataset < claims[i].dataset)))
      continue;
    rival = &claims[i];
    most = slope;
  }
  if (rival == nullptr) return "its nodes offer no more";
  if (most > next) return "the next byte is worth more to " + rival->dataset;
  if (most >= next * (1 - kSameMarginalBenefit)) return "shared with " + rival->dataset;
  return "the guarantee of " + rival->dataset + " goes first";
}

std::string Explain(std::size_t self, std::span<const CapacityClaim> claims,
                    std::span<const CapacityShare> shares) {
  const CapacityClaim& claim = claims[self];
  const ByteCount total = shares[self].total;
  std::string text = FormatBytes(total) + " of " + FormatBytes(claim.maximum) + ": ";
  if (!IsRead(claim)) {
    text += "no job reads it";
  } else if (!claim.measured) {
    text += "how fast it is read is not known yet";
  } else {
    text += "saves " + FormatBytes(static_cast<ByteCount>(SavedBy(claim.benefit, total))) + "/s";
  }
  if (total < claim.maximum) text += "; " + WhyNoMore(self, claims, shares);
  if (total < claim.guaranteed)
    text += "; its guarantee of " + FormatBytes(claim.guaranteed) + " does not fit";
  return text;
}

}  // namespace

std::vector<CapacityShare> SplitByMarginalBenefit(std::span<const ByteCount> offers,
                                                  std::span<const CapacityClaim> claims) {
  std::vector<std::size_t> order(claims.size());  // what is left of a byte goes by name
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t i) -> const std::string& { return claims[i].dataset; });
  std::vector<CapacityClaim> sorted;
  std::vector<std::vector<std::size_t>> members;
  Rises guarantees;
  Rises maxima;
  for (const std::size_t index : order) {
    const CapacityClaim& claim = sorted.emplace_back(claims[index]);
    members.push_back(claim.members);
    guarantees.push_back(
        {.claim = guarantees.size(), .until = std::min(claim.guaranteed, claim.maximum)});
    maxima.push_back({.claim = maxima.size(), .until = claim.maximum});
  }
  WaterFilling filling(offers, members);
  filling.Raise(guarantees);
  for (const Rises& rises : ByMarginalBenefit(sorted))
    filling.Raise(rises);
  filling.Raise(maxima);
  std::vector<std::vector<ByteCount>> bytes = filling.Shares();
  std::vector<CapacityShare> shares(claims.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ByteCount total = std::accumulate(bytes[i].begin(), bytes[i].end(), ByteCount{0});
    shares[order[i]] = {.bytes = std::move(bytes[i]), .total = total};
  }
  return shares;
}

std::vector<std::string> ExplainShares(std::span<const CapacityClaim> claims,
                                       std::span<const CapacityShare> shares) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < claims.size(); ++i)
    texts.push_back(Explain(i, claims, shares));
  return texts;
}

}  // namespace optcache::coordination
