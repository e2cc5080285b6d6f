#include "storage/internal/digest_many.h"

#include <algorithm>
#include <atomic>
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

// Adds `size` bytes of an object to the sum, a piece at a time.
Status AddPart(ObjectStore& store, const dataset::Object& from, ByteCount offset, ByteCount size,
               std::vector<std::byte>& buffer, Deadline deadline, dataset::Sha256& sum) {
  for (const ByteCount end = offset + size; offset < end;) {
    const ByteCount length = std::min(kPieceBytes, end - offset);
    if (buffer.size() < length) buffer.resize(length);
    const MutableByteSpan piece(buffer.data(), length);
    RETURN_IF_ERROR(ReadAndWait(store, {.object = from.path,
                                        .offset = offset,
                                        .destination = piece,
                                        .object_size = from.size,
                                        .validator = from.validator,
                                        .deadline = deadline}));
    sum.Update(piece);
    offset += length;
  }
  return OkStatus();
}

Result<dataset::Digest> DigestOf(ObjectStore& store, const ListedObject& object,
                                 std::vector<std::byte>& buffer, Deadline deadline) {
  const ObjectInfo info = object.info.value_or(ObjectInfo{});
  dataset::Sha256 sum;
  RETURN_IF_ERROR(AddPart(store,
                          {.path = object.path, .size = info.size, .validator = info.validator}, 0,
                          info.size, buffer, deadline, sum));
  return sum.Finish();
}

// Of what is handed out, in one read.
Result<dataset::Digest> SmallSampleDigestOf(ObjectStore& store, const dataset::Manifest& manifest,
                                            SampleId sample, std::vector<std::byte>& buffer,
                                            Deadline deadline) {
  buffer.resize(manifest.Size(sample));
  const SampleRange range = RangeOf(manifest, sample);
  Destination destination;
  LayOut(manifest, sample, buffer, destination);
  if (NeedsRead(manifest, range)) {
    RETURN_IF_ERROR(ReadAndWait(
        store, RequestFor(manifest, range.object, range.begin, std::move(destination), deadline)));
  }
  return dataset::Sha256Of(buffer);
}

// The same of one that is too large to lie in memory.
Result<dataset::Digest> LargeSampleDigestOf(ObjectStore& store, const dataset::Manifest& manifest,
                                            SampleId sample, std::vector<std::byte>& buffer,
                                            Deadline deadline) {
  const dataset::Object from = manifest.ObjectAt(manifest.ObjectOf(sample));
  const std::vector<dataset::Member> members = manifest.MembersOf(sample);
  const bool is_group = manifest.layout() == dataset::Layout::kGroups;
  dataset::Sha256 sum;
  if (is_group) sum.Update(AsBytes(dataset::MembersHead(manifest.Path(sample), members)));
  for (const dataset::Member& member : members) {
    RETURN_IF_ERROR(AddPart(store, from, member.offset, member.size, buffer, deadline, sum));
    if (is_group) sum.Update(AsBytes(std::string(dataset::MemberPadding(member.size), '\0')));
  }
  return sum.Finish();
}

using DigestOne = std::function<Result<dataset::Digest>(size_t, std::vector<std::byte>& buffer)>;

Status Digest(const DigestManyOptions& options, const DigestOne& one,
              const std::function<void(size_t index, const dataset::Digest&)>& take,
              const std::function<void(size_t done)>& report) {
  std::atomic<size_t> next = 0;
  FirstError error;
  const auto work = [&] {
    std::vector<std::byte> buffer;
    while (!error.any()) {
      const size_t index = next++;
      if (index >= options.count) return;
      const Result<dataset::Digest> digest = one(index, buffer);
      if (!digest) return error.Set(digest.error());
      take(index, *digest);
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
  const auto one = [&](size_t index, std::vector<std::byte>& buffer) {
    return DigestOf(store, object_of(index), buffer, options.deadline);
  };
  return Digest(options, one, take, report);
}

Status DigestSamples(ObjectStore& store, const dataset::Manifest& manifest,
                     const DigestManyOptions& options,
                     const std::function<void(size_t index, const dataset::Digest&)>& take,
                     const std::function<void(size_t done)>& report) {
  const auto one = [&](size_t index, std::vector<std::byte>& buffer) {
    const auto sample = static_cast<SampleId>(index);
    const auto digest_of =
        manifest.Size(sample) <= kPieceBytes ? SmallSampleDigestOf : LargeSampleDigestOf;
    return digest_of(store, manifest, sample, buffer, options.deadline);
  };
  return Digest(options, one, take, report);
}

}  // namespace optcache::storage::internal
