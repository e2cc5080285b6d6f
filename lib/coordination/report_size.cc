#include "coordination/report_size.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace optcache::coordination {
namespace {

std::vector<PassReport> LatestOfEachStream(const std::vector<PassReport>& passes) {
  std::vector<PassReport> latest;
  for (const PassReport& pass : passes) {
    if (!latest.empty() && latest.back().stream == pass.stream) latest.pop_back();
    latest.push_back(pass);
  }
  return latest;
}

}  // namespace

std::size_t MaxTextJsonBytes(std::string_view text) {
  std::size_t bytes = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_escaped = c == '"' || c == '\\';
    if (byte < 0x20) {
      bytes += 6;  // \u001b
    } else if (byte < 0x80) {
      bytes += is_escaped ? 2 : 1;
    } else {
      bytes += 3;  // what is no UTF-8 becomes U+FFFD
    }
  }
  return bytes;
}

std::size_t LeaveOutPasses(Report& report) {
  std::vector<DatasetReport*> datasets;
  std::size_t all = 0;
  for (auto* list : {&report.datasets, &report.retiring}) {
    for (DatasetReport& dataset : *list) {
      datasets.push_back(&dataset);
      all += dataset.passes.size();
    }
  }
  if (all <= kMaxPassesOfReport) return 0;
  std::size_t kept = 0;
  for (DatasetReport* const dataset : datasets) {
    std::vector<PassReport> latest = LatestOfEachStream(dataset->passes);
    latest.resize(std::min(latest.size(), kMaxPassesOfReport - kept));
    kept += latest.size();
    dataset->passes = std::move(latest);
  }
  return all - kept;
}

}  // namespace optcache::coordination
