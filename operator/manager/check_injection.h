#pragma once

// For `helm test`: whether pods of a namespace are injected, and admitted as they are then.

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "kube/client.h"
#include "net/event_loop.h"

namespace optcache::manager {

// A pod that uses webhook::kCheckDataset.
kube::Json BuildCheckPod(const std::string& ns);

// What the API server's answer to that pod says. Ok: it was admitted with a sidecar. kUnavailable:
// the API server did not reach the injector, or was not reached: try again. Others: the pod was
// refused, with the words of who did.
Status ReadCheck(const kube::ApiResult<kube::Json>& answer);

// Creates the pod as a dry run, again and again until the injector was asked or `timeout` is over;
// then calls back once. Used on the loop's thread only; must outlive the call back.
class InjectionCheck {
 public:
  InjectionCheck(net::EventLoop& loop, const Clock& clock, kube::Client& client, std::string ns,
                 Duration timeout, std::function<void(Status)> done);

 private:
  void Try();

  net::EventLoop& loop_;
  const Clock& clock_;
  kube::Client& client_;
  const std::string ns_;
  const MonotonicTime deadline_;
  std::function<void(Status)> done_;
  net::Timer again_;
};

}  // namespace optcache::manager
