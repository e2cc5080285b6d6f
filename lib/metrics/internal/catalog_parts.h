#pragma once

// The sections of the catalog, by the program that most of them come from.

#include <span>

#include "metrics/catalog.h"

namespace optcache::metrics {

std::span<const Section> NodeSections();  // shared with sidecars: the first
std::span<const Section> SidecarSections();
std::span<const Section> OperatorSections();

}  // namespace optcache::metrics
