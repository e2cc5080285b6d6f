#pragma once

// Keeps a TlsContext as its files are: Secrets, ConfigMaps and projected volumes change under way,
// by the swap of a symbolic link.

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/event_loop.h"
#include "net/tls.h"

namespace optcache::net {

// Empty: there is none.
struct TlsPaths {
  std::string chain;
  std::string key;
  std::string trust;
};

// Reads the files now and every `interval`. What is missing or bad is logged once and leaves the
// context as it was, until the files change again. Used on the loop's thread only.
class TlsFiles {
 public:
  TlsFiles(EventLoop& loop, TlsPaths paths, std::shared_ptr<TlsContext> context,
           Duration interval = std::chrono::seconds(10));
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  // Of the latest look.
  const Status& status() const;
  // Looks now.
  void Check();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace optcache::net
