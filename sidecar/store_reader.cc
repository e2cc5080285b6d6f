#include "sidecar/store_reader.h"

#include <utility>

#include "base/crc32c.h"
#include "dataset/digest.h"

namespace optcache::sidecar {
namespace {

// All attempts of the store together; each has a shorter deadline of its own.
constexpr auto kReadDeadline = std::chrono::seconds(120);

}  // namespace

// Made and dies on the loop's thread, where its buffer belongs; between, a thread of the store has
// it. Shared, because a read that is refused leaves it with both the caller and the callback.
struct StoreReader::Pending {
  const ServedDataset& dataset;
  SampleId id;
  BufferRef into;
  Done done;
};

void StoreReader::Read(const DatasetPort& dataset, SampleId id, BufferRef into, Done done) {
  const ServedDataset& served = *datasets_.at(&dataset);
  const dataset::Manifest& manifest = served.manifest();
  storage::ReadRequest request{.object = manifest.Path(id),
                               .destination = into->bytes(),
                               .object_size = manifest.Size(id),
                               .validator = manifest.ValidatorOf(id),
                               .deadline = Deadline::After(clock_, kReadDeadline)};
  auto read = std::make_shared<Pending>(
      Pending{.dataset = served, .id = id, .into = std::move(into), .done = std::move(done)});
  const Status accepted = served.store().Read(
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
  const dataset::Manifest& manifest = read->dataset.manifest();
  const auto digest = manifest.SampleDigest(read->id);
  if (digest && dataset::Sha256Of(read->into->bytes()) != *digest) {
    const std::string what = read->dataset.store().name() + ": " + manifest.Path(read->id) +
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
