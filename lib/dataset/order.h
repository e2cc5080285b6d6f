#pragma once

// How samples come by their numbers, and the names of that.

#include <array>
#include <cstdint>
#include <string_view>

namespace optcache::dataset {

enum class Order : std::uint32_t {
  kImageFolder = 1,  // class folders, as torchvision.datasets.ImageFolder
  kPath = 2,         // sorted paths, no classes
  kList = 3,         // as the source lists them, no classes
};

struct OrderNames {
  Order order;
  std::string_view name;          // on command lines
  std::string_view in_resources;  // in a Dataset
};

inline constexpr std::array<OrderNames, 3> kOrders = {
    OrderNames{.order = Order::kImageFolder, .name = "image-folder", .in_resources = "ImageFolder"},
    OrderNames{.order = Order::kPath, .name = "path", .in_resources = "Path"},
    OrderNames{.order = Order::kList, .name = "list", .in_resources = "List"}};

// "image-folder", "path", "list".
constexpr std::string_view OrderName(Order order) {
  for (const OrderNames& names : kOrders) {
    if (names.order == order) return names.name;
  }
  return "unknown";
}

}  // namespace optcache::dataset
