// Reads a CachePlan and its ControllerRevisions out of the JSON of the API server.
//
// Every field may be missing: an older operator, or one that has not looked yet, writes less.
// Contents have all defaults written out (ContentOf), so two contents can be compared with ==. A
// rollout's marks name streams by id; an id is a hash of name and incarnation, so a job is matched
// by trying its first incarnations.

#include "cli/cluster/plan_resource.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "wire/stream_id.h"

namespace optcache::cli {
namespace {

using kube::BoolAt;
using kube::CountAt;
using kube::Find;
using kube::Items;
using kube::Json;
using kube::NumberAt;
using kube::TextAt;

constexpr std::uint32_t kIncarnationsTried = 64;

std::optional<ByteCount> BytesAt(const Json& object, std::string_view pointer) {
  const auto bytes = NumberAt(object, pointer);
  if (!bytes || *bytes < 0) return std::nullopt;
  return static_cast<ByteCount>(*bytes);
}

PlanFigures FiguresOf(const Json& figures) {
  return {.hit_ratio = TextAt(figures, "/hitRatio"),
          .store_bytes = BytesAt(figures, "/storeBytesPerEpoch"),
          .moved_bytes = BytesAt(figures, "/movedBytesPerEpoch")};
}

// Is there a mark of the pass in which the job is? It names a stream by its id, which is made of
// the name and of how often the job began again.
bool IsMarked(const PlanJob& job, const Json& marks) {
  for (const Json& mark : marks) {
    const std::string text = TextAt(mark, "/stream");
    StreamId id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
    if (error != std::errc() || end != text.data() + text.size()) continue;
    for (std::uint32_t incarnation = 0; incarnation < kIncarnationsTried; ++incarnation) {
      if (wire::StreamIdOf(job.name, incarnation) == id) return job.pass == CountAt(mark, "/pass");
    }
  }
  return false;
}

// One that has begun since is not, nor one whose pass did not end by the deadline. Where nothing is
// said of them, all are.
bool IsAwaited(const PlanJob& job, const Json& status) {
  const Json& marks = Items(status, "/rollout/marks");
  return (marks.empty() || IsMarked(job, marks)) &&
         !IsMarked(job, Items(status, "/rollout/overrun"));
}

void ReadJobs(const Json& status, std::vector<PlanJob>& jobs) {
  for (const Json& item : Items(status, "/jobs")) {
    PlanJob& job = jobs.emplace_back(PlanJob{.name = TextAt(item, "/name"),
                                             .pass = CountAt(item, "/pass"),
                                             .position = CountAt(item, "/position"),
                                             .length = CountAt(item, "/length"),
                                             .ranks = CountAt(item, "/ranks"),
                                             .rate = TextAt(item, "/rate"),
                                             .planned = TextAt(item, "/order") == "Known"});
    job.is_awaited = IsAwaited(job, status);
  }
}

std::optional<Prediction> PredictionOf(const Json& answer) {
  if (!answer.is_object()) return std::nullopt;
  Prediction prediction{.id = TextAt(answer, "/id"),
                        .error = TextAt(answer, "/error"),
                        .asked = FiguresOf(answer),
                        .current = FiguresOf(Find(answer, "/current")),
                        .current_error = TextAt(answer, "/currentError"),
                        .worse = BoolAt(answer, "/worse")};
  for (const Json& node : Items(answer, "/nodes")) {
    prediction.nodes.push_back({.name = TextAt(node, "/name"),
                                .store_bytes = CountAt(node, "/storeBytes"),
                                .moved_bytes = CountAt(node, "/movedBytes")});
  }
  return prediction;
}

void ReadStatus(const Json& status, PlanResource& plan) {
  plan.observed_generation = NumberAt(status, "/observedGeneration").value_or(0);
  plan.current = TextAt(status, "/currentRevision");
  plan.update = TextAt(status, "/updateRevision");
  plan.digest = TextAt(status, "/digest");
  plan.phase = TextAt(status, "/rollout/phase");
  plan.phase_revision = TextAt(status, "/rollout/revision");
  if (const Json& failed = Find(status, "/rollout/failed"); failed.is_object()) {
    plan.failed = PlanFailure{.revision = TextAt(failed, "/revision"),
                              .reason = TextAt(failed, "/reason"),
                              .message = TextAt(failed, "/message")};
  }
  plan.desired = CountAt(status, "/nodes/desired");
  plan.prepared = CountAt(status, "/nodes/prepared");
  plan.active = CountAt(status, "/nodes/active");
  plan.predicted = FiguresOf(Find(status, "/predicted"));
  plan.update_predicted = FiguresOf(Find(status, "/rollout/predicted"));
  plan.present_predicted = FiguresOf(Find(status, "/rollout/current"));
  plan.observed = FiguresOf(Find(status, "/observed"));
  plan.observed_since = TextAt(status, "/observed/since");
  plan.observed_passes = CountAt(status, "/observed/passes");
  for (const Json& mark : Items(status, "/rollout/marks")) {
    if (BoolAt(mark, "/later")) continue;
    ++plan.marked_streams;
    plan.marked_passes += CountAt(mark, "/passes");
  }
  plan.uncompared = BoolAt(status, "/rollout/uncompared");
  ReadJobs(status, plan.jobs);
  plan.prediction = PredictionOf(Find(status, "/prediction"));
}

Json DefaultJob(const Json& job) {
  const Json& given = Find(job, "/sampler");
  Json sampler = {
      {"kind", "TorchDistributed"}, {"seed", 0}, {"worldSize", 1}, {"epochs", 1}, {"shuffle", true},
      {"dropLast", false}};
  for (const auto& [field, value] : sampler.items()) {
    if (given.is_object() && given.contains(field)) sampler[field] = given[field];
  }
  return {{"name", TextAt(job, "/name")}, {"sampler", std::move(sampler)}};
}

}  // namespace

std::string PlanResource::Reference() const {
  return "cacheplan.optcache.io/" + name;
}

bool PlanResource::MayBeHeld() const {
  return phase == "Prepare" || phase == "Activate" || phase == "Observe";
}

std::string PlanRevision::Hash() const {
  return HashOfRevision(name);
}

Json ContentOf(const Json& spec) {
  Json content = {{"jobs", Json::array()}, {"objective", "Bytes"}, {"retention", "Optimal"}};
  for (const char* field : {"objective", "retention"}) {
    if (spec.is_object() && spec.contains(field)) content[field] = spec[field];
  }
  for (const Json& job : Items(spec, "/jobs"))
    content["jobs"].push_back(DefaultJob(job));
  std::ranges::stable_sort(content["jobs"].get_ref<Json::array_t&>(), {},
                           [](const Json& job) { return TextAt(job, "/name"); });
  return content;
}

Result<PlanResource> ReadPlanResource(std::string_view json) {
  return PlanResourceOf(Json::parse(json, nullptr, /*allow_exceptions=*/false));
}

Result<PlanResource> PlanResourceOf(const Json& object) {
  if (TextAt(object, "/kind") != "CachePlan" || TextAt(object, "/metadata/name").empty())
    return Error(Code::kInvalidArgument, "what kubectl printed is no CachePlan");
  const Json& spec = Find(object, "/spec");
  PlanResource plan{
      .name_space = kube::KeyOf(object).ns,
      .name = kube::KeyOf(object).name,
      .dataset = TextAt(spec, "/dataset"),
      .content = ContentOf(spec),
      .paused = BoolAt(spec, "/rollout/paused"),
      .acknowledge = BoolAt(spec, "/rollout/acknowledge"),
      .restarted_at = TextAt(spec, "/rollout/restartedAt"),
      .change_cause = kube::AnnotationOf(object, "kubernetes.io/change-cause").value_or(""),
      .predict = kube::AnnotationOf(object, "optcache.io/predict").value_or(""),
      .generation = kube::GenerationOf(object),
      .wanted_passes = std::max<std::uint64_t>(1, CountAt(spec, "/rollout/abort/after")),
      .available = kube::ConditionOf(object, "Available"),
      .progressing = kube::ConditionOf(object, "Progressing"),
      .degraded = kube::ConditionOf(object, "Degraded")};
  ReadStatus(Find(object, "/status"), plan);
  return plan;
}

Result<std::vector<PlanRevision>> ReadPlanRevisions(std::string_view json) {
  ASSIGN_OR_RETURN(const Json list, kube::ParseList(json, "ControllerRevisions"));
  std::vector<PlanRevision> revisions;
  for (const Json& item : Items(list, "/items")) {
    revisions.push_back(
        {.number = CountAt(item, "/revision"),
         .name = kube::KeyOf(item).name,
         .created = TextAt(item, "/metadata/creationTimestamp"),
         .change_cause = kube::AnnotationOf(item, "kubernetes.io/change-cause").value_or(""),
         .content = ContentOf(Find(item, "/data/spec"))});
  }
  std::ranges::sort(revisions, {}, &PlanRevision::number);
  return revisions;
}

std::string HashOfRevision(std::string_view name) {
  return std::string(name.substr(name.rfind('-') + 1));
}

const PlanRevision* FindRevision(const std::vector<PlanRevision>& revisions,
                                 std::string_view hash) {
  const auto found = std::ranges::find(revisions, hash, &PlanRevision::Hash);
  return found == revisions.end() ? nullptr : &*found;
}

std::string DescribeRevision(const std::vector<PlanRevision>& revisions, std::string_view hash) {
  const PlanRevision* const revision = FindRevision(revisions, hash);
  if (revision == nullptr) return fmt::format("revision {}", hash);
  return fmt::format("revision {} ({})", revision->number, hash);
}

nlohmann::ordered_json FiguresAsJson(const PlanFigures& figures) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!figures.hit_ratio.empty()) json["hitRatio"] = figures.hit_ratio;
  if (figures.store_bytes) json["storeBytesPerEpoch"] = *figures.store_bytes;
  if (figures.moved_bytes) json["movedBytesPerEpoch"] = *figures.moved_bytes;
  return json;
}

std::string ShareOfPass(const PlanJob& job) {
  if (job.length == 0 || job.position > job.length) return "";
  const double share = static_cast<double>(job.position) / static_cast<double>(job.length);
  return fmt::format("{:.0f} %", std::floor(share * 100));
}

std::string BytesText(const std::optional<ByteCount>& bytes) {
  return bytes ? FormatBytes(*bytes) : "-";
}

}  // namespace optcache::cli
