#include "team/broker_config.hpp"

#include <catch2/catch.hpp>

using namespace earshot::team;

TEST_CASE("where() omits the credentials of a URL") {
  BrokerConfig config;
  CHECK(config.where() == "NATS");
  config.urls = {"nats://ada:sec@ret@broker.example:4222", "nats://b"};
  CHECK(config.where() == "nats://broker.example:4222");
  config.urls = {"tls://broker.example"};
  CHECK(config.where() == "tls://broker.example");
  config.urls = {"token@broker.example:4222"};
  CHECK(config.where() == "broker.example:4222");
}
