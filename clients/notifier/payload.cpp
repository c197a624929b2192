#include "notifier/payload.hpp"

#include <algorithm>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "notifier/desktop.hpp"

namespace earshot::notifier {
namespace {

constexpr std::size_t discord_bytes_max = 1900;  // its limit is 2,000 characters

std::string shorten(const std::string& text, std::size_t bytes_max) {
  return text.size() <= bytes_max ? text : std::string(cut_utf8(text, bytes_max)) + "…";
}

// Escapes the Markdown of Discord and Teams.
std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\*_~`|[]()#>").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string join_lines(const std::string& title, const std::string& body) {
  return body.empty() ? title : title + "\n" + body;
}

void slack(const Notice& notice, const Credentials&, WebhookRequest& request) {
  JsonWriter(request.body)
      .begin_object()
      .member("text", join_lines("*" + escape_markup(notice.title) + "*", escape_markup(notice.body)))
      .end_object();
}

void discord(const Notice& notice, const Credentials&, WebhookRequest& request) {
  JsonWriter writer(request.body);
  writer.begin_object();
  writer.member("content",
                shorten(join_lines("**" + escape_markdown(notice.title) + "**", escape_markdown(notice.body)),
                        discord_bytes_max));
  writer.raw_member("allowed_mentions", R"({"parse":[]})");
  writer.end_object();
}

void teams(const Notice& notice, const Credentials&, WebhookRequest& request) {
  std::string card;
  JsonWriter writer(card);
  const auto write_block = [&](const std::string& text, bool is_title) {
    writer.begin_object()
        .member("type", "TextBlock")
        .member("text", escape_markdown(text))
        .member("wrap", true);
    if (is_title) writer.member("weight", "Bolder").member("size", "Medium");
    writer.end_object();
  };
  writer.begin_object().member("type", "AdaptiveCard");
  writer.member("$schema", "http://adaptivecards.io/schemas/adaptive-card.json").member("version", "1.4");
  writer.key("body").begin_array();
  write_block(notice.title, true);
  if (!notice.body.empty()) write_block(notice.body, false);
  writer.end_array().end_object();
  request.body =
      R"({"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","content":)" +
      card + "}]}";
}

// The URL is https://ntfy.sh/TOPIC. Published as JSON to https://ntfy.sh/, as headers limit titles to ASCII.
void ntfy(const Notice& notice, const Credentials& credentials, WebhookRequest& request) {
  constexpr int priorities[] = {2, 3, 5};
  while (request.url.ends_with('/')) request.url.pop_back();
  const std::size_t slash = request.url.rfind('/');
  const std::string topic = request.url.substr(slash + 1);
  request.url.resize(slash + 1);
  JsonWriter(request.body)
      .begin_object()
      .member("topic", topic)
      .member("title", notice.title)
      .member("message", notice.body.empty() ? notice.title : notice.body)
      .member("priority", priorities[static_cast<std::size_t>(notice.urgency)])
      .end_object();
  if (!credentials.token.empty())
    request.secret_headers.push_back("Authorization: Bearer " + credentials.token);
}

void gotify(const Notice& notice, const Credentials& credentials, WebhookRequest& request) {
  constexpr int priorities[] = {2, 5, 8};
  while (request.url.ends_with('/')) request.url.pop_back();
  if (!request.url.ends_with("/message")) request.url += "/message";
  JsonWriter(request.body)
      .begin_object()
      .member("title", notice.title)
      .member("message", notice.body.empty() ? notice.title : notice.body)
      .member("priority", priorities[static_cast<std::size_t>(notice.urgency)])
      .end_object();
  request.secret_headers.push_back("X-Gotify-Key: " + credentials.token);
}

void json(const Notice& notice, const Credentials& credentials, WebhookRequest& request) {
  request.body = notice_json(notice);
  if (!credentials.token.empty())
    request.secret_headers.push_back("Authorization: Bearer " + credentials.token);
}

struct Kind {
  SinkKind kind;
  void (*fill)(const Notice& notice, const Credentials& credentials, WebhookRequest& request);
};
constexpr Kind kinds[] = {{SinkKind::json, json},   {SinkKind::slack, slack}, {SinkKind::discord, discord},
                          {SinkKind::teams, teams}, {SinkKind::ntfy, ntfy},   {SinkKind::gotify, gotify}};

}  // namespace

std::variant<Credentials, SecretError> read_credentials(const Sink& sink) {
  Credentials credentials;
  const std::pair<const SecretSource&, std::string&> sources[] = {
      {sink.url_source, credentials.url}, {sink.token, credentials.token}, {sink.secret, credentials.secret}};
  for (const auto& [source, value] : sources) {
    auto read = read_secret(source);
    if (auto* error = std::get_if<SecretError>(&read)) return std::move(*error);
    value = std::get<std::string>(std::move(read));
  }
  if (credentials.url.empty()) credentials.url = sink.url;
  if (sink.uses_http() && !credentials.url.starts_with("https://") && !credentials.url.starts_with("http://"))
    return SecretError{"sink " + sink.name + ": the URL must begin with https:// or http://"};
  return credentials;
}

std::variant<WebhookRequest, SecretError> make_request(const Sink& sink, const Credentials& credentials,
                                                       const Notice& notice, std::int64_t now_ms) {
  WebhookRequest request;
  request.url = credentials.url;
  request.ca_file = sink.ca_file;
  request.timeout_ms = sink.timeout_ms;
  request.headers = {"Content-Type: application/json", "Idempotency-Key: " + notice.id};
  for (const Kind& each : kinds) {
    if (each.kind == sink.kind) each.fill(notice, credentials, request);
  }
  if (request.body.empty()) return SecretError{"sink " + sink.name + " does not use HTTP"};
  const std::size_t host = request.url.find("://") + 3;
  if (sink.kind == SinkKind::ntfy && request.url.size() <= host)
    return SecretError{"sink " + sink.name +
                       ": the URL of ntfy must end with the topic, https://ntfy.sh/TOPIC"};
  if (!credentials.secret.empty()) {
    const std::string seconds = std::to_string(now_ms / 1000);
    request.headers.push_back("X-Earshot-Timestamp: " + seconds);
    request.headers.push_back("X-Earshot-Signature: sha256=" +
                              sign(credentials.secret, seconds + "." + request.body));
  }
  return request;
}

std::string notice_json(const Notice& notice) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  writer.member("type", "notice").member("version", 1).member("id", notice.id).member("rule", notice.rule);
  writer.member("title", notice.title)
      .member("body", notice.body)
      .member("urgency", urgency_name(notice.urgency));
  if (notice.time_ms > 0) writer.member("time", format_time(notice.time_ms));
  writer.member("about", notice.type)
      .member_if_any("host", notice.host)
      .member_if_any("session", notice.session)
      .member_if_any("project", notice.project);
  if (!notice.event.empty()) writer.raw_member("event", notice.event);
  writer.end_object();
  return out;
}

std::string redact_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return "…";
  const std::size_t end = std::min(url.find_first_of("/?#", scheme + 3), url.size());
  const std::string_view host = url.substr(scheme + 3, end - scheme - 3);
  return std::string(url.substr(0, scheme + 3)) + std::string(host.substr(host.rfind('@') + 1)) +
         (end < url.size() ? "/…" : "");
}

}  // namespace earshot::notifier
