// Computed samples against processes that do whatever they may, from a seed: they ask, put in parts
// or not at all, put nonsense, hang and die.

#include <gtest/gtest.h>

#include "support/seeds.h"
#include "unit/sidecar/computed_world.h"

namespace optcache::sidecar {
namespace {

constexpr SampleId kFaces = 12;
constexpr ByteCount kFacesBytes = 900;

// Lengths differ, and stay the same for each sample.
ByteCount FaceBytes(SampleId id) {
  return 40 + 37 * ByteCount{id % 7};
}

struct FacesProcess {
  ClientId client = 0;
  std::optional<SampleId> asked;
  std::optional<ComputedLease> lease;  // computes `asked`
  ByteCount sent = 0;
};

class ComputedChaos {
 public:
  explicit ComputedChaos(std::uint64_t seed) : random_(seed), world_(kFacesBytes), processes_(5) {
    for (FacesProcess& process : processes_)
      Start(process);
  }

  void Run() {
    for (int step = 0; step < 3000; ++step) {
      FacesProcess& process = processes_[random_.Below(processes_.size())];
      Step(process);
      Hear();
      const auto counts = CountsOf(processes_.front());
      ASSERT_LE(counts.bytes, counts.capacity);
    }
    Drain();
  }

 private:
  handoff::ComputedCounts CountsOf(const FacesProcess& process) {
    return world_.desk.CountsOf(process.client, handle_).value();
  }
  void Start(FacesProcess& process) {
    process = {.client = ++last_client_};
    handle_ = world_.Open(process.client, kFaces);
  }

  void Step(FacesProcess& process) {
    switch (random_.Below(10)) {
      case 0:
        if (random_.Below(20) == 0) Die(process);
        break;
      case 1:
        if (random_.Below(30) == 0) world_.Advance(ComputedCache::kWaitMax);
        break;
      case 2:  // a lease that is not its own, or none
        world_.desk.Put(process.client, random_.Below(300), 10, 0, {});
        break;
      default:
        if (process.lease) {
          PutSome(process);
        } else if (!process.asked) {
          process.asked = static_cast<SampleId>(random_.Below(kFaces));
          world_.desk.Ask(process.client, {.request = 1, .dataset = handle_, .id = *process.asked});
        }
    }
  }

  void Die(FacesProcess& process) {
    FacesProcess gone = process;
    Start(process);  // so that the dataset stays open
    world_.desk.OnClientGone(gone.client);
    std::erase_if(world_.clients.answers,
                  [&](const ComputedAnswer& answer) { return answer.client == gone.client; });
  }

  void PutSome(FacesProcess& process) {
    const ByteCount length = FaceBytes(*process.asked);
    if (random_.Below(10) == 0) {  // it failed
      world_.desk.Put(process.client, *process.lease, 0, 0, {});
    } else {
      std::vector<std::byte> bytes(length);
      FillSample(*process.asked, bytes);
      const ByteCount part = 1 + random_.Below(length - process.sent);
      world_.desk.Put(process.client, *process.lease, length, process.sent,
                      ByteSpan(bytes).subspan(process.sent, part));
      process.sent += part;
      if (process.sent < length) return;
    }
    process = {.client = process.client};
  }

  void Hear() {
    while (!world_.clients.answers.empty()) {
      const ComputedAnswer answer = world_.clients.answers.front();
      world_.clients.answers.pop_front();
      const auto process = std::ranges::find(processes_, answer.client,
                                             [](const FacesProcess& p) { return p.client; });
      ASSERT_NE(process, processes_.end());
      ASSERT_TRUE(process->asked && !process->lease) << "answered without being asked";
      ASSERT_TRUE(answer.status.ok());
      if (answer.value) {
        ASSERT_EQ(answer.value->length, FaceBytes(*process->asked));
        ASSERT_TRUE(world_.Holds(*answer.value, *process->asked)) << "not the value";
        process->asked.reset();
      } else {
        process->lease = answer.lease;
      }
    }
  }

  // All that ask are answered as soon as those that compute are done.
  void Drain() {
    for (int round = 0; round < 200; ++round) {
      for (FacesProcess& process : processes_) {
        if (process.lease) PutSome(process);
        Hear();
      }
    }
    for (const FacesProcess& process : processes_)
      EXPECT_FALSE(process.asked) << "never answered";
    for (FacesProcess& process : processes_)
      world_.desk.OnClientGone(process.client);
    world_.Advance(ComputedCache::kLinger);
    EXPECT_EQ(world_.arena.slots(), 0U) << "memory is lost";
  }

  Random random_;
  ComputedWorld world_;
  std::vector<FacesProcess> processes_;
  ComputedHandle handle_ = 0;
  ClientId last_client_ = 0;
};

TEST(ComputedCacheProperty, EveryAnswerIsTheWholeValueOrLeaveToComputeIt) {
  for (std::uint64_t seed = TestSeed(1), end = seed + 30; seed < end; ++seed) {
    SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
    ComputedChaos(seed).Run();
  }
}

}  // namespace
}  // namespace optcache::sidecar
