#include "kube/object_cache.h"

#include <gtest/gtest.h>

namespace optcache::kube {
namespace {

Json Pod(const std::string& ns, const std::string& name, const Json& labels = Json::object(),
         const std::string& owner = "") {
  Json pod = {{"metadata", {{"namespace", ns}, {"name", name}, {"labels", labels}}}};
  if (!owner.empty()) {
    pod["metadata"]["ownerReferences"] = Json::array({{{"uid", owner}, {"controller", true}}});
  }
  return pod;
}

std::vector<std::string> Names(const std::vector<ObjectCache::Entry>& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries)
    names.push_back(KeyOf(*entry).ToString());
  return names;
}

using Strings = std::vector<std::string>;

class ObjectCacheTest : public testing::Test {
 protected:
  ObjectCache::Entry Put(const Json& object) { return cache.Put(KeyOf(object), object); }

  ObjectCache cache{{{"namespace", ByNamespace()},
                     {"owner", ByController()},
                     {"app", ByLabel("app")},
                     {"initials", [](const Json& object) {
                        const std::string name = KeyOf(object).name;
                        return Strings{name.substr(0, 1), name.substr(0, 2)};
                      }}}};
};

TEST_F(ObjectCacheTest, FindsWhatWasPut) {
  EXPECT_EQ(Put(Pod("b", "x")), nullptr);
  Put(Pod("a", "y"));
  EXPECT_EQ(KeyOf(*cache.Find({.ns = "a", .name = "y"})).name, "y");
  EXPECT_EQ(cache.Find({.ns = "a", .name = "x"}), nullptr);
  EXPECT_EQ(Names(cache.List()), (Strings{"a/y", "b/x"}));
  EXPECT_EQ(cache.Keys().front(), (ObjectKey{.ns = "a", .name = "y"}));
  EXPECT_EQ(cache.size(), 2U);
}

TEST_F(ObjectCacheTest, LooksUpByNamespaceOwnerLabelAndFunction) {
  Put(Pod("a", "x1", {{"app", "web"}}, "u1"));
  Put(Pod("a", "x2", {{"app", "db"}}, "u1"));
  Put(Pod("b", "y1", {{"app", "web"}}));
  EXPECT_EQ(Names(cache.Lookup("namespace", "a")), (Strings{"a/x1", "a/x2"}));
  EXPECT_EQ(Names(cache.Lookup("owner", "u1")), (Strings{"a/x1", "a/x2"}));
  EXPECT_EQ(Names(cache.Lookup("app", "web")), (Strings{"a/x1", "b/y1"}));
  EXPECT_EQ(Names(cache.Lookup("initials", "x")), (Strings{"a/x1", "a/x2"}));
  EXPECT_EQ(Names(cache.Lookup("initials", "x2")), (Strings{"a/x2"}));
  EXPECT_TRUE(cache.Lookup("app", "none").empty());
}

TEST_F(ObjectCacheTest, AnIndexFollowsChanges) {
  Put(Pod("a", "x", {{"app", "web"}}));
  const auto before = Put(Pod("a", "x", {{"app", "db"}}));
  EXPECT_EQ(LabelOf(*before, "app"), "web");
  EXPECT_TRUE(cache.Lookup("app", "web").empty());
  EXPECT_EQ(Names(cache.Lookup("app", "db")), (Strings{"a/x"}));
}

TEST_F(ObjectCacheTest, WhatIsRemovedIsInNoIndex) {
  Put(Pod("a", "x", {{"app", "web"}}, "u1"));
  EXPECT_EQ(KeyOf(*cache.Remove({.ns = "a", .name = "x"})).name, "x");
  EXPECT_EQ(cache.Remove({.ns = "a", .name = "x"}), nullptr);
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_TRUE(cache.Lookup("app", "web").empty());
  EXPECT_TRUE(cache.Lookup("owner", "u1").empty());
}

TEST_F(ObjectCacheTest, WhoHoldsAnEntryKeepsItsVersion) {
  Put(Pod("a", "x", {{"app", "web"}}));
  const auto held = cache.Find({.ns = "a", .name = "x"});
  Put(Pod("a", "x", {{"app", "db"}}));
  cache.Remove({.ns = "a", .name = "x"});
  EXPECT_EQ(LabelOf(*held, "app"), "web");
}

}  // namespace
}  // namespace optcache::kube
