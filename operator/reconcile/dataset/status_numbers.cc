#include "operator/reconcile/dataset/status_numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/time_text.h"

namespace optcache::reconcile {
namespace {

constexpr ByteCount kByteSteps = 100;
constexpr double kRatioStep = 0.001;
constexpr double kSavedEverySeconds = 60;

ByteCount Settle(ByteCount before, ByteCount now, ByteCount step) {
  const ByteCount moved = before > now ? before - now : now - before;
  // To and from nothing counts whatever the step.
  return moved < step && (before == 0) == (now == 0) ? before : now;
}

std::optional<double> Settle(std::optional<double> before, std::optional<double> now) {
  if (!before || !now) return now;
  return std::abs(*before - *now) < kRatioStep ? before : now;
}

std::uint64_t ThreeDigits(double number) {
  double step = 1;
  while (number / step >= 1000)
    step *= 10;
  return static_cast<std::uint64_t>(std::round(std::max(number, 0.0) / step) * step);
}

}  // namespace

void TakeNumbers(const CacheView& cache, api::DatasetStatus& status) {
  const ByteCount step = std::max<ByteCount>(status.bytes / kByteSteps, 1);
  status.manifest_holders = cache.manifest_holders;
  status.cached_bytes = Settle(status.cached_bytes, cache.cached_bytes, step);
  status.hit_ratio = Settle(status.hit_ratio, cache.hit_ratio);
  status.predicted_hit_ratio = Settle(status.predicted_hit_ratio, cache.predicted_hit_ratio);
  std::map<std::string, ByteCount> before;
  for (const api::NodeBytes& node : status.nodes)
    before.emplace(node.name, node.bytes);
  std::vector<api::NodeBytes> nodes = cache.nodes;
  if (nodes.size() > api::kMaxStatusNodes) {
    std::ranges::stable_sort(nodes, std::greater<>(), &api::NodeBytes::bytes);
    nodes.resize(api::kMaxStatusNodes);
    std::ranges::sort(nodes, {}, &api::NodeBytes::name);
  }
  for (api::NodeBytes& node : nodes) {
    const auto known = before.find(node.name);
    if (known != before.end()) node.bytes = Settle(known->second, node.bytes, step);
  }
  status.nodes = std::move(nodes);
}

api::CapacityStatus CapacityOf(const Placed& placed) {
  return {.granted = placed.granted,
          .on_disk = placed.on_disk,
          .guaranteed = placed.guaranteed,
          .maximum = placed.maximum,
          .read_rate = ThreeDigits(placed.read),
          .saved_rate = ThreeDigits(placed.saved)};
}

void TakeSaved(const coordination::Savings& total, const dataset::StorePrice& price, double now,
               api::DatasetStatus& status) {
  api::SavedStatus saved{.saved = total};
  coordination::Savings& sum = saved.saved;
  sum.wait_us -= sum.wait_us % api::kMicrosecondsPerSecond;
  if (status.saved) {
    const coordination::Savings& written = status.saved->saved;
    sum = {.requests = std::max(sum.requests, written.requests),
           .bytes = std::max(sum.bytes, written.bytes),
           .wait_us = std::max(sum.wait_us, written.wait_us)};
  }
  const auto cost = dataset::CostOf(price, {.requests = sum.requests, .bytes = sum.bytes});
  if (cost) saved.cost = dataset::FormatMoney(*cost);
  if (status.saved) {
    saved.at = status.saved->at;
    const double age = now - ParseTime(saved.at).value_or(0);
    // One that is to come was written by a clock that ran ahead.
    if (saved == *status.saved || (age >= 0 && age < kSavedEverySeconds)) return;
  } else if (total == coordination::Savings{}) {
    return;
  }
  saved.at = FormatTime(now);
  status.saved = std::move(saved);
}

}  // namespace optcache::reconcile
