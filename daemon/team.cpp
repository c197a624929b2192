#include "team.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agents/claude_code/layout.hpp"
#include "tail/host_names.hpp"

namespace earshot {
namespace {

/// Certainly: its root is one of ours and is there to be looked into, and the file is not.
bool is_gone(const std::vector<tail::Root>& roots, std::string_view stream) {
  const auto slash = stream.find('/');
  const auto root = std::find_if(roots.begin(), roots.end(), [&](const tail::Root& each) {
    return each.name == stream.substr(0, slash);
  });
  const auto place = slash == stream.npos ? std::nullopt : tail::place_of(stream.substr(slash + 1));
  if (root == roots.end() || !place) return false;
  const std::string hall = root->path + "/" + std::string(tail::directory_of(place->hall));
  struct stat facts {};
  if (::stat(hall.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return false;
  return ::lstat((hall + "/" + place->below + ".jsonl").c_str(), &facts) != 0 && errno == ENOENT;
}

}  // namespace

Team::Team(boost::asio::io_context& io, serve::Server& server, const config::Options& options, std::uint64_t hash_key,
           std::vector<tail::Root> roots, team::Publisher::ForEach for_each)
    : io_(io), server_(server) {
  if (options.hub) be_hub(*options.hub, options.state, hash_key);
  if (options.relay) be_relay(*options.relay, options, hash_key, std::move(roots), std::move(for_each));
}

void Team::be_hub(const config::HubOptions& words, const std::string& state, std::uint64_t hash_key) {
  server_.set_multi_host([this](std::string_view host) { return hosts_ && hosts_->online(host); });
  server_.set_users(words.users);
  hosts_ = std::make_unique<team::HostRegistry>(
      io_,
      [this](const std::string& session, const status::Status& status) {
        server_.status_changed(session, status);
      },
      [this](const status::OfHosts& hosts) { server_.hosts_changed(hosts); });
  reader_ = team::make_reader(io_, words.broker);
  server_.set_remote_record_reader(
      [this](const std::string& line, std::function<void(serve::RemoteRecord)> done) {
        reader_->read(line, std::move(done));
      });
  team::IngestorOptions intake;
  intake.link = words.broker;
  intake.durable = words.durable;
  intake.directory = state + "/hub";
  intake.owner = team::owner_of(hash_key);
  intake.shelf = words.store;
  hosts_max_ = words.store.hosts_max;
  intake.sync = words.sync;
  intake_ = std::make_unique<team::Ingestor>(io_, std::move(intake),
                                             [this](const team::HeardStatus& heard) { hosts_->hear(heard); });
  hosts_->hears = [this] { return intake_->figures().open; };
}

void Team::be_relay(const config::RelayOptions& words, const config::Options& options, std::uint64_t hash_key,
                    std::vector<tail::Root> roots, team::Publisher::ForEach for_each) {
  team::PublisherOptions relay;
  relay.link = words.broker;
  relay.link.inbox = "_INBOX_" + tail::word(options.host);
  relay.is_gone = [roots = std::move(roots)](const std::string& stream) { return is_gone(roots, stream); };
  relay.host = options.host;
  relay.owner = team::owner_of(hash_key);
  relay.instance = server_.context().instance;
  relay.full = words.full;
  relay.read = words.read;
  relay_ = std::make_unique<team::Publisher>(io_, server_, std::move(for_each), std::move(relay));
}

void Team::start() {
  if (relay_) relay_->start();
  if (intake_) intake_->start();
  if (hosts_) hosts_->start();
}

void Team::stop() {
  if (relay_) relay_->stop();
  if (intake_) intake_->stop();
  if (hosts_) hosts_->stop();
}

serve::TeamMetrics Team::figures() const {
  if (relay_) {
    const team::PublisherMetrics f = relay_->figures();
    return {"relay",
            {{"open", "1 while JetStream is there and takes what is published.", false, f.open},
             {"published", "Messages that JetStream acknowledged.", true, f.published},
             {"refused", "Messages that JetStream did not take.", true, f.refused},
             {"opened", "Connections to the broker since the start.", true, f.opened},
             {"resets", "Transcripts that were published as another history.", true, f.resets},
             {"on_the_way", "Messages that were sent and not acknowledged yet.", false, f.on_the_way},
             {"waiting_bytes", "Bytes of messages that wait here; then the files are the buffer.", false,
              f.waiting_bytes}}};
  }
  if (!intake_) return {};
  const team::IngestorMetrics& f = intake_->figures();
  std::uint64_t online = 0;
  for (const team::HostSeen& host : hosts_->seen()) online += host.online;
  return {
      "hub",
      {{"open", "1 while JetStream is there and is listened to.", false, f.open},
       {"received", "Messages that JetStream delivered.", true, f.received},
       {"unsound", "Messages that were not what their subject said; they were let go.", true, f.unsound},
       {"opened", "Connections to the broker since the start.", true, f.opened},
       {"hosts", "Hosts of which there are files.", false, f.shelf.hosts},
       {"hosts_online", "Hosts that are heard.", false, online},
       {"files", "Files, one a stream.", false, f.shelf.files},
       {"bytes", "Bytes of the files.", false, f.shelf.bytes},
       {"appended", "Events that were appended to a file.", true, f.shelf.appended},
       {"dropped", "Messages that the files had already.", true, f.shelf.dropped},
       {"restarted", "Files that began anew, with another history.", true, f.shelf.restarted},
       {"removed", "Files that went because their transcript did.", true, f.shelf.removed},
       {"hosts_refused", "Events of hosts beyond those that the hub takes.", true, f.shelf.hosts_refused},
       {"files_refused", "Events of streams beyond those that a host may have.", true, f.shelf.files_refused},
       {"retired", "Files that were too old or too much.", true, f.shelf.retired}}};
}

void Team::fill(serve::Metrics& figures) const { figures.team = this->figures(); }

void Team::fill(serve::Health& health) const {
  health.team = figures();
  const auto add_trouble = [&](const char* part, const std::string& why) {
    if (!why.empty()) health.troubles.push_back({part, why, "it is tried again"});
  };
  if (relay_) add_trouble("[relay]", relay_->figures().trouble);
  if (!intake_) return;
  add_trouble("[hub]", intake_->figures().trouble);
  if (intake_->figures().shelf.hosts_refused > 0)
    health.troubles.push_back(
        {"[hub]",
         "more than " + std::to_string(hosts_max_) + " hosts publish: what the others told is not kept",
         "raise `hosts` in [hub]"});
  for (const team::HostSeen& host : hosts_->seen())
    health.hosts.push_back({host.name, host.online, host.heard});
}

}  // namespace earshot
