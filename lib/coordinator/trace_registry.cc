#include "coordinator/trace_registry.h"

#include <algorithm>
#include <utility>

#include "coordination/plan_base.h"
#include "sampler/id_list.h"

namespace optcache::coordination {
namespace {

constexpr std::size_t kMaxRefused = 256;

Status Check(std::string_view digest, std::string_view bytes, std::uint64_t samples) {
  ASSIGN_OR_RETURN(const sampler::IdLists lists, sampler::ParseLists(bytes, samples));
  if (lists.lengths.size() != 1) {
    return {Code::kInvalidArgument, "list of ids: of " + std::to_string(lists.lengths.size()) +
                                        " ranks, a node gives those of one"};
  }
  RETURN_IF_ERROR(sampler::CheckIds(lists, samples));
  if (DigestHex(bytes) != digest) {
    return {Code::kInvalidArgument, "list of ids: not the bytes of digest " + std::string(digest)};
  }
  return OkStatus();
}

}  // namespace

Status TraceRegistry::Take(std::string_view digest, std::string bytes, std::uint64_t samples) {
  if (Status status = Check(digest, bytes, samples); !status.ok()) {
    if (refused_.size() >= kMaxRefused) refused_.clear();
    refused_.emplace(digest);
    return status;
  }
  lists_.insert_or_assign(std::string(digest),
                          std::make_shared<const std::string>(std::move(bytes)));
  return OkStatus();
}

void TraceRegistry::Update(const std::map<StreamId, NamedTraces>& named,
                           const std::vector<StreamState>& planned, std::uint64_t samples) {
  std::set<std::string, std::less<>> wanted;
  for (const auto& [stream, by_pass] : named) {
    for (const auto& [pass, ranks] : by_pass) {
      if (Join(stream, pass, ranks, samples)) continue;
      wanted.insert(ranks.begin(), ranks.end());
    }
  }
  std::set<std::string, std::less<>> in_use;
  for (const StreamState& stream : planned) {
    for (const PassTrace& trace : stream.traces)
      in_use.insert(trace.digest);
  }
  const std::size_t passes_before = passes_.size();
  std::size_t forgotten = 0;
  for (auto& [stream, passes] : passes_) {
    const auto now = named.find(stream);
    forgotten += std::erase_if(passes, [&](const auto& pass) {
      return now == named.end() || !now->second.contains(pass.first);
    });
    for (const auto& [number, pass] : passes)
      in_use.insert(pass.trace.digest);
  }
  std::erase_if(passes_, [](const auto& stream) { return stream.second.empty(); });
  if (forgotten > 0 || passes_.size() != passes_before) NoteJoined();
  std::erase_if(bytes_, [&](const auto& item) { return !in_use.contains(item.first); });
  std::erase_if(lists_, [&](const auto& item) { return !wanted.contains(item.first); });
}

// True if the pass is joined; tries what cannot be joined once.
bool TraceRegistry::Join(StreamId stream, PassNumber pass,
                         const std::vector<std::string_view>& ranks, std::uint64_t samples) {
  const auto passes = passes_.find(stream);
  if (passes != passes_.end()) {
    const auto known = passes->second.find(pass);
    if (known != passes->second.end()) {
      if (std::ranges::equal(known->second.ranks, ranks)) return true;
      Split(known->second, samples);  // it was another; some of its ranks may be the same
      passes->second.erase(known);
      NoteJoined();
    }
  }
  std::vector<std::string_view> lists;
  for (const std::string_view digest : ranks) {
    const auto found = lists_.find(digest);
    if (found == lists_.end()) return false;
    lists.push_back(*found->second);
  }
  Joined joined{.ranks = {ranks.begin(), ranks.end()}, .trace = {.pass = pass}};
  if (auto bytes = sampler::JoinLists(lists, samples)) {
    joined.trace.length = sampler::PassLength(sampler::ParseLists(*bytes, samples).value());
    joined.trace.digest = DigestHex(*bytes);
    bytes_.insert_or_assign(joined.trace.digest,
                            std::make_shared<const std::string>(*std::move(bytes)));
  }
  joined_.insert(joined.ranks.begin(), joined.ranks.end());
  passes_[stream].insert_or_assign(pass, std::move(joined));
  return true;
}

void TraceRegistry::Split(const Joined& pass, std::uint64_t samples) {
  const SharedText bytes = Bytes(pass.trace.digest);
  if (bytes == nullptr) return;
  const sampler::IdLists lists = sampler::ParseLists(*bytes, samples).value();
  for (std::size_t rank = 0; rank < pass.ranks.size(); ++rank) {
    std::string list = sampler::ListHeader(lists.lengths[rank], lists.bits);
    list += lists.packed[rank];
    lists_.insert_or_assign(pass.ranks[rank], std::make_shared<const std::string>(std::move(list)));
  }
}

void TraceRegistry::NoteJoined() {
  joined_.clear();
  for (const auto& [stream, passes] : passes_) {
    for (const auto& [number, pass] : passes)
      joined_.insert(pass.ranks.begin(), pass.ranks.end());
  }
}

std::vector<PassTrace> TraceRegistry::PassesOf(StreamId stream) const {
  std::vector<PassTrace> traces;
  const auto passes = passes_.find(stream);
  if (passes == passes_.end()) return traces;
  for (const auto& [number, pass] : passes->second) {
    if (pass.trace.digest.empty() || (!traces.empty() && number != traces.back().pass + 1)) break;
    traces.push_back(pass.trace);
  }
  return traces;
}

std::shared_ptr<const std::string> TraceRegistry::Bytes(std::string_view digest) const {
  const auto found = bytes_.find(digest);
  return found == bytes_.end() ? nullptr : found->second;
}

std::size_t TraceRegistry::bytes_held() const {
  std::size_t sum = 0;
  for (const auto* texts : {&lists_, &bytes_}) {
    for (const auto& [digest, text] : *texts)
      sum += text->size();
  }
  return sum;
}

}  // namespace optcache::coordination
