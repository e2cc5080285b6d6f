#include "sidecar/place_race.h"

#include "unit/sidecar/scripted_node.h"

namespace optcache::sidecar {
namespace {

using net::HttpResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;

class PlaceRaceTest : public LoopTest {
 protected:
  void Start(std::vector<std::string> urls) {
    race_ = std::make_unique<PlaceRace>(
        loop_, *http_,
        PlaceRaceOptions{.urls = std::move(urls),
                         .head_start = milliseconds(200),
                         .request_timeout = seconds(20),
                         .backoff = {.first = milliseconds(1), .limit = milliseconds(2)}},
        PlaceRace::Hooks{
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
            }});
  }
  void RunUntilOver() {
    RunUntil([this] { return race_->over(); });
  }

  std::unique_ptr<PlaceRace> race_;
  Status fault_;
  Duration wait_ = Duration::zero();
  std::string winner_;
  std::vector<std::string> answers_;
};

TEST_F(PlaceRaceTest, TheFirstPlaceAnswersAndTheOthersAreLeftAlone) {
  ScriptedNode first(loop_, {HttpResponse::Text(200, "yes")});
  ScriptedNode second(loop_, {HttpResponse::Text(200, "yes")});
  Start({first.url(), second.url()});
  RunUntilOver();
  RunFor(milliseconds(300));
  EXPECT_EQ(winner_, first.url());
  EXPECT_EQ(first.requests.at(0).url, "/question");
  EXPECT_TRUE(second.requests.empty());
}

TEST_F(PlaceRaceTest, APlaceThatNeverAnswersHoldsUpNothing) {
  ScriptedNode silent(loop_, {});
  ScriptedNode second(loop_, {HttpResponse::Text(200, "yes")});
  Start({silent.url(), second.url()});
  RunUntilOver();
  EXPECT_EQ(winner_, second.url());
  EXPECT_EQ(silent.requests.size(), 1U);
}

TEST_F(PlaceRaceTest, AsksAgainUntilItIsAnswered) {
  ScriptedNode node(loop_, {HttpResponse::Text(503, "no"), HttpResponse::Text(503, "not yet"),
                            HttpResponse::Text(200, "yes")});
  Start({node.url()});
  RunUntilOver();
  EXPECT_EQ(answers_, (std::vector<std::string>{"no", "not yet", "yes"}));
}

TEST_F(PlaceRaceTest, DoesNotAskBeforeItIsTold) {
  wait_ = milliseconds(400);
  ScriptedNode node(loop_, {HttpResponse::Text(503, "no")});
  Start({node.url()});
  RunUntil([&] { return answers_.size() == 1; });
  RunFor(milliseconds(100));
  EXPECT_EQ(node.requests.size(), 1U);
}

TEST_F(PlaceRaceTest, ARequestThatCannotBeMadeIsAnAnswer) {
  fault_ = Status(Code::kNotFound, "no token");
  ScriptedNode node(loop_, {HttpResponse::Text(200, "yes")});
  Start({node.url()});
  RunUntil([&] { return answers_.size() >= 2; });
  EXPECT_EQ(answers_[0], "no token");
  EXPECT_TRUE(node.requests.empty());
  fault_ = OkStatus();
  RunUntilOver();
}

TEST_F(PlaceRaceTest, NothingComesAfterItsEnd) {
  ScriptedNode node(loop_, {});
  Start({node.url()});
  RunUntil([&] { return !node.requests.empty(); });
  race_.reset();
  node.AnswerAll(HttpResponse::Text(200, "yes"));
  RunFor(milliseconds(100));
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace optcache::sidecar
