#pragma once

// How large a report can become, so that the code that fills one stays below kMaxReportBytes: a
// report that is larger is refused whole, and a node whose reports are refused is a member no more.

#include <cstddef>
#include <string_view>

#include "coordination/state.h"

namespace optcache::coordination {

// What parts of a report take of its JSON text at most, whatever the numbers in them are.
inline constexpr std::size_t kMaxRankJsonBytes = 600;    // RankReport without its order and lists
inline constexpr std::size_t kMaxTraceJsonBytes = 140;   // PassTrace
inline constexpr std::size_t kMaxStreamJsonBytes = 160;  // StreamReport without its names and ranks
inline constexpr std::size_t kMaxPassJsonBytes = 400;    // PassReport

// Of a text in JSON, without its quotes.
std::size_t MaxTextJsonBytes(std::string_view text);

// Passes of all datasets together.
inline constexpr std::size_t kMaxPassesOfReport = 4096;

// Leaves out passes where there are more than kMaxPassesOfReport: then each stream keeps the latest
// of each dataset, as far as there is room. Returns how many are left out.
std::size_t LeaveOutPasses(Report& report);

}  // namespace optcache::coordination
