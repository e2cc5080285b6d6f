// Applies and deletes one after the other, and leaves out what would change nothing.
//
// The idea: the server adds fields of its own, so what we want and what an object has cannot be
// compared. But an answer shows what the server made of our fields. Its part that we speak of
// (Project) is remembered as a hash, with the hash of what we wanted. As long as we want the same,
// and the object that the informer shows has the same part, there is nothing to write. An object
// older than that answer says nothing against it.
//
// Invariants: what is remembered is bounded; what is forgotten is applied once more, which costs a
// request and changes nothing. A failure or a deletion forgets its object. Requests hold the run
// alive and the applier only weakly.

#include "kube/apply.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <tuple>
#include <utility>

#include "base/whole_number.h"

namespace optcache::kube {
namespace {

// By what entries of associative lists are told apart, in the API's own types.
constexpr const char* kListKeys[] = {"name", "type", "key", "uid", "ip", "mountPath"};

const char* ListKeyOf(const Json& entries) {
  for (const char* key : kListKeys) {
    const bool all = !entries.empty() && std::all_of(entries.begin(), entries.end(), [&](auto& e) {
      return e.is_object() && e.contains(key);
    });
    if (all) return key;
  }
  return nullptr;
}

std::size_t HashOf(const Json& object) {
  return std::hash<std::string>()(ToText(object));
}

// Resource versions are opaque, but those of one server are numbers that rise; what is none is
// taken for new.
bool IsOlder(const std::string& a, const std::string& b) {
  const auto x = ParseWholeNumber<std::uint64_t>(a);
  const auto y = ParseWholeNumber<std::uint64_t>(b);
  return x && y && *x < *y;
}

}  // namespace

Json Project(const Json& wanted, const Json& object) {
  if (wanted.is_object() && object.is_object()) {
    Json part = Json::object();
    for (const auto& [key, value] : wanted.items()) {
      const auto found = object.find(key);
      if (found != object.end()) part[key] = Project(value, *found);
    }
    return part;
  }
  const char* key = wanted.is_array() && object.is_array() ? ListKeyOf(wanted) : nullptr;
  if (key == nullptr) return object;
  Json part = Json::array();
  for (const Json& entry : wanted) {
    const auto found = std::find_if(object.begin(), object.end(), [&](const Json& candidate) {
      return candidate.is_object() && candidate.value(key, Json()) == entry[key];
    });
    if (found != object.end()) part.push_back(Project(entry, *found));
  }
  return part;
}

class Applier::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Client& client, ApplierOptions options) : client_(client), options_(std::move(options)) {}

  struct Run {
    std::deque<ApplyItem> applies;
    std::deque<DeleteItem> deletes;
    Callback callback;
    ApplyOutcome outcome;
  };

  void Step(const std::shared_ptr<Run>& run);

 private:
  // Kind, object and subresource.
  using Target = std::tuple<std::string, ObjectKey, std::string>;
  // Texts by their hashes: there are many objects, and each is only compared with itself.
  struct Applied {
    std::size_t wanted = 0;
    std::size_t made = 0;  // what the server made of it
    std::string uid;
    std::string resource_version;
    std::list<Target>::iterator place;  // in order_
  };

  void Apply(const std::shared_ptr<Run>& run);
  void Create(const std::shared_ptr<Run>& run);
  void Delete(const std::shared_ptr<Run>& run);
  bool IsAsApplied(const Target& target, const ApplyItem& item) const;
  void Remember(const Target& target, const Json& wanted, const Json& answer);
  void Forget(const Target& target);
  void ForgetWithSubresources(const std::string& path, const ObjectKey& key);

  Client& client_;
  const ApplierOptions options_;
  std::map<Target, Applied> applied_;
  std::list<Target> order_;  // of applied_, oldest first, each once
};

void Applier::Impl::Step(const std::shared_ptr<Run>& run) {
  while (!run->applies.empty()) {
    const ApplyItem& item = run->applies.front();
    const Target target(item.resource.Path(""), KeyOf(item.object), item.subresource);
    const bool done = item.create_only ? item.present != nullptr : IsAsApplied(target, item);
    if (!done) return item.create_only ? Create(run) : Apply(run);
    ++run->outcome.skipped;
    run->applies.pop_front();
  }
  if (!run->deletes.empty()) return Delete(run);
  run->callback(run->outcome);
}

void Applier::Impl::Apply(const std::shared_ptr<Run>& run) {
  const ApplyItem item = std::move(run->applies.front());
  run->applies.pop_front();
  Json object = item.object;
  if (!item.resource_version.empty()) object["metadata"]["resourceVersion"] = item.resource_version;
  client_.Apply(item.resource, std::move(object),
                {.field_manager = options_.field_manager, .subresource = item.subresource},
                [weak = weak_from_this(), run, item](const ApiResult<Json>& answer) {
                  const auto self = weak.lock();
                  if (!self) return;
                  const Target target(item.resource.Path(""), KeyOf(item.object), item.subresource);
                  if (!answer) {
                    self->Forget(target);
                    return run->callback(std::unexpected(answer.error()));
                  }
                  ++run->outcome.written;
                  self->Remember(target, item.object, *answer);
                  self->Step(run);
                });
}

void Applier::Impl::Create(const std::shared_ptr<Run>& run) {
  const ApplyItem item = std::move(run->applies.front());
  run->applies.pop_front();
  client_.Create(item.resource, item.object,
                 [weak = weak_from_this(), run](const ApiResult<Json>& answer) {
                   const auto self = weak.lock();
                   if (!self) return;
                   if (!answer && !answer.error().already_exists())
                     return run->callback(std::unexpected(answer.error()));
                   ++(answer ? run->outcome.written : run->outcome.skipped);
                   self->Step(run);
                 });
}

void Applier::Impl::Delete(const std::shared_ptr<Run>& run) {
  const DeleteItem item = std::move(run->deletes.front());
  run->deletes.pop_front();
  client_.Delete(item.resource, item.key, item.options,
                 [weak = weak_from_this(), run, item](const ApiResult<void>& answer) {
                   const auto self = weak.lock();
                   if (!self) return;
                   self->ForgetWithSubresources(item.resource.Path(""), item.key);
                   if (!answer && !answer.error().not_found()) {
                     return run->callback(std::unexpected(answer.error()));
                   }
                   ++run->outcome.written;
                   self->Step(run);
                 });
}

bool Applier::Impl::IsAsApplied(const Target& target, const ApplyItem& item) const {
  const auto found = applied_.find(target);
  if (found == applied_.end() || found->second.wanted != HashOf(item.object)) return false;
  const Applied& applied = found->second;
  // Not shown: gone, or not yet seen. Applying tells.
  if (!item.present) return false;
  if (IsOlder(ResourceVersionOf(*item.present), applied.resource_version)) return true;
  return UidOf(*item.present) == applied.uid &&
         HashOf(Project(item.object, *item.present)) == applied.made;
}

void Applier::Impl::Remember(const Target& target, const Json& wanted, const Json& answer) {
  const auto [applied, fresh] = applied_.try_emplace(target);
  const auto place = fresh ? order_.insert(order_.end(), target) : applied->second.place;
  applied->second = {.wanted = HashOf(wanted),
                     .made = HashOf(Project(wanted, answer)),
                     .uid = UidOf(answer),
                     .resource_version = ResourceVersionOf(answer),
                     .place = place};
  while (order_.size() > options_.max_remembered)
    Forget(order_.front());
}

void Applier::Impl::Forget(const Target& target) {
  const auto applied = applied_.find(target);
  if (applied == applied_.end()) return;
  order_.erase(applied->second.place);
  applied_.erase(applied);
}

void Applier::Impl::ForgetWithSubresources(const std::string& path, const ObjectKey& key) {
  auto next = applied_.lower_bound(Target(path, key, ""));
  while (next != applied_.end() && std::get<0>(next->first) == path &&
         std::get<1>(next->first) == key) {
    Forget((next++)->first);
  }
}

Applier::Applier(Client& client, ApplierOptions options)
    : impl_(std::make_shared<Impl>(client, std::move(options))) {}
Applier::~Applier() = default;

void Applier::Run(std::vector<ApplyItem> applies, std::vector<DeleteItem> deletes,
                  Callback callback) {
  auto run = std::make_shared<Impl::Run>();
  run->applies.assign(std::make_move_iterator(applies.begin()),
                      std::make_move_iterator(applies.end()));
  run->deletes.assign(std::make_move_iterator(deletes.begin()),
                      std::make_move_iterator(deletes.end()));
  run->callback = std::move(callback);
  impl_->Step(run);
}

}  // namespace optcache::kube
