#include "sidecar/fetch/put_window.h"

namespace optcache::sidecar {

bool PutWindow::Admits(ByteCount size) const {
  const NodeTraffic traffic = node_.traffic();
  const ByteCount ahead = traffic.queued + reading_bytes_;
  if (ahead == 0) return true;
  return ahead + size <= limits_.staged_bytes &&
         traffic.queued_messages + reading_ < limits_.staged_samples;
}

void PutWindow::Begin(ByteCount size) {
  reading_bytes_ += size;
  ++reading_;
}

void PutWindow::End(ByteCount size) {
  reading_bytes_ -= size;
  --reading_;
}

bool PutWindow::TakesPut() const {
  const NodeTraffic traffic = node_.traffic();
  return traffic.queued <= limits_.queued_bytes &&
         traffic.queued_messages <= limits_.queued_messages;
}

}  // namespace optcache::sidecar
