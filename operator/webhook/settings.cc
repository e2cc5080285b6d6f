#include "operator/webhook/settings.h"

#include <charconv>

namespace optcache::webhook {
namespace {

constexpr int kFirstMinor = 29;  // of Kubernetes 1

// The digits at the begin of "29+"; `otherwise` if there are none.
int NumberOf(const std::string& text, int otherwise) {
  int number = 0;
  const auto [_, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : otherwise;
}

}  // namespace

bool HasNativeSidecars(const std::string& major, const std::string& minor) {
  const int major_number = NumberOf(major, 2);
  return major_number > 1 || (major_number == 1 && NumberOf(minor, kFirstMinor) >= kFirstMinor);
}

}  // namespace optcache::webhook
