#pragma once

// What is so, and what to do about it: the lines of `optcache doctor` and `optcache explain`. Pure.

#include <cstdint>
#include <string>
#include <vector>

namespace optcache::cli {

enum class Severity : std::uint8_t { kOk, kWarning, kFault };

struct Finding {
  Severity severity = Severity::kOk;
  std::string about;
  std::string what;
  std::string to_do;  // empty: nothing
  friend bool operator==(const Finding&, const Finding&) = default;
};

Finding Fine(std::string about, std::string what);
Finding Warn(std::string about, std::string what, std::string to_do);
Finding Fault(std::string about, std::string what, std::string to_do);

bool HasFault(const std::vector<Finding>& findings);

// A line each, and below it what to do.
std::string FindingsAsText(const std::vector<Finding>& findings);
// {"findings": [{severity, about, what, do}]}; severity is ok, warning or fault.
std::string FindingsAsJson(const std::vector<Finding>& findings);

// What `optcache explain` tells of one thing.
struct Explanation {
  std::string kind;     // "Dataset"
  std::string name;     // "vision/imagenet"
  std::string verdict;  // a sentence
  std::vector<Finding> findings;
};

// Faults first, then warnings; findings of one severity stay in their order, causes before effects.
void PutUrgentFirst(std::vector<Finding>& findings);

// "Job vision/train: 1 fault, 2 warnings."
std::string VerdictFrom(const std::string& what, const std::vector<Finding>& findings);

// The verdict, and below it the findings.
std::string ExplanationAsText(const Explanation& explanation);
// {kind, name, verdict, findings}.
std::string ExplanationAsJson(const Explanation& explanation);

}  // namespace optcache::cli
