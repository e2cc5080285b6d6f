#include "sidecar/manifests/multi_endpoint_request.h"

#include "support/growing_deadline.h"
#include "unit/sidecar/scripted_node.h"

namespace optcache::sidecar {
namespace {

using net::HttpResponse;
using std::chrono::milliseconds;
using std::chrono::minutes;

class CountingSink final : public net::HttpBodySink {
 public:
  Status Write(std::string_view bytes) override {
    all += bytes;
    return all.size() > limit ? Status(Code::kResourceExhausted, "enough") : OkStatus();
  }
  std::string all;
  std::size_t limit = ~std::size_t{0};
};

// Breaks off half-way.
class HalfWay final : public net::HttpBodySource {
 public:
  ByteCount size() const override { return 1'000'000; }
  Result<std::string> Read(std::size_t most) override {
    if (read_ + most > 500'000) return Error(Code::kDataLoss, "broken off");
    read_ += most;
    return std::string(most, 'x');
  }

 private:
  std::size_t read_ = 0;
};

class MultiEndpointRequestTest : public LoopTest {
 protected:
  void Start(std::vector<std::string> urls) {
    multi_request_ = std::make_unique<MultiEndpointRequest>(
        loop_, *http_,
        MultiEndpointOptions{.urls = std::move(urls),
                             .head_start = head_start_,
                             .request_timeout = minutes(2),
                             .backoff = {.first = milliseconds(1), .limit = milliseconds(2)}},
        MultiEndpointRequest::Hooks{
            .request = [this](const std::string& url) -> Result<net::HttpRequest> {
              if (!fault_.ok()) return Error(fault_);
              return net::HttpRequest{.url = url + "/question"};
            },
            .answer = [this](const std::string& url,
                             Result<HttpResponse> response) -> std::optional<Duration> {
              answers_.push_back(response ? response->body : response.error().message());
              if (!response || response->status != 200) return wait_;
              winner_ = url;
              return std::nullopt;
            },
            .begin = [this](const HttpResponse& head) -> Result<MultiEndpointRequest::Hooks::Sink> {
              return head.status == 200 ? sink_ : nullptr;
            }});
  }
  void RunUntilOver() {
    RunUntil([this] { return multi_request_->over(); });
  }

  std::unique_ptr<MultiEndpointRequest> multi_request_;
  Status fault_;
  std::shared_ptr<CountingSink> sink_;  // null: none
  Duration head_start_ = milliseconds(200);
  Duration wait_ = Duration::zero();
  std::string winner_;
  std::vector<std::string> answers_;
};

TEST_F(MultiEndpointRequestTest, TheFirstPlaceAnswersAndTheOthersAreLeftAlone) {
  EXPECT_TRUE(HoldsForSomeDeadline(head_start_, [&](Duration head_start) {
    head_start_ = head_start;
    ScriptedNode first(loop_, {HttpResponse::Text(200, "yes")});
    ScriptedNode second(loop_, {HttpResponse::Text(200, "yes")});
    Start({first.url(), second.url()});
    RunUntilOver();
    RunFor(head_start);
    multi_request_.reset();
    if (winner_ != first.url() || !second.requests.empty()) return false;
    EXPECT_EQ(first.requests.at(0).url, "/question");
    return true;
  }));
}

TEST_F(MultiEndpointRequestTest, APlaceThatNeverAnswersHoldsUpNothing) {
  EXPECT_TRUE(HoldsForSomeDeadline(head_start_, [&](Duration head_start) {
    head_start_ = head_start;
    ScriptedNode silent(loop_, {});
    ScriptedNode second(loop_, {HttpResponse::Text(200, "yes")});
    Start({silent.url(), second.url()});
    RunUntilOver();
    multi_request_.reset();
    EXPECT_EQ(winner_, second.url());
    return silent.requests.size() == 1;  // else it was not asked in time
  }));
}

TEST_F(MultiEndpointRequestTest, AsksAgainUntilItIsAnswered) {
  ScriptedNode node(loop_, {HttpResponse::Text(503, "no"), HttpResponse::Text(503, "not yet"),
                            HttpResponse::Text(200, "yes")});
  Start({node.url()});
  RunUntilOver();
  EXPECT_EQ(answers_, (std::vector<std::string>{"no", "not yet", "yes"}));
}

TEST_F(MultiEndpointRequestTest, DoesNotAskBeforeItIsTold) {
  wait_ = minutes(10);
  ScriptedNode node(loop_, {HttpResponse::Text(503, "no")});
  Start({node.url()});
  RunUntil([&] { return answers_.size() == 1; });
  RunFor(milliseconds(100));
  EXPECT_EQ(node.requests.size(), 1U);
}

TEST_F(MultiEndpointRequestTest, ARequestThatCannotBeMadeIsAnAnswer) {
  fault_ = Status(Code::kNotFound, "no token");
  ScriptedNode node(loop_, {HttpResponse::Text(200, "yes")});
  Start({node.url()});
  RunUntil([&] { return answers_.size() >= 2; });
  EXPECT_EQ(answers_[0], "no token");
  EXPECT_TRUE(node.requests.empty());
  fault_ = OkStatus();
  RunUntilOver();
}

TEST_F(MultiEndpointRequestTest, AnAnswerGoesWhereItsHeadSays) {
  sink_ = std::make_shared<CountingSink>();
  ScriptedNode node(loop_, {HttpResponse::Text(503, "not yet"), HttpResponse::Text(200, "yes")});
  Start({node.url()});
  RunUntilOver();
  EXPECT_EQ(answers_, (std::vector<std::string>{"not yet", ""}));
  EXPECT_EQ(sink_->all, "yes");
}

TEST_F(MultiEndpointRequestTest, ASinkThatIsFullIsAnAnswer) {
  sink_ = std::make_shared<CountingSink>();
  sink_->limit = 10;
  ScriptedNode node(loop_,
                    {HttpResponse::Text(200, std::string(11, 'x')), HttpResponse::Text(503, "no")});
  Start({node.url()});
  RunUntil([&] { return answers_.size() >= 2; });
  EXPECT_EQ(answers_[0], "enough");
}

TEST_F(MultiEndpointRequestTest, WhoSendsGoesOnAloneAndTheOthersFollowIfItFails) {
  EXPECT_TRUE(HoldsForSomeDeadline(head_start_, [&](Duration head_start) {
    head_start_ = head_start;
    answers_.clear();
    sink_ = std::make_shared<CountingSink>();
    ScriptedNode silent(loop_, {});
    ScriptedNode broken(loop_, {{.status = 200, .source = std::make_shared<HalfWay>()},
                                HttpResponse::Text(503, "no")});
    Start({silent.url(), broken.url()});
    RunUntil([&] { return silent.requests.size() >= 2 || answers_.size() >= 50; });
    const bool asked_again = silent.requests.size() >= 2;  // else it was not asked in time before
    if (asked_again) {
      EXPECT_GE(answers_.size(), 1U) << "asked again, as the other one broke off";
      silent.AnswerAll(HttpResponse::Text(200, "yes"));
      RunUntilOver();
      EXPECT_EQ(winner_, silent.url());
    }
    multi_request_.reset();
    return asked_again;
  }));
}

TEST_F(MultiEndpointRequestTest, TooLongASentenceIsNotHeard) {
  ScriptedNode node(loop_, {HttpResponse::Text(503, std::string(100'000, 'x'))});
  Start({node.url()});
  RunUntil([&] { return !answers_.empty(); });
  EXPECT_EQ(answers_[0], node.url() + ": too long an answer");
}

TEST_F(MultiEndpointRequestTest, NothingComesAfterItsEnd) {
  ScriptedNode node(loop_, {});
  Start({node.url()});
  RunUntil([&] { return !node.requests.empty(); });
  multi_request_.reset();
  node.AnswerAll(HttpResponse::Text(200, "yes"));
  RunFor(milliseconds(100));
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace optcache::sidecar
