#include "storage/internal/digest_many.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "storage/internal/first_error.h"

namespace optcache::storage::internal {
namespace {

constexpr size_t kDigestReportStep = 256;
constexpr ByteCount kPieceBytes = 4_MiB;  // so much memory each thread takes at most

// Blocks; the store ends the read at about its deadline.
Status ReadPiece(ObjectStore& store, ReadRequest request) {
  // Shared: the store's thread may still be within set_value when this one goes on.
  const auto ended = std::make_shared<std::promise<Status>>();
  std::future<Status> outcome = ended->get_future();
  RETURN_IF_ERROR(store.Read(
      std::move(request), [ended](ReadOutcome read) { ended->set_value(std::move(read.status)); }));
  return outcome.get();
}

Result<dataset::Digest> DigestOf(ObjectStore& store, const ListedObject& object,
                                 std::vector<std::byte>& buffer, Deadline deadline) {
  const ObjectInfo info = object.info.value_or(ObjectInfo{});
  dataset::Sha256 sum;
  for (ByteCount offset = 0; offset < info.size;) {
    const ByteCount length = std::min(kPieceBytes, info.size - offset);
    if (buffer.size() < length) buffer.resize(length);
    const MutableByteSpan piece(buffer.data(), length);
    RETURN_IF_ERROR(ReadPiece(store, {.object = object.path,
                                      .offset = offset,
                                      .destination = piece,
                                      .object_size = info.size,
                                      .validator = info.validator,
                                      .deadline = deadline}));
    sum.Update(piece);
    offset += length;
  }
  return sum.Finish();
}

}  // namespace

Status DigestMany(ObjectStore& store, const DigestManyOptions& options,
                  const std::function<ListedObject(size_t index)>& object_of,
                  const std::function<void(size_t index, const dataset::Digest&)>& take,
                  const std::function<void(size_t done)>& report) {
  std::atomic<size_t> next = 0;
  FirstError error;
  const auto work = [&] {
    std::vector<std::byte> buffer;
    while (!error.any()) {
      const size_t index = next++;
      if (index >= options.count) return;
      const Result<dataset::Digest> digest =
          DigestOf(store, object_of(index), buffer, options.deadline);
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

}  // namespace optcache::storage::internal
