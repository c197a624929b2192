#include <algorithm>

#include "cli/doctor.hpp"
#include "core/event_json.hpp"

namespace earshot::cli::doctor {
namespace {

constexpr std::size_t what_columns = 11;

struct Face {
  std::string_view name;
  Glyph mark;
  Style style;
};
constexpr Face faces[] = {
    // by Level
    {"ok", Glyph::ok, Style::good},
    {"warning", Glyph::waiting, Style::note},
    {"problem", Glyph::error, Style::bad},
};

const Face& face(Level level) { return faces[static_cast<std::size_t>(level)]; }

std::size_t count(const Findings& findings, Level level) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.level == level; }));
}

std::string number_of(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

bool has_problem(const Findings& findings) { return count(findings, Level::problem) > 0; }

std::string report(const Findings& findings, const DisplayOptions& display) {
  std::string out;
  DisplayOptions whole = display;
  whole.columns = 0;  // a command that is cut is no help
  for (const Finding& finding : findings) {
    const Face& shown = face(finding.level);
    Line line;
    const std::string_view mark =
        finding.level == Level::warning ? std::string_view("!") : glyph(shown.mark, display.charset);
    line.add(mark, shown.style).space(1).add(finding.what, Style::bold);
    line.space(what_columns > finding.what.size() ? what_columns - finding.what.size() : 1);
    line.add(to_display_line(finding.text, display.charset),
             finding.level == Level::ok ? Style::plain : shown.style);
    out += line.str(whole) + "\n";
    if (finding.advice.empty()) continue;
    Line advice;
    advice.space(what_columns + 2).add(glyph(Glyph::arrow, display.charset), Style::dim).space(1);
    out += advice.add(to_display_code(finding.advice, display.charset), Style::bold).str(whole) + "\n";
  }
  const std::size_t problems = count(findings, Level::problem), warnings = count(findings, Level::warning);
  std::string sum = problems + warnings == 0 ? "all is well" : "";
  if (problems > 0) sum = number_of(problems, "problem");
  if (warnings > 0) sum += (sum.empty() ? "" : ", ") + number_of(warnings, "warning");
  return out + "\n" + sum + "\n";
}

std::string report_json(const Findings& findings) {
  std::string out = R"({"ok":)";
  out += has_problem(findings) ? "false" : "true";
  out += R"(,"problems":)" + std::to_string(count(findings, Level::problem));
  out += R"(,"warnings":)" + std::to_string(count(findings, Level::warning)) + R"(,"findings":[)";
  for (const Finding& finding : findings) {
    if (out.back() != '[') out += ',';
    out += R"({"level":)";
    append_string(out, face(finding.level).name);
    out += R"(,"what":)";
    append_string(out, finding.what);
    out += R"(,"text":)";
    append_string(out, finding.text);
    if (!finding.advice.empty()) {
      out += R"(,"advice":)";
      append_string(out, finding.advice);
    }
    out += '}';
  }
  return out + "]}\n";
}

}  // namespace earshot::cli::doctor
