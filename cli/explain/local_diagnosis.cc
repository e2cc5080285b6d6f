// Diagnoses a dataset or a job of `optcache up`, from the coordinator's status.
//
// The idea: the same findings as in a cluster, as far as they exist here: there are no pods, no
// injection and no conditions. A name may be given with or without its namespace, and a job by its
// stream's name or the part of it that names the job. A loader's name is of many jobs. The pages of
// sidecars count all jobs together, so what they say is told as such.

#include "cli/explain/local_diagnosis.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/explain/job_diagnosis.h"
#include "cli/explain/reader_finding.h"
#include "cli/local/dataset_name.h"
#include "cli/terminal/value_text.h"
#include "coordination/codec.h"
#include "coordination/revisions.h"

namespace optcache::cli {
namespace {

using coordination::ClusterStatus;
using coordination::DatasetStatus;
using coordination::StreamStatus;

constexpr double kFarBelow = 0.05;    // of a predicted hit ratio
constexpr double kSilentSeconds = 5;  // of a node
constexpr const char* kLogs = "Look at its log in the folder logs of the state folder.";

void TellMembers(const ClusterStatus& status, std::vector<Finding>& findings) {
  if (status.members.empty()) {
    findings.push_back(Fault("nodes", "no node reports",
                             "Wait a few seconds after `optcache up`. Then look at the logs in the "
                             "folder logs of the state folder."));
  }
  for (const coordination::MemberStatus& member : status.members) {
    if (member.silent_seconds <= kSilentSeconds) continue;
    findings.push_back(
        Fault("node " + member.name,
              fmt::format("it has not been heard of for {:.0f} s", member.silent_seconds), kLogs));
  }
}

void TellMemoryOf(const DatasetStatus& dataset, std::vector<Finding>& findings) {
  findings.push_back(Fine("index", fmt::format("{} samples, {}", dataset.total_samples,
                                               FormatBytes(dataset.total_bytes))));
  std::string memory = fmt::format("{} granted; {} are cached", FormatBytes(dataset.capacity),
                                   FormatBytes(dataset.sum.used_bytes));
  for (std::size_t i = 0; i < dataset.nodes.size(); ++i)
    memory += fmt::format("{}{} {}", i == 0 ? ": " : ", ", dataset.nodes[i].name,
                          FormatBytes(dataset.nodes[i].used));
  findings.push_back(Fine("memory", std::move(memory)));
}

void TellSourceOf(const DatasetStatus& dataset, std::vector<Finding>& findings) {
  if (!dataset.store.changed.empty()) {
    findings.push_back(Fault("index", coordination::DescribeChange(dataset.store.changed),
                             "When no program writes to the source, stop `optcache up` and start "
                             "it with --reindex."));
  }
  if (dataset.store.silent == 0) {
    if (dataset.store.answering > 0) findings.push_back(Fine("source", "it answers"));
    return;
  }
  findings.push_back(Fault("source", coordination::DescribeSilence(dataset.store),
                           "Reads that are not cached wait for it. Try the source from this "
                           "machine, and correct its address or its network."));
}

void TellNotesOf(const DatasetStatus& dataset, std::vector<Finding>& findings) {
  for (const std::string& note : dataset.notes) {
    // TellSourceOf
    if (note.starts_with("the store is silent")) continue;
    if (note == coordination::DescribeChange(dataset.store.changed)) continue;
    findings.push_back(
        Warn("note", note,
             "To see which dataset has which memory, run: optcache status. More "
             "memory: --memory of `optcache up`, or another capacity of the Dataset."));
  }
}

void TellPlanOf(const DatasetStatus& dataset, std::vector<Finding>& findings) {
  const std::string retention = std::string(coordination::RetentionName(dataset.retention));
  const bool is_planned = dataset.planned != coordination::Version{};
  findings.push_back(
      Fine("plan", fmt::format("retention {}; {}", retention,
                               dataset.replanning ? "the nodes derive a new plan"
                               : is_planned       ? "a plan is in force"
                                                  : "no plan is in force yet: a plan needs a job "
                                                    "whose order is known")));
}

void TellHitsOf(const DatasetStatus& dataset, std::vector<Finding>& findings) {
  const coordination::HitRatios& ratios = dataset.ratios;
  if (!ratios.observed) {
    findings.push_back(Fine("hit ratio", "nothing was read yet"));
    return;
  }
  const std::string text = fmt::format(
      "{} of the last reads came from the cache{}", PercentText(*ratios.observed),
      ratios.predicted ? fmt::format("; {} were predicted", PercentText(*ratios.predicted))
                       : ", and nothing was predicted of them");
  if (!ratios.predicted || *ratios.observed + kFarBelow >= *ratios.predicted) {
    findings.push_back(Fine("hit ratio", text));
    return;
  }
  findings.push_back(
      Warn("hit ratio", text,
           "Look for nodes that have restarted, and jobs that read in another order than they "
           "announced: optcache status. If arenas hold a fifth of the dataset or more, make "
           "--arena smaller."));
}

void TellSavedOf(const DatasetStatus& dataset, std::vector<Finding>& findings) {
  const coordination::Savings& saved = dataset.saved;
  if (saved == coordination::Savings{}) return;
  findings.push_back(Fine("saved", fmt::format("{} requests and {}; training processes have waited "
                                               "{:.1f} s for samples",
                                               saved.requests, FormatSignedBytes(saved.bytes),
                                               static_cast<double>(saved.wait_us) / 1e6)));
}

void TellPagesOf(const LocalAnswers& answers, std::vector<Finding>& findings) {
  Reads reads;
  for (const PageLooks& page : answers.pages)
    reads += ReadsIn(page.after);
  if (!answers.pages.empty()) {
    findings.push_back(FindingOnReads(reads));
    findings.back().what += ", of all jobs of this cache together";
    findings.push_back(FindingOnLimit(LimitOf(answers.pages)));
  }
  if (answers.silent_pages > 0) {
    findings.push_back(Fault("sidecars",
                             fmt::format("{} of {} do not answer", answers.silent_pages,
                                         answers.silent_pages + answers.pages.size()),
                             "Run: optcache doctor"));
  }
}

std::vector<StreamStatus> AllStreams(const ClusterStatus& status) {
  std::vector<StreamStatus> streams;
  for (const auto* list : {&status.datasets, &status.retiring}) {
    for (const DatasetStatus& dataset : *list)
      streams.insert(streams.end(), dataset.streams.begin(), dataset.streams.end());
  }
  return streams;
}

// `optcache status` shows a stream as NAME#INCARNATION.
bool IsOf(const StreamStatus& stream, std::string_view name) {
  const std::size_t number = name.rfind('#');
  if (number != std::string_view::npos &&
      name.substr(number + 1) == std::to_string(stream.incarnation))
    name = name.substr(0, number);
  const auto parts = coordination::PartsOf(stream.name);
  return stream.name == name || parts.owner == name || coordination::JobOf(stream.name) == name;
}

// Says which streams have a loader of that name, if any.
std::unexpected<Status> NoJob(std::string_view name, const std::vector<StreamStatus>& streams) {
  std::vector<std::string> names;
  std::vector<std::string> loaders;
  for (const StreamStatus& stream : streams) {
    names.push_back(stream.name);
    if (coordination::PartsOf(stream.name).loader == name) loaders.push_back(stream.name);
  }
  if (!loaders.empty()) {
    return Error(Code::kNotFound,
                 fmt::format("there is no job {0}, but loaders of that name: {1}; explain a job by "
                             "its name or by one of these",
                             name, fmt::join(loaders, ", ")));
  }
  return Error(Code::kNotFound,
               fmt::format("there is no stream of a job {}; {}", name,
                           names.empty() ? "no job is attached now"
                                         : fmt::format("there are: {}", fmt::join(names, ", "))));
}

}  // namespace

Result<Explanation> ExplainLocalDataset(const LocalAnswers& answers, std::string_view name) {
  ASSIGN_OR_RETURN(const DatasetStatus* const dataset,
                   FindDataset(answers.status.datasets, name, &DatasetStatus::name));
  Explanation explanation{.kind = "Dataset", .name = dataset->name, .verdict = "", .findings = {}};
  std::vector<Finding>& findings = explanation.findings;
  TellMembers(answers.status, findings);
  TellMemoryOf(*dataset, findings);
  TellSourceOf(*dataset, findings);
  TellNotesOf(*dataset, findings);
  TellPlanOf(*dataset, findings);
  std::vector<ReaderFact> readers;
  for (const StreamStatus& stream : dataset->streams)
    readers.push_back(ReaderOf(stream));
  if (readers.empty()) findings.push_back(Fine("streams", "no job reads it now"));
  AddFindingsOnReaders(readers, findings);
  TellHitsOf(*dataset, findings);
  TellSavedOf(*dataset, findings);
  PutUrgentFirst(findings);
  explanation.verdict = VerdictFrom("Dataset " + explanation.name, findings);
  return explanation;
}

Result<Explanation> ExplainLocalJob(const LocalAnswers& answers, std::string_view name) {
  const std::vector<StreamStatus> streams = AllStreams(answers.status);
  std::vector<ReaderFact> readers;
  for (const StreamStatus& stream : streams) {
    if (IsOf(stream, name)) readers.push_back(ReaderOf(stream));
  }
  if (readers.empty()) return NoJob(name, streams);
  Explanation explanation{.kind = "Job", .name = std::string(name), .verdict = "", .findings = {}};
  std::vector<Finding>& findings = explanation.findings;
  TellMembers(answers.status, findings);
  for (const DatasetStatus& dataset : answers.status.datasets) {
    const bool is_read = std::ranges::any_of(
        dataset.streams, [&](const StreamStatus& stream) { return IsOf(stream, name); });
    if (!is_read) continue;
    TellSourceOf(dataset, findings);
    TellPlanOf(dataset, findings);
    findings.back().about = "plan of " + dataset.name;
  }
  AddFindingsOnReaders(readers, findings);
  TellPagesOf(answers, findings);
  PutUrgentFirst(findings);
  explanation.verdict = VerdictFrom("Job " + explanation.name, findings);
  return explanation;
}

}  // namespace optcache::cli
