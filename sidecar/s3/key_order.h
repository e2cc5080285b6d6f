#pragma once

// Whose read it is when somebody asks for a key: a key names a sample, but neither a rank nor a
// pass. Ranks read each sample of theirs once in a pass, so that those are known by what has been
// asked for.

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "sampler/pod_order.h"
#include "sidecar/ports/ports.h"
#include "sidecar/prefetch/reader_table.h"

namespace optcache::sidecar {

// Reader 0: the read belongs to no order.
struct KeyTag {
  ReaderId reader = 0;
  PassNumber pass = 0;
  friend bool operator==(const KeyTag&, const KeyTag&) = default;
};

// Attaches the ranks of this pod whose orders a person has said, and begins their passes: a rank
// begins its next one with the first key that it cannot mean in this one, when all samples of this
// one have been asked for, or kRepeats of them again. So a pass that ends before its list is taken
// to go on for that many reads, which have no order. Ranks that training processes attach are
// found, too; their passes they begin themselves. Not thread-safe: belongs to the event loop's
// thread.
class KeyOrder {
 public:
  static constexpr std::uint64_t kRepeats = 16;
  // Loaders of scripts that are not changed do not say how far their workers read out of order.
  static constexpr std::uint32_t kBehind = 4096;

  // `readers` outlives it. `client` is by whom ranks are attached.
  KeyOrder(ReaderTable& readers, ClientId client) : readers_(readers), client_(client) {}

  // Attaches all of `ranks` and begins their first pass. An error is a sentence for the user who
  // wrote the order; then none is attached.
  Status Attach(const DatasetPort& dataset, const sampler::PodRanks& ranks);

  // An order is being made that may have the next read of the dataset: ask again in a moment.
  bool Awaits(const DatasetPort& dataset) const;

  // A part of the sample is asked for, whose last read had that tag. Does it belong to another
  // read, with a place of its own? It does if the same rank is in a later pass that has the sample
  // before it. Where the last read began with the same part (`from_start`), it also does if any
  // rank has the sample before it, or has read its pass and begins the next one with the sample.
  bool ReadsAgain(const DatasetPort& dataset, SampleId id, const KeyTag& last,
                  bool from_start) const;

  // The sample is asked for now. May begin a pass.
  KeyTag Take(const DatasetPort& dataset, SampleId id);

 private:
  struct Own {
    ReaderId reader = 0;
    std::uint64_t length = 0;   // of a pass
    std::uint64_t epoch = 0;    // of the first pass
    std::uint64_t taken = 0;    // of the present one
    std::uint64_t repeats = 0;  // asked for in vain in the present one
  };

  bool Ends(const Own& own, SampleId id) const;
  void BeginNext(Own& own);

  ReaderTable& readers_;
  ClientId client_;
  std::map<const DatasetPort*, std::vector<Own>> own_;
};

}  // namespace optcache::sidecar
