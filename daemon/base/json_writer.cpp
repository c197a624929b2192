#include "base/json_writer.hpp"

#include <simdjson.h>

#include "base/hex.hpp"
#include "base/json_scan.hpp"
#include "base/text.hpp"

namespace earshot {
namespace {

// Text without quotes, backslashes and controls of which some bytes are not UTF-8.
void append_repaired(std::string& out, std::string_view text) {
  while (!text.empty()) {
    std::size_t bad = 0;
    const std::size_t length = utf8_length(text, bad);
    out += length ? text.substr(0, length) : replacement;
    text.remove_prefix(length ? length : bad);
  }
}

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u";
      append_hex(out, static_cast<unsigned char>(c), 4);
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size(); ++at) {
    bool ascii = true;
    const std::string_view run = text.substr(at, run_end(text, at, ascii) - at);
    if (ascii || simdjson::validate_utf8(run.data(), run.size()))
      out += run;
    else
      append_repaired(out, run);
    at += run.size();
    if (at == text.size()) break;
    append_escape(out, text[at]);
  }
  out += '"';
}

}  // namespace earshot
