// Writes what `optcache manifest` found, in text and JSON.
//
// Percentiles are by nearest rank, found by nth_element on a copy of the sizes. Each note of
// BuildNotes is one sentence on what the table does not show.

#include "cli/manifest/manifest_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {
namespace {

using dataset::Manifest;

std::string Plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void AppendNamed(std::string& text, std::string_view heading, std::uint64_t count,
                 const std::vector<std::string>& named) {
  if (count == 0) return;
  text += fmt::format("{}: {}\n", heading, count);
  for (const std::string& name : named)
    text += fmt::format("  {}\n", name);
  if (count > named.size()) text += fmt::format("  and {} more\n", count - named.size());
}

// As `manifest build --verify` has it.
std::string_view VerifyText(const Manifest& manifest) {
  return manifest.has_digests() ? "Digest" : "Checksum";
}

}  // namespace

std::array<SizeQuantile, 5> SizeQuantiles(const Manifest& manifest) {
  std::vector<ByteCount> sizes(manifest.samples());
  for (SampleId sample = 0; sample < manifest.samples(); ++sample) {
    sizes[sample] = manifest.Size(sample);
  }
  std::array<SizeQuantile, 5> quantiles = {
      SizeQuantile{.name = "min", .share = 0}, SizeQuantile{.name = "p50", .share = 0.5},
      SizeQuantile{.name = "p90", .share = 0.9}, SizeQuantile{.name = "p99", .share = 0.99},
      SizeQuantile{.name = "max", .share = 1}};
  for (SizeQuantile& quantile : quantiles) {
    const double rank = std::ceil(quantile.share * static_cast<double>(sizes.size()));
    const auto at = static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
    std::nth_element(sizes.begin(), sizes.begin() + at, sizes.end());
    quantile.size = sizes[static_cast<size_t>(at)];
  }
  return quantiles;
}

std::string DigestText(const Manifest& manifest) {
  return "sha256:" + dataset::ToHex(manifest.digest());
}

std::string ManifestAsText(std::string_view file, const Manifest& manifest) {
  std::string text = fmt::format("{}\n", file);
  text += fmt::format("  order    {}\n", dataset::OrderName(manifest.order()));
  if (manifest.layout() != dataset::Layout::kObjects)
    text += fmt::format("  shards   {}\n", manifest.objects());
  text += fmt::format("  samples  {}", manifest.samples());
  if (manifest.classes() > 0) text += fmt::format(" in {} classes", manifest.classes());
  text += fmt::format("\n  bytes    {} ({})\n", manifest.total_bytes(),
                      FormatBytes(manifest.total_bytes()));
  text += "  sizes   ";
  for (const SizeQuantile& quantile : SizeQuantiles(manifest)) {
    text += fmt::format(" {} {}", quantile.name, FormatBytes(quantile.size));
  }
  text += fmt::format("\n  verify   {}\n", VerifyText(manifest));
  text += fmt::format("  digest   {}\n", DigestText(manifest));
  return text;
}

std::string ManifestAsJson(const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["digest"] = DigestText(manifest);
  json["order"] = dataset::OrderName(manifest.order());
  json["samples"] = manifest.samples();
  json["classes"] = manifest.classes();
  if (manifest.layout() != dataset::Layout::kObjects) json["shards"] = manifest.objects();
  json["bytes"] = manifest.total_bytes();
  json["verify"] = VerifyText(manifest);
  json["manifestBytes"] = manifest.bytes().size();
  for (const SizeQuantile& quantile : SizeQuantiles(manifest)) {
    json["sizes"][std::string(quantile.name)] = quantile.size;
  }
  return json.dump(2) + "\n";
}

std::vector<std::string> BuildNotes(const storage::IndexReport& report) {
  std::vector<std::string> notes;
  const Manifest& manifest = report.manifest;
  if (report.order_chosen) {
    notes.emplace_back(manifest.order() == dataset::Order::kImageFolder
                           ? "Images lie in folders: numbered as torchvision's ImageFolder does "
                             "(--order image-folder)."
                           : "No images in folders: numbered by path, without classes (--order "
                             "path).");
  }
  const std::uint64_t left_out = report.left_out;
  if (left_out > 0) {
    const bool whole = manifest.layout() == dataset::Layout::kObjects;
    notes.push_back(fmt::format("Left out: {} that {} no sample{}.",
                                Plural(left_out, whole ? "object" : "object or member"),
                                left_out == 1 ? "is" : "are", left_out == 1 ? "" : "s"));
  }
  if (report.missing_count > 0) {
    notes.push_back(fmt::format("Warning: {} listed but not there ({}{}): reading {} will fail.",
                                report.missing_count == 1
                                    ? "1 sample is"
                                    : fmt::format("{} samples are", report.missing_count),
                                fmt::join(report.missing, ", "),
                                report.missing_count > report.missing.size() ? ", ..." : "",
                                report.missing_count == 1 ? "it" : "them"));
  }
  if (report.unreadable_count > 0) {
    notes.push_back(fmt::format("Warning: user {} may not read {} ({}{}): reading {} will fail.",
                                ::geteuid(), Plural(report.unreadable_count, "sample"),
                                fmt::join(report.unreadable, ", "),
                                report.unreadable_count > report.unreadable.size() ? ", ..." : "",
                                report.unreadable_count == 1 ? "it" : "them"));
  }
  if (!report.unfit_idx_files.empty()) {
    notes.push_back(fmt::format(
        "Warning: {} not fit, and the archives' headers were read instead ({}{}).",
        report.unfit_idx_files.size() == 1
            ? "1 index file does"
            : fmt::format("{} index files do", report.unfit_idx_files.size()),
        report.unfit_idx_files.front(), report.unfit_idx_files.size() > 1 ? ", ..." : ""));
  }
  if (!report.unended.empty()) {
    const bool one = report.unended.size() == 1;
    notes.push_back(fmt::format(
        "Warning: {} no end mark and may have been cut: what was found was taken ({}{}). Compare "
        "{} with what was packed.",
        one ? "1 archive has" : fmt::format("{} archives have", report.unended.size()),
        report.unended.front(), one ? "" : ", ...", one ? "its length" : "their lengths"));
  }
  if (report.unversioned_count > 0 && !manifest.has_digests()) {
    notes.push_back(
        fmt::format("Warning: of {} the store tells neither ETag nor time: another "
                    "object of the same size in its place will not be noticed.",
                    Plural(report.unversioned_count, "sample")));
  }
  return notes;
}

std::string VerifyAsText(const storage::VerifyReport& report) {
  std::string text;
  AppendNamed(text, "missing", report.missing_count, report.missing);
  AppendNamed(text, "changed", report.changed_count, report.changed);
  AppendNamed(text, "other contents", report.damaged_count, report.damaged);
  if (report.clean()) text += "unchanged: ";
  text += fmt::format("{} checked", Plural(report.checked, "sample"));
  if (report.compared) text += fmt::format(", the contents of {} compared", *report.compared);
  text += "\n";
  return text;
}

}  // namespace optcache::cli
