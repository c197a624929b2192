#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "unit/config/support.hpp"

namespace earshot::config {

TEST_CASE("variables of OpenTelemetry that cannot be used are warnings") {
  struct Row {
    std::string file;
    std::map<std::string, std::string> variables;
    bool is_exporting;
    std::string warning;  // a part; empty: none
  };
  const std::string own = "[otlp]\nendpoint = \"http://127.0.0.1:9\"\n";
  const std::string endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT", protocol = "OTEL_EXPORTER_OTLP_PROTOCOL";
  const std::string collector = "http://127.0.0.1:4317";
  const Row rows[] = {
      {"", {{endpoint, collector}, {protocol, "grpc"}}, false, protocol + ": `grpc`"},
      {"", {{protocol, "grpc"}, {"OTEL_RESOURCE_ATTRIBUTES", "x"}}, false, ""},
      {own, {{endpoint, collector}, {protocol, "grpc"}}, true, ""},
      {"", {{endpoint, collector}, {protocol, "http/json"}}, false, protocol + ": `http/json`"},
      {"", {{endpoint, collector}, {protocol, "http/protobuf"}}, true, ""},
      {own, {{"OTEL_RESOURCE_ATTRIBUTES", "lamp"}}, true, "OTEL_RESOURCE_ATTRIBUTES: must be"},
      {own, {{"OTEL_RESOURCE_ATTRIBUTES", "a=%ff"}}, true, "OTEL_RESOURCE_ATTRIBUTES: must be"},
      {own, {{"OTEL_SERVICE_NAME", "\xff"}}, true, "OTEL_SERVICE_NAME: is not UTF-8"},
      {own, {{"OTEL_EXPORTER_OTLP_TIMEOUT", "soon"}}, true, "OTEL_EXPORTER_OTLP_TIMEOUT: `soon`"},
      {"", {{endpoint, "collector:4318"}}, false, endpoint + ": must be the address of a collector"},
      {"", {{endpoint, collector}, {"OTEL_EXPORTER_OTLP_HEADERS", "lamp"}}, false, "_HEADERS: must be"},
      {own, {{"OTEL_EXPORTER_OTLP_HEADERS", "lamp"}}, true, ""},
      {"",
       {{endpoint, collector}, {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"}},
       false,
       "_TRACES_PROTOCOL: `grpc`"},
      {"",
       {{endpoint, collector}, {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nonexistent.pem"}},
       false,
       "_CERTIFICATE: /nonexistent.pem"},
      {own, {{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nonexistent.pem"}}, true, ""},
      {own, {{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"}}, true, "_COMPRESSION: `gzip` is not supported"},
      {own, {{"OTEL_EXPORTER_OTLP_COMPRESSION", "none"}}, true, ""},
      {own, {{"OTEL_SDK_DISABLED", "True"}}, false, "OTEL_SDK_DISABLED"},
      {own, {{"OTEL_SDK_DISABLED", "1"}}, true, ""},
  };
  for (const Row& row : rows) {
    Fixture fixture;
    fixture.variables.insert(row.variables.begin(), row.variables.end());
    const ParseResult parsed = fixture.parse_file(row.file);
    INFO(row.file << ' ' << row.warning << ' ' << parsed.err);
    REQUIRE(parsed.options);
    CHECK(parsed.options->otlp.has_value() == row.is_exporting);
    REQUIRE(parsed.options->warnings.size() == (row.warning.empty() ? 0 : 1));
    if (!row.warning.empty()) CHECK_THAT(parsed.options->warnings[0], Catch::Contains(row.warning));
  }
}

TEST_CASE("the headers of the environment are for its endpoint only") {
  Fixture fixture;
  fixture.variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:4318";
  fixture.variables["OTEL_EXPORTER_OTLP_HEADERS"] = "x-key=secret";
  CHECK(fixture.parse({}).options->otlp->traces.headers == std::vector<std::string>{"x-key: secret"});
  const ParseResult other = fixture.parse_file("[otlp]\nendpoint = \"http://127.0.0.1:9\"\n");
  CHECK(other.options->otlp->traces.headers.empty());
}

TEST_CASE("a variable of one signal wins over the general one, an empty one counts as unset") {
  Fixture fixture;
  fixture.variables.insert({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/base/"},
                            {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://127.0.0.1:9/mine"},
                            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""},
                            {"OTEL_EXPORTER_OTLP_PROTOCOL", ""},
                            {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"},
                            {"OTEL_EXPORTER_OTLP_HEADERS", "x-key=general"},
                            {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-key=own"},
                            {"OTEL_EXPORTER_OTLP_TIMEOUT", "3000"},
                            {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "4000"}});
  const ParseResult parsed = fixture.parse_file("[otlp]\nlogs = true\n");
  REQUIRE(parsed.options);
  CHECK(parsed.options->warnings.empty());
  const otlp::Config& config = *parsed.options->otlp;
  CHECK(config.traces.url == "http://127.0.0.1:4318/base/v1/traces");
  CHECK(config.logs.url == "http://127.0.0.1:4318/base/v1/logs");
  CHECK(config.metrics.url == "http://127.0.0.1:9/mine");
  CHECK(config.traces.headers == std::vector<std::string>{"x-key: general"});
  CHECK(config.metrics.headers == std::vector<std::string>{"x-key: own"});
  CHECK(config.traces.timeout == std::chrono::milliseconds(3000));
  CHECK(config.metrics.timeout == std::chrono::milliseconds(4000));
}

TEST_CASE("one signal alone is exported to its own endpoint") {
  Fixture fixture;
  fixture.variables["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"] = "http://127.0.0.1:9/mine";
  const ParseResult parsed = fixture.parse({});
  REQUIRE(parsed.options->otlp);
  CHECK(parsed.options->otlp->metrics.is_on());
  CHECK_FALSE(parsed.options->otlp->traces.is_on());
  CHECK_FALSE(parsed.options->otlp->logs.is_on());
}

}  // namespace earshot::config
