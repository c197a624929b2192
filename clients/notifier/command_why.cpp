// `earshot-notify why`: the last decisions, from the journal.
#include <unistd.h>

#include <iostream>

#include "common/format.hpp"
#include "notifier/bounded_log.hpp"
#include "notifier/commands.hpp"
#include "notifier/notifier.hpp"

namespace earshot::notifier {

int why_command(const Options& options) {
  const StatePaths paths{notifier_directory(options)};
  const std::vector<std::string> lines = BoundedLog(paths.journal()).last(options.count);
  if (lines.empty()) {
    common::print_message("no decisions yet (" + common::safe_text(paths.journal()) +
                          "): is earshot-notify running?");
    return exit_failed;
  }
  common::FrameParser parser;
  for (const std::string& line : lines) {
    if (options.json) {
      std::cout << to_display_json(line) << "\n";
      continue;
    }
    const auto fields = parser.parse(line);
    if (!fields) continue;
    std::string text = format_local_clock(fields->integer("at_ms").value_or(0)) + " ";
    std::string outcome(fields->text("decision"));
    outcome.resize(std::max<std::size_t>(outcome.size(), 11), ' ');
    text += outcome + " " + std::string(fields->text("rule"));
    const std::string_view project = fields->text("project");
    if (!project.empty()) text += " · " + std::string(common::last_component(project));
    if (!fields->text("session").empty())
      text += " · " + std::string(common::short_id(fields->text("session")));
    if (!fields->text("title").empty()) text += " “" + std::string(fields->text("title")) + "”";
    if (!fields->text("why").empty()) text += " — " + std::string(fields->text("why"));
    std::cout << common::safe_text(text) << "\n";
  }
  return exit_ok;
}

}  // namespace earshot::notifier
