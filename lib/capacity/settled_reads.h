#pragma once

// The rates that capacities in force go by. Measured ones move all the time, and what a dataset
// gives away of its memory has to be read again when it comes back: so rates are settled, and
// settled again only now and then, and only where that would save enough. Jobs that come count at
// once. Pure: time is an argument.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "capacity/saved_bytes.h"

namespace optcache::coordination {

// Between two settlements, unless who reads has changed.
inline constexpr Duration kSettledFor = std::chrono::minutes(3);
// Between two looks at whether another settlement would be worth while: they divide memory again.
inline constexpr Duration kWeighEvery = std::chrono::seconds(15);
// A job that has ended counts for this long: the next one may begin, or it may be started again.
inline constexpr Duration kJobLingers = std::chrono::minutes(1);
// What a new division must save more than the present one, by the rates of now.
inline constexpr double kWorthwhileGain = 0.05;

// Is it worth dividing again? Bytes a second that the two divisions save, by the same rates.
inline bool IsWorthwhile(double saved_then, double saved_now) {
  return saved_then > saved_now * (1 + kWorthwhileGain);
}

// A value.
class SettledReads {
 public:
  // What a coordinator before had settled on for a dataset, in bytes a second: the jobs that are
  // seen on it first share that until rates are settled again.
  void Remember(const std::string& dataset, double rate) { remembered_[dataset] = rate; }

  // Takes in who reads, and how fast. True: who reads has changed, or how fast a job reads is known
  // for the first time: `in_force` is another.
  bool Observe(const ClusterReads& seen, MonotonicTime now);

  // By what memory is to be divided. The rate of a job that is not measured yet is the median of
  // those that are; 1 where none is.
  const ClusterReads& in_force() const { return in_force_; }
  bool MayBeSettled(MonotonicTime now) const { return now - settled_at_ >= kSettledFor; }
  // The rates of the last look are in force.
  void Settle(MonotonicTime now);

  // Bytes a second that two divisions save, by the same rates.
  struct Savings {
    double then = 0;  // the one that the rates would lead to
    double now = 0;   // the present one
  };
  // Settles if that may be, the last look was not just now, and `weigh`, which is given the rates,
  // finds that it saves enough. True: it has.
  bool SettleIfWorthwhile(MonotonicTime now,
                          const std::function<Savings(const ClusterReads&)>& weigh);

 private:
  struct Job {
    JobReads reads;  // rate 0: not known
    MonotonicTime seen;
  };

  double RememberedRate(const std::string& dataset, std::size_t jobs);
  void FillIn();

  std::map<std::string, double> remembered_;
  std::map<std::string, std::map<std::string, Job>> jobs_;  // by dataset and job
  ClusterReads seen_;
  ClusterReads in_force_;
  bool looked_ = false;
  MonotonicTime settled_at_;
  MonotonicTime weighed_at_;
};

}  // namespace optcache::coordination
