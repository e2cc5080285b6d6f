// Builds the index Job of a Dataset, names it, and reads what it says at its end.
//
// The name is the identity: equal inputs give an equal name, so to create the Job twice does
// nothing. The hash covers what the manifest depends on and nothing else; a change of limits or of
// patience does not index again. What a pod says is text from outside: its size, its form and its
// reason are checked before it reaches a status.

#include "operator/reconcile/dataset/index_job.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/utf8.h"
#include "dataset/digest.h"
#include "operator/api/resources.h"
#include "operator/reconcile/dataset/source_pod.h"
#include "operator/reconcile/reasons.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

constexpr std::size_t kHashDigits = 10;
constexpr std::string_view kBeforeMark = "-index-";
constexpr std::size_t kMaxIndexJobName = 63;  // it becomes a label of the pods
constexpr std::size_t kMaxMessage = 4096;
constexpr std::size_t kMaxShownMessage = 1024;
constexpr int kRetries = 3;
constexpr int kDeadlineSeconds = 4 * 3600;

Json Arguments(const kube::ObjectKey& key, const api::DatasetSpec& spec, const std::string& before,
               const ReconcileSettings& settings) {
  Json args = {"index"};
  const auto add = [&args](std::string_view flag, const std::string& value) {
    args.push_back(flag);
    args.push_back(LiteralArgument(value));
  };
  add("--dataset", key.ToString());
  add("--source", SourceAddress(spec));
  if (const auto* http = std::get_if<api::HttpSource>(&spec.source))
    add("--listing", http->listing);
  if (const std::string keys = KeysFolder(spec); !keys.empty()) add("--keys", keys);
  for (const std::string& pattern : spec.include)
    add("--include", pattern);
  if (spec.format != dataset::Format::kFiles)
    add("--format", std::string(api::NameIn(api::kFormats, spec.format)));
  if (spec.order) add("--order", std::string(api::NameIn(api::kOrders, *spec.order)));
  add("--verify", std::string(api::NameIn(api::kVerifies, spec.verify)));
  if (spec.limits.requests_per_second > 0)
    add("--requests-per-second", std::to_string(spec.limits.requests_per_second));
  if (spec.limits.bytes_per_second > 0)
    add("--bytes-per-second", std::to_string(spec.limits.bytes_per_second));
  if (spec.patience_seconds > 0) add("--patience", fmt::format("{}s", spec.patience_seconds));
  if (!before.empty()) add("--before", before);
  AddNodeArguments(settings, args);
  return args;
}

Json PodSpec(const kube::ObjectKey& key, const api::DatasetSpec& spec, const std::string& before,
             const ReconcileSettings& settings) {
  const Json amounts = {{"cpu", "1"}, {"memory", "1Gi"}, {"ephemeral-storage", "256Mi"}};
  const Json enough = {{"requests", amounts}, {"limits", amounts}};
  Json pod = SourcePod("index", Arguments(key, spec, before, settings),
                       settings.index_pod.value("resources", enough), spec, settings);
  const Json linux = {{"kubernetes.io/os", "linux"}};
  pod["nodeSelector"] = settings.index_pod.value("nodeSelector", linux);
  pod["tolerations"] = settings.index_pod.value("tolerations", Json::array());
  return pod;
}

// The parts of a source that say what is listed, and how.
Json SourceOf(const api::DatasetSpec& spec) {
  if (const auto* s3 = std::get_if<api::S3Source>(&spec.source))
    return {"s3", SourceAddress(spec), s3->secret};
  if (const auto* http = std::get_if<api::HttpSource>(&spec.source)) {
    Json parts = {"http", http->base_url, http->listing};
    if (!http->secret.empty()) parts.push_back(http->secret);
    return parts;
  }
  const auto& claim = std::get<api::ClaimSource>(spec.source);
  return {"pvc", claim.claim, claim.path};
}

bool IsReason(const std::string& text) {
  return !text.empty() && text.size() <= 64 && std::isupper(text.front()) != 0 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0; });
}

// As whom it reads, no more: it stays within PodSecurity `restricted`.
bool IsSecurityContext(const Json& context) {
  if (!context.is_object()) return false;
  const auto right = [](const std::string& name, const Json& value) {
    if (name == "supplementalGroups") return value.is_array();
    const bool is_id = name == "runAsUser" || name == "runAsGroup" || name == "fsGroup";
    return is_id && value.is_number_integer() && value > 0;
  };
  for (const auto& [name, value] : context.items()) {
    if (!right(name, value)) return false;
  }
  return true;
}

// A name of the source goes where people see it.
dataset::ChangedObjects ObjectsIn(const Json& objects) {
  std::string first = kube::TextAt(objects, "/first");
  std::ranges::replace_if(first, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return {.count = kube::CountAt(objects, "/count"), .first = std::move(first)};
}

}  // namespace

std::string IndexHash(const kube::Json& dataset, const api::DatasetSpec& spec) {
  const Json all = {SourceOf(spec),
                    api::NameIn(api::kFormats, spec.format),
                    spec.include,
                    spec.order ? api::NameIn(api::kOrders, *spec.order) : "",
                    api::NameIn(api::kVerifies, spec.verify),
                    kube::AnnotationOf(dataset, api::kReindexAnnotation).value_or("")};
  const std::string text = all.dump(-1, ' ', true, Json::error_handler_t::replace);
  return dataset::ToHex(dataset::Sha256Of(AsBytes(text))).substr(0, kHashDigits);
}

std::string IndexJobName(std::string_view dataset, const IndexMark& mark) {
  const std::string ending = fmt::format("{}{}", kBeforeMark, ToText(mark));
  const std::size_t room = kMaxIndexJobName - ending.size();
  if (dataset.size() <= room) return std::string(dataset) + ending;
  // Two names that begin alike must not share a Job.
  constexpr std::size_t kNameDigits = 6;
  const std::string digits =
      dataset::ToHex(dataset::Sha256Of(AsBytes(dataset))).substr(0, kNameDigits);
  return fmt::format("{}-{}{}", dataset.substr(0, room - kNameDigits - 1), digits, ending);
}

IndexMark MarkOfJob(std::string_view name) {
  const std::size_t found = name.rfind(kBeforeMark);
  if (found == std::string_view::npos) return {};
  return ParseIndexMark(name.substr(found + kBeforeMark.size()));
}

Result<Json> ParseIndexPod(std::string_view text) {
  Json pod = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  bool right = pod.is_object();
  for (const auto& [name, value] : pod.items()) {
    if (name == "tolerations") {
      right = right && value.is_array();
    } else if (name == "securityContext") {
      right = right && IsSecurityContext(value);
    } else {
      right = right && (name == "resources" || name == "nodeSelector") && value.is_object();
    }
  }
  if (right) return pod;
  return Error(Code::kInvalidArgument,
               "allowed: a JSON object of resources, nodeSelector, tolerations and "
               "securityContext, the last of runAsUser, runAsGroup, fsGroup (from 1) and "
               "supplementalGroups");
}

Result<Json> BuildIndexJob(const Json& dataset, const api::DatasetSpec& spec, const IndexRun& run,
                           const ReconcileSettings& settings) {
  const kube::ObjectKey key = kube::KeyOf(dataset);
  const std::string name = IndexJobName(key.name, run.mark);
  const Json labels = {{kManagedByLabel, kManagedBy},
                       {"app.kubernetes.io/name", "optcache"},
                       {kComponentLabel, kIndexComponent},
                       {kDatasetLabel, key.name}};
  Json job = kube::MakeObject(kube::kJobs, {.ns = key.ns, .name = name});
  job["metadata"]["labels"] = labels;
  job["metadata"]["ownerReferences"] = Json::array({kube::OwnerReference(api::kDatasets, dataset)});
  job["spec"] = {{"backoffLimit", kRetries},
                 {"activeDeadlineSeconds", kDeadlineSeconds},
                 {"ttlSecondsAfterFinished", kJobKeptSeconds},
                 {"template",
                  {{"metadata", {{"labels", SourcePodLabels(labels)}}},
                   {"spec", PodSpec(key, spec, run.before, settings)}}}};
  return job;
}

Result<IndexResult> ParseIndexResult(std::string_view termination_message) {
  if (termination_message.size() > kMaxMessage) {
    return Error(Code::kInvalidArgument, "longer than a termination message can be");
  }
  const Json json = Json::parse(termination_message, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error(Code::kInvalidArgument, "not a JSON object");
  IndexResult result{.digest = kube::TextAt(json, "/digest"),
                     .reason = kube::TextAt(json, "/reason"),
                     .message = CutText(kube::TextAt(json, "/message"), kMaxShownMessage)};
  if (!result.reason.empty()) {
    if (!IsReason(result.reason)) return Error(Code::kInvalidArgument, "reason is no word");
    if (!IsIndexReason(result.reason)) {  // of another version
      result.message = result.reason + ": " + result.message;
      result.reason = "IndexFailed";
    }
    return result;
  }
  result.samples = kube::CountAt(json, "/samples");
  result.bytes = kube::CountAt(json, "/bytes");
  result.largest = kube::CountAt(json, "/largest");
  if (const Json& changes = kube::Find(json, "/changes"); changes.is_object()) {
    result.changes = {.added = ObjectsIn(kube::Find(changes, "/added")),
                      .changed = ObjectsIn(kube::Find(changes, "/changed")),
                      .removed = ObjectsIn(kube::Find(changes, "/removed"))};
  }
  if (!dataset::IsHexDigest(result.digest) || result.samples == 0) {
    return Error(Code::kInvalidArgument, "neither a digest with samples nor a reason");
  }
  return result;
}

}  // namespace optcache::reconcile
