#include "common/format.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/help_text.hpp"
#include "common/endpoint.hpp"
#include "version/version.hpp"

namespace earshot::common {
namespace {

std::string_view name = "earshot";

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(28);
    label("SUBCOMMAND", "COMMAND");
    label("Positionals", "Arguments");
  }
  std::string make_help(const CLI::App* app, std::string program, CLI::AppFormatMode mode) const override {
    return wrap_help(CLI::Formatter::make_help(app, std::move(program), mode), help_columns());
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    return " " + option->get_type_name() + (option->get_expected_max() > 1 ? " ..." : "");
  }
};

// `UTF-8` of LANG=en_US.UTF-8: what the user asks for, whether or not that locale is installed.
std::string_view codeset_of_environment() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value, codeset = locale.substr(std::min(locale.find('.'), locale.size()));
    return codeset.substr(codeset.empty() ? 0 : 1, codeset.find('@') - 1);
  }
  return {};
}

}  // namespace

std::string_view short_id(std::string_view id) {
  constexpr std::size_t short_id_bytes = 8;
  return id.substr(0, short_id_bytes);
}

std::string_view last_component(std::string_view path) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool has_drive = path.size() > 2 && is_letter(path[0]) && path[1] == ':';
  const bool is_windows = path.starts_with("\\\\") || (has_drive && (path[2] == '\\' || path[2] == '/'));
  const std::string_view separators = is_windows ? "/\\" : "/";  // elsewhere names can contain a backslash
  while (path.size() > 1 && separators.find(path.back()) != path.npos) path.remove_suffix(1);
  const std::size_t slash = path.find_last_of(separators);
  return slash == path.npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string_view program_label(std::string_view program) {
  if (program == "claude-code") return "Claude Code";
  if (program == "codex") return "Codex CLI";
  if (program == "copilot") return "Copilot CLI";
  return program == "pi" ? "Pi" : program;
}

std::string format_usd(double usd, bool is_estimate) {
  constexpr double usd_max = 1e12;
  if (!(usd >= 0) || usd > usd_max) return {};
  std::string text = is_estimate ? "~" : "";
  if (usd > 0 && usd < 0.01) return text + "<$0.01";
  constexpr std::uint64_t cents_below = 10'000;  // dollars
  const auto cents = static_cast<std::uint64_t>(std::llround(usd * 100));
  if (cents >= cents_below * 100) return text + "$" + format_grouped((cents + 50) / 100);
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%02u", static_cast<unsigned>(cents % 100));
  return text + "$" + format_grouped(cents / 100) + fraction;
}

std::string period_text(std::int64_t minutes) {
  return duration_literal(std::chrono::minutes(
      std::min(minutes, std::chrono::duration_cast<std::chrono::minutes>(duration_max).count())));
}

void set_program_name(std::string_view program_name) { name = program_name; }
std::string_view program_name() { return name; }
std::string user_agent() {
  return std::string(name == "earshot" ? "earshot-cli" : name).append("/").append(build.version);
}

Charset charset_of_locale() {
  const bool is_installed = std::setlocale(LC_CTYPE, "") != nullptr;  // only this: numbers keep the C format
  std::string codeset(is_installed ? nl_langinfo(CODESET) : codeset_of_environment());
  std::transform(codeset.begin(), codeset.end(), codeset.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return codeset == "utf-8" || codeset == "utf8" ? Charset::utf8 : Charset::ascii;
}

std::string safe_text(std::string_view text) {
  return to_display_line(text, charset_of_locale(), LineBreaks::symbol);
}

void print_message(std::string_view text) {
  const std::string line = std::string(name).append(": ").append(text).append("\n");
  // A failure to write to stderr cannot be reported.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

void add_connect_options(CLI::App& command, ConnectOptions& options) {
  const auto add = [&](const char* name, std::string& value, const char* description, const char* type) {
    command.add_option(name, value, description)->type_name(type)->group("Daemon");
  };
  add("--connect", options.connect, "connect to this address, ws:// or wss://HOST:PORT/v1/ws, with the token",
      "URL");
  add("--socket", options.socket, "connect to this Unix socket (default: the one named in STATE/socket)",
      "FILE");
  add("--token-file", options.token_file, "file with the daemon's token (default: STATE/token)", "FILE");
  add("--tls-ca", options.tls_ca,
      "file with the certificates that wss:// trusts (default: those of the system)", "FILE");
  add("--state", options.state,
      "the daemon's state directory (default: $XDG_STATE_HOME/earshot, ~/.local/state/earshot)", "DIR");
}

void set_help_format(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

}  // namespace earshot::common
