#pragma once

// The manifests that this node keeps on its state volume, each a file named by its digest
// (manifest_file.h).

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"

namespace optcache::node {

struct ManifestStoreLimits {
  std::size_t manifests = 1024;       // as many as a report may list
  ByteCount bytes = 6_GiB;            // of all together
  ByteCount manifest_bytes = 3_GiB;   // of one, and of all that a namespace brought and none names
  std::size_t unnamed_per_owner = 4;  // that a namespace brought and no state names
  std::uint32_t samples = 0;          // that one may list; 0: any number
  Duration keep_unnamed = std::chrono::hours(1);
};
// Of a state volume of that size: three quarters for manifests, of which one takes half at most, as
// an old one stays while a new one comes. The rest is for the state and plan bases.
ManifestStoreLimits LimitsOf(ByteCount state_size);

// Not thread-safe: the event loop owns it.
class ManifestStore {
 public:
  // Opens the folder, making it if it is not there, and finds what an earlier run kept. Files that
  // are no manifest's are removed.
  static Result<ManifestStore> Open(std::string folder, const Clock& clock,
                                    ManifestStoreLimits limits = {});

  // kResourceExhausted: one of this many bytes will never be taken.
  Status CheckSize(ByteCount bytes) const;
  // Before a manifest of this many bytes is written: takes room for it, from what no state names if
  // need be. `owner` is the namespace that brings it, which drives out its own or those of one that
  // has more; empty: another node did. kResourceExhausted: there is none. kConflict: it is being
  // written already.
  Status Reserve(const std::string& digest, ByteCount bytes, const std::string& owner);
  // After that: whether it was written.
  void Settle(const std::string& digest, bool written);
  // The file turned out to be damaged or gone.
  void Drop(const std::string& digest);

  bool Has(const std::string& digest) const;
  // Of one that it has; else 0.
  ByteCount BytesOf(const std::string& digest) const;
  std::string FileOf(const std::string& digest) const { return folder_ + "/" + digest; }
  const ManifestStoreLimits& limits() const { return limits_; }
  // Ascending.
  std::vector<std::string> Digests() const;

  // What a desired state names stays; what none has named for an hour goes.
  void KeepNamed(const std::set<std::string>& named);

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Held {
    ByteCount bytes = 0;
    MonotonicTime unnamed_since;
    std::string owner;
    bool written = false;
    bool named = false;
  };
  using Table = std::map<std::string, Held>;
  ManifestStore(std::string folder, const Clock& clock, ManifestStoreLimits limits)
      : folder_(std::move(folder)), clock_(&clock), limits_(limits) {}
  // The longest unnamed of `owner`; end if there is none.
  Table::iterator OldestUnnamed(const std::string& owner);
  // Whose unnamed one goes when `owner` brings this many bytes; end if there is none.
  Table::iterator Victim(const std::string& owner, ByteCount bytes);
  struct Unnamed {
    std::size_t manifests = 0;
    ByteCount bytes = 0;
  };
  // By owner, those that are being written, too.
  std::map<std::string, Unnamed> CountUnnamed() const;
  void Remove(Table::iterator manifest);

  std::string folder_;
  const Clock* clock_;
  ManifestStoreLimits limits_;
  Table held_;
  ByteCount bytes_ = 0;
};

}  // namespace optcache::node
