#include "dataset/digest.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

// The examples of FIPS 180-2, appendix B.
TEST(Digest, MatchesThePublishedVectors) {
  EXPECT_EQ(ToHex(Sha256Of(AsBytes(""))),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256Of(AsBytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256Of(AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(ToHex(Sha256Of(AsBytes(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += static_cast<char>(i * 7);
  for (size_t length = 0; length <= text.size(); ++length) {
    const ByteSpan all = AsBytes(text).first(length);
    for (const size_t cut : {size_t{0}, length / 3, length / 2, length}) {
      Sha256 hash;
      hash.Update(all.first(cut));
      hash.Update(all.subspan(cut));
      ASSERT_EQ(hash.Finish(), Sha256Of(all)) << length << " bytes cut at " << cut;
    }
  }
}

// It never names a file elsewhere.
TEST(IsHexDigest, TakesWhatToHexWritesAlone) {
  const std::string digest = ToHex(Sha256Of(AsBytes("abc")));
  EXPECT_TRUE(IsHexDigest(digest));
  for (const std::string& text :
       {std::string(), digest.substr(1), digest + "0", std::string("../../etc/passwd")})
    EXPECT_FALSE(IsHexDigest(text)) << text;
  for (const char c : {'G', 'g', 'A', '/', ':', '`', '\0'})
    EXPECT_FALSE(IsHexDigest(c + digest.substr(1))) << c;
}

TEST(KeyOf, HangsOnNameAndManifest) {
  const std::string manifest(64, 'a');
  // printf 'vision/imagenet\naaa…' | sha256sum: its first eight bytes, backwards.
  EXPECT_EQ(KeyOf("vision/imagenet", manifest), 0x15bc91d3241d9bf0ULL);
  EXPECT_NE(KeyOf("speech/imagenet", manifest), KeyOf("vision/imagenet", manifest));
  EXPECT_NE(KeyOf("vision/imagenet", std::string(64, 'b')), KeyOf("vision/imagenet", manifest));
}

}  // namespace
}  // namespace optcache::dataset
