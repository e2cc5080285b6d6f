#pragma once

// For `helm test`: whether the API server asks the injector about pods of a namespace.

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "kube/client.h"
#include "net/event_loop.h"

namespace optcache::manager {

// A pod whose Dataset cannot exist: the injector refuses it.
kube::Json BuildCheckPod(const std::string& ns);

// What the API server's answer to that pod says of the injector. Ok: it was asked. kUnavailable:
// the API server did not reach it, or was not reached: try again. Others: an answer of somebody
// else, with their words.
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
