// Reads AWS's two files line by line, and looks up what one profile says in them.
//
// The idea: AwsFileParser knows lines, sections and one level of nesting, and nothing of what
// properties mean. AwsFiles looks properties up, in credentials first and then in config, and knows
// which ways to keys exist that are not followed here, so that it can say so. WithAwsProfile puts
// the result under an Environment: a variable that is set wins over the profile.
//
// Invariants: keys are taken from one file as a pair, never mixed from both. No message repeats a
// value of a line, which may be a secret: it names file, line, profile and property.

#include "storage/aws_profile.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "storage/internal/key_files.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kAwsBlanks = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kAwsBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kAwsBlanks) - begin + 1);
}

bool IsAwsComment(std::string_view trimmed) {
  return trimmed.starts_with('#') || trimmed.starts_with(';');
}

// Without a comment, which begins after a blank.
std::string_view ValueIn(std::string_view text) {
  for (size_t at = 1; at < text.size(); ++at) {
    const bool blank = text[at - 1] == ' ' || text[at - 1] == '\t';
    if (blank && IsAwsComment(text.substr(at))) return Trimmed(text.substr(0, at));
  }
  return Trimmed(text);
}

// For messages: names are a user's own words, of any length.
std::string_view Short(std::string_view name) {
  return name.substr(0, 100);
}

// Reads line by line.
class AwsFileParser {
 public:
  explicit AwsFileParser(AwsFileKind kind) : kind_(kind) {}

  Status Take(std::string_view line);
  AwsFile TakeFile() { return std::move(file_); }

 private:
  Status TakeSection(std::string_view header);
  Status TakeProperty(std::string_view trimmed, size_t indent);
  AwsSection* SectionOf(std::string_view name);
  Status Bad(std::string_view why) const {
    const std::string where = section_name_.empty() ? "" : fmt::format(" in [{}]", section_name_);
    return {Code::kInvalidArgument, fmt::format("line {}{}: {}", line_, where, why)};
  }

  const AwsFileKind kind_;
  AwsFile file_;
  size_t line_ = 0;
  bool in_section_ = false;
  std::string section_name_;
  AwsSection* section_ = nullptr;  // null: one of which nothing is wanted
  // The last property that is not nested, as long as lines may be nested below it.
  std::string property_;
  bool property_is_empty_ = false;
  size_t property_indent_ = 0;
};

Status AwsFileParser::Take(std::string_view line) {
  ++line_;
  const std::string_view trimmed = Trimmed(line);
  if (trimmed.empty() || IsAwsComment(trimmed)) return OkStatus();
  if (trimmed.starts_with('[')) return TakeSection(trimmed);
  if (!in_section_) return Bad("it is before the first [section]");
  return TakeProperty(trimmed, line.find_first_not_of(kAwsBlanks));
}

Status AwsFileParser::TakeSection(std::string_view header) {
  const size_t end = header.find(']');
  const std::string_view name =
      end == std::string_view::npos ? std::string_view() : Trimmed(header.substr(1, end - 1));
  const std::string_view rest =
      end == std::string_view::npos ? "" : Trimmed(header.substr(end + 1));
  if (name.empty() || !(rest.empty() || IsAwsComment(rest)))
    return Bad("it begins like a [section], and is none");
  in_section_ = true;
  section_name_ = Short(name);
  section_ = SectionOf(name);
  property_.clear();
  return OkStatus();
}

// In credentials each section is a profile; in config those named "profile NAME", and "default".
AwsSection* AwsFileParser::SectionOf(std::string_view name) {
  if (kind_ == AwsFileKind::kCredentials) return &file_.profiles[std::string(name)];
  if (name == "default") return &file_.profiles["default"];
  const size_t blank = std::min(name.find_first_of(kAwsBlanks), name.size());
  const std::string_view type = name.substr(0, blank);
  std::string_view own = Trimmed(name.substr(blank));
  const bool quoted =
      own.size() >= 2 && own.front() == own.back() && (own.front() == '"' || own.front() == '\'');
  if (quoted) own = own.substr(1, own.size() - 2);
  if (own.empty()) return nullptr;
  if (type == "profile") return &file_.profiles[std::string(own)];
  if (type == "services") return &file_.services[std::string(own)];
  return nullptr;
}

Status AwsFileParser::TakeProperty(std::string_view trimmed, size_t indent) {
  const bool nested = !property_.empty() && indent > property_indent_;
  // More lines of a value: no property that is wanted has any.
  if (nested && !property_is_empty_) return OkStatus();
  const size_t equals = trimmed.find('=');
  std::string name(Trimmed(trimmed.substr(0, equals)));
  if (equals == std::string_view::npos || name.empty()) return Bad("it is no NAME = VALUE");
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  // With the = as a blank, so that a comment may follow at once.
  const std::string value(ValueIn(" " + std::string(trimmed.substr(equals + 1))));
  if (nested) {
    name = property_ + "." + name;
  } else {
    property_ = name;
    property_indent_ = indent;
    property_is_empty_ = value.empty();
  }
  if (section_ != nullptr) (*section_)[std::move(name)] = {.value = value, .line = line_};
  return OkStatus();
}

struct NamedAwsFile {
  std::string path;
  AwsFile file;
};

struct FoundProperty {
  const std::string* path;
  const AwsProperty* property;
};

// The two files, and what one profile has in them.
class AwsFiles {
 public:
  static Result<AwsFiles> Read(const Environment& environment);

  Result<AwsProfile> Profile() const;

 private:
  static Result<NamedAwsFile> ReadOne(const Environment& environment, const char* variable,
                                      const char* usual, AwsFileKind kind);
  const AwsSection* In(const NamedAwsFile& file) const {
    const auto found = file.file.profiles.find(profile_);
    return found == file.file.profiles.end() ? nullptr : &found->second;
  }
  std::optional<FoundProperty> Find(std::string_view name) const;
  std::string Value(std::string_view name) const {
    const auto found = Find(name);
    return found ? found->property->value : "";
  }
  std::string Endpoint(std::string_view service) const;
  Status CheckWayToKeys() const;
  Result<std::optional<S3Credentials>> Keys() const;
  Result<std::optional<S3Credentials>> KeysIn(const NamedAwsFile& file) const;
  std::string Where(const std::string& path, size_t line) const {
    return fmt::format("{} line {}: the profile \"{}\"", path, line, Short(profile_));
  }

  NamedAwsFile credentials_;
  NamedAwsFile config_;
  std::string profile_ = "default";
  const char* named_by_ = nullptr;  // the variable that names the profile, if one does
};

std::string WithHome(std::string path, const Environment& environment) {
  if (path.starts_with("~/")) path = environment("HOME").value_or("") + path.substr(1);
  return path;
}

Result<NamedAwsFile> AwsFiles::ReadOne(const Environment& environment, const char* variable,
                                       const char* usual, AwsFileKind kind) {
  const std::optional<std::string> named = environment(variable);
  const std::optional<std::string> home = environment("HOME");
  if (!named && !home) return NamedAwsFile{};
  NamedAwsFile out = {.path = named ? WithHome(*named, environment) : *home + usual, .file = {}};
  const Result<std::string> text = ReadFile(out.path, kAwsFileBytesMax);
  if (!text) {
    const bool denied = text.error().code() == Code::kPermissionDenied;
    // The home of somebody else, as containers may have it, is none.
    if (text.error().code() == Code::kNotFound || (denied && !named)) return out;
    return Error(Code::kInvalidArgument, text.error().message());
  }
  Result<AwsFile> file = ParseAwsFile(*text, kind);
  if (!file) return Error(std::move(file).error().WithContext(out.path));
  out.file = *std::move(file);
  return out;
}

Result<AwsFiles> AwsFiles::Read(const Environment& environment) {
  AwsFiles files;
  ASSIGN_OR_RETURN(files.credentials_, ReadOne(environment, "AWS_SHARED_CREDENTIALS_FILE",
                                               "/.aws/credentials", AwsFileKind::kCredentials));
  ASSIGN_OR_RETURN(files.config_,
                   ReadOne(environment, "AWS_CONFIG_FILE", "/.aws/config", AwsFileKind::kConfig));
  for (const char* const variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    const std::optional<std::string> name = environment(variable);
    if (!name) continue;
    files.profile_ = *name;
    files.named_by_ = variable;
    break;
  }
  return files;
}

std::optional<FoundProperty> AwsFiles::Find(std::string_view name) const {
  for (const NamedAwsFile* const file : {&credentials_, &config_}) {
    const AwsSection* const section = In(*file);
    if (section == nullptr) continue;
    const auto found = section->find(name);
    if (found != section->end() && !found->second.value.empty())
      return FoundProperty{.path = &file->path, .property = &found->second};
  }
  return std::nullopt;
}

// Of the service itself, or the profile's for all of them.
std::string AwsFiles::Endpoint(std::string_view service) const {
  const auto own = config_.file.services.find(Value("services"));
  if (own != config_.file.services.end()) {
    const auto url = own->second.find(fmt::format("{}.endpoint_url", service));
    if (url != own->second.end() && !url->second.value.empty()) return url->second.value;
  }
  return service == "s3" ? Value("endpoint_url") : "";
}

// An error if the profile gets its keys by something that is not done here.
Status AwsFiles::CheckWayToKeys() const {
  const bool by_role = Find("role_arn").has_value();
  struct Way {
    const char* name;
    bool counts;
  };
  const bool pair = Find("aws_access_key_id").has_value();
  for (const Way& way : {Way{"source_profile", by_role}, Way{"credential_source", by_role},
                         Way{"sso_session", !pair}, Way{"sso_start_url", !pair},
                         Way{"login_session", !pair}, Way{"credential_process", !pair}}) {
    const std::optional<FoundProperty> found = Find(way.name);
    if (!way.counts || !found) continue;
    return {Code::kInvalidArgument,
            fmt::format("{} gets its keys by {}, which is not done here: let AWS's own tool do it, "
                        "eval \"$(aws configure export-credentials --profile {} --format env)\"",
                        Where(*found->path, found->property->line), way.name, Short(profile_))};
  }
  return OkStatus();
}

Result<std::optional<S3Credentials>> AwsFiles::KeysIn(const NamedAwsFile& file) const {
  const AwsSection* const section = In(file);
  if (section == nullptr) return std::nullopt;
  struct Part {
    const char* name;
    std::string S3Credentials::* member;
  };
  constexpr std::array<Part, 3> kParts = {
      {{"aws_access_key_id", &S3Credentials::access_key_id},
       {"aws_secret_access_key", &S3Credentials::secret_access_key},
       {"aws_session_token", &S3Credentials::session_token}}};
  S3Credentials keys;
  size_t line = 0;
  for (const Part& part : kParts) {
    const auto found = section->find(part.name);
    if (found == section->end()) continue;
    line = found->second.line;
    const std::string& value = found->second.value;
    if (value.empty() && part.member == &S3Credentials::session_token) continue;
    const bool secret = part.member == &S3Credentials::secret_access_key;
    if (!(secret ? internal::IsSecretText(value) : internal::IsKeyText(value))) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{} has an {} that is empty or no key: {} characters",
                               Where(file.path, line), part.name, value.size()));
    }
    keys.*part.member = value;
  }
  if (keys.access_key_id.empty() && keys.secret_access_key.empty()) return std::nullopt;
  if (keys.access_key_id.empty() || keys.secret_access_key.empty()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} has one of aws_access_key_id and aws_secret_access_key, which go "
                             "together; add the other",
                             Where(file.path, line)));
  }
  return keys;
}

// All of them from one file.
Result<std::optional<S3Credentials>> AwsFiles::Keys() const {
  RETURN_IF_ERROR(CheckWayToKeys());
  ASSIGN_OR_RETURN(std::optional<S3Credentials> keys, KeysIn(credentials_));
  if (keys) return keys;
  return KeysIn(config_);
}

Result<AwsProfile> AwsFiles::Profile() const {
  if (named_by_ != nullptr && In(credentials_) == nullptr && In(config_) == nullptr) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} names the profile \"{}\", and there is none in {} and "
                             "{}; aws configure list-profiles says which there are",
                             named_by_, Short(profile_), config_.path, credentials_.path));
  }
  AwsProfile profile = {.name = profile_,
                        .region = Value("region"),
                        .s3_endpoint = Endpoint("s3"),
                        .ca_bundle = Value("ca_bundle"),
                        .sts_endpoint = Endpoint("sts"),
                        .role_arn = Value("role_arn"),
                        .token_file = Value("web_identity_token_file"),
                        .keys = {}};
  if (profile.token_file.empty()) profile.keys = Keys();
  return profile;
}

}  // namespace

Result<AwsFile> ParseAwsFile(std::string_view text, AwsFileKind kind) {
  AwsFileParser parser(kind);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    RETURN_IF_ERROR(parser.Take(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.TakeFile();
}

Result<AwsProfile> ReadAwsProfile(const Environment& environment) {
  ASSIGN_OR_RETURN(const AwsFiles files, AwsFiles::Read(environment));
  return files.Profile();
}

Result<Environment> WithAwsProfile(Environment environment, AwsEnvironmentOptions options) {
  ASSIGN_OR_RETURN(const AwsProfile profile, ReadAwsProfile(environment));
  // The last of the variables that are asked for each.
  std::map<std::string, std::string, std::less<>> more = {
      {"AWS_DEFAULT_REGION", profile.region},
      {"AWS_ENDPOINT_URL", profile.s3_endpoint},
      {"AWS_CA_BUNDLE", WithHome(profile.ca_bundle, environment)},
      {"AWS_ENDPOINT_URL_STS", profile.sts_endpoint}};
  const bool keys = options.own_keys || environment("AWS_ACCESS_KEY_ID").has_value() ||
                    environment("AWS_WEB_IDENTITY_TOKEN_FILE").has_value();
  if (!keys) {
    more["AWS_WEB_IDENTITY_TOKEN_FILE"] = WithHome(profile.token_file, environment);
    more["AWS_ROLE_ARN"] = profile.role_arn;
  }
  return Environment([environment = std::move(environment),
                      more = std::move(more)](const char* name) -> std::optional<std::string> {
    if (std::optional<std::string> value = environment(name)) return value;
    const auto found = more.find(std::string_view(name));
    if (found == more.end() || found->second.empty()) return std::nullopt;
    return found->second;
  });
}

}  // namespace optcache::storage
