#include "cli/dashboard/prometheus_client.h"

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "net/http_client.h"

namespace optcache::cli {
namespace {

constexpr std::size_t kInFlight = 4;  // Prometheus works on each with a thread of its own

// The questions that are under way, on the loop's thread.
class Asking {
 public:
  Asking(const PrometheusOptions& options, const std::vector<PrometheusQuestion>& questions)
      : options_(options), questions_(questions), client_(net::MakeHttpClient(loop_)) {
    answers_.resize(questions.size());
  }

  Result<std::vector<SeriesAnswer>> Run() {
    if (questions_.empty()) return std::vector<SeriesAnswer>{};
    for (std::size_t i = 0; i < kInFlight; ++i)
      AskNext();
    loop_.Run();
    if (!failure_.ok()) {
      return Error(
          {failure_.code(),
           fmt::format("Prometheus at {} does not answer: {}. One in a cluster is reached by "
                       "`kubectl port-forward`",
                       options_.url, failure_.message())});
    }
    std::vector<SeriesAnswer> all;
    for (auto& answer : answers_)
      all.push_back(*std::move(answer));
    return all;
  }

 private:
  void AskNext() {
    if (next_ == questions_.size()) return;
    const std::size_t at = next_++;
    net::HttpRequest request{
        .method = "POST",
        .url = options_.url + questions_[at].path,
        .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
        .body = questions_[at].form,
        .peer = {},
    };
    if (!options_.token.empty())
      request.headers.emplace_back("Authorization", "Bearer " + options_.token);
    client_->Send(std::move(request), options_.timeout,
                  [this, at](Result<net::HttpResponse> response) { OnAnswer(at, response); });
  }

  void OnAnswer(std::size_t at, const Result<net::HttpResponse>& response) {
    if (!response) return Fail(response.error());
    SeriesAnswer answer = ParseAnswer(response->status, response->body);
    if (!answer && answer.error().code() == Code::kUnavailable) return Fail(answer.error());
    answers_[at] = std::move(answer);
    if (++answered_ == questions_.size()) return loop_.Stop();
    AskNext();
  }

  void Fail(const Status& why) {
    failure_ = why;
    loop_.Stop();
  }

  const PrometheusOptions& options_;
  const std::vector<PrometheusQuestion>& questions_;
  net::EventLoop loop_;
  std::unique_ptr<net::HttpClient> client_;
  std::vector<std::optional<SeriesAnswer>> answers_;
  std::size_t next_ = 0;
  std::size_t answered_ = 0;
  Status failure_;
};

}  // namespace

Result<std::vector<SeriesAnswer>> AskPrometheus(const PrometheusOptions& options,
                                                const std::vector<PrometheusQuestion>& questions) {
  return Asking(options, questions).Run();
}

}  // namespace optcache::cli
