// `earshot completions`, and the sessions, filters and browsers that `earshot complete` offers.
#include "common/completions.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "cli/commands.hpp"
#include "cli/event_formatter.hpp"
#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr const char* latest_session = "last\tthe session with the latest activity\n";
constexpr std::size_t visited_sessions_max = 500, offered_browsers_max = 500;

// An id that is not displayable as it is, or that looks like an option, cannot be typed as an argument.
bool is_argument(std::string_view id) {
  return !id.empty() && id.front() != '-' && to_display_line(id, Charset::utf8) == id;
}

// The connection options of a command line that is being typed.
ConnectOptions connection_of(const std::vector<std::string>& words) {
  ConnectOptions options;
  const std::map<std::string, std::string*> values = {{"--connect", &options.connect},
                                                      {"--socket", &options.socket},
                                                      {"--token-file", &options.token_file},
                                                      {"--tls-ca", &options.tls_ca},
                                                      {"--state", &options.state}};
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (const auto found = values.find(words[i]); found != values.end()) *found->second = words[i + 1];
  return options;
}

// Calls `visit` for the live sessions; for none without a daemon.
void visit_sessions(const ConnectOptions& daemon, const std::function<void(const Fields& session)>& visit) {
  const auto found = find_daemon(daemon);
  const auto* const addresses = std::get_if<DaemonAddresses>(&found);
  if (addresses == nullptr) return;
  Client client;
  FrameParser parser;
  std::size_t count = 0;
  Handlers handlers;
  handlers.on_open = [&] { client.send(subscribe_request({}, {.state = true})); };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "session") visit(*frame), ++count;
    return type != "ready" && type != "error" && count < visited_sessions_max;
  };
  client.run_any(*addresses, handlers);
}

std::string session_words(const ConnectOptions& daemon) {
  std::string out;
  visit_sessions(daemon, [&](const Fields& session) {
    const std::string_view id = session.text("session"), title = session.text("title");
    if (!is_argument(id)) return;
    const std::string project(last_component(session.text("project")));
    out +=
        std::string(id) + "\t" + safe_text(project + (title.empty() ? "" : ": ") + std::string(title)) + "\n";
  });
  return out;
}

// What a filter can be: of the live sessions.
std::string filter_words(const std::string& option, const ConnectOptions& daemon) {
  std::set<std::string> words;
  if (option == "--type")
    for (const std::string_view type : event_types()) words.emplace(type);
  else
    visit_sessions(daemon, [&](const Fields& session) {
      const std::string_view value = session.text(std::string_view(option).substr(2));
      const std::string_view word = option == "--project" ? last_component(value) : value;
      if (is_argument(word)) words.emplace(word);
    });
  std::string out;
  for (const std::string& word : words) out += word + "\n";
  return out;
}

// The browsers that are signed in; none without a daemon. Their names are what they said themselves.
std::string browser_words(const ConnectOptions& daemon) {
  std::string out;
  const auto found = find_daemon(daemon);
  const auto* const addresses = std::get_if<DaemonAddresses>(&found);
  if (addresses == nullptr) return out;
  const HttpResult result = send_request(*addresses, {.target = "/v1/browsers"});
  if (!result.response.ok()) return out;
  FrameParser parser;
  const auto response = parser.parse(result.response.body);
  if (!response) return out;
  std::size_t count = 0;
  for (const Fields& browser : response->objects("browsers")) {
    const std::string_view id = browser.text("browser");
    if (!is_argument(id)) continue;
    if (count++ == offered_browsers_max) break;
    out += std::string(id) + "\t" + safe_text(browser.text("name")) + "\n";
  }
  return out;
}

}  // namespace

std::string complete_words(const CLI::App& app, std::vector<std::string> words) {
  return common::complete_words(
      app, std::move(words), [](const CompletedValue& value, const std::vector<std::string>& before) {
        // The filter --session takes the beginning of an id only.
        if (value.type == "SESSION")
          return (value.is_argument ? latest_session : "") + session_words(connection_of(before));
        if (value.type == "GLOB") return filter_words(value.option, connection_of(before));
        if (value.type == "BROWSER") return browser_words(connection_of(before));
        return std::string();
      });
}

Run add_completions(CLI::App& command) { return common::add_completions(command, "earshot"); }

}  // namespace earshot::cli
