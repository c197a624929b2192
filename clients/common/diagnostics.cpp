#include "common/diagnostics.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>

#include "version/version.hpp"

namespace earshot::common {
namespace {

std::string_view name = "earshot";

}  // namespace

void set_program(std::string_view program_name) { name = program_name; }
std::string_view program() { return name; }
std::string user_agent() {
  return std::string(name == "earshot" ? "earshot-cli" : name).append("/").append(build.version);
}

Charset charset_of_locale() {
  std::setlocale(LC_CTYPE, "");  // only how characters are encoded: numbers are written the same everywhere
  const std::string_view codeset = nl_langinfo(CODESET);
  return codeset == "UTF-8" || codeset == "utf8" ? Charset::utf8 : Charset::ascii;
}

std::string for_stderr(std::string_view text) { return printable(text, charset_of_locale(), Newlines::mark); }

void complain(std::string_view text) {
  std::string line(name);
  line += ": ";
  line += text;
  line += '\n';
  // Nobody may be reading; there is nobody else to tell.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace earshot::common
