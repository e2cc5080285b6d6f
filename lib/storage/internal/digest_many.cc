// Threads take one object or sample after the other, read it piece by piece, and hash it.
// Invariants: each thread has one piece, or one small sample, in memory; the first error stops all
// of them.

#include "storage/internal/digest_many.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataset/members.h"
#include "storage/internal/blocking_read.h"
#include "storage/internal/first_error.h"
#include "storage/sample_read.h"

namespace optcache::storage::internal {
namespace {

constexpr size_t kDigestReportStep = 256;
constexpr ByteCount kPieceBytes = 4_MiB;  // so much memory each thread takes at most

// How bytes come: from where, through what memory, and until when.
struct Reading {
  ObjectStore& store;
  std::vector<std::byte>& buffer;
  Deadline deadline;
  bool fresh = false;  // see ReadRequest
};

// Adds `size` bytes of an object to the sum, a piece at a time.
Status AddPart(const Reading& reading, const dataset::Object& from, ByteCount offset,
               ByteCount size, dataset::Sha256& sum) {
  std::vector<std::byte>& buffer = reading.buffer;
  for (const ByteCount end = offset + size; offset < end;) {
    const ByteCount length = std::min(kPieceBytes, end - offset);
    if (buffer.size() < length) buffer.resize(length);
    const MutableByteSpan piece(buffer.data(), length);
    RETURN_IF_ERROR(ReadAndWait(reading.store, {.object = from.path,
                                                .offset = offset,
                                                .destination = piece,
                                                .object_size = from.size,
                                                .validator = from.validator,
                                                .deadline = reading.deadline,
                                                .fresh = reading.fresh}));
    sum.Update(piece);
    offset += length;
  }
  return OkStatus();
}

Result<dataset::Digest> DigestOf(const Reading& reading, const ListedObject& object) {
  const ObjectInfo info = object.info.value_or(ObjectInfo{});
  dataset::Sha256 sum;
  RETURN_IF_ERROR(AddPart(reading,
                          {.path = object.path, .size = info.size, .validator = info.validator}, 0,
                          info.size, sum));
  return sum.Finish();
}

// Of what is handed out, in one read.
Result<dataset::Digest> SmallSampleDigestOf(const Reading& reading,
                                            const dataset::Manifest& manifest, SampleId sample) {
  reading.buffer.resize(manifest.Size(sample));
  const SampleRange range = RangeOf(manifest, sample);
  Destination destination;
  LayOut(manifest, sample, reading.buffer, destination);
  if (NeedsRead(manifest, range)) {
    ReadRequest request =
        RequestFor(manifest, range.object, range.begin, std::move(destination), reading.deadline);
    request.fresh = reading.fresh;
    RETURN_IF_ERROR(ReadAndWait(reading.store, std::move(request)));
  }
  return dataset::Sha256Of(reading.buffer);
}

// The same of one that is too large to lie in memory.
Result<dataset::Digest> LargeSampleDigestOf(const Reading& reading,
                                            const dataset::Manifest& manifest, SampleId sample) {
  const dataset::Object from = manifest.ObjectAt(manifest.ObjectOf(sample));
  const std::vector<dataset::Member> members = manifest.MembersOf(sample);
  const bool is_group = manifest.layout() == dataset::Layout::kGroups;
  dataset::Sha256 sum;
  if (is_group) sum.Update(AsBytes(dataset::MembersHead(manifest.Path(sample), members)));
  for (const dataset::Member& member : members) {
    RETURN_IF_ERROR(AddPart(reading, from, member.offset, member.size, sum));
    if (is_group) sum.Update(AsBytes(std::string(dataset::MemberPadding(member.size), '\0')));
  }
  return sum.Finish();
}

Result<dataset::Digest> SampleDigestOf(const Reading& reading, const dataset::Manifest& manifest,
                                       SampleId sample) {
  const auto digest_of =
      manifest.Size(sample) <= kPieceBytes ? SmallSampleDigestOf : LargeSampleDigestOf;
  return digest_of(reading, manifest, sample);
}

Result<bool> IsTheSame(Reading reading, const dataset::Manifest& manifest, SampleId sample) {
  const std::optional<dataset::Digest> expected = manifest.SampleDigest(sample);
  for (const bool fresh : {false, true}) {
    reading.fresh = fresh;
    ASSIGN_OR_RETURN(const dataset::Digest found, SampleDigestOf(reading, manifest, sample));
    if (found == expected) return true;
  }
  return false;
}

using WorkOnOne = std::function<Status(size_t index, std::vector<std::byte>& buffer)>;

Status WorkOnMany(const DigestManyOptions& options, const WorkOnOne& one,
                  const std::function<void(size_t done)>& report) {
  std::atomic<size_t> next = 0;
  FirstError error;
  const auto work = [&] {
    std::vector<std::byte> buffer;
    while (!error.any()) {
      const size_t index = next++;
      if (index >= options.count) return;
      Status status = one(index, buffer);
      if (!status.ok()) return error.Set(std::move(status));
      if ((index + 1) % kDigestReportStep == 0 || index + 1 == options.count) report(index + 1);
    }
  };
  {
    std::vector<std::jthread> threads;
    const size_t count = std::min<size_t>(std::max(options.concurrent_max, 1U), options.count);
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back(work);
  }
  return error.Take();
}

}  // namespace

Status DigestMany(ObjectStore& store, const DigestManyOptions& options,
                  const std::function<ListedObject(size_t index)>& object_of,
                  const std::function<void(size_t index, const dataset::Digest&)>& take,
                  const std::function<void(size_t done)>& report) {
  const auto one = [&](size_t index, std::vector<std::byte>& buffer) -> Status {
    const Reading reading = {.store = store, .buffer = buffer, .deadline = options.deadline};
    ASSIGN_OR_RETURN(const dataset::Digest digest, DigestOf(reading, object_of(index)));
    take(index, digest);
    return OkStatus();
  };
  return WorkOnMany(options, one, report);
}

Status DigestSamples(ObjectStore& store, const dataset::Manifest& manifest,
                     const DigestManyOptions& options,
                     const std::function<void(size_t index, const dataset::Digest&)>& take,
                     const std::function<void(size_t done)>& report) {
  const auto one = [&](size_t index, std::vector<std::byte>& buffer) -> Status {
    const Reading reading = {.store = store, .buffer = buffer, .deadline = options.deadline};
    ASSIGN_OR_RETURN(const dataset::Digest digest,
                     SampleDigestOf(reading, manifest, static_cast<SampleId>(index)));
    take(index, digest);
    return OkStatus();
  };
  return WorkOnMany(options, one, report);
}

Status CompareSamples(ObjectStore& store, const dataset::Manifest& manifest,
                      std::span<const SampleId> samples, DigestManyOptions options,
                      const std::function<void(size_t index, Result<bool> same)>& take,
                      const std::function<void(size_t done)>& report) {
  options.count = samples.size();
  const auto one = [&](size_t index, std::vector<std::byte>& buffer) -> Status {
    Result<bool> same = IsTheSame({.store = store, .buffer = buffer, .deadline = options.deadline},
                                  manifest, samples[index]);
    if (!same && same.error().code() != Code::kNotFound && same.error().code() != Code::kConflict)
      return same.error();
    take(index, std::move(same));
    return OkStatus();
  };
  return WorkOnMany(options, one, report);
}

}  // namespace optcache::storage::internal
