// Who is who: what sessions, agents and calls are called, learned from the frames that pass.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cli/frame.hpp"

namespace earshot::cli {

/// A map that forgets the oldest key when it holds `size_max`.
template <class Value, std::size_t size_max>
class Recent {
 public:
  const Value* find(std::string_view key) const {
    const auto found = values_.find(std::string(key));
    return found == values_.end() ? nullptr : &found->second;
  }
  Value& operator[](std::string_view key) {
    const auto [place, is_new] = values_.try_emplace(std::string(key));
    if (!is_new) return place->second;
    order_.push_back(place->first);
    if (order_.size() > size_max) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    return place->second;
  }
  void erase(std::string_view key) {
    if (values_.erase(std::string(key)) == 0) return;
    order_.erase(std::find(order_.begin(), order_.end(), key));
  }
  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::unordered_map<std::string, Value> values_;
  std::deque<std::string> order_;  // as inserted
};

class Roster {
 public:
  static constexpr std::size_t sessions_max =
      8192;  // the longest known is forgotten: its label falls back to the stream's name
  static constexpr std::size_t agents_max = 8192;  // the same: it is shown by its id

  /// Takes from any frame what it says about names.
  void learn(const Fields& frame);

  /// What a line is headed with: the project's last path component; with a part of the session's id where
  /// sessions share a project, and with the host's name where it is not the daemon's own. Raw text, to be
  /// made printable.
  std::string label(const Fields& frame) const;
  /// The project's path; empty: not known.
  std::string_view project(std::string_view session) const;
  /// Explore, or the beginning of the id.
  std::string agent(std::string_view id) const;

 private:
  struct Session {
    std::string project, name;  // name: the last component
  };
  void learn_session(std::string_view session, std::string_view project);
  void learn_agent(std::string_view id, std::string_view type);

  std::string host_;  // the daemon's
  Recent<Session, sessions_max> sessions_;
  Recent<std::string, agents_max> agents_;
  std::unordered_map<std::string, std::size_t> sharing_;  // a project's name → how many sessions have it
};

/// The first eight characters of a session's or an agent's id.
std::string_view short_id(std::string_view id);

/// `api` of /home/u/api; the text itself when it has no component.
std::string_view last_component(std::string_view path);

}  // namespace earshot::cli
