#include "common/format.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <memory>

#include "version/version.hpp"

namespace earshot::common {
namespace {

std::string_view name = "earshot";

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(28); }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    return " " + option->get_type_name() + (option->get_expected_max() > 1 ? " ..." : "");
  }
};

}  // namespace

std::string_view short_id(std::string_view id) {
  constexpr std::size_t short_id_bytes = 8;
  return id.substr(0, short_id_bytes);
}

std::string_view last_component(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == path.npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

void set_program_name(std::string_view program_name) { name = program_name; }
std::string_view program_name() { return name; }
std::string user_agent() {
  return std::string(name == "earshot" ? "earshot-cli" : name).append("/").append(build.version);
}

Charset charset_of_locale() {
  std::setlocale(LC_CTYPE, "");  // LC_CTYPE only: numbers keep the C format
  const std::string_view codeset = nl_langinfo(CODESET);
  return codeset == "UTF-8" || codeset == "utf8" ? Charset::utf8 : Charset::ascii;
}

std::string safe_text(std::string_view text) {
  return to_display_line(text, charset_of_locale(), LineBreaks::symbol);
}

void print_message(std::string_view text) {
  const std::string line = std::string(name).append(": ").append(text).append("\n");
  // A failure to write to stderr cannot be reported.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

void set_help_format(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

}  // namespace earshot::common
