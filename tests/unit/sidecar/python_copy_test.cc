#include "sidecar/programs/python_copy.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/temp_dir.h"

namespace optcache::sidecar {
namespace {

namespace fs = std::filesystem;

class PythonCopyTest : public testing::Test {
 protected:
  void SetUp() override { WritePackage("1.0"); }
  void WritePackage(const std::string& version) const {
    dir_.Write("package/__init__.py", "__version__ = \"" + version + "\"\n");
    dir_.Write("package/_injected.py", "front");
    dir_.Write("package/inner/module.py", "inner of " + version);
    dir_.Write("package/__pycache__/module.pyc", "bytecode");
    dir_.Write("package/_dist_info/METADATA", "Version: " + version);
    dir_.Write("package/_dist_info/entry_points.txt", "entry points of " + version);
  }
  Status Copy() const { return CopyPythonPackage(dir_.Join("package"), dir_.Join("out")); }
  std::string Read(const std::string& file) const {
    return ReadFile(dir_.Join("out/optcache/" + file), 1_MiB).value_or("missing");
  }
  TempDir dir_;
};

TEST_F(PythonCopyTest, PutsThePackageBehindItsFront) {
  ASSERT_TRUE(Copy().ok());
  EXPECT_EQ(Read("__init__.py"), "front");
  EXPECT_EQ(Read("_copy/__init__.py"), "__version__ = \"1.0\"\n");
  EXPECT_EQ(Read("_copy/inner/module.py"), "inner of 1.0");
  EXPECT_EQ(Read("_copy/__pycache__/module.pyc"), "missing");
  EXPECT_EQ(Read("../optcache_injected.dist-info/entry_points.txt"), "entry points of 1.0");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.Join("out")), fs::directory_iterator()), 2);
}

TEST_F(PythonCopyTest, EverybodyMayReadIt) {
  fs::permissions(dir_.Join("package/inner/module.py"), fs::perms::owner_read);
  ASSERT_TRUE(Copy().ok());
  EXPECT_EQ(fs::status(dir_.Join("out/optcache/_copy/inner/module.py")).permissions(),
            fs::perms(0644));
  EXPECT_EQ(fs::status(dir_.Join("out/optcache/_copy/inner")).permissions(), fs::perms(0755));
  EXPECT_EQ(fs::status(dir_.Join("out/optcache_injected.dist-info")).permissions(),
            fs::perms(0755));
}

TEST_F(PythonCopyTest, ACopyOfTheSameVersionStaysAsItIs) {
  ASSERT_TRUE(Copy().ok());
  dir_.Write("out/optcache/_copy/mark", "still the first");
  dir_.Write("out/optcache_injected.dist-info/mark", "likewise");
  ASSERT_TRUE(Copy().ok());
  EXPECT_EQ(Read("_copy/mark"), "still the first");
  EXPECT_EQ(Read("../optcache_injected.dist-info/mark"), "likewise");
}

TEST_F(PythonCopyTest, AnotherVersionTakesItsPlace) {
  ASSERT_TRUE(Copy().ok());
  WritePackage("1.1");
  ASSERT_TRUE(Copy().ok());
  EXPECT_EQ(Read("_copy/inner/module.py"), "inner of 1.1");
  EXPECT_EQ(Read("../optcache_injected.dist-info/entry_points.txt"), "entry points of 1.1");
  EXPECT_FALSE(fs::exists(dir_.Join("out/.optcache-new")));
}

TEST_F(PythonCopyTest, ACopyOfTheSameVersionWithoutEntryPointsGetsThem) {
  ASSERT_TRUE(Copy().ok());
  fs::remove_all(dir_.Join("out/optcache_injected.dist-info"));
  ASSERT_TRUE(Copy().ok());
  EXPECT_EQ(Read("../optcache_injected.dist-info/METADATA"), "Version: 1.0");
}

TEST_F(PythonCopyTest, WhatAStartThatWasCutOffLeftIsNoHindrance) {
  dir_.Write("out/.optcache-new/_copy/half.py", "half");
  ASSERT_TRUE(Copy().ok());
  EXPECT_EQ(Read("_copy/half.py"), "missing");
}

TEST_F(PythonCopyTest, SaysThatThereIsNoPackage) {
  const Status status = CopyPythonPackage(dir_.Join("nothing"), dir_.Join("out"));
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find(dir_.Join("nothing")), std::string::npos);
}

}  // namespace
}  // namespace optcache::sidecar
