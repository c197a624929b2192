// The one list of options. The command line, the EARSHOT_* variables, the top-level keys of earshot.toml, the
// arguments of an installed service, --help and --print-config are generated from it; a test compares the
// manual pages with it.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace earshot::config {

enum class Kind {
  text,
  path,      // made absolute for a service
  root,      // `[PROGRAM:][NAME=]DIR`, repeatable, likewise
  names,     // host names, repeatable
  duration,  // "24h"
  choice,    // one of `choices`
  flag,
};

/// Where an option may be set.
enum class Scope {
  everywhere,    // command line, environment, earshot.toml
  file,          // earshot.toml only
  command_line,  // command line and environment only
};

struct Option {
  std::string_view key;  // in earshot.toml; `log_level` is --log-level and EARSHOT_LOG_LEVEL
  Kind kind;
  Scope scope;
  std::string_view group;          // heading in --help and the example file
  std::string_view value;          // what --help calls the value
  std::string_view default_value;  // as text; empty: computed, see `description`
  std::string_view example;        // shown in the example file where there is no default
  std::string_view description;
  std::vector<std::string_view> choices = {};
  void (*apply)(Options& options, const std::vector<std::string>& values);  // values are valid for `kind`
};

std::span<const Option> option_table();

std::string flag_of(const Option& option);      // --log-level
std::string variable_of(const Option& option);  // EARSHOT_LOG_LEVEL

/// One option's values (one, but for repeatable kinds; `true` or `false` for a flag) and where they were set.
struct Setting {
  std::vector<std::string> values;
  bool from_file = false;
  std::string origin;  // names the place in an error: `--recent`, `EARSHOT_RECENT`, `earshot.toml:3: recent`
};
using Settings = std::map<std::string_view, Setting>;  // by key

/// Throws Error when a value does not fit the option's kind.
void check(const Option& option, const Setting& setting);
/// Applies defaults, then `settings`. Throws Error as check() does.
void apply_settings(const Settings& settings, Options& options);

/// The configuration of the exporter, from `options.otlp_file` and the OTEL_EXPORTER_OTLP_* variables;
/// nothing without an endpoint. `resolve` makes the path of a file in earshot.toml absolute. The variables
/// are meant for all programs of a user: a bad one is a warning, and without it nothing goes to another place
/// or under another name than it asks for.
std::optional<otlp::Config> otlp_config(const OtlpOptions& options, const Environment& environment,
                                        const std::function<std::string(const std::string&)>& resolve,
                                        std::vector<std::string>& warnings);

/// The top-level options of `file`; its sections ([limits], [redaction], [relay], [hub], [otlp]) are stored
/// in `options`. Throws Error.
Settings read_config_file(const std::string& file, Options& options);

/// The command line that reproduces `settings` from any working directory: what was set outside earshot.toml,
/// and relative paths from it, as absolute paths.
std::vector<std::string> service_arguments(const Settings& settings);

/// An example earshot.toml: every option, section and limit with its default, commented out.
std::string example_file();

}  // namespace earshot::config
