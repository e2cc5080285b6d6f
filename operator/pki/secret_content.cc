#include "operator/pki/secret_content.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace optcache::authority {
namespace {

std::string At(const SecretData& secret, const std::string& key) {
  const auto found = secret.find(key);
  return found == secret.end() ? "" : found->second;
}

Result<Signer> ReadSigner(UnixSeconds now, std::string certificate, std::string key) {
  if (certificate.empty()) return Error(Code::kNotFound, "there is no certificate");
  ASSIGN_OR_RETURN(const pki::Certificate known, pki::Inspect(certificate));
  if (!known.is_ca) return Error(Code::kInvalidArgument, "its certificate is not that of a CA");
  if (known.validity.not_after <= now) return Error(Code::kInvalidArgument, "it has expired");
  if (known.validity.not_before > now) return Error(Code::kInvalidArgument, "it is not valid yet");
  RETURN_IF_ERROR(pki::KeyMatches(key, certificate));
  return Signer{
      .certificate = std::move(certificate), .key = std::move(key), .validity = known.validity};
}

Result<Leaf> ReadLeaf(std::string chain, std::string key) {
  if (chain.empty()) return Error(Code::kNotFound, "there was none");
  RETURN_IF_ERROR(pki::KeyMatches(key, chain));
  return Leaf{.chain = std::move(chain), .key = std::move(key)};
}

}  // namespace

Content ReadContent(UnixSeconds now, const SecretData& secret) {
  Content content{
      .empty = std::ranges::all_of(secret, [](const auto& entry) { return entry.second.empty(); })};
  auto bundle = pki::SplitBundle(At(secret, "ca.crt"));
  const std::string first = bundle && !bundle->empty() ? bundle->front() : "";
  auto signer = ReadSigner(now, first, At(secret, "ca.key"));
  if (signer) {
    content.signer = *std::move(signer);
  } else {
    content.signer_fault = bundle ? signer.error().message() : bundle.error().message();
  }
  if (auto next = ReadSigner(now, At(secret, "next-ca.crt"), At(secret, "next-ca.key")))
    content.next = *std::move(next);
  if (bundle) content.trusted = *std::move(bundle);
  auto leaf = ReadLeaf(At(secret, "tls.crt"), At(secret, "tls.key"));
  if (leaf) {
    content.leaf = *std::move(leaf);
  } else {
    content.leaf_fault = leaf.error().message();
  }
  return content;
}

bool SameContent(const SecretData& ours, const SecretData& secret) {
  return std::ranges::all_of(
      ours, [&secret](const auto& entry) { return At(secret, entry.first) == entry.second; });
}

std::vector<std::string> OperatorNames(const AuthoritySettings& settings) {
  return {fmt::format("{}-operator.{}.svc", settings.name, settings.system_namespace),
          kOperatorName};
}

}  // namespace optcache::authority
