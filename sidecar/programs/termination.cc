#include "sidecar/programs/termination.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace optcache::sidecar {
namespace {

using Json = nlohmann::ordered_json;

// A byte takes up to six in JSON, and Kubernetes keeps 4096 of the whole.
constexpr std::size_t kTerminationSentenceMax = 600;

constexpr std::size_t kTerminationNameMax = 160;

Json CountOf(const dataset::ChangedObjects& objects) {
  Json json = {{"count", objects.count}};
  if (objects.count > 0) json["first"] = objects.first.substr(0, kTerminationNameMax);
  return json;
}

// Bytes that are no UTF-8, for example of an object's path, become U+FFFD.
std::string Write(const Json& message) {
  return message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string TerminationMessage(const Indexed& indexed) {
  Json message = {{"digest", indexed.digest},
                  {"samples", indexed.samples},
                  {"bytes", indexed.bytes},
                  {"largest", indexed.largest}};
  if (indexed.changes) {
    message["changes"] = {{"added", CountOf(indexed.changes->added)},
                          {"changed", CountOf(indexed.changes->changed)},
                          {"removed", CountOf(indexed.changes->removed)}};
  }
  return Write(message);
}

std::string TerminationMessage(const headspace::Report& report) {
  return Write({{"headspace",
                 {{"state", headspace::StateName(report.state)},
                  {"message", report.message.substr(0, kTerminationSentenceMax)}}}});
}

std::string SavedMessage(std::string_view sentence) {
  if (sentence.empty()) return "";
  return Write({{"saved", {{"message", sentence.substr(0, kTerminationSentenceMax)}}}});
}

// Not atomically: the kubelet has mounted this very file.
void WriteTermination(const std::string& file, const std::string& message) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << message;
  out.close();
  if (!out) Log(LogLevel::kWarning, "the termination message is lost", {{"file", file}});
}

std::string_view ReasonOf(IndexStep step, Code code) {
  const bool upload = step == IndexStep::kUpload;
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kDataLoss:
      return upload ? "NodesUnreachable" : "SourceUnreachable";
    case Code::kPermissionDenied:
      return upload ? "ManifestRefused" : "SourceForbidden";
    case Code::kConflict:
      return upload ? "ManifestRefused" : "SourceChanged";
    default:
      return upload ? "ManifestRefused" : "SourceInvalid";
  }
}

std::string TerminationMessage(IndexStep step, const Status& why) {
  return Write({{"reason", ReasonOf(step, why.code())},
                {"message", why.message().substr(0, kTerminationSentenceMax)}});
}

std::string WarmedMessage(const std::string& at, std::string_view progress) {
  Json message = {{"at", at}};
  message.update(Json::parse(progress, nullptr, /*allow_exceptions=*/false));
  return Write(message);
}

std::string WarmFailedMessage(const Status& why) {
  return Write({{"message", why.message().substr(0, kTerminationSentenceMax)}});
}

}  // namespace optcache::sidecar
