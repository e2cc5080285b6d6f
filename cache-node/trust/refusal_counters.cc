#include "cache-node/trust/refusal_counters.h"

#include "base/log.h"

namespace optcache::node {

std::string_view RefusedName(Refused reason) {
  switch (reason) {
    case Refused::kToken:
      return "token";
    case Refused::kReview:
      return "review";
    case Refused::kPod:
      return "pod";
    case Refused::kNamespace:
      return "namespace";
    case Refused::kStream:
      return "stream";
    case Refused::kPut:
      return "put";
    case Refused::kManifest:
      return "manifest";
    case Refused::kCertificate:
      return "certificate";
    case Refused::kLimit:
      return "limit";
  }
  return "";
}

void RefusalCounters::Note(Refused reason, std::string_view who, std::string_view why) {
  Kind& kind = kinds_.at(Index(reason));
  ++kind.count;
  const auto not_logged = kind.log.Pass(clock_.Now());
  if (!not_logged) return;
  Log(LogLevel::kWarning, "refused",
      {{"reason", RefusedName(reason)}, {"who", who}, {"why", why}, {"not_logged", *not_logged}});
}

void RefusalCounters::VisitCounters(const CounterVisitor& visitor) const {
  for (std::size_t i = 0; i < kReasons; ++i) {
    visitor(MetricKind::kCounter, "optcache_refusals_total",
            {{"reason", std::string(RefusedName(static_cast<Refused>(i)))}},
            static_cast<double>(kinds_.at(i).count));
  }
}

}  // namespace optcache::node
