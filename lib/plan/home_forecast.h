#pragma once

// What becomes of reads where no plan decides: by Pin, LRU or None, each sample has a home node
// that alone decides whether to keep it. Read by read over the streams' orders, merged as the
// planner merges them, from what lies where.
//
//   ASSIGN_OR_RETURN(HomeForecast forecast, HomeForecast::Make(inputs, orders, self));
//   ASSIGN_OR_RETURN(const auto round, forecast.Next());   // about a pass; then the next one

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/stop_check.h"
#include "plan/holders.h"
#include "plan/node_share.h"
#include "plan/plan.h"
#include "plan/sample_lists.h"
#include "plan/sizes.h"

namespace optcache::plan {

// Of some reads of one stream.
struct StreamForecast {
  std::uint64_t pass_reads = 0;  // that a whole pass has
  NodeShare all;                 // of all nodes, and ranks without one
  NodeShare own;                 // of one node
};

struct PassForecast {
  NodeShare all;
  NodeShare own;
  friend bool operator==(const PassForecast&, const PassForecast&) = default;
};

// One pass of every stream. Where a forecast is of more or fewer reads than a pass has, each number
// is multiplied by their ratio and rounded down.
PassForecast OnePassOfEach(const std::map<StreamId, StreamForecast>& streams);

enum class HomeRule {
  kNone,  // nothing is kept; what lay somewhere goes with its next read
  kPin,   // a home keeps what comes while it has room; what lies elsewhere stays there
  kLru,   // a home makes room by what was unused longest of all that lies there
};

struct HomeInputs {
  HomeRule rule = HomeRule::kPin;
  Sizes sizes;
  std::vector<ByteCount> capacities;  // by node
  std::vector<StreamInput> streams;
  Holders base;                  // empty: nobody holds anything; else used in the order of ids
  std::vector<NodeIndex> homes;  // by sample; empty where nothing is kept
  StopCheck stop;                // then Next gives kCancelled
};

// O(samples) a stream and 12 bytes a sample. Not thread-safe: one owner.
class HomeForecast {
 public:
  // kInvalidArgument names what does not fit together.
  static Result<HomeForecast> Make(HomeInputs inputs, OrderProvider orders, NodeIndex self);

  // As many reads as the streams make while the slowest makes a pass, at most four passes' worth of
  // all. Empty: nothing is left to read. kInvalidArgument: an order is empty, or names a sample
  // that does not exist. kCancelled: it is to stop; then it must not be used any more.
  Result<std::map<StreamId, StreamForecast>> Next();

  const Holders& holders() const { return holders_; }

 private:
  struct Stream {
    StreamInput input;
    PassNumber pass = 0;
    Position position = 0;
    std::uint64_t reads_done = 0;
    std::uint64_t pass_reads = 0;
    std::deque<Order> orders;  // of `pass` and those after it, as far as they were needed
  };
  HomeForecast(HomeInputs inputs, OrderProvider orders, NodeIndex self);

  Status CheckStop() const;
  Result<bool> Load(Stream& stream, std::size_t passes);
  Result<std::vector<Stream*>> ActiveStreams();
  static void Advance(Stream& stream, std::uint64_t reads);
  static Position EndOf(const Stream& stream, const Order& order);
  void Read(SampleId sample, NodeIndex reader, StreamForecast& forecast);
  bool Keep(SampleId sample);
  void Hold(SampleId sample, NodeIndex node);
  void Drop(SampleId sample);

  HomeInputs inputs_;
  OrderProvider orders_;
  NodeIndex self_;
  std::vector<Stream> streams_;
  Holders holders_;
  std::vector<ByteCount> used_;  // by node
  SampleLists by_use_;           // a list a node
};

}  // namespace optcache::plan
