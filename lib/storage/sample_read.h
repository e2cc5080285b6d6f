#pragma once

// What has to be read from which object for a sample, and where it goes.

#include "base/bytes.h"
#include "base/ids.h"
#include "dataset/manifest.h"
#include "storage/object_store.h"

namespace optcache::storage {

// The range of an object that holds all that a sample needs. Empty where nothing has to be read but
// the object is not looked at: a member of an archive without bytes.
struct SampleRange {
  std::uint32_t object = 0;  // Manifest::ObjectAt
  ByteCount begin = 0;
  ByteCount end = 0;

  ByteCount length() const { return end - begin; }
};

SampleRange RangeOf(const dataset::Manifest& manifest, SampleId sample);

// True if a sample's bytes are there without asking the store: an empty range of an archive. Empty
// objects are asked for, since they may have changed.
bool NeedsRead(const dataset::Manifest& manifest, const SampleRange& range);

// `into` is as long as the sample. Writes what does not come from the store, and appends the places
// of what does, so that the destination grows by the length of the sample's range.
void LayOut(const dataset::Manifest& manifest, SampleId sample, MutableByteSpan into,
            Destination& destination);

// One read for one sample, or more of it: `destination` is what LayOut made.
ReadRequest RequestFor(const dataset::Manifest& manifest, std::uint32_t object, ByteCount begin,
                       Destination destination, Deadline deadline);

}  // namespace optcache::storage
