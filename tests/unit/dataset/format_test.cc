#include "dataset/format.h"

#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

TEST(ParseFormat, TakesBothSpellings) {
  for (const FormatNames& format : kFormats) {
    EXPECT_EQ(ParseFormat(format.name), format.format);
    EXPECT_EQ(ParseFormat(format.in_resources), format.format);
  }
  EXPECT_EQ(ParseFormat("tar-files").value(), Format::kTarFiles);
  EXPECT_EQ(ParseFormat("TarFiles").value(), Format::kTarFiles);
  EXPECT_EQ(ParseFormat("Megatron").value(), Format::kMegatron);
  EXPECT_EQ(ParseFormat("zip").error(),
            Status(Code::kInvalidArgument,
                   "format zip: there are files, tar, tar-files, ranges, npy, megatron"));
}

}  // namespace
}  // namespace optcache::dataset
