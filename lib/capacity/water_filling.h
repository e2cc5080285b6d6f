#pragma once

// Dividing what members offer by water filling: those who have least rise first, together. Pure.

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace optcache::coordination {

// What a claim gets it takes of those of its members that have room left, in proportion to what
// they offer. What is given stays where it is: nobody makes room later by going elsewhere.
class WaterFilling {
 public:
  // `members`: of each claim, indexes of offers; ascending, each once. Both are borrowed.
  WaterFilling(std::span<const ByteCount> offers,
               std::span<const std::vector<std::size_t>> members);

  struct Rise {
    std::size_t claim = 0;
    ByteCount until = 0;
  };
  // Each until it has so much or its members are full, by max-min fairness: none could have more
  // without taking from one that has less. Each claim once.
  void Raise(std::span<const Rise> rises);

  // Of each member of a claim, in their order, in whole bytes; never more than all members offer.
  std::vector<std::vector<ByteCount>> Shares() const;

 private:
  struct Rising {
    std::size_t claim = 0;
    ByteCount bytes = 0;  // that it shall have
    double until = 0;     // the same
    double open = 0;      // what its members with room offer
  };
  struct Step {
    std::size_t rising = 0;  // the first this many, which have least
    double bytes = 0;
  };

  bool IsFull(std::size_t member) const;
  void Open(Rising& one) const;
  Step NextStep(const std::vector<Rising>& all) const;
  void Take(const Rising& one, double bytes);

  std::span<const ByteCount> offers_;
  std::span<const std::vector<std::size_t>> members_;
  std::vector<double> room_;                // of each member
  std::vector<std::vector<double>> taken_;  // by claim, of each of its members
  std::vector<double> total_;               // by claim
  std::vector<ByteCount> due_;              // by claim: in whole bytes
};

}  // namespace optcache::coordination
