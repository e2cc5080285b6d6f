#include "sidecar/s3/key_order.h"

#include <algorithm>

#include "base/log.h"
#include "sampler/recipe.h"

namespace optcache::sidecar {
namespace {

constexpr const char* kLoader = "s3";

}  // namespace

Status KeyOrder::Attach(const DatasetPort& dataset, const sampler::PodRanks& ranks) {
  std::vector<Own> own;
  Status status;
  for (const Rank rank : ranks.ranks) {
    const auto reader = readers_.Attach(client_, {.dataset = &dataset,
                                                  .loader = kLoader,
                                                  .recipe = ranks.recipe,
                                                  .rank = rank,
                                                  .behind = kBehind});
    if (!reader) {
      status = reader.error();
      break;
    }
    own.push_back(
        {.reader = *reader, .length = sampler::RankLength(ranks.recipe), .epoch = ranks.epoch});
  }
  if (!status.ok()) {
    for (const Own& one : own)
      readers_.Detach(client_, one.reader);
    return status;
  }
  for (Own& one : own)
    BeginNext(one);
  own_[&dataset] = std::move(own);
  return OkStatus();
}

void KeyOrder::BeginNext(Own& own) {
  const RankReader& reader = *readers_.Find(own.reader);
  const PassNumber pass = reader.first_pass();
  own.taken = 0;
  own.repeats = 0;
  const Status begun = readers_.Begin(
      own.reader, {.pass = pass, .epoch = own.epoch + pass, .begin = 0, .end = own.length},
      std::nullopt);
  if (!begun.ok()) {
    Log(LogLevel::kWarning, "a pass could not be begun, samples are read as they are asked for",
        {{"stream", reader.attachment().stream_name}, {"reason", begun.message()}});
  }
}

bool KeyOrder::Awaits(const DatasetPort& dataset) const {
  const auto found = own_.find(&dataset);
  if (found == own_.end()) return false;
  return std::ranges::any_of(found->second, [this](const Own& own) {
    const RankReader* const reader = readers_.Find(own.reader);
    const Pass* const pass = reader == nullptr ? nullptr : reader->current();
    return pass != nullptr && !reader->ended() && pass->trusted() && pass->order() == nullptr;
  });
}

// Has the rank come to its next pass, now that it asks for what this one does not have?
bool KeyOrder::Ends(const Own& own, SampleId id) const {
  const RankReader* const reader = readers_.Find(own.reader);
  if (reader == nullptr || reader->ended()) return false;
  const Pass* const next = reader->next();
  if (next != nullptr && next->predicted() && !next->FindUnasked(id)) return false;
  return own.taken >= own.length || own.repeats > kRepeats;
}

bool KeyOrder::ReadsAgain(const DatasetPort& dataset, SampleId id, const KeyTag& last,
                          bool from_start) const {
  for (const auto& [number, reader] : readers_.readers()) {
    const Pass* const pass = reader.current();
    if (reader.ended() || reader.attachment().dataset != &dataset || pass == nullptr) continue;
    const bool later = number == last.reader && pass->span().pass != last.pass;
    if ((from_start || later) && pass->FindUnasked(id)) return true;
  }
  const auto found = own_.find(&dataset);
  return from_start && found != own_.end() &&
         std::ranges::any_of(found->second, [&](const Own& own) {
           if (!Ends(own, id)) return false;
           const Pass* const next = readers_.Find(own.reader)->next();
           return next != nullptr && next->FindUnasked(id) == next->span().begin;
         });
}

KeyTag KeyOrder::Take(const DatasetPort& dataset, SampleId id) {
  const auto found = own_.find(&dataset);
  const auto tag_of = [](ReaderId reader, const Pass& pass) {
    return KeyTag{.reader = reader, .pass = pass.span().pass};
  };
  for (auto& [number, reader] : readers_.readers()) {
    const Pass* const pass = reader.current();
    if (reader.ended() || reader.attachment().dataset != &dataset || pass == nullptr) continue;
    if (!pass->FindUnasked(id)) continue;
    if (found != own_.end()) {
      const auto own = std::ranges::find(found->second, number, &Own::reader);
      if (own != found->second.end()) ++own->taken;
    }
    return tag_of(number, *pass);
  }
  if (found == own_.end() || Awaits(dataset)) return {};
  for (Own& own : found->second)
    ++own.repeats;
  for (Own& own : found->second) {
    if (!Ends(own, id)) continue;
    BeginNext(own);
    const Pass* const pass = readers_.Find(own.reader)->current();
    if (!pass->FindUnasked(id)) return {};  // its order is still to come
    ++own.taken;
    return tag_of(own.reader, *pass);
  }
  return {};
}

}  // namespace optcache::sidecar
