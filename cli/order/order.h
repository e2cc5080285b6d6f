#pragma once

// optcache order: prints the order in which a training job will read its samples.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/memory_room.h"
#include "base/status.h"
#include "cli/terminal/action.h"
#include "sampler/recipe.h"

namespace optcache::cli {

struct OrderRequest {
  sampler::Recipe recipe;
  std::uint64_t epoch = 0;
  std::optional<Rank> rank{};  // none: the order of all ranks together
  bool crc = false;            // print the order's CRC instead of its ids
  std::string npy_file{};      // write the ids there instead of printing them, if not empty
};

// kResourceExhausted: the order takes more memory while it is made than there is.
Status CheckOrderFits(const sampler::Recipe& recipe, const MemoryRoom& room);

// Prints to `out`, one id a line. kInvalidArgument if there is no such sampler, epoch or rank; what
// the system says if the output cannot be written.
Status PrintOrder(const OrderRequest& request, std::FILE* out);

void AddOrderCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
