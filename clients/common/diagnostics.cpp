#include "common/diagnostics.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>

#include "version/version.hpp"

namespace earshot::common {
namespace {

std::string_view name = "earshot";

}  // namespace

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
  std::string line(name);
  line += ": ";
  line += text;
  line += '\n';
  // A failure to write to stderr cannot be reported.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace earshot::common
