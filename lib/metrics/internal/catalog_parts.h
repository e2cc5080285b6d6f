#pragma once

// The sections of the catalog, by the program that most of them come from, and what they share.

#include <span>
#include <string_view>

#include "metrics/catalog.h"

namespace optcache::metrics {

// Why a metric is in no dashboard and no alert.
inline constexpr std::string_view kDetailOfShown = "it is a detail of numbers that are shown";
inline constexpr std::string_view kComparedWithBudget = "tests compare it with a budget";
inline constexpr std::string_view kComputedByPanels = "panels compute the same from counters";
inline constexpr std::string_view kOfOneSidecar =
    "it is of one sidecar: `loader.optcache.stats()` shows it, and panels compute the sum";
inline constexpr std::string_view kToldByDoctor =
    "`optcache doctor` and `explain job` tell what it means";
inline constexpr std::string_view kDetailOfSlowStores =
    "it is a detail of how a sidecar protects a slow store";
inline constexpr std::string_view kDetailOfConnections = "it is a detail of connections";
inline constexpr std::string_view kInHeadspaceReport =
    "it is of a single run: the headspace report has it";
inline constexpr std::string_view kChangesAtStart =
    "it changes at a start only; an alert or a condition reports a failure";
inline constexpr std::string_view kUsualOfControllers =
    "it is usual of Kubernetes controllers: ready-made dashboards show it";

std::span<const Section> NodeSections();  // shared with sidecars: the first
std::span<const Section> SidecarSections();
std::span<const Section> OperatorSections();

}  // namespace optcache::metrics
