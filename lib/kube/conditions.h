#pragma once

// status.conditions as the API conventions want them: one entry a type, and lastTransitionTime
// moves only when the status does, so that `kubectl wait` and people can rely on both.

#include <cstdint>
#include <string>
#include <string_view>

#include "kube/object.h"

namespace optcache::kube {

enum class ConditionStatus { kUnknown, kFalse, kTrue };

std::string_view ToText(ConditionStatus status);

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;   // CamelCase, never empty when set
  std::string message;  // a sentence for people
  std::int64_t observed_generation = 0;
};

// Puts `condition` into the array `conditions` in place of the one of its type, or at the end.
// `conditions` becomes an array if it is none. Texts are cut to what the API allows: 1,024 bytes of
// reason, 32,768 of message.
void SetCondition(Json& conditions, const Condition& condition, double unix_seconds);

// Of the object's status. One that is not there has its type, kUnknown and no reason.
Condition ConditionOf(const Json& object, std::string_view type);

}  // namespace optcache::kube
