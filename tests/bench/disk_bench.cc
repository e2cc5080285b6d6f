// What samples on a disk cost: as segments, and as a plain file a sample, in turn, on the same file
// system. Both are written in pieces of the same size, each on the disk before the next one, and
// read in random order; neither leaves anything in the page cache. Prints JSON.
//
//   bench_disk --folder /var/tmp --megabytes 1024 --mean 110000

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/files.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "bench/cpu_timer.h"
#include "cache/segment_files.h"

namespace optcache::cache {
namespace {

constexpr ByteCount kPiece = 32_MiB;
constexpr std::size_t kReaders = 4;

struct Samples {
  std::vector<SegmentRecord> records;
  std::vector<SampleRef> bytes;
  ByteCount total = 0;
};

Samples Make(ByteCount total, ByteCount mean) {
  Samples samples;
  Random random(7);
  while (samples.total < total) {
    const ByteCount size = mean / 5 + random.Below(mean * 8 / 5);
    const auto bytes = std::make_shared<SampleBytes>(size);
    for (std::size_t at = 0; at + 8 <= size; at += 8) {
      const std::uint64_t word = random.Next();
      std::copy_n(std::as_bytes(std::span(&word, 1)).begin(), 8,
                  bytes->writable().begin() + static_cast<std::ptrdiff_t>(at));
    }
    samples.records.push_back({.id = static_cast<SampleId>(samples.records.size()),
                               .length = static_cast<std::uint32_t>(size),
                               .crc = Crc32c(bytes->bytes()),
                               .kept_after = {}});
    samples.bytes.push_back(bytes);
    samples.total += size;
  }
  return samples;
}

// What the kernel has written for this process, in bytes.
ByteCount WrittenBytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  ByteCount value = 0;
  while (io >> name >> value) {
    if (name == "write_bytes:") return value;
  }
  return 0;
}

struct Cost {
  bench::CpuTimer cpu;
  double seconds = 0;
};

template <typename Work>
Cost Measure(const Work& work) {
  Cost cost;
  const MonotonicTime begun = SystemClock().Now();
  cost.cpu.Start();
  work();
  cost.cpu.Stop();
  cost.seconds = ToSeconds(SystemClock().Now() - begun);
  return cost;
}

// `read` of each sample once, in random order, on several threads.
template <typename Read>
Cost MeasureReads(std::size_t samples, const Read& read) {
  std::vector<std::size_t> order(samples);
  for (std::size_t i = 0; i < samples; ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), Random(3));
  return Measure([&] {
    std::vector<std::jthread> readers;
    for (std::size_t r = 0; r < kReaders; ++r) {
      readers.emplace_back([&, r] {
        for (std::size_t i = r; i < order.size(); i += kReaders)
          read(order[i]);
      });
    }
  });
}

struct Way {
  Cost write;
  Cost read;
  Cost remove;
  double amplification = 0;  // bytes written, of the samples' bytes
};

// First sample of each piece, and the number of samples at last.
std::vector<std::size_t> Pieces(const Samples& samples) {
  std::vector<std::size_t> begins = {0};
  ByteCount bytes = 0;
  for (std::size_t i = 0; i < samples.bytes.size(); ++i) {
    bytes += samples.bytes[i]->size();
    if (bytes < kPiece) continue;
    begins.push_back(i + 1);
    bytes = 0;
  }
  if (begins.back() != samples.bytes.size()) begins.push_back(samples.bytes.size());
  return begins;
}

Way RunSegments(const Samples& samples, const std::string& folder) {
  Way way;
  const std::vector<std::size_t> pieces = Pieces(samples);
  std::vector<SegmentRead> reads(samples.bytes.size());
  const ByteCount before = WrittenBytes();
  way.write = Measure([&] {
    for (std::size_t p = 0; p + 1 < pieces.size(); ++p) {
      SegmentContent content{.name = {.dataset = 1, .number = p + 1}, .records = {}, .samples = {}};
      content.records.assign(samples.records.begin() + static_cast<std::ptrdiff_t>(pieces[p]),
                             samples.records.begin() + static_cast<std::ptrdiff_t>(pieces[p + 1]));
      content.samples.assign(samples.bytes.begin() + static_cast<std::ptrdiff_t>(pieces[p]),
                             samples.bytes.begin() + static_cast<std::ptrdiff_t>(pieces[p + 1]));
      CHECK(WriteSegment(SegmentPath(folder, content.name), content).ok());
      const auto extents =
          SegmentExtents(content.records, static_cast<std::uint32_t>(content.records.size()));
      for (std::size_t i = 0; i < extents.size(); ++i)
        reads[pieces[p] + i] = {content.name, extents[i], content.records[i].crc, {}};
    }
  });
  way.amplification =
      static_cast<double>(WrittenBytes() - before) / static_cast<double>(samples.total);
  way.read = MeasureReads(reads.size(), [&](std::size_t i) {
    CHECK(ReadSegment(SegmentPath(folder, reads[i].name), reads[i]).has_value());
  });
  way.remove = Measure([&] {
    for (std::size_t p = 0; p + 1 < pieces.size(); ++p)
      CHECK(RemoveSegment(SegmentPath(folder, {.dataset = 1, .number = p + 1})).ok());
  });
  return way;
}

std::string FileOf(const std::string& folder, std::size_t i) {
  return fmt::format("{}/{:03}/{:08}", folder, i % 256, i);
}

void WriteFile(const std::string& path, const SampleRef& bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  CHECK(fd.valid() && WriteAll(fd.get(), AsText(bytes->bytes()), path).ok());
}

void LeaveCache(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
}

Way RunFiles(const Samples& samples, const std::string& folder) {
  Way way;
  for (std::size_t i = 0; i < 256; ++i)
    std::filesystem::create_directories(fmt::format("{}/{:03}", folder, i));
  const UniqueFd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::size_t> pieces = Pieces(samples);
  const ByteCount before = WrittenBytes();
  way.write = Measure([&] {
    for (std::size_t p = 0; p + 1 < pieces.size(); ++p) {
      for (std::size_t i = pieces[p]; i < pieces[p + 1]; ++i)
        WriteFile(FileOf(folder, i), samples.bytes[i]);
      CHECK(::syncfs(root.get()) == 0);
      for (std::size_t i = pieces[p]; i < pieces[p + 1]; ++i)
        LeaveCache(FileOf(folder, i));
    }
  });
  way.amplification =
      static_cast<double>(WrittenBytes() - before) / static_cast<double>(samples.total);
  way.read = MeasureReads(samples.bytes.size(), [&](std::size_t i) {
    const std::string path = FileOf(folder, i);
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    SampleBytes bytes(samples.bytes[i]->size());
    const ssize_t n = ::pread(fd.get(), bytes.writable().data(), bytes.size(), 0);
    CHECK(n == static_cast<ssize_t>(bytes.size()));
    CHECK(Crc32c(bytes.bytes()) == samples.records[i].crc);
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  });
  way.remove = Measure([&] {
    for (std::size_t i = 0; i < samples.bytes.size(); ++i)
      ::unlink(FileOf(folder, i).c_str());
  });
  return way;
}

void Print(const char* name, const Way& way, const Samples& samples, const char* end) {
  const double gigabytes = static_cast<double>(samples.total) / 1e9;
  fmt::print(
      R"( "{}": {{"write_cpu_s_a_gb": {:.4f}, "read_cpu_s_a_gb": {:.4f}, "remove_cpu_s_a_gb": {:.4f}, )"
      R"("write_mb_a_s": {:.1f}, "reads_a_s": {:.0f}, "amplification": {:.4f}}}{})"
      "\n",
      name, way.write.cpu.seconds() / gigabytes, way.read.cpu.seconds() / gigabytes,
      way.remove.cpu.seconds() / gigabytes, gigabytes * 1e3 / way.write.seconds,
      static_cast<double>(samples.bytes.size()) / way.read.seconds, way.amplification, end);
}

}  // namespace
}  // namespace optcache::cache

int main(int argc, char** argv) {
  CLI::App app("What samples on a disk cost");
  std::string folder = "/var/tmp";
  optcache::ByteCount megabytes = 512;
  optcache::ByteCount mean = 110'000;
  app.add_option("--folder", folder, "On the disk that is measured")->capture_default_str();
  app.add_option("--megabytes", megabytes, "Of samples, which are in memory too")
      ->capture_default_str();
  app.add_option("--mean", mean, "Bytes of a sample")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::string own = folder + "/optcache_bench_XXXXXX";
  CHECK(::mkdtemp(own.data()) != nullptr);
  const optcache::cache::Samples samples = optcache::cache::Make(megabytes << 20U, mean);
  const optcache::cache::Way segments = optcache::cache::RunSegments(samples, own);
  const optcache::cache::Way files = optcache::cache::RunFiles(samples, own + "/files");
  fmt::print("{{\"samples\": {}, \"bytes\": {},\n", samples.bytes.size(), samples.total);
  optcache::cache::Print("segments", segments, samples, ",");
  optcache::cache::Print("files", files, samples, "}");
  std::filesystem::remove_all(own);
  return 0;
}
