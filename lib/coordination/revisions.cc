#include "coordination/revisions.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "coordination/stream_recipe.h"
#include "dataset/digest.h"
#include "sampler/recipe_text.h"

namespace optcache::coordination {
namespace {

constexpr std::size_t kUidDigits = 8;

}  // namespace

StreamNameParts PartsOf(std::string_view stream) {
  std::string_view parts[4];
  for (std::size_t i = 0; i < std::size(parts) && !stream.empty(); ++i) {
    // The loader is what remains.
    const std::size_t end = i + 1 < std::size(parts) ? stream.find('/') : stream.npos;
    parts[i] = stream.substr(0, end);
    stream.remove_prefix(std::min(parts[i].size() + 1, stream.size()));
  }
  return {.name_space = parts[0], .owner = parts[1], .dataset = parts[2], .loader = parts[3]};
}

std::string_view JobOf(std::string_view stream) {
  const std::string_view owner = PartsOf(stream).owner;
  if (owner.size() <= kUidDigits + 1) return owner;
  const std::string_view end = owner.substr(owner.size() - kUidDigits - 1);
  const bool is_uid =
      end.front() == '.' && end.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
  return is_uid ? owner.substr(0, owner.size() - end.size()) : owner;
}

const Recipe* RecipeOf(const std::vector<JobRecipe>& jobs, const StreamState& stream) {
  const auto job = std::ranges::find(jobs, JobOf(stream.name), &JobRecipe::job);
  return job == jobs.end() || job->recipe.world != stream.recipe.world ? nullptr : &job->recipe;
}

std::string DifferenceFrom(const std::vector<JobRecipe>& jobs, const StreamState& announced) {
  const auto job = std::ranges::find(jobs, JobOf(announced.name), &JobRecipe::job);
  if (job == jobs.end()) return {};
  if (job->recipe.world != announced.recipe.world) {
    return "ranks: " + std::to_string(job->recipe.world) + " (CachePlan), " +
           std::to_string(announced.recipe.world) + " (job)";
  }
  Recipe written = job->recipe;
  written.size = announced.recipe.size;  // of the manifest
  const auto first = SamplerRecipe(written);
  const auto second = SamplerRecipe(announced.recipe);
  if (!first || !second || *first == *second) return {};
  return sampler::FirstDifference(*first, *second) + " (CachePlan, then the job)";
}

std::vector<StreamState> StreamsOf(const RevisionState& revision,
                                   std::vector<StreamState> streams) {
  for (const StreamRecipe& recipe : revision.recipes) {
    const auto stream = std::ranges::find(streams, recipe.stream, &StreamState::id);
    if (stream != streams.end()) stream->recipe = recipe.recipe;
  }
  return streams;
}

const RevisionState& FollowedBy(MemberId member, const Assignment& assignment) {
  const bool updated =
      assignment.update && std::ranges::binary_search(assignment.update->members, member);
  return updated ? assignment.update->revision : assignment.own;
}

std::vector<StreamState> ExpectedStreams(const std::vector<JobRecipe>& jobs,
                                         std::string_view dataset,
                                         const std::vector<StreamState>& streams,
                                         const std::vector<MemberCapacity>& members) {
  std::vector<StreamState> expected;
  if (members.empty()) return expected;
  const std::size_t slash = dataset.find('/');
  for (const JobRecipe& job : jobs) {
    const bool reads = std::ranges::any_of(
        streams, [&job](const StreamState& stream) { return JobOf(stream.name) == job.job; });
    if (reads) continue;
    StreamState& stream = expected.emplace_back();
    stream.name = std::string(dataset.substr(0, slash)) + "/" + job.job +
                  std::string(dataset.substr(slash)) + "/expected";
    stream.id = dataset::KeyOf(stream.name, "expected");
    stream.incarnation = 1;
    stream.recipe = job.recipe;
    for (Rank rank = 0; rank < job.recipe.world; ++rank)
      stream.node_of_rank.push_back(members[rank % members.size()].member);
    stream.complete = true;
  }
  std::ranges::sort(expected, {}, &StreamState::id);
  return expected;
}

}  // namespace optcache::coordination
