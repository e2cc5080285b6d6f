#pragma once

// The lists of ids that ranks hand over (docs/formats/list.md), as the coordinator has them: a rank
// names its list by digest, the bytes follow, and once those of all ranks of a pass are here they
// are joined into what nodes plan by.

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "coordination/state.h"

namespace optcache::coordination {

// The digests that a stream's ranks name, by pass; empty where a rank names none.
using NamedTraces = std::map<PassNumber, std::vector<std::string_view>>;

// Of one dataset with one manifest. A value.
class TraceRegistry {
 public:
  // Is that rank's list here, or a part of a pass that is?
  bool Has(std::string_view digest) const { return lists_.contains(digest) || IsJoined(digest); }
  // Has it come, and was it no list? Then it is not asked for again.
  bool Refused(std::string_view digest) const { return refused_.contains(digest); }
  // The list of one rank, of a dataset of this many samples. kInvalidArgument: it is not the bytes
  // of that digest, no list, or names samples that do not exist.
  Status Take(std::string_view digest, std::string bytes, std::uint64_t samples);

  // Joins what is complete, and forgets what neither a stream names nor one of `planned`.
  void Update(const std::map<StreamId, NamedTraces>& named, const std::vector<StreamState>& planned,
              std::uint64_t samples);

  // The passes of a stream whose order is known, without a gap from the first of them on.
  std::vector<PassTrace> PassesOf(StreamId stream) const;
  // The joined lists of that digest, null if they are not here.
  std::shared_ptr<const std::string> Bytes(std::string_view digest) const;
  std::size_t bytes_held() const;
  bool empty() const { return lists_.empty() && passes_.empty() && bytes_.empty(); }

 private:
  using SharedText = std::shared_ptr<const std::string>;
  struct Joined {
    std::vector<std::string> ranks;
    PassTrace trace;  // without a digest: they cannot be joined
  };

  bool IsJoined(std::string_view digest) const { return joined_.contains(digest); }
  bool Join(StreamId stream, PassNumber pass, const std::vector<std::string_view>& ranks,
            std::uint64_t samples);
  void Split(const Joined& pass, std::uint64_t samples);
  void NoteJoined();

  std::map<std::string, SharedText, std::less<>> lists_;  // of ranks, until they are joined
  std::map<StreamId, std::map<PassNumber, Joined>> passes_;
  std::map<std::string, SharedText, std::less<>> bytes_;  // of passes
  std::set<std::string, std::less<>> joined_;             // the ranks' digests of all passes_
  std::set<std::string, std::less<>> refused_;            // some
};

}  // namespace optcache::coordination
