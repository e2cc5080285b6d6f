#include "cli/warmup/warm_progress.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kube/object.h"

namespace optcache::cli {
namespace {

using kube::CountAt;
using kube::TextAt;
using OrderedJson = nlohmann::ordered_json;

constexpr int kWarmBarWidth = 20;

double ShareOf(const WarmProgress& progress) {
  if (progress.total_samples == 0) return 1;
  return static_cast<double>(progress.samples) / static_cast<double>(progress.total_samples);
}

}  // namespace

WarmProgress ParseWarmProgress(std::string_view line) {
  const kube::Json json = kube::Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  return {.samples = CountAt(json, "/samples"),
          .total_samples = CountAt(json, "/totalSamples"),
          .total_bytes = CountAt(json, "/totalBytes"),
          .held = CountAt(json, "/held"),
          .held_bytes = CountAt(json, "/heldBytes"),
          .read = CountAt(json, "/read"),
          .read_bytes = CountAt(json, "/readBytes"),
          .no_room = CountAt(json, "/noRoom"),
          .failed = CountAt(json, "/failed"),
          .first_failure = TextAt(json, "/firstFailure")};
}

WarmProgress SumOf(const std::vector<WarmProgress>& parts) {
  WarmProgress sum;
  for (const WarmProgress& part : parts) {
    sum.samples += part.samples;
    sum.total_samples += part.total_samples;
    sum.total_bytes += part.total_bytes;
    sum.held += part.held;
    sum.held_bytes += part.held_bytes;
    sum.read += part.read;
    sum.read_bytes += part.read_bytes;
    sum.no_room += part.no_room;
    sum.failed += part.failed;
    if (sum.first_failure.empty()) sum.first_failure = part.first_failure;
  }
  return sum;
}

std::string WarmBar(double share) {
  share = std::clamp(share, 0.0, 1.0);
  // Full and 100 % at the end alone.
  const auto filled = static_cast<std::size_t>(std::floor(share * kWarmBarWidth));
  return fmt::format("[{}{}] {:3.0f} %", std::string(filled, '#'),
                     std::string(kWarmBarWidth - filled, '-'), std::floor(share * 100));
}

std::string WarmLine(const std::string& name, const WarmProgress& progress,
                     double bytes_per_second) {
  std::string line = fmt::format("{}  {}  {} of {}", name, WarmBar(ShareOf(progress)),
                                 FormatBytes(progress.bytes()), FormatBytes(progress.total_bytes));
  if (bytes_per_second < 1) return line;
  const ByteCount left = progress.total_bytes - std::min(progress.total_bytes, progress.bytes());
  return line + fmt::format("  {}/s  {:.0f} s left",
                            FormatBytes(static_cast<ByteCount>(bytes_per_second)),
                            static_cast<double>(left) / bytes_per_second);
}

std::string WarmSummary(const std::string& name, const WarmProgress& progress, Duration took) {
  std::string text =
      fmt::format("{}: {} samples ({}) lie at nodes: {} were there, {} ({}) were read in {:.1f} s",
                  name, progress.held + progress.read, FormatBytes(progress.bytes()), progress.held,
                  progress.read, FormatBytes(progress.read_bytes), ToSeconds(took));
  if (progress.no_room > 0)
    text += fmt::format("; nodes have no room for {} more", progress.no_room);
  if (progress.failed > 0)
    text += fmt::format("; {} could not be read{}{}", progress.failed,
                        progress.first_failure.empty() ? "" : ", first: ", progress.first_failure);
  return text + "\n";
}

std::string WarmAsJson(const std::string& name, const WarmProgress& progress, Duration took) {
  OrderedJson json = {{"dataset", name},
                      {"progress", fmt::format("{:.0f}%", std::floor(ShareOf(progress) * 100))},
                      {"samples", progress.held + progress.read},
                      {"totalSamples", progress.total_samples},
                      {"bytes", progress.bytes()},
                      {"totalBytes", progress.total_bytes},
                      {"held", progress.held},
                      {"read", progress.read},
                      {"readBytes", progress.read_bytes},
                      {"noRoom", progress.no_room},
                      {"failed", progress.failed},
                      {"seconds", ToSeconds(took)}};
  if (!progress.first_failure.empty()) json["firstFailure"] = progress.first_failure;
  return json.dump(2) + "\n";
}

}  // namespace optcache::cli
