#pragma once

// All Datasets as they are read, kept up to date: parsed once a change, not once a use. On every
// replica, since the webhook asks it.

#include <map>
#include <set>
#include <string>

#include "api/dataset.h"
#include "kube/informer.h"
#include "operator/api/dataset_status.h"
#include "operator/webhook/dataset_view.h"

namespace optcache::manager {

// A Dataset that can be understood.
struct KnownDataset {
  std::string created;
  std::string uid;
  api::DatasetSpec spec;
  api::DatasetStatus status;
};

// Used on the loop's thread only. The informers outlive it.
class DatasetDirectory final : public webhook::DatasetView {
 public:
  // `nodes` tells the machines' host names.
  DatasetDirectory(kube::Informer& datasets, kube::Informer& nodes);
  DatasetDirectory(const DatasetDirectory&) = delete;
  DatasetDirectory& operator=(const DatasetDirectory&) = delete;

  bool synced() const override { return datasets_.synced(); }
  const webhook::DatasetFacts* Find(std::string_view name_space,
                                    std::string_view name) const override;

  const std::map<kube::ObjectKey, KnownDataset>& all() const { return all_; }

 private:
  void OnChange(const kube::ObjectChange& change);

  kube::Informer& datasets_;
  kube::Informer& nodes_;
  std::map<kube::ObjectKey, KnownDataset> all_;
  std::set<kube::ObjectKey> not_understood_;
  mutable std::map<kube::ObjectKey, webhook::DatasetFacts> facts_;  // those that were asked for
};

}  // namespace optcache::manager
