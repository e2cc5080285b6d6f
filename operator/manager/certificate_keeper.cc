// Follows the Secret with the certificates: serves with its content, and as the leader writes what
// is decided.
//
// All decisions are made in Look. It runs when the Secret changes, at the time that the decision
// names, and at least every 30 s. It reads the Secret again only if its version is another than the
// one that `content_` is of. The leader decides by `content_` (authority::Decide). What is to be
// written is written first and served after that, and a write is bound to the version that was
// read, so two leaders cannot both succeed. One write is under way at a time. A follower serves
// with the leaf that is there and makes nothing.

#include "operator/manager/certificate_keeper.h"

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "base/check.h"
#include "base/log.h"
#include "operator/manager/options.h"
#include "operator/pki/objects.h"
#include "operator/reconcile/reasons.h"

namespace optcache::manager {
namespace {

// A follower serves with what the leader wrote; also a clock that moves past an expiry is noticed.
constexpr Duration kLookAtCertificatesEvery = std::chrono::seconds(30);
constexpr Duration kRetry = std::chrono::seconds(5);

kube::ObjectCache::Entry OnlyOne(const kube::Informer& informer) {
  const auto all = informer.cache().List();
  return all.empty() ? nullptr : all.front();
}

}  // namespace

CertificateKeeper::CertificateKeeper(Parts parts, authority::AuthoritySettings settings)
    : parts_(parts), settings_(std::move(settings)) {
  parts_.secret.OnChange([this](const kube::ObjectChange&) { Look(); });
  parts_.secret.OnSynced([this] { Look(); });
  parts_.injectors.OnChange([this](const kube::ObjectChange&) { PublishCaBundle(); });
}

authority::UnixSeconds CertificateKeeper::Now() const {
  return static_cast<authority::UnixSeconds>(parts_.clock.UnixSeconds());
}

void CertificateKeeper::Lead(kube::Client& client, kube::EventRecorder& events) {
  events_ = &events;
  secret_applier_ =
      std::make_unique<kube::Applier>(client, kube::ApplierOptions{.field_manager = kFieldManager});
  ca_applier_ = std::make_unique<kube::Applier>(
      client, kube::ApplierOptions{.field_manager = authority::kFieldManager});
  writing_ = false;
  Look();
}

void CertificateKeeper::Follow() {
  secret_applier_.reset();
  ca_applier_.reset();
  events_ = nullptr;
  writing_ = false;
  Look();
}

void CertificateKeeper::LookAgainIn(Duration wait) {
  again_ = parts_.loop.After(wait, [this] { Look(); });
}

void CertificateKeeper::Look() {
  LookAgainIn(kLookAtCertificatesEvery);
  if (!parts_.secret.synced() || writing_) return;
  const auto secret = OnlyOne(parts_.secret);
  const std::string version = secret ? kube::ResourceVersionOf(*secret) : "";
  if (version != seen_version_ || content_.empty()) {
    content_ = secret ? authority::ReadSecret(*secret) : authority::SecretData();
    seen_version_ = version;
  }
  if (secret_applier_) return LookAsLeader();
  const Result<authority::Leaf> leaf = authority::ServingLeaf(Now(), content_);
  leaf_status_ = leaf ? OkStatus() : leaf.error();
  if (const auto bundle = content_.find("ca.crt"); bundle != content_.end())
    SetBundle(bundle->second);
  if (leaf) ServeWith(*leaf);
}

void CertificateKeeper::LookAsLeader() {
  Result<authority::Decision> decision = authority::Decide(Now(), content_, settings_);
  if (!decision) {
    leaf_status_ = decision.error();
    Log(LogLevel::kError, "no certificates", {{"why", decision.error().message()}});
    return;
  }
  const std::int64_t wait = std::max<std::int64_t>(decision->next_check - Now(), 1);
  LookAgainIn(std::min<Duration>(std::chrono::seconds(wait), kLookAtCertificatesEvery));
  // What is served must have been written: another leader could make other keys.
  if (decision->write) return Write(*std::move(decision->write), std::move(decision->notices));
  leaf_status_ = OkStatus();
  SetBundle(decision->bundle);
  ServeWith(decision->leaf);
  PublishCaBundle();
}

void CertificateKeeper::Write(authority::SecretData content,
                              std::vector<authority::Notice> notices) {
  writing_ = true;
  kube::Json object = authority::BuildSecret(settings_, content, seen_version_);
  secret_applier_->Run({{.resource = kube::kSecrets, .object = std::move(object)}}, {},
                       [this, content = std::move(content), notices = std::move(notices)](
                           const kube::ApiResult<kube::ApplyOutcome>& outcome) {
                         writing_ = false;
                         if (!outcome) {
                           // A leader before this one, or a person, was there since: that is read
                           // first.
                           const bool conflict = outcome.error().status.code() == Code::kConflict;
                           Log(conflict ? LogLevel::kInfo : LogLevel::kError,
                               "the certificates' Secret could not be written",
                               {{"why", outcome.error().status.message()}});
                           return LookAgainIn(kRetry);
                         }
                         content_ = content;
                         for (const authority::Notice& notice : notices)
                           Tell(notice);
                         const auto secret = OnlyOne(parts_.secret);
                         seen_version_ = secret ? kube::ResourceVersionOf(*secret) : "";
                         Look();
                       });
}

void CertificateKeeper::Tell(const authority::Notice& notice) {
  Log(notice.warning ? LogLevel::kWarning : LogLevel::kInfo, "certificates",
      {{"reason", notice.reason}, {"what", notice.message}});
  DCHECK(reconcile::IsKnownReason(notice.reason));
  const auto secret = OnlyOne(parts_.secret);
  if (events_ == nullptr || secret == nullptr) return;
  events_->Record(kube::ReferenceTo(kube::kSecrets, *secret),
                  {.type = notice.warning ? kube::EventType::kWarning : kube::EventType::kNormal,
                   .reason = notice.reason,
                   .action = "Rotate",
                   .note = notice.message});
}

// Only where it differs: an object at rest is not written. Entries are the chart's.
void CertificateKeeper::PublishCaBundle() {
  const auto injector = OnlyOne(parts_.injectors);
  if (!ca_applier_ || bundle_.empty() || injector == nullptr) return;
  const std::string encoded = EncodeBase64(bundle_);
  std::vector<std::string> names;
  bool differs = false;
  for (const kube::Json& entry : kube::Items(*injector, "/webhooks")) {
    names.push_back(kube::TextAt(entry, "/name"));
    differs = differs || kube::TextAt(entry, "/clientConfig/caBundle") != encoded;
  }
  if (!differs) return;
  ca_applier_->Run({{.resource = kube::kMutatingWebhookConfigurations,
                     .object = authority::BuildCaBundle(bundle_, names),
                     .present = injector}},
                   {}, [this](const kube::ApiResult<kube::ApplyOutcome>& outcome) {
                     if (outcome) return;
                     Log(LogLevel::kError, "caBundle could not be written",
                         {{"why", outcome.error().status.message()}});
                     LookAgainIn(kRetry);
                   });
}

void CertificateKeeper::ServeWith(const authority::Leaf& leaf) {
  const net::TlsMaterial material{.chain = leaf.chain, .key = leaf.key, .trust = bundle_};
  for (net::TlsContext* context : {&parts_.webhook_tls, &parts_.control_tls}) {
    if (context->ready() && *context->material() == material) continue;
    const Status status = context->Replace(material);
    if (!status.ok()) leaf_status_ = status;
  }
}

void CertificateKeeper::SetBundle(const std::string& bundle) {
  if (bundle == bundle_) return;
  bundle_ = bundle;
  if (on_bundle_) on_bundle_();
}

Result<std::string> CertificateKeeper::Sign(const std::string& request,
                                            const std::string& pod_name) const {
  return authority::SignNode(Now(), content_, settings_, request, pod_name);
}

Status CertificateKeeper::ready() const {
  return leaf_status_;
}

void CertificateKeeper::VisitCounters(const CounterVisitor& visitor) const {
  authority::VisitValidities(content_, visitor);
}

}  // namespace optcache::manager
