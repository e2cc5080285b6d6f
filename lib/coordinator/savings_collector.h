#pragma once

// Adds up what nodes say that the cache has saved, each batch once.

#include <cstdint>
#include <map>
#include <string>

#include "coordination/state.h"

namespace optcache::coordination {

// By Dataset, "namespace/name".
using SavingsByDataset = std::map<std::string, Savings>;

// Not thread-safe: a value with one owner.
class SavingsCollector {
 public:
  // More than are members: one that was away may say again what it has said.
  static constexpr std::size_t kMaxNodes = 2 * kMaxMembers;

  // Adds the report's batch. False if there is none, or this run of the node has told it before.
  bool Take(const Report& report);

  // What has come since the last call; of kMaxDatasets at most.
  SavingsByDataset Collect();

 private:
  struct Heard {
    std::uint64_t incarnation = 0;
    std::uint64_t number = 0;  // of its last batch
    std::uint64_t turn = 0;    // rises with each batch of any node
  };
  void ForgetOldest();

  std::map<std::string, Heard> nodes_;
  std::uint64_t turns_ = 0;
  SavingsByDataset collected_;
};

}  // namespace optcache::coordination
