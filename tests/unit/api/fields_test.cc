#include "api/fields.h"

#include <functional>

#include <gtest/gtest.h>

namespace optcache::api {
namespace {

using Json = nlohmann::json;

// A file in which a value stands in the line of its size.
class Lines final : public FilePositions {
 public:
  std::string At(const Json& value) const override {
    return "f.yaml:" + std::to_string(value.size());
  }
  std::string AtKey(const Json&) const override { return "f.yaml:key"; }
  std::size_t RankOfKey(const Json& value) const override { return value.size(); }
};

std::string ErrorsOf(const Json& object, const std::function<void(Fields&)>& read) {
  Errors errors;
  Fields fields(object, "spec", errors);
  read(fields);
  fields.Finish();
  return errors.status().message();
}

TEST(Fields, KeepsWhatIsMissingOrNull) {
  const Json object = {{"text", nullptr}};
  std::string text = "a";
  std::int64_t number = 3;
  bool flag = true;
  EXPECT_EQ(ErrorsOf(object,
                     [&](Fields& fields) {
                       fields.Read("text", text, 9);
                       fields.Read("number", number, 0, 9);
                       fields.Read("flag", flag);
                       fields.In("object", [](Fields&) { FAIL(); });
                     }),
            "");
  EXPECT_EQ(text, "a");
  EXPECT_EQ(number, 3);
  EXPECT_TRUE(flag);
}

TEST(Fields, NamesEveryErrorWithItsPath) {
  const Json object = {{"a", 5}, {"b", {{"c", "x"}}}, {"d", {{{"e", "no"}}}}, {"f", "long"}};
  EXPECT_EQ(ErrorsOf(object,
                     [](Fields& fields) {
                       std::string text;
                       fields.Read("a", text, 9);
                       fields.In("b", [](Fields& inner) {
                         std::int64_t number = 0;
                         inner.Read("c", number, 1, 3);
                       });
                       fields.ForEach("d", 2, [](Fields& item) {
                         bool flag = false;
                         item.Read("e", flag);
                       });
                       fields.Read("f", text, 3);
                       fields.Need("g", text, 3, "a word");
                     }),
            "spec.a: not a string; spec.b.c: 'x', allowed: a whole number from 1 to 3; "
            "spec.d[0].e: 'no' is not known, allowed: true, false; spec.f: 4 bytes, allowed: 3; "
            "spec.g: missing or empty, allowed: a word");
}

TEST(Fields, KeepsOnlyTheFirstErrors) {
  const Json object = {{"list", Json::array_t(20, 1)}};
  const std::string all = ErrorsOf(object, [](Fields& fields) {
    std::vector<std::string> texts;
    fields.Read("list", texts, 20, 9);
  });
  EXPECT_EQ(std::ranges::count(all, ';'), static_cast<std::ptrdiff_t>(Errors::kMost) - 1);
}

TEST(Fields, NumbersFitTheirBounds) {
  for (const char* text :
       {"-1", "10", "1e0", "1.0", "18446744073709551615", "true", "\"1\"", "[]"}) {
    const Json object = {{"n", Json::parse(text)}};
    EXPECT_NE(ErrorsOf(object,
                       [](Fields& fields) {
                         std::int64_t number = 0;
                         fields.Read("n", number, 0, 9);
                       }),
              "")
        << text;
  }
}

TEST(Fields, OfAFileAreTextsAndAllOfThemAreKnown) {
  const Json object = {{"flag", "true"}, {"number", "7"}, {"more", {1, 2}}, {"other", {1}}};
  const Lines lines;
  Errors errors(lines);
  Fields fields(object, "", errors);
  bool flag = false;
  std::int64_t number = 0;
  fields.Read("flag", flag);
  fields.Read("number", number, 0, 9);
  EXPECT_TRUE(errors.ok());
  EXPECT_TRUE(flag);
  EXPECT_EQ(number, 7);
  fields.Finish();
  EXPECT_EQ(errors.status().message(), "f.yaml:key: other is not known, allowed: flag, number");
}

TEST(Fields, OfAFileKeepTheFirstErrorAndItsLine) {
  const Json object = {{"flag", "yes"}, {"text", Json::array()}};
  const Lines lines;
  Errors errors(lines);
  Fields fields(object, "spec", errors);
  bool flag = false;
  std::string text;
  fields.Read("flag", flag);
  fields.Read("text", text, 9);
  fields.Finish();
  EXPECT_EQ(errors.status().message(),
            "f.yaml:1: spec.flag: 'yes' is not known, allowed: true, false");
}

TEST(Fields, ReadsNamesOfKubernetes) {
  for (const char* name : {"a", "a-1", "a.b", "0.x-y"}) {
    const Json object = {{"n", name}};
    std::string out;
    EXPECT_EQ(ErrorsOf(object, [&](Fields& fields) { fields.NeedSubdomain("n", out); }), "");
    EXPECT_EQ(out, name);
  }
  for (const std::string name : {"", "A", "-a", "a.", "a_b", "..", std::string(64, 'a').c_str()}) {
    const Json object = {{"n", name}};
    std::string out;
    EXPECT_NE(ErrorsOf(object, [&](Fields& fields) { fields.NeedSubdomain("n", out); }), "")
        << name;
  }
}

}  // namespace
}  // namespace optcache::api
