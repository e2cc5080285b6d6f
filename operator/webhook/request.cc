// Reads a pod's label and annotations, one function for each, into an InjectionRequest.
//
// `Read` calls a reader if its annotation is there; the first fault ends all, with the annotation,
// the text and what is allowed. Datasets are read first, since loans and keys name them. Loans and
// settings of the endpoint that would have no effect are errors, too: they were meant to have one.

#include "operator/webhook/request.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/whole_number.h"
#include "headspace/options.h"
#include "sampler/pod_order.h"

namespace optcache::webhook {
namespace {

constexpr std::size_t kMaxOwnerBytes = 128;
constexpr std::size_t kMaxContainers = 64;

const Json& AnnotationsOf(const Json& pod) {
  return Member(Member(pod, "metadata"), "annotations");
}

bool IsLowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// A label as of RFC 1123; with `dots`, several of them.
bool IsDnsName(std::string_view text, std::size_t max_bytes, bool dots) {
  if (text.empty() || text.size() > max_bytes) return false;
  if (!IsLowerOrDigit(text.front()) || !IsLowerOrDigit(text.back())) return false;
  return std::ranges::all_of(
      text, [dots](char c) { return IsLowerOrDigit(c) || c == '-' || (dots && c == '.'); });
}

std::vector<std::string> SplitByComma(std::string_view list) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::string item(list.substr(at, comma - at));
    item.erase(0, item.find_first_not_of(' '));
    item.erase(item.find_last_not_of(' ') + 1);
    items.push_back(std::move(item));
    at = comma + 1;
  }
  return items;
}

std::unexpected<Status> Wrong(std::string_view annotation, std::string_view text,
                              std::string_view allowed) {
  return Error(Code::kInvalidArgument, fmt::format("annotation optcache.io/{} is {}: {}",
                                                   annotation, Quote(text), allowed));
}

// One annotation, if it is there, is read by `read`.
template <typename F>
Status Read(const Json& pod, const char* name, F&& read) {
  const Json& annotations = AnnotationsOf(pod);
  const std::string key = fmt::format("optcache.io/{}", name);
  if (!annotations.is_object() || !annotations.contains(key)) return OkStatus();
  return read(name, TextIn(annotations, key.c_str()));
}

Result<DatasetName> ParseDatasetName(std::string_view text, std::string_view name_space) {
  const std::size_t slash = text.find('/');
  DatasetName name{.name_space = std::string(name_space), .name = std::string(text)};
  if (slash != std::string_view::npos) {
    name = {.name_space = std::string(text.substr(0, slash)),
            .name = std::string(text.substr(slash + 1))};
  }
  if (IsDnsName(name.name_space, 63, false) && IsDnsName(name.name, 253, true)) return name;
  return Error(Code::kInvalidArgument, fmt::format("{} is no name of a Dataset", Quote(text)));
}

Status ReadDatasets(const char* annotation, const std::string& text, std::string_view name_space,
                    std::vector<DatasetName>& datasets) {
  const std::string allowed = fmt::format(
      "write NAME or NAMESPACE/NAME, several by comma, at most {}, none twice", kMaxDatasetsPerPod);
  for (const std::string& item : SplitByComma(text)) {
    Result<DatasetName> name = ParseDatasetName(item, name_space);
    if (!name || std::ranges::find(datasets, *name) != datasets.end() ||
        datasets.size() == kMaxDatasetsPerPod) {
      return Wrong(annotation, text, allowed).error();
    }
    datasets.push_back(*std::move(name));
  }
  return OkStatus();
}

// Of optcache.io/keys and the like: an entry for a Dataset that is not used, or is the pod's
// namespace's own, has no effect, so it is a mistake.
Status CheckLending(std::string_view annotation, const DatasetName& dataset,
                    std::string_view name_space, const InjectionRequest& request) {
  const auto refuse = [&](std::string_view why) -> Status {
    return {Code::kInvalidArgument, fmt::format("annotation optcache.io/{}: Dataset {} {}",
                                                annotation, dataset.QualifiedName(), why)};
  };
  if (dataset.name_space == name_space)
    return refuse("is of this namespace, and its spec says what it is read by");
  if (std::ranges::find(request.datasets, dataset) == request.datasets.end())
    return refuse("is not in optcache.io/dataset");
  return OkStatus();
}

// "NAMESPACE/NAME=OBJECT", several by comma: the object goes to `member` of the Dataset's loan.
Status ReadLoans(const char* annotation, const std::string& text, std::string_view name_space,
                 std::string Loan::* member, InjectionRequest& request) {
  const std::string allowed =
      fmt::format("write NAMESPACE/NAME={}, several by comma, no Dataset twice",
                  member == &Loan::secret ? "SECRET" : "CLAIM");
  for (const std::string& item : SplitByComma(text)) {
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string object = item.substr(std::min(equals + 1, item.size()));
    const Result<DatasetName> dataset = ParseDatasetName(item.substr(0, equals), name_space);
    if (!dataset || !IsDnsName(object, 253, true)) return Wrong(annotation, text, allowed).error();
    RETURN_IF_ERROR(CheckLending(annotation, *dataset, name_space, request));
    std::string& lent = request.loans[dataset->QualifiedName()].*member;
    if (!lent.empty()) return Wrong(annotation, text, allowed).error();
    lent = object;
  }
  return OkStatus();
}

Status ReadPodIdentity(const char* annotation, const std::string& text, std::string_view name_space,
                       InjectionRequest& request) {
  for (const std::string& item : SplitByComma(text)) {
    const Result<DatasetName> dataset = ParseDatasetName(item, name_space);
    if (!dataset) return Wrong(annotation, text, "write NAMESPACE/NAME, several by comma").error();
    RETURN_IF_ERROR(CheckLending(annotation, *dataset, name_space, request));
    request.loans[dataset->QualifiedName()].pod_identity = true;
  }
  return OkStatus();
}

Status ReadArena(const char* annotation, const std::string& text, std::string& arena) {
  const Result<ByteCount> bytes = ParseQuantity(text);
  if (!bytes || *bytes < kMinArena || *bytes > kMaxArena) {
    return Wrong(annotation, text, "write a quantity of bytes from 16Mi to 4Ti, for example 1Gi")
        .error();
  }
  arena = text;
  return OkStatus();
}

Status ReadHeadspace(const char* annotation, const std::string& text, std::string& headspace) {
  if (text == "false") return OkStatus();
  if (!headspace::ParseOptions(text)) {
    return Wrong(annotation, text,
                 "write \"true\", or some of steps=200,free-steps=200,warmup-steps=50,"
                 "run-steps=90000: steps and free-steps from 20 to 1000000, warmup-steps from 0")
        .error();
  }
  headspace = text;
  return OkStatus();
}

Status ReadSampler(const char* annotation, const std::string& text, std::string& sampler) {
  if (const auto order = sampler::ParsePodOrder(text); !order)
    return Wrong(annotation, text, order.error().message()).error();
  sampler = text;
  return OkStatus();
}

// What the endpoint's annotations need of each other.
Status CheckEndpoint(const InjectionRequest& request) {
  if (!request.sampler.empty() && !request.s3_endpoint) {
    return {Code::kInvalidArgument,
            "annotation optcache.io/sampler says how keys are read by S3: set "
            "optcache.io/s3-endpoint: \"true\", too; loaders that are attached say it themselves"};
  }
  if (request.s3_placeholder_keys && !request.s3_endpoint) {
    return {Code::kInvalidArgument,
            "annotation optcache.io/s3-placeholder-keys is for clients of the sidecar's S3 "
            "endpoint: set optcache.io/s3-endpoint: \"true\", too"};
  }
  if (!request.headspace.empty() && request.s3_endpoint) {
    return {Code::kInvalidArgument,
            "annotation optcache.io/headspace answers with other samples than are asked for, so it "
            "goes without optcache.io/s3-endpoint"};
  }
  return OkStatus();
}

// "2", "0.5" or "500m"; more than nothing and at most 1024 cores.
bool IsCpuQuantity(const std::string& text) {
  double cores = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, cores, std::chars_format::fixed);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  if (error != std::errc() || (!suffix.empty() && suffix != "m")) return false;
  if (suffix == "m") cores /= 1000;
  return cores >= 0.001 && cores <= 1024;
}

Status ReadResources(const char* annotation, const std::string& text, InjectionRequest& request) {
  constexpr std::string_view kAllowed =
      "write cpu=CORES, memory=BYTES, ephemeral-storage=BYTES, or some of them by comma, for "
      "example cpu=1,memory=2Gi";
  std::set<std::string> seen;
  for (const std::string& item : SplitByComma(text)) {
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string key = item.substr(0, equals);
    const std::string value = item.substr(std::min(equals + 1, item.size()));
    const bool is_bytes = ParseQuantity(value).value_or(0) > 0;
    if (!seen.insert(key).second) return Wrong(annotation, text, kAllowed).error();
    if (key == "cpu" && IsCpuQuantity(value)) {
      request.cpu = value;
    } else if (key == "memory" && is_bytes) {
      request.memory = value;
    } else if (key == "ephemeral-storage" && is_bytes) {
      request.storage = value;
    } else {
      return Wrong(annotation, text, kAllowed).error();
    }
  }
  return OkStatus();
}

Status ReadContainers(const char* annotation, const std::string& text,
                      std::vector<std::string>& containers) {
  containers = SplitByComma(text);
  const bool right = containers.size() <= kMaxContainers &&
                     std::ranges::all_of(containers, [](const std::string& name) {
                       return IsDnsName(name, 63, false);
                     });
  return right ? OkStatus()
               : Wrong(annotation, text, "write names of the pod's containers by comma").error();
}

Status ReadBool(const char* annotation, const std::string& text, bool& value) {
  if (text != "true" && text != "false") {
    return Wrong(annotation, text, "write \"true\" or \"false\"").error();
  }
  value = text == "true";
  return OkStatus();
}

Status ReadOwner(const char* annotation, const std::string& text, std::string& owner) {
  const bool right =
      !text.empty() && text.size() <= kMaxOwnerBytes && std::ranges::all_of(text, [](char c) {
        return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
      });
  if (!right) {
    return Wrong(annotation, text, "write at most 128 letters, digits and - _ .").error();
  }
  owner = text;
  return OkStatus();
}

Status ReadIncarnation(const char* annotation, const std::string& text, std::uint32_t& number) {
  number = ParseWholeNumber<std::uint32_t>(text).value_or(0);
  if (number > 0) return OkStatus();
  return Wrong(annotation, text, "write a whole number from 1 to 4294967295").error();
}

}  // namespace

ByteCount InjectionRequest::shared_bytes() const {
  return ParseQuantity(arena).value_or(0) + ParseQuantity(computed).value_or(0);
}

Result<Selection> SelectionOf(const Json& pod) {
  const Json& labels = Member(Member(pod, "metadata"), "labels");
  const std::string label = TextIn(labels, kInjectLabel);
  if (label == "true") return Selection::kSelected;
  if (label == "false") return Selection::kSwitchedOff;
  if (labels.is_object() && labels.contains(kInjectLabel)) {
    return Error(Code::kInvalidArgument, fmt::format("label {} is {}: write \"true\" or \"false\"",
                                                     kInjectLabel, Quote(label)));
  }
  const Json& annotations = AnnotationsOf(pod);
  const bool named = annotations.is_object() && annotations.contains("optcache.io/dataset");
  return named ? Selection::kSelected : Selection::kNotSelected;
}

Result<bool> IsOptional(const Json& pod) {
  bool optional = false;
  RETURN_IF_ERROR(Read(pod, "optional", [&](const char* name, const std::string& text) {
    return ReadBool(name, text, optional);
  }));
  return optional;
}

Result<InjectionRequest> ParseRequest(const Json& pod, std::string_view name_space) {
  InjectionRequest request;
  const auto read = [&pod](const char* name, auto&& reader) { return Read(pod, name, reader); };
  using Text = const std::string&;
  RETURN_IF_ERROR(read("dataset", [&](const char* name, Text text) {
    return ReadDatasets(name, text, name_space, request.datasets);
  }));
  if (request.datasets.empty()) {
    return Error(Code::kInvalidArgument,
                 "annotation optcache.io/dataset is missing: write the name of a Dataset, or take "
                 "the label optcache.io/inject away");
  }
  RETURN_IF_ERROR(read("keys", [&](const char* name, Text text) {
    return ReadLoans(name, text, name_space, &Loan::secret, request);
  }));
  RETURN_IF_ERROR(read("claims", [&](const char* name, Text text) {
    return ReadLoans(name, text, name_space, &Loan::claim, request);
  }));
  RETURN_IF_ERROR(read("pod-identity", [&](const char* name, Text text) {
    return ReadPodIdentity(name, text, name_space, request);
  }));
  RETURN_IF_ERROR(read(
      "arena", [&](const char* name, Text text) { return ReadArena(name, text, request.arena); }));
  RETURN_IF_ERROR(read("computed", [&](const char* name, Text text) {
    return ReadArena(name, text, request.computed);
  }));
  RETURN_IF_ERROR(read("headspace", [&](const char* name, Text text) {
    return ReadHeadspace(name, text, request.headspace);
  }));
  RETURN_IF_ERROR(read("s3-endpoint", [&](const char* name, Text text) {
    return ReadBool(name, text, request.s3_endpoint);
  }));
  RETURN_IF_ERROR(read("s3-placeholder-keys", [&](const char* name, Text text) {
    return ReadBool(name, text, request.s3_placeholder_keys);
  }));
  RETURN_IF_ERROR(read("fallback-keys", [&](const char* name, Text text) {
    return ReadBool(name, text, request.fallback_keys);
  }));
  RETURN_IF_ERROR(read("sampler", [&](const char* name, Text text) {
    return ReadSampler(name, text, request.sampler);
  }));
  RETURN_IF_ERROR(CheckEndpoint(request));
  RETURN_IF_ERROR(read("resources", [&](const char* name, Text text) {
    return ReadResources(name, text, request);
  }));
  RETURN_IF_ERROR(read("containers", [&](const char* name, Text text) {
    return ReadContainers(name, text, request.containers);
  }));
  RETURN_IF_ERROR(read("python", [&](const char* name, Text text) {
    request.python_is_said = true;
    return ReadBool(name, text, request.python);
  }));
  RETURN_IF_ERROR(read(
      "owner", [&](const char* name, Text text) { return ReadOwner(name, text, request.owner); }));
  RETURN_IF_ERROR(read("incarnation", [&](const char* name, Text text) {
    return ReadIncarnation(name, text, request.incarnation);
  }));
  ASSIGN_OR_RETURN(request.optional, IsOptional(pod));
  return request;
}

}  // namespace optcache::webhook
