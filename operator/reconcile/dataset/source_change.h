#pragma once

// What a new list of samples says of its source, for people.

#include <optional>
#include <string>

#include "dataset/manifest_changes.h"
#include "operator/api/dataset_status.h"

namespace optcache::reconcile {

// "3 objects added (first a/1.jpg), 1 changed (first b/2.jpg), 2 gone (first c/3.jpg)".
std::string DescribeChanges(const dataset::ManifestChanges& changes);

// `changes`: nothing if the two lists could not be compared. `now` in Unix seconds.
api::SourceChange SourceChangeOf(const std::optional<dataset::ManifestChanges>& changes,
                                 double now);

}  // namespace optcache::reconcile
