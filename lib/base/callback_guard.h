#pragma once

// For callbacks that may come after the end of the object that they work for.
//
//   class Reader {
//     void Read() { disk_.Read(guard_.Wrap([this](Bytes bytes) { OnBytes(bytes); })); }
//     ...
//     CallbackGuard guard_;  // last
//   };

#include <concepts>
#include <memory>
#include <utility>

namespace optcache {

// A member, declared last: it goes before all that the callbacks use. Belongs to one thread, on
// which its owner ends and what it has wrapped is called. Other threads may copy, move and destroy
// tokens and wrapped callbacks, and may not ask the guard for more.
class CallbackGuard {
 public:
  CallbackGuard() = default;
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

  // Calls `work`, or does nothing once the guard has gone.
  template <typename Work>
  auto Wrap(Work work) const {
    return [life = token(),
            work = std::move(work)]<typename... Arguments>(Arguments&&... arguments) mutable
      requires std::invocable<Work&, Arguments...>
    {
      if (!life.expired()) work(std::forward<Arguments>(arguments)...);
    };
  }

  // Is expired() once the guard has gone. Needed by code that goes on after a call that may end the
  // guard's owner, and by code that does something else once the guard has gone.
  using Token = std::weak_ptr<const void>;
  Token token() const { return life_; }

 private:
  const std::shared_ptr<const void> life_ = std::make_shared<char>();
};

}  // namespace optcache
