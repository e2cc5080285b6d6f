#include "sidecar/store_reader.h"

#include <utility>

#include "base/crc32c.h"
#include "dataset/digest.h"

namespace optcache::sidecar {
namespace {

// All attempts of the store together; each has a shorter deadline of its own.
constexpr auto kReadDeadline = std::chrono::seconds(120);
constexpr int kDigestAttempts = 2;  // bytes that are not the manifest's are read once more

}  // namespace

// Shared by the store's threads, one after the other, and dies on the loop's thread, where its
// buffer belongs.
struct StoreReader::Pending {
  const ServedDataset& dataset;
  SampleId id;
  BufferRef into;
  Done done;
  Deadline deadline;
  int attempts = 0;
};

void StoreReader::Read(const DatasetPort& dataset, SampleId id, BufferRef into, Done done) {
  Attempt(std::make_shared<Pending>(Pending{.dataset = *datasets_.at(&dataset),
                                            .id = id,
                                            .into = std::move(into),
                                            .done = std::move(done),
                                            .deadline = Deadline::After(clock_, kReadDeadline)}));
}

void StoreReader::Attempt(std::shared_ptr<Pending> read) {
  ++read->attempts;
  const dataset::Manifest& manifest = read->dataset.manifest();
  storage::ReadRequest request{.object = manifest.Path(read->id),
                               .destination = read->into->bytes(),
                               .object_size = manifest.Size(read->id),
                               .validator = manifest.ValidatorOf(read->id),
                               .deadline = read->deadline};
  const Status accepted = read->dataset.store().Read(
      std::move(request), [this, read](const storage::ReadOutcome& outcome) mutable {
        OnRead(std::move(read), outcome.status);
      });
  if (!accepted.ok()) End(std::move(read), Error(accepted));
}

// On a thread of the store.
void StoreReader::OnRead(std::shared_ptr<Pending> read, Status status) {
  if (!status.ok()) {
    End(std::move(read), Error(std::move(status)));
    return;
  }
  const auto digest = read->dataset.manifest().SampleDigest(read->id);
  if (digest && dataset::Sha256Of(read->into->bytes()) != *digest) {
    if (read->attempts < kDigestAttempts) {
      Attempt(std::move(read));
      return;
    }
    const std::string what = read->dataset.store().name() + ": " +
                             read->dataset.manifest().Path(read->id) +
                             ": its SHA-256 is not the manifest's; the object was changed or is "
                             "damaged: restore it, or index the dataset again";
    End(std::move(read), Error(Code::kDataLoss, what));
    return;
  }
  const std::uint32_t crc = Crc32c(read->into->bytes());
  End(std::move(read), crc);
}

void StoreReader::End(std::shared_ptr<Pending> read, Result<std::uint32_t> crc) {
  loop_.Post([read = std::move(read), crc = std::move(crc)]() mutable {
    const Done done = std::move(read->done);
    read.reset();
    done(std::move(crc));
  });
}

}  // namespace optcache::sidecar
