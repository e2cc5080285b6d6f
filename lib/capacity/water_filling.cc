#include "capacity/water_filling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace optcache::coordination {
namespace {

constexpr double kSlack = 1e-9;  // of an offer or a wish: what floating point may leave or take

ByteCount WholeBytes(double bytes) {
  constexpr double kMost = 0x1p63;
  return static_cast<ByteCount>(std::min(bytes, kMost));
}

}  // namespace

WaterFilling::WaterFilling(std::span<const ByteCount> offers,
                           std::span<const std::vector<std::size_t>> members)
    : offers_(offers),
      members_(members),
      room_(offers.begin(), offers.end()),
      total_(members.size(), 0.0),
      due_(members.size(), 0) {
  taken_.reserve(members.size());
  for (const std::vector<std::size_t>& own : members)
    taken_.emplace_back(own.size(), 0.0);
}

bool WaterFilling::IsFull(std::size_t member) const {
  return room_[member] <= kSlack * static_cast<double>(offers_[member]);
}

void WaterFilling::Open(Rising& one) const {
  one.open = 0;
  for (const std::size_t member : members_[one.claim]) {
    if (!IsFull(member)) one.open += static_cast<double>(offers_[member]);
  }
}

// Up to the next event: one has what it wants, a member is full, or those that have least have as
// much as the next one.
WaterFilling::Step WaterFilling::NextStep(const std::vector<Rising>& all) const {
  const double level = total_[all.front().claim];
  Step step{.bytes = std::numeric_limits<double>::max()};
  std::vector<double> speeds(offers_.size(), 0.0);
  for (const Rising& one : all) {
    const double above = total_[one.claim] - level;
    if (above > kSlack * level) {
      step.bytes = std::min(step.bytes, above);
      break;
    }
    ++step.rising;
    step.bytes = std::min(step.bytes, one.until - total_[one.claim]);
    for (const std::size_t member : members_[one.claim]) {
      if (!IsFull(member)) speeds[member] += static_cast<double>(offers_[member]) / one.open;
    }
  }
  for (std::size_t member = 0; member < speeds.size(); ++member) {
    if (speeds[member] > 0) step.bytes = std::min(step.bytes, room_[member] / speeds[member]);
  }
  return step;
}

void WaterFilling::Take(const Rising& one, double bytes) {
  const std::vector<std::size_t>& own = members_[one.claim];
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (IsFull(own[i])) continue;
    taken_[one.claim][i] += bytes * static_cast<double>(offers_[own[i]]) / one.open;
  }
  total_[one.claim] += bytes;
}

void WaterFilling::Raise(std::span<const Rise> rises) {
  std::vector<Rising> all;
  for (const Rise& rise : rises)
    all.push_back(
        {.claim = rise.claim, .bytes = rise.until, .until = static_cast<double>(rise.until)});
  while (true) {
    for (Rising& one : all)
      Open(one);
    std::erase_if(all, [&](const Rising& one) {
      const double total = total_[one.claim];
      const bool has_all = total >= one.until * (1 - kSlack);
      const ByteCount due = has_all ? one.bytes : WholeBytes(total);
      due_[one.claim] = std::max(due_[one.claim], due);
      return has_all || one.open <= 0;
    });
    if (all.empty()) return;
    std::ranges::stable_sort(all, {}, [&](const Rising& one) { return total_[one.claim]; });
    const Step step = NextStep(all);
    for (const Rising& one : std::span(all).first(step.rising))
      Take(one, step.bytes);
    // After all have taken: what is full ends a step, and not in the middle of one.
    for (const Rising& one : std::span(all).first(step.rising)) {
      for (const std::size_t member : members_[one.claim]) {
        if (!IsFull(member))
          room_[member] -= step.bytes * static_cast<double>(offers_[member]) / one.open;
      }
    }
  }
}

// Rounded down; what a claim lacks by that it gets where a byte is left.
std::vector<std::vector<ByteCount>> WaterFilling::Shares() const {
  std::vector<ByteCount> left(offers_.begin(), offers_.end());
  std::vector<ByteCount> due = due_;
  std::vector<std::vector<ByteCount>> shares(members_.size());
  const auto give = [&](std::size_t claim, std::size_t i, ByteCount wanted) {
    ByteCount& room = left[members_[claim][i]];
    const ByteCount bytes = std::min({wanted, room, due[claim]});
    shares[claim][i] += bytes;
    room -= bytes;
    due[claim] -= bytes;
  };
  for (std::size_t claim = 0; claim < members_.size(); ++claim) {
    shares[claim].resize(members_[claim].size(), 0);
    for (std::size_t i = 0; i < members_[claim].size(); ++i)
      give(claim, i, WholeBytes(taken_[claim][i]));
  }
  const auto give_what_is_due = [&] {
    for (std::size_t claim = 0; claim < members_.size(); ++claim) {
      for (std::size_t i = 0; i < members_[claim].size(); ++i)
        give(claim, i, due[claim]);
    }
  };
  give_what_is_due();
  for (std::size_t claim = 0; claim < members_.size(); ++claim)
    due[claim] = total_[claim] > static_cast<double>(due_[claim]) ? 1 : 0;
  give_what_is_due();
  return shares;
}

}  // namespace optcache::coordination
