// `earshot browsers`: the browsers that are signed in, and how to sign them out.
#include <algorithm>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "cli/commands.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t name_columns_max = 40;

constexpr const char* no_browsers =
    "no browser is signed in\n"
    "  To sign one in: earshot open\n";

std::string age_of(std::string_view time, std::int64_t now) {
  const auto ms = parse_time(time);
  return ms ? format_age(std::chrono::milliseconds(now - *ms)) : "?";
}

std::string table(const std::vector<Fields>& browsers, const DisplayOptions& display) {
  const std::int64_t now = now_ms();
  const auto shown = [&](std::string_view text) { return to_display_line(text, display.charset); };
  std::vector<std::vector<Cell>> rows;
  for (const Fields& browser : browsers) {
    rows.push_back({{shown(browser.text("browser")), Style::bold},
                    {cut_to_width(shown(browser.text("name")), name_columns_max,
                                  glyph(Glyph::ellipsis, display.charset))},
                    {shown(browser.text("user"))},
                    {shown(browser.text("view"))},
                    {shown(age_of(browser.text("created"), now)), Style::dim},
                    {shown(age_of(browser.text("last_used"), now))},
                    {browser.flag("temporary") ? "this tab only" : "", Style::dim},
                    {shown(browser.text("origin")), Style::dim}});
  }
  return format_table({{"ID"},
                       {"BROWSER", 0, name_columns_max, 3},
                       {"USER", 0, 0, 2},
                       {"VIEW"},
                       {"AGE", 0, 0, 4, true},
                       {"USED", 0, 0, 0, true},
                       {"KEPT", 0, 0, 1},
                       {"ADDRESS", 0, 0, 5}},
                      rows, display);
}

/// Prints an error unless exactly one id begins with `typed`.
std::string select(const std::vector<Fields>& browsers, std::string_view typed) {
  std::vector<std::string_view> found;
  for (const Fields& browser : browsers) {
    const std::string_view id = browser.text("browser");
    if (!id.empty() && id == typed) return std::string(id);
    if (!typed.empty() && id.starts_with(typed)) found.push_back(id);
  }
  if (found.size() == 1) return std::string(found.front());
  print_message(found.empty() ? "no browser has the id " + safe_text(typed) + ": see earshot browsers"
                              : safe_text(typed) + " matches several browsers; give more of the id");
  return {};
}

int revoke(const std::string& body, const DaemonAddresses& addresses) {
  const HttpResult result =
      send_request(addresses, {.method = "POST", .target = "/v1/browsers/revoke", .body = body});
  if (!result.response.ok()) return print_http_error(result, addresses);
  FrameParser parser;
  const auto response = parser.parse(result.response.body);
  const std::uint64_t count = response ? response->count("revoked") : 0;
  Output out;
  out.write(plural(count, "browser") + (count == 1 ? " was" : " were") + " signed out\n");
  return finish(out);
}

}  // namespace

int browsers_command(const BrowsersOptions& options, const DaemonAddresses& addresses) {
  const bool revokes = !options.action.empty();
  if (!revokes && options.all) return usage_error("--all is for `earshot browsers revoke`", "browsers");
  if (revokes && options.json) return usage_error("--json is for the list of browsers", "browsers");
  if (revokes && options.all != options.browser.empty())
    return usage_error("`earshot browsers revoke` needs either the id of a browser or --all", "browsers");
  std::string body;
  if (options.all) {
    JsonWriter(body).begin_object().member("all", true).end_object();
    return revoke(body, addresses);
  }
  const HttpResult result = send_request(addresses, {.target = "/v1/browsers"});
  if (!result.response.ok()) return print_http_error(result, addresses);
  FrameParser parser;
  const auto response = parser.parse(result.response.body);
  if (!response) {
    print_message("the response of the daemon is not understood; run `earshot doctor`");
    return exit_failed;
  }
  const std::vector<Fields> browsers = response->objects("browsers");
  if (revokes) {
    const std::string id = select(browsers, options.browser);
    if (id.empty()) return exit_failed;
    JsonWriter(body).begin_object().member("browser", id).end_object();
    return revoke(body, addresses);
  }
  Output out;
  if (options.json) {
    const auto list = response->get("browsers");
    out.write_json_line(list ? simdjson::minify(*list) : "[]");
  } else {
    out.write(browsers.empty() ? no_browsers : table(browsers, stdout_display(options.colour)));
  }
  return finish(out);
}

}  // namespace earshot::cli
