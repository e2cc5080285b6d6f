#pragma once

// One resource of each kind, from its document.

#include "config/configuration.h"
#include "config/internal/yaml_fields.h"

namespace optcache::config::internal {

Dataset ReadDataset(YamlMap& document);
CachePlan ReadCachePlan(YamlMap& document);

// metadata.name and metadata.namespace.
void ReadMetadata(YamlMap& document, std::string& name, std::string& name_space);

}  // namespace optcache::config::internal
