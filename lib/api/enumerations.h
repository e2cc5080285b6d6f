#pragma once

// The enumerations of resources, and the name that each value has in a CRD. An enumeration that
// another library acts on is that library's: only its names are here.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "dataset/format.h"
#include "dataset/order.h"
#include "plan/objective.h"

namespace optcache::api {

// What nodes keep.
enum class Retention : std::uint8_t { kOptimal, kPin, kLru, kNone };

// What reads of a source are compared with.
enum class Verify : std::uint8_t { kChecksum, kDigest };

// Where pods that use a Dataset go: rather, or only, to machines that hold it, or anywhere.
enum class SchedulingPreference : std::uint8_t { kPreferred, kRequired, kNone };

template <typename Enum, std::size_t kCount>
using Names = std::array<std::pair<std::string_view, Enum>, kCount>;

inline constexpr Names<Retention, 4> kRetentions{{{"Optimal", Retention::kOptimal},
                                                  {"Pin", Retention::kPin},
                                                  {"LRU", Retention::kLru},
                                                  {"None", Retention::kNone}}};
inline constexpr Names<plan::Objective, 2> kObjectives{
    {{"Bytes", plan::Objective::kBytes}, {"Requests", plan::Objective::kRequests}}};
inline constexpr Names<Verify, 2> kVerifies{
    {{"Checksum", Verify::kChecksum}, {"Digest", Verify::kDigest}}};
inline constexpr Names<SchedulingPreference, 3> kSchedulingPreferences{
    {{"Preferred", SchedulingPreference::kPreferred},
     {"Required", SchedulingPreference::kRequired},
     {"None", SchedulingPreference::kNone}}};

// The names that a library has for its own, as `kFormats` of dataset/format.h.
template <typename Enum, auto kValue, typename Rows>
consteval auto NamesInResources(const Rows& rows) {
  Names<Enum, std::tuple_size_v<Rows>> names{};
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = {rows[i].in_resources, rows[i].*kValue};
  return names;
}
inline constexpr auto kFormats =
    NamesInResources<dataset::Format, &dataset::FormatNames::format>(dataset::kFormats);
inline constexpr auto kOrders =
    NamesInResources<dataset::Order, &dataset::OrderNames::order>(dataset::kOrders);

// Empty: it has none.
template <typename Enum, std::size_t kCount>
constexpr std::string_view NameIn(const Names<Enum, kCount>& names, Enum value) {
  const auto found = std::ranges::find(names, value, [](const auto& pair) { return pair.second; });
  return found == names.end() ? std::string_view() : found->first;
}

// nullopt: no value has this name.
template <typename Enum, std::size_t kCount>
constexpr std::optional<Enum> ValueIn(const Names<Enum, kCount>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name, [](const auto& pair) { return pair.first; });
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace optcache::api
