#include "operator/api/not_supported.h"

#include <algorithm>
#include <array>

namespace optcache::api {
namespace {

struct FieldOfLater {
  std::string_view pointer;
  std::string_view default_value;  // JSON
};

// `strategy: AllAtOnce` and `activateAt: Now` are what is done.
constexpr auto kFieldsOfLater =
    std::to_array<FieldOfLater>({{"/spec/cache/tiers", R"(["Memory"])"},
                                 {"/spec/jobs", "[]"},
                                 {"/spec/rollout/partition", "0"},
                                 {"/spec/rollout/maxUnavailable", R"("25%")"},
                                 {"/spec/rollout/paused", "false"},
                                 {"/spec/rollout/acknowledge", "false"},
                                 {"/spec/rollout/abort/whenBelowPredictedBy", R"("0.05")"},
                                 {"/spec/rollout/abort/whenWorseThanPreviousBy", R"("0.05")"},
                                 {"/spec/rollout/abort/after", "1"},
                                 {"/spec/revisionHistoryLimit", "10"}});

}  // namespace

std::vector<std::string> NotSupported(const kube::Json& object) {
  std::vector<std::string> fields;
  for (const FieldOfLater& field : kFieldsOfLater) {
    const kube::Json& value = kube::Find(object, field.pointer);
    if (value.is_null() || value == kube::Json::parse(field.default_value)) continue;
    std::string name(field.pointer.substr(1));
    std::ranges::replace(name, '/', '.');
    fields.push_back(std::move(name));
  }
  return fields;
}

}  // namespace optcache::api
