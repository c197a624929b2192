#include "team.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agents/stream_name.hpp"
#include "base/system.hpp"

namespace earshot {
namespace {

/// True if the stream's transcript does not exist, but the directory of transcripts in its root does.
bool is_deleted(const std::vector<Root>& roots, std::string_view stream) {
  const auto slash = stream.find('/');
  const auto root = std::find_if(roots.begin(), roots.end(),
                                 [&](const Root& each) { return each.name == stream.substr(0, slash); });
  if (root == roots.end() || slash == stream.npos) return false;
  const auto place = parse_stream_name(*root->program, stream.substr(slash + 1));
  if (!place) return false;
  const std::string directory =
      root->path + "/" + std::string(root->program->transcript_directories()[place->directory]);
  return stat_file(directory, Symlinks::follow).is_directory() &&
         stat_file(directory + "/" + place->below + ".jsonl").error == ENOENT;
}

}  // namespace

Team::Team(boost::asio::io_context& io, serve::Server& server, const config::Options& options,
           std::uint64_t hash_key, std::vector<Root> roots, team::Publisher::ForEach for_each)
    : io_(io), server_(server) {
  if (options.hub) create_hub(*options.hub, options.state, hash_key);
  if (options.relay)
    create_publisher(*options.relay, options, hash_key, std::move(roots), std::move(for_each));
}

void Team::create_hub(const config::HubOptions& hub, const std::string& state, std::uint64_t hash_key) {
  server_.set_multi_host([this](std::string_view host) { return hosts_ && hosts_->online(host); });
  server_.set_users(hub.users);
  hosts_ = std::make_unique<team::HostRegistry>(
      io_,
      [this](const std::string& session, const status::Status& status) {
        server_.status_changed(session, status);
      },
      [this](const status::HostStatuses& hosts) { server_.hosts_changed(hosts); });
  record_client_ = std::make_unique<team::RecordClient>(io_, hub.broker);
  server_.set_remote_record_reader(
      [this](const std::string& event_json, std::function<void(serve::RemoteRecord)> done) {
        record_client_->read(event_json, std::move(done));
      });
  team::IngestorOptions options;
  options.broker = hub.broker;
  options.durable = hub.durable;
  options.directory = state + "/hub";
  options.owner = team::owner_id(hash_key);
  options.store = hub.store;
  options.sync = hub.sync;
  hosts_max_ = hub.store.hosts_max;
  ingestor_ = std::make_unique<team::Ingestor>(
      io_, std::move(options), [this](const team::StatusMessage& message) { hosts_->on_message(message); });
  hosts_->is_connected = [this] { return ingestor_->metrics().open; };
}

void Team::create_publisher(const config::RelayOptions& relay, const config::Options& options,
                            std::uint64_t hash_key, std::vector<Root> roots,
                            team::Publisher::ForEach for_each) {
  team::PublisherOptions publisher;
  publisher.broker = relay.broker;
  publisher.broker.inbox = "_INBOX_" + escape_token(options.host);
  publisher.is_deleted = [roots = std::move(roots)](const std::string& stream) {
    return is_deleted(roots, stream);
  };
  publisher.host = options.host;
  publisher.owner = team::owner_id(hash_key);
  publisher.instance = server_.context().instance;
  publisher.full = relay.full;
  publisher.read = relay.read;
  publisher_ = std::make_unique<team::Publisher>(io_, server_, std::move(for_each), std::move(publisher));
}

Team::~Team() {
  publisher_.reset();
  ingestor_.reset();
  record_client_.reset();
  team::BrokerThread::wait_for_all();
}

void Team::start() {
  if (publisher_) publisher_->start();
  if (ingestor_) ingestor_->start();
  if (hosts_) hosts_->start();
}

void Team::stop() {
  if (publisher_) publisher_->stop();
  if (ingestor_) ingestor_->stop();
  if (hosts_) hosts_->stop();
}

serve::TeamMetrics Team::metrics() const {
  if (publisher_) {
    const team::PublisherMetrics m = publisher_->metrics();
    return {"relay",
            {{"open", "1 while connected to JetStream.", false, m.open},
             {"published", "Messages that JetStream acknowledged.", true, m.published},
             {"refused", "Messages that JetStream refused.", true, m.refused},
             {"opened", "Connections to the broker since the start.", true, m.opened},
             {"resets", "Resets published for rewritten transcripts.", true, m.resets},
             {"on_the_way", "Messages sent and not acknowledged yet.", false, m.in_flight},
             {"waiting_bytes", "Bytes of buffered messages; later events stay in the transcripts.", false,
              m.waiting_bytes}}};
  }
  if (!ingestor_) return {};
  const team::IngestorMetrics& m = ingestor_->metrics();
  std::uint64_t online = 0;
  for (const team::HostInfo& host : hosts_->hosts()) online += host.online;
  return {"hub",
          {{"open", "1 while connected to JetStream.", false, m.open},
           {"received", "Messages that JetStream delivered.", true, m.received},
           {"unsound", "Messages that did not match their subject; dropped.", true, m.invalid},
           {"opened", "Connections to the broker since the start.", true, m.opened},
           {"hosts", "Hosts with stored files.", false, m.store.hosts},
           {"hosts_online", "Hosts that send heartbeats.", false, online},
           {"files", "Stored files, one per stream.", false, m.store.files},
           {"bytes", "Bytes of the stored files.", false, m.store.bytes},
           {"appended", "Events appended to files.", true, m.store.appended},
           {"dropped", "Messages that were already stored.", true, m.store.dropped},
           {"restarted", "Files restarted with another history.", true, m.store.restarted},
           {"removed", "Files removed with their transcript.", true, m.store.removed},
           {"hosts_refused", "Events dropped because of the limit of hosts.", true, m.store.hosts_refused},
           {"files_refused", "Events dropped because of the limit of streams of a host.", true,
            m.store.files_refused},
           {"repairs_refused", "Repairs of a file after a gap refused because of the limit of a host.", true,
            m.store.repairs_refused},
           {"retired", "Files deleted because of the age or size limit.", true, m.store.retired}}};
}

void Team::fill(serve::MetricsPage& page) const { page.add(metrics()); }

void Team::fill(serve::Health& health) const {
  health.team = metrics();
  const auto add_problem = [&](const char* part, const std::string& reason) {
    if (!reason.empty()) health.problems.push_back({part, reason, "the daemon retries"});
  };
  if (publisher_) add_problem("[relay]", publisher_->metrics().problem);
  if (!ingestor_) return;
  add_problem("[hub]", ingestor_->metrics().problem);
  if (ingestor_->metrics().store.hosts_refused > 0)
    health.problems.push_back(
        {"[hub]",
         "more than " + std::to_string(hosts_max_) + " hosts publish: events of the others are dropped",
         "raise `hosts` in [hub]"});
  for (const team::HostInfo& host : hosts_->hosts())
    health.hosts.push_back({host.name, host.online, host.last_seen});
}

}  // namespace earshot
