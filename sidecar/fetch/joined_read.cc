#include "sidecar/fetch/joined_read.h"

namespace optcache::sidecar {

bool JoinedRead::TakeAfter(const StorePlace& place) {
  if (place.object != whole_.object || place.begin < whole_.end) return false;
  return Take(whole_.begin, place.end, place.begin - whole_.end);
}

bool JoinedRead::TakeBefore(const StorePlace& place) {
  if (place.object != whole_.object || place.end > whole_.begin) return false;
  return Take(place.begin, whole_.end, whole_.begin - place.end);
}

bool JoinedRead::Take(ByteCount begin, ByteCount end, ByteCount gap) {
  if (gap > limits_.gap_max || end - begin > limits_.bytes_max) return false;
  if (samples_ == limits_.samples_max) return false;
  whole_.begin = begin;
  whole_.end = end;
  ++samples_;
  return true;
}

}  // namespace optcache::sidecar
