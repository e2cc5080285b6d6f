// Writes revisions and their differences, and finds the revision that a word means.
//
// A word is tried as a number and a name first, and then as the beginning of a hash; more than one
// hash is an error. Two contents are compared as flat maps of fields, so a job that only one has
// shows in each of its fields.

#include "cli/rollout/revision_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cli/terminal/text_table.h"
#include "cli/terminal/value_text.h"
#include "cli/terminal/yaml_text.h"

namespace optcache::cli {
namespace {

using kube::Items;
using kube::Json;
using kube::TextAt;
using OrderedJson = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kFewestDigits = 4;  // of a hash
constexpr std::size_t kMaxJobsListed = 3;
constexpr const char* kNone = "<none>";  // as kubectl

std::string JobsText(const Json& content) {
  std::vector<std::string> names;
  const Json& jobs = Items(content, "/jobs");
  for (std::size_t i = 0; i < std::min(jobs.size(), kMaxJobsListed); ++i)
    names.push_back(TextAt(jobs[i], "/name"));
  if (names.empty()) return kNone;
  const std::string more =
      jobs.size() > kMaxJobsListed ? fmt::format(" and {} more", jobs.size() - kMaxJobsListed) : "";
  return fmt::format("{}{}", fmt::join(names, ","), more);
}

// "in force", "Observe" while it is rolled out, "BelowPredicted" of one that was stopped.
std::string StateOf(const PlanResource& plan, const PlanRevision& revision) {
  if (revision.name == plan.current) return "in force";
  if (plan.failed && plan.failed->revision == revision.Hash()) return plan.failed->reason;
  if (revision.name == plan.update) return plan.phase.empty() ? "update" : plan.phase;
  return "";
}

OrderedJson DescribeAsJson(const PlanResource& plan, const PlanRevision& revision) {
  return {{"revision", revision.number},
          {"name", revision.name},
          {"hash", revision.Hash()},
          {"created", revision.created},
          {"changeCause", revision.change_cause},
          {"state", StateOf(plan, revision)},
          {"spec", revision.content}};
}

std::string Dump(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "jobs[resnet].sampler.epochs" to "90", and so on.
std::map<std::string, std::string> FieldsOf(const Json& content) {
  std::map<std::string, std::string> fields = {{"objective", TextAt(content, "/objective")},
                                               {"retention", TextAt(content, "/retention")}};
  for (const Json& job : Items(content, "/jobs")) {
    for (const auto& [field, value] : kube::Find(job, "/sampler").items())
      fields[fmt::format("jobs[{}].sampler.{}", TextAt(job, "/name"), field)] = TextOf(value);
  }
  return fields;
}

struct Difference {
  std::string field;
  std::string from;  // empty: it has none
  std::string to;
};

std::vector<Difference> Compare(const std::map<std::string, std::string>& from,
                                const std::map<std::string, std::string>& to) {
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [field, value] : from)
    both[field].first = value;
  for (const auto& [field, value] : to)
    both[field].second = value;
  std::vector<Difference> differences;
  for (const auto& [field, values] : both) {
    if (values.first == values.second) continue;
    differences.push_back({.field = field, .from = values.first, .to = values.second});
  }
  return differences;
}

// Figures of two revisions are from the same inputs. Nothing is known of others than the one that
// is rolled out and the one in force, as the two were derived together.
PlanFigures PredictedOf(const PlanResource& plan, const PlanRevision& revision) {
  if (revision.Hash() == plan.phase_revision) return plan.update_predicted;
  return revision.name == plan.current ? plan.present_predicted : PlanFigures();
}

std::map<std::string, std::string> FieldsOf(const PlanFigures& figures) {
  return {{"predicted hit ratio", PercentText(figures.hit_ratio)},
          {"predicted store bytes an epoch", BytesText(figures.store_bytes)},
          {"predicted moved bytes an epoch", BytesText(figures.moved_bytes)}};
}

std::vector<Difference> DifferencesOf(const PlanRevision& from, const PlanRevision& to) {
  return Compare(FieldsOf(from.content), FieldsOf(to.content));
}

std::string Numbers(const std::vector<PlanRevision>& revisions) {
  std::vector<std::string> numbers;
  for (const PlanRevision& revision : revisions)
    numbers.push_back(fmt::format("{}", revision.number));
  return numbers.empty() ? "there is none" : fmt::format("there are {}", fmt::join(numbers, ", "));
}

}  // namespace

std::string HistoryAsTable(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  Rows rows = {{"REVISION", "HASH", "RETENTION", "OBJECTIVE", "JOBS", "STATE", "CHANGE-CAUSE"}};
  for (const PlanRevision& revision : revisions) {
    rows.push_back({fmt::format("{}", revision.number), revision.Hash(),
                    TextAt(revision.content, "/retention"), TextAt(revision.content, "/objective"),
                    JobsText(revision.content), StateOf(plan, revision),
                    revision.change_cause.empty() ? kNone : revision.change_cause});
  }
  return plan.Reference() + "\n" + FormatTable(rows);
}

std::string RevisionAsText(const PlanResource& plan, const PlanRevision& revision) {
  Rows rows = {{"Name:", revision.name},
               {"Created:", revision.created.empty() ? "-" : revision.created},
               {"Change-cause:", revision.change_cause.empty() ? kNone : revision.change_cause}};
  if (const std::string state = StateOf(plan, revision); !state.empty())
    rows.push_back({"State:", state});
  return fmt::format("{} with revision #{}\n{}Content:\n{}", plan.Reference(), revision.number,
                     FormatTable(rows), ToYaml(revision.content.dump()));
}

std::string HistoryAsJson(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  OrderedJson json = {
      {"namespace", plan.name_space}, {"name", plan.name}, {"revisions", OrderedJson::array()}};
  for (const PlanRevision& revision : revisions)
    json["revisions"].push_back(DescribeAsJson(plan, revision));
  return Dump(json);
}

std::string RevisionAsJson(const PlanResource& plan, const PlanRevision& revision) {
  return Dump(DescribeAsJson(plan, revision));
}

Result<PlanRevision> ChooseRevision(const PlanResource& plan,
                                    const std::vector<PlanRevision>& revisions,
                                    std::string_view which) {
  const std::string name = which == "current"  ? plan.current
                           : which == "update" ? plan.update
                                               : std::string(which);
  for (const PlanRevision& revision : revisions) {
    if (fmt::format("{}", revision.number) == name || revision.name == name) return revision;
  }
  const PlanRevision* found = nullptr;
  for (const PlanRevision& revision : revisions) {
    if (name.size() < kFewestDigits || !revision.Hash().starts_with(name)) continue;
    if (found != nullptr) {
      return Error(Code::kInvalidArgument,
                   fmt::format("several revisions of {} begin with {}: write more digits",
                               plan.Reference(), name));
    }
    found = &revision;
  }
  if (found != nullptr) return *found;
  return Error(Code::kNotFound, fmt::format("unable to find the specified revision {} of {}: {}",
                                            which, plan.Reference(), Numbers(revisions)));
}

Result<PlanRevision> RevisionToUndo(const PlanResource& plan,
                                    const std::vector<PlanRevision>& revisions,
                                    std::uint64_t number) {
  if (number == 0 && plan.current != plan.update) {
    const auto in_force = std::ranges::find(revisions, plan.current, &PlanRevision::name);
    if (in_force != revisions.end() && in_force->content != plan.content) return *in_force;
  }
  for (auto revision = revisions.rbegin(); revision != revisions.rend(); ++revision) {
    if (number == 0 ? revision->content != plan.content : revision->number == number)
      return *revision;
  }
  if (number != 0) {
    return Error(Code::kNotFound, fmt::format("unable to find specified revision {} in history: {}",
                                              number, Numbers(revisions)));
  }
  return Error(Code::kNotFound,
               fmt::format("no rollout history found for cacheplan \"{}\": no revision of other "
                           "content is kept",
                           plan.name));
}

std::string DiffAsTable(const PlanResource& plan, const PlanRevision& from,
                        const PlanRevision& to) {
  const std::vector<Difference> differences = DifferencesOf(from, to);
  Rows rows = {
      {"FIELD", fmt::format("REVISION {}", from.number), fmt::format("REVISION {}", to.number)}};
  for (const Difference& difference : differences) {
    rows.push_back({difference.field, difference.from.empty() ? "-" : difference.from,
                    difference.to.empty() ? "-" : difference.to});
  }
  const PlanFigures before = PredictedOf(plan, from);
  const PlanFigures after = PredictedOf(plan, to);
  for (const Difference& difference : Compare(FieldsOf(before), FieldsOf(after)))
    rows.push_back({difference.field, difference.from, difference.to});
  std::string text = fmt::format("{}: revision {} ({}) and {} ({})\n", plan.Reference(),
                                 from.number, from.Hash(), to.number, to.Hash());
  if (differences.empty()) return text + "Their content is the same.\n";
  text += FormatTable(rows);
  if (before.hit_ratio.empty() || after.hit_ratio.empty())
    text += "What is not predicted now can be asked for: kubectl optcache plan predict -f FILE\n";
  return text;
}

std::string DiffAsJson(const PlanResource& plan, const PlanRevision& from, const PlanRevision& to) {
  OrderedJson json = {{"from", DescribeAsJson(plan, from)},
                      {"to", DescribeAsJson(plan, to)},
                      {"differences", OrderedJson::array()}};
  for (const Difference& difference : DifferencesOf(from, to)) {
    json["differences"].push_back(
        {{"field", difference.field}, {"from", difference.from}, {"to", difference.to}});
  }
  for (const auto& [side, revision] : {std::pair("from", &from), std::pair("to", &to)}) {
    const PlanFigures figures = PredictedOf(plan, *revision);
    if (!figures.hit_ratio.empty()) json[side]["predictedHitRatio"] = figures.hit_ratio;
    if (figures.store_bytes) json[side]["predictedStoreBytesPerEpoch"] = *figures.store_bytes;
    if (figures.moved_bytes) json[side]["predictedMovedBytesPerEpoch"] = *figures.moved_bytes;
  }
  return Dump(json);
}

}  // namespace optcache::cli
