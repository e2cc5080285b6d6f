#include "operator/reconcile/dataset/source_reach.h"

#include <limits>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "dataset/patience.h"

namespace optcache::reconcile {
namespace {

using kube::ConditionStatus;

constexpr std::string_view kSilent = "StoreSilent";
constexpr std::string_view kAnswers = "StoreAnswers";
constexpr std::string_view kNotAsked = "NotAsked";

std::string NameOf(const api::DatasetSpec& spec) {
  if (const auto* http = std::get_if<api::HttpSource>(&spec.source)) return http->base_url;
  if (const auto* s3 = std::get_if<api::S3Source>(&spec.source)) {
    return fmt::format("s3://{}/{}{}{}", s3->place.bucket, s3->place.prefix,
                       s3->place.endpoint.empty() ? "" : " at ", s3->place.endpoint);
  }
  return "claim " + std::get<api::ClaimSource>(spec.source).claim;
}

// With which the sidecars read that were made since it was set.
std::string PatienceOf(const api::DatasetSpec& spec) {
  if (spec.patience_seconds == 0) return FormatDuration(dataset::kPatience);
  return FormatDuration(std::chrono::seconds(spec.patience_seconds)) + " (spec.source.patience)";
}

SourceReach Silent(const api::DatasetSpec& spec, const coordination::StoreStatus& store) {
  return {
      .status = ConditionStatus::kFalse,
      .reason = std::string(kSilent),
      .message = fmt::format("{}: {}. Reads that the cache cannot answer wait for it, each for {} "
                             "at most, and then fail: see that it runs, and that pods of this "
                             "namespace reach it",
                             NameOf(spec), coordination::DescribeSilence(store), PatienceOf(spec))};
}

SourceReach WasListed() {
  return {.status = ConditionStatus::kTrue, .reason = "Listed", .message = "the source was listed"};
}

// What sidecars have said, or, if they have not, what the listing said.
SourceReach Unchanged(const kube::Condition& before) {
  if (!IsOfSidecars(before.reason)) return WasListed();
  return {.status = before.status, .reason = before.reason, .message = before.message};
}

}  // namespace

bool IsOfSidecars(std::string_view reason) {
  return reason == kSilent || reason == kAnswers || reason == kNotAsked;
}

SourceReach JudgeSource(const api::DatasetSpec& spec, const kube::Condition& before,
                        const coordination::StoreStatus* store) {
  if (store == nullptr) return Unchanged(before);
  const bool was_silent = before.reason == kSilent;
  if (store->silent > 0) {
    if (was_silent || store->silent_seconds >= kSilentSeconds) return Silent(spec, *store);
    return Unchanged(before);
  }
  constexpr double kLongAgo = std::numeric_limits<double>::infinity();
  if (was_silent && store->quiet_seconds.value_or(kLongAgo) < kQuietSeconds)
    return Unchanged(before);
  if (!was_silent && before.reason != kNotAsked) return Unchanged(before);
  if (store->answering > 0) {
    return {.status = ConditionStatus::kTrue,
            .reason = std::string(kAnswers),
            .message = "the store answers again"};
  }
  return {.status = ConditionStatus::kUnknown,
          .reason = std::string(kNotAsked),
          .message = "the store did not answer when it was last asked, and no sidecar asks it now"};
}

std::optional<std::string> JudgeChange(const kube::Condition& before,
                                       const coordination::StoreStatus* store) {
  if (before.status == ConditionStatus::kTrue) return before.message;
  if (store == nullptr || store->changed.empty()) return std::nullopt;
  return coordination::DescribeChange(store->changed) +
         ". When no program writes to the source, index it again: "
         "give the Dataset another value of the annotation optcache.io/reindex";
}

}  // namespace optcache::reconcile
