// CPU seconds a gigabyte, both sides together, for samples from a server's memory to a client's
// over loopback TCP: our connection (every payload summed by CRC-32C), plain, sealed after TLS and
// in TLS throughout, beside memcached (no sums), plain and in TLS; in one run, in alternation, with
// the same samples and batches. Then what a reader is left with while another source does TLS
// handshakes with the same server as fast as it can, beside what it has alone. Prints JSON, a line
// a round.
//
//   bench_wire --gigabytes 1 --rounds 3

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "bench/handshake_attack.h"
#include "bench/memcached_peer.h"
#include "net/dialer.h"
#include "net/event_loop.h"
#include "net/server.h"
#include "support/temp_dir.h"
#include "support/test_ca.h"

namespace optcache::bench {
namespace {

struct Options {
  double gigabytes = 1;  // a round and case
  int rounds = 3;
  int attacks = 3;  // rounds with handshakes; without `rounds`, memcached is not needed
  std::size_t sample_bytes = 110'000;
  std::uint32_t samples = 1024;
};

constexpr std::size_t kSlots = 64;  // where samples go at the client, in turn

double CpuSeconds(pid_t pid) {
  clockid_t clock = 0;
  CHECK(::clock_getcpuclockid(pid, &clock) == 0);
  timespec time = {};
  CHECK(::clock_gettime(clock, &time) == 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double WallSeconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Cost {
  double client_cpu_s_gb = 0;
  double server_cpu_s_gb = 0;
  double gb_s = 0;
  double handshakes_s = 0;
};

// Runs `work`, which moves `bytes`, and says what it cost.
Cost Measure(pid_t server, double bytes, const std::function<void()>& work) {
  const double client_before = CpuSeconds(::getpid());
  const double server_before = CpuSeconds(server);
  const double begin = WallSeconds();
  work();
  const double gb = bytes / 1e9;
  return {.client_cpu_s_gb = (CpuSeconds(::getpid()) - client_before) / gb,
          .server_cpu_s_gb = (CpuSeconds(server) - server_before) / gb,
          .gb_s = gb / (WallSeconds() - begin)};
}

class Samples {
 public:
  Samples(std::uint32_t count, std::size_t size) : bytes_(count * size), size_(size) {
    Random random(1);
    for (std::byte& b : bytes_)
      b = static_cast<std::byte>(random.Next());
    for (std::uint32_t id = 0; id < count; ++id)
      crcs_.push_back(Crc32c((*this)[id]));
  }
  ByteSpan operator[](SampleId id) const { return ByteSpan(bytes_).subspan(id * size_, size_); }
  std::uint32_t crc(SampleId id) const { return crcs_[id]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(crcs_.size()); }
  std::size_t size() const { return size_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t size_;
  std::vector<std::uint32_t> crcs_;
};

// --- Our server and client --------------------------------------------------------------------

class MemoryHandler final : public net::ConnectionHandler {
 public:
  explicit MemoryHandler(const Samples& samples) : samples_(samples) {}
  void OnOpen(net::Connection&) override {}
  void OnMessage(net::Connection& connection, std::uint32_t request_id,
                 wire::Message message) override {
    const auto& get = std::get<wire::Get>(message);
    for (std::uint32_t i = 0; i < get.items.size(); ++i) {
      const SampleId id = get.items[i].id;
      connection.Send(
          request_id,
          wire::SampleReply{.index = i, .answer = wire::Answer::kHere, .crc = samples_.crc(id)},
          samples_[id], nullptr);
    }
  }
  void OnClosed(net::Connection&, const Status&) override {}

 private:
  const Samples& samples_;
};

// Asks for batch after batch, each when the one before is complete.
class FetchHandler final : public net::ConnectionHandler {
 public:
  FetchHandler(net::EventLoop& loop, std::size_t sample_bytes)
      : loop_(loop), sample_bytes_(sample_bytes), slots_(kSlots * sample_bytes) {}

  void OnOpen(net::Connection& connection) override {
    connection_ = &connection;
    loop_.Stop();
  }
  void OnMessage(net::Connection&, std::uint32_t, wire::Message) override { CHECK(false); }
  net::PayloadSink OnPayloadStart(net::Connection&, std::uint32_t, const wire::Message&,
                                  ByteCount length) override {
    CHECK(length == sample_bytes_);
    next_slot_ = (next_slot_ + 1) % kSlots;
    return {.destination =
                MutableByteSpan(slots_).subspan(next_slot_ * sample_bytes_, sample_bytes_)};
  }
  void OnPayload(net::Connection&, std::uint32_t, wire::Message, Status status) override {
    CHECK(status.ok());
    if (--waiting_ == 0) Ask();
  }
  void OnClosed(net::Connection&, const Status& status) override { CHECK(status.ok()); }

  void Fetch(std::uint64_t count, std::uint32_t batch, std::uint32_t samples) {
    left_ = count;
    batch_ = batch;
    samples_ = samples;
    Ask();
    loop_.Run();
  }

 private:
  void Ask() {
    if (left_ == 0) return loop_.Stop();
    wire::Get get;
    for (std::uint32_t i = 0; i < batch_; ++i)
      get.items.push_back({.id = next_++ % samples_});
    waiting_ = batch_;
    left_ -= std::min<std::uint64_t>(left_, batch_);
    connection_->Send(1, get);
  }

  net::EventLoop& loop_;
  std::size_t sample_bytes_;
  std::vector<std::byte> slots_;
  std::size_t next_slot_ = 0;
  net::Connection* connection_ = nullptr;
  std::uint64_t left_ = 0;
  std::uint32_t batch_ = 1;
  std::uint32_t samples_ = 1;
  std::uint32_t waiting_ = 0;
  std::uint32_t next_ = 0;
};

// The ways in which we and memcached carry samples.
enum class Way { kPlain, kBulk, kTls };
constexpr std::array<Way, 3> kWays = {Way::kPlain, Way::kBulk, Way::kTls};
// And one port of ours that begins TLS handshakes as fast as they come.
constexpr std::size_t kNoPace = kWays.size();
using Ports = std::array<int, kWays.size() + 1>;

// In a process of its own; writes its ports to `port_fd` and serves until it is killed.
[[noreturn]] void ServeForever(const Samples& samples, const net::TestCa& ca, int port_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  net::EventLoop loop;
  const auto tls = ca.Server({"optcache-node"});
  std::vector<std::unique_ptr<net::Server>> servers;
  Ports ports = {};
  const auto listen = [&](std::size_t place, net::ServerOptions options) {
    auto server = net::Listen(loop, "127.0.0.1:0", std::move(options),
                              std::make_shared<MemoryHandler>(samples));
    CHECK(server.has_value());
    ports.at(place) = (*server)->port();
    servers.push_back(std::move(*server));
  };
  for (const Way way : kWays) {
    net::ServerOptions options;
    if (way != Way::kPlain) options.tls = tls;
    options.bulk = way == Way::kBulk;
    listen(static_cast<std::size_t>(way), std::move(options));
  }
  constexpr int kAny = 1'000'000'000;
  listen(kNoPace, {.max_silent_of_source = kAny,
                   .tls = tls,
                   .handshakes = {.per_second = kAny,
                                  .burst = kAny,
                                  .per_second_of_source = kAny,
                                  .burst_of_source = kAny}});
  CHECK(::write(port_fd, ports.data(), sizeof(ports)) == sizeof(ports));
  loop.Run();
  ::_exit(0);
}

// Our side of a comparison: connections to that process.
class Clients {
 public:
  Clients(const Samples& samples, const net::TestCa& ca, const Ports& ports) : samples_(samples) {
    for (const Way way : kWays) {
      net::DialOptions options{.connect_deadline = std::chrono::seconds(5)};
      if (way != Way::kPlain) options.tls = ca.Client();
      options.bulk = way == Way::kBulk;
      const auto port = ports.at(static_cast<std::size_t>(way));
      fetchers_.push_back(std::make_shared<FetchHandler>(loop_, samples.size()));
      connections_.push_back(net::Dial(loop_, "127.0.0.1:" + std::to_string(port),
                                       std::move(options), fetchers_.back()));
      loop_.Run();
    }
  }
  ~Clients() {
    for (const auto& connection : connections_)
      connection->Close(OkStatus());
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
  }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void Fetch(Way way, std::uint64_t count, std::uint32_t batch) {
    fetchers_.at(static_cast<std::size_t>(way))->Fetch(count, batch, samples_.count());
  }

 private:
  const Samples& samples_;
  net::EventLoop loop_;
  std::vector<std::shared_ptr<FetchHandler>> fetchers_;
  std::vector<std::shared_ptr<net::Connection>> connections_;
};

// --- The comparison ---------------------------------------------------------------------------

struct Case {
  const char* name;
  std::uint32_t batch;
  std::vector<Cost> costs;  // a round each
};

void Print(const std::vector<Case>& cases) {
  std::vector<std::string> results;
  for (const Case& c : cases) {
    for (const Cost& cost : c.costs) {
      results.push_back(fmt::format(
          R"({{"name": "{}", "batch": {}, "client_cpu_s_gb": {:.4f}, "server_cpu_s_gb": {:.4f}, )"
          R"("gb_s": {:.3f}, "handshakes_s": {:.0f}}})",
          c.name, c.batch, cost.client_cpu_s_gb, cost.server_cpu_s_gb, cost.gb_s,
          cost.handshakes_s));
    }
  }
  fmt::print("[{}]\n", fmt::join(results, ",\n "));
}

Status FetchFromMemcached(MemcachedClient& client, const Samples& samples, std::uint64_t count,
                          std::uint32_t batch, std::vector<std::byte>& slots) {
  std::uint32_t next = 0;
  std::size_t slot = 0;
  for (std::uint64_t done = 0; done < count; done += batch) {
    std::vector<std::uint32_t> ids;
    std::vector<MutableByteSpan> sinks;
    for (std::uint32_t i = 0; i < batch; ++i) {
      ids.push_back(next++ % samples.count());
      slot = (slot + 1) % kSlots;
      sinks.push_back(MutableByteSpan(slots).subspan(slot * samples.size(), samples.size()));
    }
    RETURN_IF_ERROR(client.Get(ids, sinks));
  }
  return OkStatus();
}

// memcached with all samples, and a client.
struct Memcached {
  MemcachedServer server;
  MemcachedClient client;

  static Result<Memcached> Start(const Samples& samples, const MemcachedTls* tls) {
    ASSIGN_OR_RETURN(MemcachedServer server, MemcachedServer::Start(tls));
    ASSIGN_OR_RETURN(MemcachedClient client, MemcachedClient::Connect(server.port(), tls));
    for (std::uint32_t id = 0; id < samples.count(); ++id) {
      RETURN_IF_ERROR(client.Set(id, samples[id]));
    }
    return Memcached{.server = std::move(server), .client = std::move(client)};
  }
};

MemcachedTls WriteFiles(const TempDir& directory, const net::TestCa& ca) {
  const net::TlsMaterial material = ca.Leaf({"memcached"});
  directory.Write("chain.pem", material.chain);
  directory.Write("key.pem", material.key);
  directory.Write("ca.pem", material.trust);
  return {.chain_file = directory.Join("chain.pem"),
          .key_file = directory.Join("key.pem"),
          .ca_file = directory.Join("ca.pem")};
}

// Fetches from the server's memory: count, and what that is in bytes.
struct Work {
  std::uint64_t count = 0;
  double bytes = 0;

  Work(const Options& options, const Samples& samples)
      : count(static_cast<std::uint64_t>(options.gigabytes * 1e9 /
                                         static_cast<double>(samples.size())) /
                  16 * 16 +
              16),
        bytes(static_cast<double>(count * samples.size())) {}
};

// A reader alone, beside a source that does handshakes, and beside one that no pace holds back.
std::vector<Case> MeasureAttacks(const Options& options, pid_t node, const Ports& ports,
                                 const Work& work, Clients& clients) {
  constexpr std::uint32_t kBatch = 16;
  constexpr int kConnections = 64;
  std::vector<Case> cases;
  for (const char* name : {"alone", "attacked", "attacked_without_pace"})
    cases.push_back({.name = name, .batch = kBatch, .costs = {}});
  const auto read = [&] {
    return Measure(node, work.bytes, [&] { clients.Fetch(Way::kBulk, work.count, kBatch); });
  };
  const auto read_beside = [&](std::size_t port) {
    const HandshakeAttack attack(static_cast<std::uint16_t>(ports.at(port)), kConnections);
    while (attack.done() < kConnections)
      std::this_thread::yield();
    const std::uint64_t before = attack.done();
    const double begin = WallSeconds();
    Cost cost = read();
    cost.handshakes_s = static_cast<double>(attack.done() - before) / (WallSeconds() - begin);
    return cost;
  };
  for (int round = 0; round < options.attacks; ++round) {
    cases[0].costs.push_back(read());
    cases[1].costs.push_back(read_beside(static_cast<std::size_t>(Way::kBulk)));
    cases[2].costs.push_back(read_beside(kNoPace));
  }
  return cases;
}

// Beside memcached, in turns.
Result<std::vector<Case>> MeasureCosts(const Options& options, const net::TestCa& ca, pid_t node,
                                       const Samples& samples, const Work& work, Clients& clients) {
  const TempDir directory;
  const MemcachedTls files = WriteFiles(directory, ca);
  ASSIGN_OR_RETURN(Memcached plain, Memcached::Start(samples, nullptr));
  ASSIGN_OR_RETURN(Memcached tls, Memcached::Start(samples, &files));
  std::vector<std::byte> slots(kSlots * samples.size());

  Status status;
  const auto ours = [&](Way way, std::uint32_t batch) {
    return Measure(node, work.bytes, [&] { clients.Fetch(way, work.count, batch); });
  };
  const auto theirs = [&](Memcached& memcached, std::uint32_t batch) {
    return Measure(memcached.server.pid(), work.bytes, [&] {
      if (!status.ok()) return;
      status = FetchFromMemcached(memcached.client, samples, work.count, batch, slots);
    });
  };
  std::vector<Case> cases;
  for (const std::uint32_t batch : {1U, 16U}) {
    for (const char* name :
         {"optcache", "optcache_bulk", "memcached", "optcache_tls", "memcached_tls"}) {
      cases.push_back({.name = name, .batch = batch, .costs = {}});
    }
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < cases.size(); i += 5) {
      const std::uint32_t batch = cases[i].batch;
      cases[i].costs.push_back(ours(Way::kPlain, batch));
      cases[i + 1].costs.push_back(ours(Way::kBulk, batch));
      cases[i + 2].costs.push_back(theirs(plain, batch));
      cases[i + 3].costs.push_back(ours(Way::kTls, batch));
      cases[i + 4].costs.push_back(theirs(tls, batch));
    }
    RETURN_IF_ERROR(status);
  }
  return cases;
}

Status Run(const Options& options) {
  const Samples samples(options.samples, options.sample_bytes);
  const net::TestCa ca;
  std::array<int, 2> ends = {};
  CHECK(::pipe(ends.data()) == 0);
  const pid_t node = ::fork();
  if (node == 0) ServeForever(samples, ca, ends[1]);
  Ports ports = {};
  CHECK(::read(ends[0], ports.data(), sizeof(ports)) == sizeof(ports));
  Clients clients(samples, ca, ports);
  const Work work(options, samples);
  std::vector<Case> cases = MeasureAttacks(options, node, ports, work, clients);
  if (options.rounds > 0) {
    ASSIGN_OR_RETURN(const std::vector<Case> costs,
                     MeasureCosts(options, ca, node, samples, work, clients));
    cases.insert(cases.begin(), costs.begin(), costs.end());
  }
  ::kill(node, SIGTERM);
  ::waitpid(node, nullptr, 0);
  Print(cases);
  return OkStatus();
}

}  // namespace
}  // namespace optcache::bench

int main(int argc, char** argv) {
  optcache::bench::Options options;
  CLI::App app("CPU seconds a gigabyte from a server's memory to a client's, beside memcached");
  app.add_option("--gigabytes", options.gigabytes, "a round and case")->capture_default_str();
  app.add_option("--rounds", options.rounds)->capture_default_str();
  app.add_option("--attacks", options.attacks, "rounds with handshakes")->capture_default_str();
  app.add_option("--sample-bytes", options.sample_bytes)->capture_default_str();
  app.add_option("--samples", options.samples)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto status = optcache::bench::Run(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "bench_wire: {}\n", status.ToString());
  return 1;
}
