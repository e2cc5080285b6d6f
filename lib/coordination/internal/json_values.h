#pragma once

// JSON of the values that both the control API and the status show.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordination/codec.h"
#include "coordination/internal/json_fields.h"
#include "coordination/state.h"

namespace optcache::coordination::internal {

using Json = nlohmann::ordered_json;

// One line. Text from outside may not be UTF-8: what is not is replaced.
std::string Dump(const Json& json);

// 16 digits, as JsonObject::ReadHex reads them.
std::string Hex(std::uint64_t value);

Json Encode(const PassReport& pass);
Json Encode(const Savings& savings);
void Read(JsonObject& object, PassReport& pass);
void Read(JsonObject& object, Savings& savings);
Json Encode(const Forecast& forecast);
void Read(JsonObject object, Forecast& forecast);
Json Encode(const TrialReport& trial);
void Read(JsonObject object, TrialReport& trial);
Json Encode(const StoreReport& store);
void Read(JsonObject object, StoreReport& store);
Json Encode(const DatasetReport& dataset);
void Read(JsonObject object, DatasetReport& dataset);
void Read(JsonObject& object, const char* name, Version& version);
void Read(JsonObject& object, const char* name, Retention& retention);
void Read(JsonObject& object, const char* name, Objective& objective);

template <typename Item, typename F>
Json Array(const std::vector<Item>& items, F&& encode) {
  Json array = Json::array();
  for (const Item& item : items)
    array.push_back(encode(item));
  return array;
}

}  // namespace optcache::coordination::internal
