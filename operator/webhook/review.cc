#include "operator/webhook/review.h"

#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "operator/webhook/json_access.h"

namespace optcache::webhook {
namespace {

constexpr const char* kApiVersion = "admission.k8s.io/v1";
constexpr std::size_t kMaxUidBytes = 128;
constexpr std::size_t kMaxWarnings = 16;
constexpr int kForbidden = 403;

std::string NameOf(const Json& pod) {
  const Json& metadata = Member(pod, "metadata");
  const std::string name = TextIn(metadata, "name");
  return name.empty() ? TextIn(metadata, "generateName") + "*" : name;
}

// `datasets`, and kCheckDataset in one namespace.
class DryRunDatasets final : public DatasetView {
 public:
  DryRunDatasets(const DatasetView& datasets, std::string name_space) : datasets_(datasets) {
    check_.name_space = std::move(name_space);
    check_.name = kCheckDataset;
    check_.url = "http://optcache.invalid/";
    check_.indexed = true;
  }

  bool synced() const override { return datasets_.synced(); }
  const DatasetFacts* Find(std::string_view name_space, std::string_view name) const override {
    const bool is_check = name == check_.name && name_space == check_.name_space;
    return is_check ? &check_ : datasets_.Find(name_space, name);
  }

 private:
  const DatasetView& datasets_;
  DatasetFacts check_;
};

}  // namespace

Result<Review> ParseReview(std::string_view body) {
  ASSIGN_OR_RETURN(Json json, ParseJson(body));
  const std::string version = TextIn(json, "apiVersion");
  if (TextIn(json, "kind") != "AdmissionReview" || version != kApiVersion) {
    return Error(Code::kInvalidArgument,
                 fmt::format("this is {} {}, expected AdmissionReview {}: set "
                             "admissionReviewVersions of the webhook to v1",
                             Quote(TextIn(json, "kind")), Quote(version), kApiVersion));
  }
  const Json& request = Member(json, "request");
  const Json& kind = Member(request, "kind");
  Review review{.uid = TextIn(request, "uid"), .name_space = TextIn(request, "namespace")};
  if (review.uid.empty() || review.uid.size() > kMaxUidBytes) {
    return Error(Code::kInvalidArgument, "request.uid is missing or too long");
  }
  review.creates_pod = TextIn(request, "operation") == "CREATE" &&
                       TextIn(request, "subResource").empty() && TextIn(kind, "kind") == "Pod" &&
                       TextIn(kind, "group").empty();
  if (!review.creates_pod) return review;
  review.dry_run = Member(request, "dryRun") == true;
  const std::string own = TextIn(Member(Member(request, "object"), "metadata"), "namespace");
  if (review.name_space.empty() || (!own.empty() && own != review.name_space)) {
    return Error(Code::kInvalidArgument, fmt::format("request.namespace is {}, the pod's is {}",
                                                     Quote(review.name_space), Quote(own)));
  }
  review.pod = std::move(json["request"]["object"]);
  review.name = NameOf(review.pod);
  return review;
}

Injection DecideReview(const Review& review, const DatasetView& datasets,
                       const InjectionSettings& settings) {
  if (!review.creates_pod) return {.outcome = Outcome::kSkipped, .reason = Reason::kNotCreate};
  if (!review.dry_run) return DecideInjection(review.pod, review.name_space, datasets, settings);
  const DryRunDatasets with_check(datasets, review.name_space);
  return DecideInjection(review.pod, review.name_space, with_check, settings);
}

std::string WriteReview(const Review& review, const Injection& injection) {
  const bool allowed = injection.outcome != Outcome::kDenied;
  Json response = {
      {"uid", review.uid},
      {"allowed", allowed},
      {"auditAnnotations",
       {{"outcome", OutcomeName(injection.outcome)}, {"reason", ReasonName(injection.reason)}}}};
  if (!allowed) {
    response["status"] = {{"status", "Failure"},
                          {"code", kForbidden},
                          {"reason", "Forbidden"},
                          {"message", injection.message}};
  }
  if (allowed && !injection.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = EncodeBase64(injection.patch.dump());
  }
  for (const std::string& warning : injection.warnings) {
    if (response["warnings"].size() < kMaxWarnings)
      response["warnings"].push_back("optcache: " + warning);
  }
  return Json{{"apiVersion", kApiVersion}, {"kind", "AdmissionReview"}, {"response", response}}
      .dump();
}

}  // namespace optcache::webhook
