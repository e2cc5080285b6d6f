// Decides what the Secret is to contain, from what it contains and the time.
//
//   Secret ─► ReadContent ─► HaveSigner ─► Rotate ─► Bundle ─► HaveLeaf ─► the whole new Secret
//
// Deciding carries one decision through these steps; each step makes what is missing or due. Two
// thirds of a certificate's life after it was made, the next one is due. The next CA stands in the
// bundle for the propagation time before it signs. An old one stays as long as it is valid, at most
// kMaxOldAuthorities of them. The same content at the same time gives the same decision unless a
// key is made, and nothing is written when nothing differs. A CA that cannot sign any more is
// replaced at once; parts that do not have the new one cannot connect until they do.

#include "operator/pki/authority.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "operator/pki/secret_content.h"
#include "pki/pki.h"

namespace optcache::authority {
namespace {

// Certificates begin a little before they are made, for peers whose clocks are late.
constexpr std::int64_t kClockSkew = 300;
constexpr std::int64_t kMinLeafLifetime = 60;
constexpr std::int64_t kMaxCaLifetime = 100LL * 365 * 24 * 3600;
constexpr std::size_t kMaxOldAuthorities = 4;

// The names of two CAs differ, so that nobody takes one for the other's issuer.
std::string AuthorityPrefix(const AuthoritySettings& settings) {
  return settings.system_namespace.substr(0, 40) + " optcache CA ";
}

std::int64_t Propagation(const AuthoritySettings& settings) {
  return std::min(settings.propagation_seconds, settings.ca_lifetime_seconds / 8);
}

UnixSeconds MadeAt(const pki::Validity& validity) {
  return validity.not_before + kClockSkew;
}

// When two thirds of a certificate's life are over.
UnixSeconds RenewalOf(const pki::Validity& validity) {
  const UnixSeconds made = MadeAt(validity);
  return made + (validity.not_after - made) / 3 * 2;
}

Result<Signer> MakeSigner(UnixSeconds now, const AuthoritySettings& settings) {
  ASSIGN_OR_RETURN(std::string key, pki::MakeKey());
  const pki::Validity validity{.not_before = now - kClockSkew,
                               .not_after = now + settings.ca_lifetime_seconds};
  ASSIGN_OR_RETURN(std::string certificate,
                   pki::MakeCa(key, AuthorityPrefix(settings) + std::to_string(now), validity));
  return Signer{.certificate = std::move(certificate), .key = std::move(key), .validity = validity};
}

pki::Validity LeafValidity(UnixSeconds now, std::int64_t lifetime, const Signer& signer) {
  return {.not_before = now - kClockSkew,
          .not_after = std::min(now + lifetime, signer.validity.not_after)};
}

Result<Leaf> MakeLeaf(UnixSeconds now, const Signer& signer, const AuthoritySettings& settings) {
  ASSIGN_OR_RETURN(std::string key, pki::MakeKey());
  ASSIGN_OR_RETURN(std::string public_key, pki::PublicKeyOf(key));
  const pki::Leaf wanted{.public_key = std::move(public_key),
                         .dns_names = OperatorNames(settings),
                         .usages = {.server = true},
                         .validity = LeafValidity(now, settings.leaf_lifetime_seconds, signer)};
  ASSIGN_OR_RETURN(std::string chain, pki::Sign(signer.certificate, signer.key, wanted));
  return Leaf{.chain = std::move(chain), .key = std::move(key)};
}

// One decision under way.
class Deciding {
 public:
  Deciding(UnixSeconds now, const SecretData& secret, const AuthoritySettings& settings)
      : now_(now), secret_(secret), settings_(settings), content_(ReadContent(now, secret)) {}

  Result<Decision> Run() {
    RETURN_IF_ERROR(HaveSigner());
    RETURN_IF_ERROR(Rotate());
    bundle_ = Bundle();
    RETURN_IF_ERROR(HaveLeaf());
    SecretData data = {{"ca.crt", bundle_},
                       {"ca.key", content_.signer->key},
                       {"tls.crt", content_.leaf->chain},
                       {"tls.key", content_.leaf->key},
                       {"next-ca.crt", content_.next ? content_.next->certificate : ""},
                       {"next-ca.key", content_.next ? content_.next->key : ""}};
    Decision decision{.bundle = bundle_,
                      .leaf = *content_.leaf,
                      .next_check = NextCheck(),
                      .notices = std::move(notices_)};
    if (!SameContent(data, secret_)) decision.write = std::move(data);
    return decision;
  }

 private:
  void Tell(bool warning, std::string reason, std::string message) {
    notices_.push_back(
        {.warning = warning, .reason = std::move(reason), .message = std::move(message)});
  }

  // A CA that can sign now: the one that does, the next one before its time, or a new one.
  Status HaveSigner() {
    if (content_.signer) return OkStatus();
    if (content_.next) {
      Promote();
      Tell(true, "AuthorityReplaced",
           fmt::format("the CA cannot sign any more ({}): the next one signs before its time",
                       content_.signer_fault));
      return OkStatus();
    }
    ASSIGN_OR_RETURN(content_.signer, MakeSigner(now_, settings_));
    if (content_.empty) {
      Tell(false, "AuthorityCreated", "a new CA signs the certificates of this installation");
    } else {
      Tell(true, "AuthorityReplaced",
           fmt::format("the CA cannot sign any more ({}): a new one signs at once, and who has not "
                       "heard of it cannot connect until then",
                       content_.signer_fault));
    }
    return OkStatus();
  }

  // The next CA is made when two thirds of this one's life are over, and signs when everybody knows
  // it.
  Status Rotate() {
    if (!content_.next && now_ >= RenewalOf(content_.signer->validity)) {
      ASSIGN_OR_RETURN(content_.next, MakeSigner(now_, settings_));
      Tell(false, "AuthorityRenewalBegun",
           fmt::format("the next CA is in all bundles from now on and signs in {} s",
                       Propagation(settings_)));
    }
    if (content_.next && now_ >= PromotionTime()) {
      Promote();
      Tell(false, "AuthorityRenewed", "the next CA signs from now on");
    }
    return OkStatus();
  }

  UnixSeconds PromotionTime() const {
    return content_.next->validity.not_before + kClockSkew + Propagation(settings_);
  }

  void Promote() {
    if (content_.signer) content_.trusted.push_back(content_.signer->certificate);
    content_.signer = std::exchange(content_.next, std::nullopt);
  }

  // The CA that signs comes first. Of others, those that are still good, newest first.
  std::string Bundle() const {
    std::vector<std::string> certificates = {content_.signer->certificate};
    if (content_.next) certificates.push_back(content_.next->certificate);
    std::vector<std::pair<UnixSeconds, std::string>> old;
    for (const std::string& certificate : content_.trusted) {
      const auto known = pki::Inspect(certificate);
      const bool ours = known && known->is_ca &&
                        known->subject.starts_with(AuthorityPrefix(settings_)) &&
                        known->validity.not_after > now_;
      if (ours && std::ranges::find(certificates, certificate) == certificates.end())
        old.emplace_back(-known->validity.not_after, certificate);
    }
    std::ranges::sort(old);
    if (old.size() > kMaxOldAuthorities) old.resize(kMaxOldAuthorities);
    for (const auto& [_, certificate] : old)
      certificates.push_back(certificate);
    return pki::JoinBundle(certificates);
  }

  Status HaveLeaf() {
    const Status fault = CheckLeaf();
    if (fault.ok()) return OkStatus();
    ASSIGN_OR_RETURN(content_.leaf, MakeLeaf(now_, *content_.signer, settings_));
    const bool warning = !content_.empty && fault.code() != Code::kDeadlineExceeded;
    Tell(warning, "CertificateIssued",
         fmt::format("the operator has a new certificate: {}", fault.message()));
    return OkStatus();
  }

  // kDeadlineExceeded: it is good but two thirds of its life are over.
  Status CheckLeaf() const {
    if (!content_.leaf) return {Code::kNotFound, content_.leaf_fault};
    RETURN_IF_ERROR(pki::Verify(content_.leaf->chain, bundle_, now_, pki::Usages{.server = true}));
    ASSIGN_OR_RETURN(const pki::Certificate certificate, pki::Inspect(content_.leaf->chain));
    if (certificate.dns_names != OperatorNames(settings_))
      return {Code::kInvalidArgument, "the old one is for other names"};
    if (now_ >= LeafRenewal(certificate.validity))
      return {Code::kDeadlineExceeded, "two thirds of the old one's life are over"};
    return OkStatus();
  }

  // One that was made for longer than is asked now is renewed as if it had been made today.
  UnixSeconds LeafRenewal(pki::Validity validity) const {
    validity.not_after =
        std::min(validity.not_after, MadeAt(validity) + settings_.leaf_lifetime_seconds);
    return RenewalOf(validity);
  }

  UnixSeconds NextCheck() const {
    const auto leaf = pki::Inspect(content_.leaf->chain);
    UnixSeconds next = leaf ? LeafRenewal(leaf->validity) : now_;
    next = std::min(next, content_.next ? PromotionTime() : RenewalOf(content_.signer->validity));
    return std::max(next, now_ + 1);
  }

  UnixSeconds now_;
  const SecretData& secret_;
  const AuthoritySettings& settings_;
  Content content_;
  std::string bundle_;
  std::vector<Notice> notices_;
};

}  // namespace

Status CheckSettings(const AuthoritySettings& settings) {
  const auto wrong = [](std::string_view what, std::int64_t seconds, std::string_view allowed) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is {} s, allowed: {}", what, seconds, allowed));
  };
  if (settings.ca_lifetime_seconds > kMaxCaLifetime)
    return wrong("the CA's lifetime", settings.ca_lifetime_seconds, "at most 100 years");
  const auto fits = [&settings](std::int64_t seconds) {
    return seconds >= kMinLeafLifetime && seconds <= settings.ca_lifetime_seconds / 2;
  };
  constexpr std::string_view kLeaf = "from 60 s to half the CA's lifetime";
  if (!fits(settings.leaf_lifetime_seconds))
    return wrong("the operator certificate's lifetime", settings.leaf_lifetime_seconds, kLeaf);
  if (!fits(settings.node_leaf_lifetime_seconds))
    return wrong("the node certificates' lifetime", settings.node_leaf_lifetime_seconds, kLeaf);
  if (settings.propagation_seconds < 0)
    return wrong("the propagation", settings.propagation_seconds, "0 s and more");
  return OkStatus();
}

Result<Decision> Decide(UnixSeconds now, const SecretData& secret,
                        const AuthoritySettings& settings) {
  return Deciding(now, secret, settings).Run();
}

Result<Leaf> ServingLeaf(UnixSeconds now, const SecretData& secret) {
  Content content = ReadContent(now, secret);
  if (!content.leaf) return Error(Code::kUnavailable, content.leaf_fault);
  const auto bundle = secret.find("ca.crt");
  const std::string trusted = bundle == secret.end() ? "" : bundle->second;
  Status status = pki::Verify(content.leaf->chain, trusted, now, pki::Usages{.server = true});
  if (!status.ok()) return Error(Code::kUnavailable, status.message());
  return *std::move(content.leaf);
}

Result<std::string> SignNode(UnixSeconds now, const SecretData& secret,
                             const AuthoritySettings& settings, const std::string& request,
                             const std::string& pod_name) {
  ASSIGN_OR_RETURN(pki::Request parsed, pki::ParseRequest(request));
  const Content content = ReadContent(now, secret);
  if (!content.signer) return Error(Code::kUnavailable, content.signer_fault);
  const pki::Leaf wanted{
      .public_key = std::move(parsed.public_key),
      .dns_names = {kNodeName, pod_name},
      .usages = {.server = true, .client = true},
      .validity = LeafValidity(now, settings.node_leaf_lifetime_seconds, *content.signer)};
  return pki::Sign(content.signer->certificate, content.signer->key, wanted);
}

void VisitValidities(const SecretData& secret, const CounterVisitor& visitor) {
  constexpr std::pair<const char*, const char*> kCertificates[] = {
      {"ca", "ca.crt"}, {"next_ca", "next-ca.crt"}, {"operator", "tls.crt"}};
  for (const auto& [name, key] : kCertificates) {
    const auto found = secret.find(key);
    if (found == secret.end()) continue;
    const auto certificate = pki::Inspect(found->second);
    if (!certificate) continue;
    visitor(MetricKind::kGauge, "optcache_certificate_not_before_timestamp_seconds",
            {{"certificate", name}}, static_cast<double>(certificate->validity.not_before));
    visitor(MetricKind::kGauge, "optcache_certificate_expiry_timestamp_seconds",
            {{"certificate", name}}, static_cast<double>(certificate->validity.not_after));
  }
}

}  // namespace optcache::authority
