// The build without libnats.
#include "team/broker_client.hpp"
#include "team/consumer.hpp"
#include "team/record_client.hpp"

namespace earshot::team {

std::unique_ptr<BrokerClient> make_broker_client(boost::asio::io_context&, BrokerConfig, BrokerListener&) {
  return nullptr;
}
std::unique_ptr<Consumer> make_consumer(BrokerConfig, std::string) { return nullptr; }
std::unique_ptr<RecordClient> make_record_client(boost::asio::io_context&, BrokerConfig) { return nullptr; }

std::string missing_library() {
  return "this earshotd was built without libnats, which [relay] and [hub] need: install libnats-dev (brew: "
         "cnats) and rebuild";
}

}  // namespace earshot::team
