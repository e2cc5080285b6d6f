// Draws dashboards: reads them, fills in their queries, asks Prometheus for all panels together,
// and writes the pictures.
//
//   ReadDashboards ─► Prepare (variables into queries) ─► Ask ─► WritePictures ─► report
//
// Questions of all panels go out in one list and the answers come in the same order, so `Ask` walks
// the panels twice in the same way. A query that Prometheus refuses ends the whole, with the
// panel's name. A value of --var that Prometheus does not know is only a note.

#include "cli/dashboard/render.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "cli/dashboard/embedded.h"
#include "cli/dashboard/prometheus_client.h"
#include "cli/dashboard/render_report.h"
#include "cli/dashboard/variable_values.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/print.h"

namespace optcache::cli {
namespace {

constexpr const char* kRenderMore =
    R"(Draws what Grafana would show, without Grafana. Writes SVG: one page for each dashboard, one file for each panel.

Examples:
  Draw the last hour of all four dashboards:
    optcache dashboard render --prometheus http://localhost:9090 -o pictures
  Draw two days of one Dataset, in one dashboard:
    optcache dashboard render --prometheus http://localhost:9090 -o pictures --last 2d \
      --dashboard optcache-overview --var dataset=vision/imagenet
  Ask a Prometheus in the cluster:
    kubectl --namespace monitoring port-forward service/prometheus 9090 &
    optcache dashboard render --prometheus http://localhost:9090 -o pictures)";

constexpr double kPictureSteps = 240;
constexpr std::size_t kVariableBytesMax = 1000;

struct RenderFlags {
  std::string prometheus;
  std::string output_folder;
  std::string dashboards_folder;
  std::vector<std::string> uids;
  std::string last = "1h";
  std::string from;
  std::string to;
  std::string step;
  std::string scrape_interval = "30s";
  std::vector<std::string> variables;  // NAME=VALUE
  std::string token_file;
  std::string output = "text";
  bool require_data = false;
};

// --- What is to be drawn ----------------------------------------------------------------------

Result<std::vector<Dashboard>> ReadFolder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  if (error) return Error(Code::kNotFound, fmt::format("{}: {}", folder, error.message()));
  if (paths.empty())
    return Error(Code::kNotFound, folder + " has no dashboards: files that end with .json");
  std::ranges::sort(paths);
  std::vector<Dashboard> all;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kDashboardBytesMax));
    ASSIGN_OR_RETURN(Dashboard dashboard, ParseDashboard(text, path));
    all.push_back(std::move(dashboard));
  }
  return all;
}

Result<std::vector<Dashboard>> ReadEmbedded() {
  std::vector<Dashboard> all;
  for (const EmbeddedDashboard& each : EmbeddedDashboards()) {
    ASSIGN_OR_RETURN(Dashboard dashboard, ParseDashboard(each.json, std::string(each.name)));
    all.push_back(std::move(dashboard));
  }
  return all;
}

Result<std::vector<Dashboard>> ReadDashboards(const RenderFlags& flags) {
  ASSIGN_OR_RETURN(std::vector<Dashboard> all, flags.dashboards_folder.empty()
                                                   ? ReadEmbedded()
                                                   : ReadFolder(flags.dashboards_folder));
  std::set<std::string> known;
  for (const Dashboard& dashboard : all) {
    if (!known.insert(dashboard.uid).second)
      return Error(Code::kInvalidArgument, "two dashboards have the uid " + dashboard.uid);
  }
  for (const std::string& uid : flags.uids) {
    if (known.contains(uid)) continue;
    std::string list;
    for (const std::string& each : known)
      list += (list.empty() ? "" : ", ") + each;
    return Error(Code::kInvalidArgument,
                 fmt::format("there is no dashboard {}; there are {}", uid, list));
  }
  if (flags.uids.empty()) return all;
  std::erase_if(all, [&](const Dashboard& dashboard) {
    return std::ranges::find(flags.uids, dashboard.uid) == flags.uids.end();
  });
  return all;
}

Result<TimeRange> ReadTimeRange(const RenderFlags& flags) {
  TimeRange range{.to = SystemClock().UnixSeconds()};
  if (!flags.to.empty()) {
    ASSIGN_OR_RETURN(range.to, ParseMoment(flags.to));
  }
  if (flags.from.empty()) {
    ASSIGN_OR_RETURN(const double last, ParseSpan(flags.last));
    range.from = range.to - last;
  } else {
    ASSIGN_OR_RETURN(range.from, ParseMoment(flags.from));
  }
  range.step = std::max(1.0, std::ceil((range.to - range.from) / kPictureSteps));
  if (!flags.step.empty()) {
    ASSIGN_OR_RETURN(range.step, ParseSpan(flags.step));
  }
  RETURN_IF_ERROR(CheckTimeRange(range));
  return range;
}

// The values of all variables, those without a --var as all.
Result<TemplateValues> ReadVariables(const RenderFlags& flags,
                                     const std::vector<Dashboard>& dashboards) {
  TemplateValues values;
  for (const Dashboard& dashboard : dashboards) {
    for (const DashboardVariable& variable : dashboard.variables)
      values[variable.name].all_value = variable.all_value;
  }
  for (const std::string& text : flags.variables) {
    const std::size_t equals = text.find('=');
    const auto found = values.find(text.substr(0, equals));
    if (found == values.end()) {
      std::string names;
      for (const auto& [name, value] : values)
        names += (names.empty() ? "" : ", ") + name;
      return Error(Code::kInvalidArgument,
                   fmt::format("--var {}: the dashboards have no variable of that name; they have "
                               "{}",
                               text, names));
    }
    found->second.values.push_back(text.substr(equals + 1));
  }
  return values;
}

// "dataset a/b, node n1".
std::string Chosen(const Dashboard& dashboard, const TemplateValues& values) {
  std::string text;
  for (const DashboardVariable& variable : dashboard.variables) {
    for (const std::string& value : values.at(variable.name).values)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", variable.name, value);
  }
  return text;
}

// --- Asking and drawing -----------------------------------------------------------------------

Result<std::vector<RenderedDashboard>> Prepare(std::vector<Dashboard> dashboards,
                                               const TemplateValues& values,
                                               const TemplateTimes& times) {
  std::vector<RenderedDashboard> prepared;
  for (Dashboard& dashboard : dashboards) {
    RenderedDashboard& rendered = prepared.emplace_back();
    rendered.file = dashboard.uid + ".svg";
    for (const Panel& panel : dashboard.panels) {
      RenderedPanel& each = rendered.panels.emplace_back();
      each.file = PanelFileName(dashboard, panel);
      for (const PanelTarget& target : panel.targets) {
        Result<std::string> query = FillQuery(target.query, values, times);
        if (!query) {
          return Error(std::move(query).error().WithContext(
              fmt::format("{}, panel '{}', query {}", dashboard.uid, panel.title, target.ref)));
        }
        each.targets.push_back({.ref = target.ref, .query = *std::move(query)});
      }
    }
    rendered.dashboard = std::move(dashboard);
  }
  return prepared;
}

void AddSeries(const PanelTarget& target, std::vector<PrometheusSeries> answer,
               RenderedPanel& panel, RenderedTarget& rendered) {
  for (PrometheusSeries& series : answer) {
    if (series.points.empty()) continue;
    ++rendered.series;
    rendered.points += series.points.size();
    panel.data.series.push_back({.name = FillLegend(target.legend, series.labels),
                                 .labels = std::move(series.labels),
                                 .points = std::move(series.points)});
  }
}

Status Ask(const PrometheusOptions& options, const TimeRange& range,
           std::vector<RenderedDashboard>& dashboards) {
  std::vector<PrometheusQuestion> questions;
  for (const RenderedDashboard& each : dashboards) {
    for (std::size_t i = 0; i < each.panels.size(); ++i) {
      for (const RenderedTarget& target : each.panels[i].targets)
        questions.push_back(MakeQuestion(target.query, range, each.dashboard.panels[i].instant()));
    }
  }
  ASSIGN_OR_RETURN(std::vector<SeriesAnswer> answers, AskPrometheus(options, questions));
  std::size_t next = 0;
  for (RenderedDashboard& each : dashboards) {
    for (std::size_t i = 0; i < each.panels.size(); ++i) {
      const Panel& panel = each.dashboard.panels[i];
      for (std::size_t t = 0; t < panel.targets.size(); ++t) {
        SeriesAnswer answer = std::move(answers[next++]);
        RenderedTarget& target = each.panels[i].targets[t];
        if (!answer) {
          return std::move(answer).error().WithContext(
              fmt::format("Prometheus refuses query {} of {}, panel '{}': {}", target.ref,
                          each.dashboard.uid, panel.title, target.query));
        }
        AddSeries(panel.targets[t], *std::move(answer), each.panels[i], target);
      }
    }
  }
  return OkStatus();
}

// Says on standard error which values of --var nothing has; panels are drawn all the same.
Status WarnOfUnknownValues(const PrometheusOptions& options, const TimeRange& range,
                           const std::map<std::string, std::string>& asked_by,
                           const TemplateValues& values, const TemplateTimes& times) {
  struct Asked {
    std::string variable;
    std::string label;
  };
  std::vector<Asked> asked;
  std::vector<PrometheusQuestion> questions;
  for (const auto& [variable, grafana] : asked_by) {
    const std::optional<LabelQuestion> question = ParseLabelQuestion(grafana);
    if (!question || values.at(variable).values.empty()) continue;
    // Of all that there is: others that are chosen are judged for themselves.
    TemplateValues all = values;
    for (auto& [name, chosen] : all)
      chosen.values.clear();
    const Result<std::string> selector = FillQuery(question->selector, all, times);
    if (!selector) continue;
    asked.push_back({.variable = variable, .label = question->label});
    questions.push_back(
        MakeQuestion(ValuesQuery(*selector, question->label, range), range, /*instant=*/true));
  }
  ASSIGN_OR_RETURN(const std::vector<SeriesAnswer> answers, AskPrometheus(options, questions));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;  // a dashboard of yours may ask otherwise than Prometheus knows
    std::set<std::string> known;
    for (const PrometheusSeries& series : *answers[i]) {
      if (const auto found = series.labels.find(asked[i].label); found != series.labels.end())
        known.insert(found->second);
    }
    for (const std::string& value : values.at(asked[i].variable).values) {
      if (const auto note = NoteOfUnknownValue(asked[i].variable, value, known))
        fmt::print(stderr, "optcache: {}\n", *note);
    }
  }
  return OkStatus();
}

Status MakePictureFolder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error))
    return {Code::kInvalidArgument, fmt::format("--output-dir: {} is a file", path)};
  std::filesystem::create_directories(path, error);
  if (!error) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("--output-dir: cannot make the folder {}: {}", path, error.message())};
}

Status WritePictures(const std::string& folder, const TemplateValues& values,
                     const TimeRange& range, const std::vector<RenderedDashboard>& dashboards) {
  for (const RenderedDashboard& each : dashboards) {
    RETURN_IF_ERROR(MakePictureFolder(folder + "/" + each.dashboard.uid));
    std::vector<PanelData> data;
    for (std::size_t i = 0; i < each.panels.size(); ++i) {
      const RenderedPanel& panel = each.panels[i];
      data.push_back(panel.data);
      RETURN_IF_ERROR(WriteFileAtomically(
          folder + "/" + panel.file, DrawPanelFile(each.dashboard.panels[i], panel.data, range)));
    }
    const std::string page =
        DrawDashboardPage(each.dashboard, data, range, Chosen(each.dashboard, values));
    RETURN_IF_ERROR(WriteFileAtomically(folder + "/" + each.file, page));
  }
  return OkStatus();
}

Status RunRender(const RenderFlags& flags) {
  PrometheusOptions options{.url = flags.prometheus, .token = ""};
  while (options.url.ends_with('/'))
    options.url.pop_back();
  if (!flags.token_file.empty()) {
    ASSIGN_OR_RETURN(options.token, ReadToken(flags.token_file));
  }
  ASSIGN_OR_RETURN(std::vector<Dashboard> dashboards, ReadDashboards(flags));
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(flags));
  ASSIGN_OR_RETURN(const TemplateValues values, ReadVariables(flags, dashboards));
  ASSIGN_OR_RETURN(const double scrape, ParseSpan(flags.scrape_interval));
  const TemplateTimes times{
      .range_seconds = range.to - range.from, .step_seconds = range.step, .scrape_seconds = scrape};
  std::map<std::string, std::string> asked_by;
  for (const Dashboard& dashboard : dashboards) {
    for (const DashboardVariable& variable : dashboard.variables)
      asked_by[variable.name] = variable.values;
  }
  ASSIGN_OR_RETURN(std::vector<RenderedDashboard> rendered,
                   Prepare(std::move(dashboards), values, times));
  RETURN_IF_ERROR(MakePictureFolder(flags.output_folder));
  RETURN_IF_ERROR(WarnOfUnknownValues(options, range, asked_by, values, times));
  RETURN_IF_ERROR(Ask(options, range, rendered));
  RETURN_IF_ERROR(WritePictures(flags.output_folder, values, range, rendered));
  RETURN_IF_ERROR(Print(flags.output == "json" ? ReportAsJson(rendered, range)
                                               : ReportAsText(rendered, flags.output_folder)));
  const std::size_t empty = EmptyPanels(rendered).size();
  if (!flags.require_data || empty == 0) return OkStatus();
  return {Code::kNotFound, fmt::format("{} panels have no data, see above", empty)};
}

// --- Flags ------------------------------------------------------------------------------------

// What is wrong with a flag that `parse` reads, or nothing.
template <typename Value, typename Text>
CLI::Validator MustParse(Result<Value> (*parse)(Text)) {
  const auto check = [parse](const std::string& text) -> std::string {
    const Result<Value> value = parse(text);
    return value ? "" : value.error().message();
  };
  return {check, ""};
}

std::string MustBeUrl(const std::string& text) {
  if (text.starts_with("http://") || text.starts_with("https://")) return "";
  return fmt::format("'{0}' is not a URL: write http://{0}", text);
}

std::string MustBeAssignment(const std::string& text) {
  if (text.size() <= kVariableBytesMax && text.find('=') != std::string::npos) return "";
  return fmt::format("{}: write NAME=VALUE", text.substr(0, kVariableBytesMax));
}

void AddTimeOptions(CLI::App& command, RenderFlags& flags) {
  constexpr const char* kTime = "What time";
  command.add_option("--last", flags.last, "The time to show, up to --to: 90s, 15m, 1h, 2d")
      ->check(MustParse(ParseSpan))
      ->group(kTime)
      ->capture_default_str();
  command
      .add_option("--from", flags.from,
                  "Start of the time to show, instead of --last: 2026-01-05T10:00:00Z, or seconds "
                  "since 1970")
      ->check(MustParse(ParseMoment))
      ->group(kTime)
      ->excludes("--last");
  command.add_option("--to", flags.to, "End of the time to show, like --from; default: now")
      ->check(MustParse(ParseMoment))
      ->group(kTime);
  command
      .add_option("--step", flags.step,
                  "Time between two points; default: a 240th of the time shown, at least 1s")
      ->check(MustParse(ParseSpan))
      ->group(kTime);
  command
      .add_option("--scrape-interval", flags.scrape_interval,
                  "How often Prometheus scrapes; rates cover at least four scrapes")
      ->check(MustParse(ParseSpan))
      ->group(kTime)
      ->capture_default_str();
}

}  // namespace

void AddDashboardCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command = app.add_subcommand("dashboard", "Draw the dashboards as pictures");
  command->require_subcommand(1);
  CLI::App* const render = command->add_subcommand(
      "render", "Draw the dashboards from the data of a Prometheus, as SVG");
  render->footer(kRenderMore);
  const auto flags = std::make_shared<RenderFlags>();
  render
      ->add_option("--prometheus", flags->prometheus,
                   "URL of Prometheus, for example http://localhost:9090")
      ->required()
      ->check(CLI::Validator(MustBeUrl, ""));
  render->add_option("-o,--output-dir", flags->output_folder, "Folder for the pictures")
      ->required();
  render->add_option("--dashboards", flags->dashboards_folder,
                     "Folder of Grafana's JSON files; default: the dashboards of this release");
  render
      ->add_option("--dashboard", flags->uids,
                   "Draw only the dashboard of this uid; may be repeated")
      ->allow_extra_args(false);
  render
      ->add_option("--var", flags->variables,
                   "Set a variable, for example dataset=vision/imagenet; may be repeated, also for "
                   "several values of one variable; default: all values")
      ->check(CLI::Validator(MustBeAssignment, ""))
      ->allow_extra_args(false);
  AddTimeOptions(*render, *flags);
  render->add_option("--token-file", flags->token_file,
                     "File with the bearer token for Prometheus");
  render->add_option("--output", flags->output, "What to print: text, or json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  render->add_flag("--require-data", flags->require_data, "Fail if a panel has no data");
  Choose(*render, flags, RunRender, chosen);
}

}  // namespace optcache::cli
