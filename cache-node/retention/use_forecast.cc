#include "cache-node/retention/use_forecast.h"

#include <algorithm>
#include <tuple>

#include "cache/tiering.h"

namespace optcache::node {
namespace {

constexpr std::size_t kMaxStreamsForecast = 64;  // others' samples count as used at no known time

}  // namespace

PositionsOf FirstPositions(const std::vector<SampleId>& order, std::uint32_t samples,
                           const StopCheck& stop) {
  const auto positions = std::make_shared<std::vector<std::uint32_t>>();
  Fill(*positions, samples, kNotRead, stop);
  if (stop.Now()) return positions;  // they may be short
  for (std::size_t i = std::min<std::size_t>(order.size(), kNotRead); i-- > 0 && !stop.At(i);)
    (*positions)[order[i]] = static_cast<std::uint32_t>(i);
  return positions;
}

void UseForecast::Add(StreamId stream, PassNumber pass, Position length, PositionsOf positions) {
  if (!streams_.contains(stream) && streams_.size() >= kMaxStreamsForecast) return;
  Stream& known = streams_[stream];
  if (pass < known.pass) return;
  known.passes[pass] = {.length = length, .positions = std::move(positions)};
}

void UseForecast::OnRead(StreamId stream, PassNumber pass, Position position) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  Stream& known = found->second;
  if (std::tie(pass, position) <= std::tie(known.pass, known.position)) return;
  known.pass = pass;
  known.position = position;
  known.passes.erase(known.passes.begin(), known.passes.lower_bound(pass));
}

void UseForecast::ForgetStream(StreamId stream) {
  streams_.erase(stream);
}

double UseForecast::NextUse(SampleId id) const {
  double soonest = cache::kUseUnknown;
  for (const auto& [_, stream] : streams_) {
    double before = -static_cast<double>(stream.position);
    for (const auto& [pass, one] : stream.passes) {
      const std::uint32_t position = id < one.positions->size() ? (*one.positions)[id] : kNotRead;
      const bool over = pass == stream.pass && position <= stream.position;
      if (position != kNotRead && !over) {
        soonest = std::min(soonest, before + static_cast<double>(position));
        break;
      }
      before += static_cast<double>(one.length);
    }
  }
  return soonest;
}

}  // namespace optcache::node
