#include "cache-node/planning/plan_parts.h"

#include <optional>
#include <set>

#include "base/log.h"
#include "coordination/desired_state.h"
#include "coordination/plan_base.h"

namespace optcache::node {
namespace {

using coordination::DatasetState;

// Of passes that the plan reaches.
std::set<std::string> ListsOf(const DatasetState& dataset) {
  std::set<std::string> digests;
  for (const auto& stream : dataset.streams) {
    for (const auto& trace : stream.traces) {
      if (stream.complete && trace.pass >= stream.cut.pass) digests.insert(trace.digest);
    }
  }
  return digests;
}

Result<PlanTask::Base> ReadBase(const std::string& bytes) {
  ASSIGN_OR_RETURN(coordination::PlanBase base, coordination::DecodePlanBase(bytes));
  PlanTask::Base holdings;
  for (auto& member : base.members)
    holdings.emplace_back(member.member, std::move(member.ids));
  return holdings;
}

}  // namespace

// Of one plan: what is not here yet.
struct PlanParts::Fetching {
  std::string base;
  Parts parts;
  Status problem;
  std::size_t awaited = 0;
  Done done;

  void Take(const std::string& digest, Result<std::string> bytes) {
    if (!bytes) {
      problem = std::move(bytes).error();
    } else if (digest != base) {
      parts.lists[digest] = std::make_shared<const std::string>(*std::move(bytes));
    } else if (auto read = ReadBase(*bytes)) {
      parts.base = *std::move(read);
    } else {
      problem = std::move(read).error();
    }
    EndOne();
  }
  void EndOne() {
    if (--awaited > 0) return;
    done(problem.ok() ? Result<Parts>(std::move(parts)) : Error(problem));
  }
};

void PlanParts::Get(const DatasetState& dataset, Done done) {
  std::set<std::string> named;
  for (const DatasetState* one : coordination::AllDatasets(state_))
    named.merge(ListsOf(*one));
  std::erase_if(lists_, [&](const auto& list) { return !named.contains(list.first); });

  const auto fetching = std::make_shared<Fetching>();
  fetching->base = dataset.base_digest;
  fetching->done = std::move(done);
  fetching->awaited = 1;  // this call
  for (const std::string& digest : ListsOf(dataset)) {
    if (const auto here = lists_.find(digest); here != lists_.end()) {
      fetching->parts.lists.insert(*here);
    } else {
      Want(digest, fetching);
    }
  }
  if (!dataset.base_digest.empty()) Want(dataset.base_digest, fetching);
  fetching->EndOne();
}

void PlanParts::Want(const std::string& digest, const std::shared_ptr<Fetching>& fetching) {
  ++fetching->awaited;
  const bool is_base = digest == fetching->base;
  const auto take = [this, digest, is_base, fetching](Result<std::string> bytes) {
    fetching->Take(digest, std::move(bytes));
    const auto list = fetching->parts.lists.find(digest);
    if (!is_base && list != fetching->parts.lists.end()) lists_.insert(*list);
  };
  if (dir_ != nullptr) {
    if (auto kept = dir_->LoadPart(digest)) return take(*std::move(kept));
  }
  const auto fetched = guard_.Wrap([this, digest, take](Result<std::string> bytes) {
    if (dir_ != nullptr && bytes) {
      const Status kept = dir_->SavePart(digest, *bytes, state_);
      if (!kept.ok()) {
        Log(LogLevel::kWarning, "a part of a plan is not kept", {{"why", kept.ToString()}});
      }
    }
    take(std::move(bytes));
  });
  if (is_base) {
    control_.FetchBase(digest, fetched);
  } else {
    control_.FetchTrace(digest, fetched);
  }
}

}  // namespace optcache::node
