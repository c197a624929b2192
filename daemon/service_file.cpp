#include "service_file.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "base/display_text.hpp"
#include "base/hex.hpp"

namespace earshot::service {
namespace {

constexpr std::string_view checksum_label = "Written by earshotd to install its service; checksum: ";
constexpr std::string_view default_state = "/.local/state/earshot";

/// `from` occurs exactly once in the embedded file; a unit test checks that.
void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  assert(at != text.npos);
  if (at != text.npos) text.replace(at, from.size(), to);
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

std::string quote(std::string_view text, std::string_view doubled) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (doubled.find(c) != doubled.npos) out += c;
    out += c;
  }
  return out + '"';
}

/// Neither format can hold control characters. Empty: all values are valid.
std::string find_invalid(const ServiceSpec& spec) {
  const auto refuse = [](std::string_view value) {
    return "`" + std::string(value) +
           "` contains a control character, which a service file cannot hold: rename it";
  };
  for (const auto* list : {&spec.arguments, &spec.writable}) {
    for (const std::string& value : *list)
      if (has_control_character(value)) return refuse(value);
  }
  for (const auto& [name, value] : spec.environment)
    if (has_control_character(value)) return refuse(value);
  for (const std::string& path : {spec.program, spec.home, spec.state})
    if (has_control_character(path)) return refuse(path);
  return {};
}

bool below_tmp(const std::string& path) { return path.starts_with("/tmp/") || path.starts_with("/var/tmp/"); }

std::string checksum_line(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: detects edits, not attacks
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string line(checksum_label);
  append_hex(line, hash);
  return line;
}

}  // namespace

std::string quote_argument(std::string_view word) { return quote(word, "%$"); }
std::string quote_path(std::string_view path) { return quote(path, "%"); }

RenderedFile render_unit(const ServiceSpec& spec) {
  if (std::string error = find_invalid(spec); !error.empty()) return {{}, std::move(error)};
  if (spec.program.find_first_of("\"'\\") != spec.program.npos) {
    return {{},
            spec.program +
                ": systemd cannot run a program whose path contains a quote or a backslash; install it "
                "elsewhere"};
  }
  std::string start;
  for (const auto& [name, value] : spec.environment) {
    std::string pair = name;
    pair.append("=").append(value);
    start.append("Environment=").append(quote_path(pair)).append("\n");
  }
  start += "ExecStart=" + quote_path(spec.program);  // variables are expanded in arguments only
  for (const std::string& argument : spec.arguments) start.append(" ").append(quote_argument(argument));

  std::string created, writable;
  const auto allow_write = [&](const std::string& path) {
    created += " " + quote_argument(path);
    writable += (writable.empty() ? "" : " ") + quote_path(path);
  };
  if (spec.state == spec.home + std::string(default_state)) {
    created = " \"%h/.local/state/earshot\"";
    writable = "\"%h/.local/state/earshot\"";
  } else {
    allow_write(spec.state);
  }
  for (const std::string& path : spec.writable) allow_write(path);

  std::string text(unit_file);
  replace(text, "\nExecStart=/usr/bin/earshotd\n", "\n" + start + "\n");
  replace(text, "\nExecStartPre=+mkdir -p -m 0700 \"%h/.local/state/earshot\"\n",
          "\nExecStartPre=+mkdir -p -m 0700" + created + "\n");
  replace(text, "\nReadWritePaths=\"%h/.local/state/earshot\"\n", "\nReadWritePaths=" + writable + "\n");

  std::vector<std::string> used = spec.readable;
  used.push_back(spec.program);
  used.push_back(spec.state);
  used.insert(used.end(), spec.writable.begin(), spec.writable.end());
  const auto hidden = std::find_if(used.begin(), used.end(), below_tmp);
  if (hidden != used.end()) {
    if (has_control_character(*hidden)) return {{}, find_invalid({.arguments = {*hidden}})};
    replace(text, "\nPrivateTmp=yes\n", "\n# A private /tmp would hide " + *hidden + "\nPrivateTmp=no\n");
  }
  return {with_checksum(std::move(text), "# ", ""), {}};
}

RenderedFile render_plist(const ServiceSpec& spec) {
  if (std::string error = find_invalid(spec); !error.empty()) return {{}, std::move(error)};
  const auto line = [](const std::string& argument) {
    return "    <string>" + escape_markup(argument) + "</string>\n";
  };
  std::string arguments = line(spec.program);
  for (const std::string& argument : spec.arguments) arguments += line(argument);
  std::string environment;
  for (const auto& [name, value] : spec.environment)
    environment.append("    <key>").append(escape_markup(name)).append("</key>\n").append(line(value));
  if (!environment.empty())
    environment = "  <key>EnvironmentVariables</key>\n  <dict>\n" + environment + "  </dict>\n";

  std::string text(plist_file);
  replace(text, "    <string>/usr/local/bin/earshotd</string>\n", arguments);
  replace(text, "  <key>RunAtLoad</key>\n", environment + "  <key>RunAtLoad</key>\n");
  for (int log = 0; log < 2; ++log)  // standard output and standard error
    replace(text, "/Users/you/Library/Logs/earshotd.log",
            escape_markup(spec.home) + "/Library/Logs/earshotd.log");
  return {with_checksum(std::move(text), "<!-- ", " -->"), {}};
}

std::string with_checksum(std::string text, std::string_view open, std::string_view close) {
  const std::string line = checksum_line(text);
  return std::move(text) + std::string(open) + line + std::string(close) + "\n";
}

bool is_unmodified(std::string_view text) {
  const std::size_t at = text.rfind(checksum_label);
  if (at == text.npos) return false;
  const std::size_t newline = text.rfind('\n', at);
  if (newline == text.npos) return false;
  const std::size_t begin = newline + 1;
  const std::string_view open = text.substr(begin, at - begin);
  if (open != "# " && open != "<!-- ") return false;
  return text == with_checksum(std::string(text.substr(0, begin)), open, open == "# " ? "" : " -->");
}

}  // namespace earshot::service
