#include "service/service_text.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstdio>

namespace earshot::service {
namespace {

constexpr std::string_view seal = "Written by earshotd to install its service, unchanged while this fits: ";
constexpr std::string_view usual_state = "/.local/state/earshot";

/// The file's own text says `from` exactly once; a test holds that up.
void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  assert(at != text.npos);
  if (at != text.npos) text.replace(at, from.size(), to);
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

std::string quoted(std::string_view text, std::string_view doubled) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (doubled.find(c) != doubled.npos) out += c;
    out += c;
  }
  return out + '"';
}

std::string escaped_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

/// What neither format can carry: they are lines of text.
std::string trouble(const Job& job) {
  const auto refuse = [](std::string_view what) {
    return "`" + std::string(what) +
           "` holds a control character: the service's file cannot say that; rename it";
  };
  for (const auto* list : {&job.words, &job.writable}) {
    for (const std::string& word : *list)
      if (has_control_character(word)) return refuse(word);
  }
  for (const auto& [name, value] : job.environment)
    if (has_control_character(value)) return refuse(value);
  for (const std::string& path : {job.program, job.home, job.state})
    if (has_control_character(path)) return refuse(path);
  return {};
}

bool below_tmp(const std::string& path) { return path.starts_with("/tmp/") || path.starts_with("/var/tmp/"); }

std::string seal_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: it tells of changes, it need not stand up to anybody
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return std::string(seal) + digits.data();
}

}  // namespace

std::string exec_word(std::string_view word) { return quoted(word, "%$"); }
std::string path_word(std::string_view path) { return quoted(path, "%"); }

Text unit_text(const Job& job) {
  if (std::string error = trouble(job); !error.empty()) return {{}, std::move(error)};
  if (job.program.find_first_of("\"'\\") != job.program.npos) {
    return {{},
            job.program +
                ": systemd runs no program whose path holds a quote or a backslash; install it elsewhere"};
  }
  std::string start;
  for (const auto& [name, value] : job.environment) {
    std::string pair = name;
    pair.append("=").append(value);
    start.append("Environment=").append(path_word(pair)).append("\n");
  }
  start += "ExecStart=" + path_word(job.program);  // only its arguments know variables
  for (const std::string& word : job.words) start.append(" ").append(exec_word(word));

  std::string made, writable;
  const auto let_write = [&](const std::string& path) {
    made += " " + exec_word(path);
    writable += (writable.empty() ? "" : " ") + path_word(path);
  };
  if (job.state == job.home + std::string(usual_state)) {
    made = " \"%h/.local/state/earshot\"";
    writable = "\"%h/.local/state/earshot\"";
  } else {
    let_write(job.state);
  }
  for (const std::string& path : job.writable) let_write(path);

  std::string text(unit_file);
  replace(text, "\nExecStart=/usr/bin/earshotd\n", "\n" + start + "\n");
  replace(text, "\nExecStartPre=+mkdir -p -m 0700 \"%h/.local/state/earshot\"\n",
          "\nExecStartPre=+mkdir -p -m 0700" + made + "\n");
  replace(text, "\nReadWritePaths=\"%h/.local/state/earshot\"\n", "\nReadWritePaths=" + writable + "\n");

  std::vector<std::string> used = job.must_be_seen;
  used.push_back(job.program);
  used.push_back(job.state);
  used.insert(used.end(), job.writable.begin(), job.writable.end());
  const auto hidden = std::find_if(used.begin(), used.end(), below_tmp);
  if (hidden != used.end()) {
    if (has_control_character(*hidden)) return {{}, trouble({.words = {*hidden}})};
    replace(text, "\nPrivateTmp=yes\n", "\n# A private /tmp would hide " + *hidden + "\nPrivateTmp=no\n");
  }
  return {sealed(std::move(text), "# ", ""), {}};
}

Text plist_text(const Job& job) {
  if (std::string error = trouble(job); !error.empty()) return {{}, std::move(error)};
  const auto line = [](const std::string& word) {
    return "    <string>" + escaped_xml(word) + "</string>\n";
  };
  std::string words = line(job.program);
  for (const std::string& word : job.words) words += line(word);
  std::string environment;
  for (const auto& [name, value] : job.environment)
    environment.append("    <key>").append(escaped_xml(name)).append("</key>\n").append(line(value));
  if (!environment.empty())
    environment = "  <key>EnvironmentVariables</key>\n  <dict>\n" + environment + "  </dict>\n";

  std::string text(plist_file);
  replace(text, "    <string>/usr/local/bin/earshotd</string>\n", words);
  replace(text, "  <key>RunAtLoad</key>\n", environment + "  <key>RunAtLoad</key>\n");
  for (int log = 0; log < 2; ++log)  // standard output and standard error
    replace(text, "/Users/you/Library/Logs/earshotd.log",
            escaped_xml(job.home) + "/Library/Logs/earshotd.log");
  return {sealed(std::move(text), "<!-- ", " -->"), {}};
}

std::string sealed(std::string text, std::string_view open, std::string_view close) {
  const std::string words = seal_of(text);
  return std::move(text) + std::string(open) + words + std::string(close) + "\n";
}

bool is_untouched(std::string_view text) {
  const std::size_t at = text.rfind(seal);
  if (at == text.npos) return false;
  const std::size_t newline = text.rfind('\n', at);
  if (newline == text.npos) return false;
  const std::size_t begin = newline + 1;
  const std::string_view open = text.substr(begin, at - begin);
  if (open != "# " && open != "<!-- ") return false;
  return text == sealed(std::string(text.substr(0, begin)), open, open == "# " ? "" : " -->");
}

}  // namespace earshot::service
