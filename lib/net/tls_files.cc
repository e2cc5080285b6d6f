#include "net/tls_files.h"

#include <optional>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "net/periodic_timer.h"

namespace optcache::net {
namespace {

constexpr ByteCount kMaxFileBytes = 1_MiB;

Result<std::string> ReadIfNamed(const std::string& path) {
  if (path.empty()) return std::string();
  return ReadFile(path, kMaxFileBytes);
}

Result<TlsMaterial> ReadAll(const TlsPaths& paths) {
  TlsMaterial material;
  ASSIGN_OR_RETURN(material.chain, ReadIfNamed(paths.chain));
  ASSIGN_OR_RETURN(material.key, ReadIfNamed(paths.key));
  ASSIGN_OR_RETURN(material.trust, ReadIfNamed(paths.trust));
  return material;
}

const std::string& NameOf(const TlsPaths& paths) {
  return paths.chain.empty() ? paths.trust : paths.chain;
}

}  // namespace

class TlsFiles::Impl {
 public:
  Impl(EventLoop& loop, TlsPaths paths, std::shared_ptr<TlsContext> context, Duration interval)
      : paths_(std::move(paths)), context_(std::move(context)) {
    Check();
    timer_ = PeriodicTimer(loop, interval, [this] { Check(); });
  }

  void Check() {
    auto read = ReadAll(paths_);
    if (!read) return Tell(std::move(read).error());
    if (latest_ == *read) return Tell(replaced_);
    // The files are exchanged together, but not read together: if a second look differs, the
    // exchange came between, and the next check sees all of it.
    const auto again = ReadAll(paths_);
    if (!again || *again != *read) return;
    replaced_ = context_->Replace(*read);
    latest_ = *std::move(read);
    if (replaced_.ok()) Log(LogLevel::kInfo, "certificates read", {{"file", NameOf(paths_)}});
    Tell(replaced_);
  }

  const Status& status() const { return status_; }

 private:
  void Tell(Status status) {
    if (!status.ok() && status != status_) {
      Log(LogLevel::kWarning, "certificates cannot be read; those read before stay in use",
          {{"file", NameOf(paths_)}, {"error", status.message()}});
    }
    status_ = std::move(status);
  }

  const TlsPaths paths_;
  const std::shared_ptr<TlsContext> context_;  // shared with the servers and clients that use it
  std::optional<TlsMaterial> latest_;          // what was tried last, good or bad
  Status replaced_;                            // how that went
  Status status_;
  PeriodicTimer timer_;
};

TlsFiles::TlsFiles(EventLoop& loop, TlsPaths paths, std::shared_ptr<TlsContext> context,
                   Duration interval)
    : impl_(std::make_unique<Impl>(loop, std::move(paths), std::move(context), interval)) {}

TlsFiles::~TlsFiles() = default;

const Status& TlsFiles::status() const {
  return impl_->status();
}

void TlsFiles::Check() {
  impl_->Check();
}

}  // namespace optcache::net
