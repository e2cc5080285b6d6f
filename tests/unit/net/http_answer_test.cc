#include "net/internal/http_answer.h"

#include <boost/beast/http/field.hpp>

#include "unit/net/http_body_fixture.h"

namespace optcache::net {
namespace {

namespace http = boost::beast::http;

std::string Header(HttpAnswer& answer, http::field name) {
  return std::string(answer.message()[name]);
}
std::string Body(HttpAnswer& answer) {
  const auto& body = answer.message().body();
  return {body.data(), body.size()};
}
HttpResponse FromSource(std::string text) {
  return {.source = std::make_shared<StringSource>(std::move(text))};
}

TEST(HttpAnswer, HasItsStatusHeadersAndBody) {
  HttpAnswer answer({.status = 201, .headers = {{"ETag", "x"}}, .body = "taken"}, {});
  EXPECT_EQ(answer.message().result_int(), 201U);
  EXPECT_EQ(Header(answer, http::field::etag), "x");
  EXPECT_EQ(Header(answer, http::field::content_length), "5");
  EXPECT_EQ(Body(answer), "taken");
  EXPECT_EQ(answer.unsent(), 0U);
}

TEST(HttpAnswer, ABodyThatIsSharedIsNotCopied) {
  const auto shared = std::make_shared<const std::string>("for all");
  HttpAnswer answer({.shared_body = shared}, {});
  EXPECT_EQ(answer.message().body().data(), shared->data());
  EXPECT_EQ(Header(answer, http::field::content_length), "7");
}

TEST(HttpAnswer, WhatComesFromASourceIsSentAfterTheMessage) {
  HttpAnswer answer(FromSource("hello"), {});
  EXPECT_EQ(Header(answer, http::field::content_length), "5");
  EXPECT_EQ(Body(answer), "");
  EXPECT_EQ(answer.unsent(), 5U);
  answer.OnSent(3);
  EXPECT_EQ(answer.unsent(), 2U);
  EXPECT_NE(answer.source(), nullptr);
  answer.DropSource();
  EXPECT_EQ(answer.source(), nullptr);
}

TEST(HttpAnswer, ToHeadItSaysTheLengthAlone) {
  HttpAnswer body({.body = "hello"}, {.head = true});
  EXPECT_EQ(Header(body, http::field::content_length), "5");
  EXPECT_EQ(Body(body), "");
  HttpAnswer source(FromSource("hello"), {.head = true});
  EXPECT_EQ(Header(source, http::field::content_length), "5");
  EXPECT_EQ(source.unsent(), 0U);
}

TEST(HttpAnswer, NotModifiedHasNoLength) {
  HttpAnswer answer({.status = 304}, {});
  EXPECT_EQ(answer.message().count(http::field::content_length), 0U);
}

TEST(HttpAnswer, SaysWhetherTheConnectionGoesOn) {
  const auto connection = [](unsigned version, bool keep_alive) {
    HttpAnswer answer({}, {.version = version, .keep_alive = keep_alive});
    return Header(answer, http::field::connection);
  };
  EXPECT_EQ(connection(11, true), "");
  EXPECT_EQ(connection(11, false), "close");
  EXPECT_EQ(connection(10, true), "keep-alive");
  EXPECT_EQ(connection(10, false), "close");
}

}  // namespace
}  // namespace optcache::net
