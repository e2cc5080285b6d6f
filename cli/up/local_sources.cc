#include "cli/up/local_sources.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kSourcesFile = "/sources.json";
constexpr ByteCount kSourcesBytesMax = 4_MiB;

// Empty if there is no such text.
std::string TextIn(const OrderedJson& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// 0 if there is no such number, or it is below that.
std::int64_t NumberIn(const OrderedJson& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  const bool is_number = found != object.end() && found->is_number_integer();
  return is_number ? std::max<std::int64_t>(found->get<std::int64_t>(), 0) : 0;
}

std::int64_t InSeconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

std::string ToJson(const LocalSources& sources) {
  OrderedJson json = {{"caFile", sources.ca_file}, {"datasets", OrderedJson::array()}};
  for (const LocalSource& source : sources.datasets) {
    json["datasets"].push_back({{"name", source.name},
                                {"manifest", source.manifest_file},
                                {"store", source.store},
                                {"order", source.order},
                                {"keys", source.keys_folder},
                                {"requestsPerSecond", source.limits.requests_per_second},
                                {"bytesPerSecond", source.limits.bytes_per_second},
                                {"patienceSeconds", InSeconds(source.patience)}});
  }
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<LocalSources> ParseLocalSources(std::string_view json) {
  const OrderedJson parsed = OrderedJson::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto datasets = parsed.is_object() ? parsed.find("datasets") : parsed.end();
  if (!parsed.is_object() || datasets == parsed.end() || !datasets->is_array())
    return Error(Code::kInvalidArgument, "no list of datasets");
  LocalSources sources{.ca_file = TextIn(parsed, "caFile"), .datasets = {}};
  for (const OrderedJson& item : *datasets) {
    sources.datasets.push_back(
        {.name = TextIn(item, "name"),
         .manifest_file = TextIn(item, "manifest"),
         .store = TextIn(item, "store"),
         .order = TextIn(item, "order"),
         .keys_folder = TextIn(item, "keys"),
         .limits = {.requests_per_second = NumberIn(item, "requestsPerSecond"),
                    .bytes_per_second = static_cast<ByteCount>(NumberIn(item, "bytesPerSecond"))}});
    LocalSource& source = sources.datasets.back();
    const std::chrono::seconds patience(NumberIn(item, "patienceSeconds"));
    if (patience >= dataset::kPatienceMin && patience <= dataset::kPatienceMax)
      source.patience = patience;
    if (source.name.empty() || source.manifest_file.empty() || source.store.empty())
      return Error(Code::kInvalidArgument, "a dataset without name, manifest or store");
  }
  return sources;
}

Status WriteLocalSources(const std::string& state_dir, const LocalSources& sources) {
  return WriteFileAtomically(state_dir + kSourcesFile, ToJson(sources));
}

Result<LocalSources> ReadLocalSources(const std::string& state_dir) {
  const std::string file = state_dir + kSourcesFile;
  const Result<std::string> text = ReadFile(file, kSourcesBytesMax);
  if (!text && text.error().code() == Code::kNotFound) {
    return Error(Code::kNotFound, "`optcache up` does not run in " + state_dir +
                                      ": start it, or name its folder by --state");
  }
  if (!text) return Error(text.error());
  Result<LocalSources> sources = ParseLocalSources(*text);
  if (!sources) return Error(std::move(sources).error().WithContext(file));
  return sources;
}

void RemoveLocalSources(const std::string& state_dir) {
  std::error_code ignored;
  std::filesystem::remove(state_dir + kSourcesFile, ignored);
}

}  // namespace optcache::cli
