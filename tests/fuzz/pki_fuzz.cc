// Any text as a request, a certificate or a bundle: read or refused, never more.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pki/pki.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace pki = optcache::pki;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = pki::ParseRequest(text)) {
    Check(request->dns_names.size() <= pki::kMaxDnsNames);
    for (const std::string& name : request->dns_names)
      Check(!name.empty() && name.size() <= pki::kMaxDnsNameBytes);
    Check(request->public_key.starts_with("-----BEGIN PUBLIC KEY-----"));
  } else {
    Check(request.error().code() == optcache::Code::kInvalidArgument);
  }
  if (const auto certificate = pki::Inspect(text)) {
    Check(certificate->dns_names.size() <= pki::kMaxDnsNames);
    Check(certificate->public_key_digest.size() == 64);
  } else {
    Check(certificate.error().code() == optcache::Code::kInvalidArgument);
  }
  if (const auto bundle = pki::SplitBundle(text)) {
    Check(bundle->size() <= pki::kMaxCertificates);
    const auto again = pki::SplitBundle(pki::JoinBundle(*bundle));
    Check(again.has_value() && again->size() <= bundle->size());
  }
  return 0;
}
