#include "operator/webhook/settings.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace optcache::webhook {
namespace {

constexpr int kFirstMinor = 29;  // of Kubernetes 1

// "v1.28.5-gke.100".
bool IsOld(std::string_view version) {
  constexpr std::string_view kMajor = "v1.";
  if (!version.starts_with(kMajor)) return false;
  version.remove_prefix(kMajor.size());
  int minor = 0;
  const auto [_, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  return error == std::errc() && minor < kFirstMinor;
}

bool MightRun(const OldMachine& machine, const Json& pod_spec) {
  const std::string name = TextIn(pod_spec, "nodeName");
  if (!name.empty()) return name == machine.name;
  const Json& wanted = Member(pod_spec, "nodeSelector");
  if (!wanted.is_object()) return true;
  return std::ranges::all_of(wanted.items(), [&machine](const auto& label) {
    return Member(machine.labels, label.key().c_str()) == label.value();
  });
}

}  // namespace

std::optional<OldMachine> OldMachineOf(const Json& node) {
  const Json& metadata = Member(node, "metadata");
  const Json& labels = Member(metadata, "labels");
  const bool elsewhere = TextIn(labels, "type") == "virtual-kubelet" ||
                         TextIn(labels, "kubernetes.io/os") == "windows";
  const std::string version = TextIn(Member(Member(node, "status"), "nodeInfo"), "kubeletVersion");
  if (elsewhere || !IsOld(version)) return std::nullopt;
  return OldMachine{.name = TextIn(metadata, "name"), .labels = labels};
}

bool MayBeNative(const Json& pod_spec, const InjectionSettings& settings) {
  return !settings.ordinary_sidecars &&
         std::ranges::none_of(settings.old_machines, [&pod_spec](const OldMachine& machine) {
           return MightRun(machine, pod_spec);
         });
}

}  // namespace optcache::webhook
