#include "net/connection.h"

#include <string>

namespace optcache::net {

void TrafficCounters::Visit(const CounterVisitor& visitor, const MetricLabels& labels) const {
  const auto count = [&](std::string_view name, std::uint64_t value) {
    visitor(MetricKind::kCounter, name, labels, static_cast<double>(value));
  };
  count("optcache_net_received_bytes_total", bytes_in);
  count("optcache_net_sent_bytes_total", bytes_out);
  count("optcache_net_received_frames_total", frames_in);
  count("optcache_net_sent_frames_total", frames_out);
  count("optcache_net_corrupt_payloads_total", corrupt_payloads);
  count("optcache_net_refused_payloads_total", refused_payloads);
  count("optcache_net_unsendable_messages_total", unsendable_messages);
  for (std::size_t i = 0; i < closed.size(); ++i) {
    MetricLabels with_code = labels;
    with_code.emplace_back("code", CodeName(static_cast<Code>(i)));
    visitor(MetricKind::kCounter, "optcache_net_closed_connections_total", with_code,
            static_cast<double>(closed.at(i)));
  }
}

}  // namespace optcache::net
