// coordinator_test_server [HOST:PORT]: hosts a coordinator, as `optcache up` and the operator do,
// but with one Dataset that can be indexed again while it runs. Each line on standard input is
// "DATASET CAPACITY FILE": from then on the Dataset has the manifest in that file. Ends with
// standard input.

#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

#include "base/files.h"
#include "base/log.h"
#include "control/control_server.h"
#include "dataset/manifest.h"
#include "net/event_loop.h"

namespace optcache {
namespace {

class Host {
 public:
  Status Run(const control::ControlServerOptions& options) {
    ASSIGN_OR_RETURN(server_, control::ControlServer::Start(loop_, SystemClock(), options));
    Say("url", server_->url());
    input_ = loop_.WatchReadable(STDIN_FILENO, [this] { Read(); });
    loop_.Run();
    return result_;
  }

 private:
  void Read() {
    std::array<char, 4096> some{};
    const ssize_t count = ::read(STDIN_FILENO, some.data(), some.size());
    if (count < 0) return;  // not yet
    if (count == 0) return End(OkStatus());
    text_.append(some.data(), static_cast<std::size_t>(count));
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      const Status status = Take(text_.substr(0, end));
      if (!status.ok()) return End(status);
      text_.erase(0, end + 1);
    }
  }

  Status Take(const std::string& line) {
    std::istringstream words(line);
    coordination::DatasetSpec spec;
    std::string file;
    if (!(words >> spec.name >> spec.capacity >> file)) {
      return {Code::kInvalidArgument, "\"" + line + "\" is not DATASET CAPACITY FILE"};
    }
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(file, dataset::kManifestBytesMax));
    auto kept = std::make_shared<const std::string>(bytes);
    ASSIGN_OR_RETURN(const dataset::Manifest manifest, dataset::Manifest::Parse(std::move(bytes)));
    spec.manifest_digest = dataset::ToHex(manifest.digest());
    spec.key = dataset::KeyOf(spec.name, spec.manifest_digest);
    spec.samples = manifest.samples();
    spec.bytes = manifest.total_bytes();
    const std::string digest = spec.manifest_digest;
    server_->service().SetDatasets({std::move(spec)}, {{digest, std::move(kept)}});
    Say("manifest", digest);
    return OkStatus();
  }

  void End(const Status& status) {
    result_ = status;
    input_.Cancel();
    loop_.Stop();
  }

  static void Say(const char* what, const std::string& text) {
    std::printf("%s %s\n", what, text.c_str());
    std::fflush(stdout);
  }

  net::EventLoop loop_;
  std::unique_ptr<control::ControlServer> server_;
  net::Watch input_;
  std::string text_;
  Status result_;
};

}  // namespace
}  // namespace optcache

int main(int argc, char** argv) {
  optcache::SetUpLog("coordinator_test_server", optcache::LogLevel::kInfo,
                     optcache::LogFormat::kText);
  optcache::control::ControlServerOptions options;
  if (argc > 1) options.address = argv[1];
  optcache::Host host;
  const optcache::Status status = host.Run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
