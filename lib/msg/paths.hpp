/// @file
/// Finds the paths to peers with several rails, watches them, and chooses the one that a peer's
/// messages take. See docs/decisions/0044-rails-under-one-session.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/msg/link.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/rail_news.hpp"
#include "lib/rail/rail_loads.hpp"
#include "lib/rail/rail_policy.hpp"
#include "lib/rail/rail_set.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. A port with one rail does nothing here. Both sides
/// tell each other their rails; each rail then asks the peer's rails, one after the other, until
/// one answers.
class Paths {
 public:
  explicit Paths(const PortObjects& port) : port_(port), news_(port) {}

  /// Before any session.
  void set_policy(rail::RailPolicy policy) { policy_ = policy; }
  /// A session with a peer has begun. @param rails of the peer, as its hello said.
  void meet(Link& link, uint32_t rails);
  /// A message about rails arrived by one of ours. @param bytes its body, foreign. @return false:
  /// it is invalid.
  [[nodiscard]] bool on_message(Rail& rail, uint32_t source, Kind kind,
                                std::span<const uint8_t> bytes);
  /// Tell, ask and probe what is due, and leave paths that are not up. Called every now and then.
  void check();
  /// Whether all paths that were found were up when they were last checked, and nothing has
  /// changed since. If not, the caller should check again soon.
  [[nodiscard]] bool is_calm() const { return is_calm_; }

  /// A message was not delivered. Moves the link to another path if that is up.
  void on_failed(Path& path, pmd::Status status);
  /// The card of a rail has reported that its link went up or down.
  void on_link(Rail& rail, bool is_up);
  /// The peer has gone from a rail, as the card reports. @return whether it may be reached by
  /// another one.
  [[nodiscard]] bool on_path_gone(Path& path);
  /// The card of a rail is gone.
  void on_card_gone(Rail& rail);
  /// Tell a peer that a rail has lost its card, so that it grants nothing there. May be repeated:
  /// the message may be lost.
  static void say_lost(const Link& link, const Rail& rail) { say(link, rail, Kind::kLost); }
  /// A hello was not answered: the next one takes another path, if there is one.
  void turn(Link& link);
  /// Choose the path of a link's next messages again. @return whether the link has a path that may
  /// be used.
  bool choose(Link& link);
  /// The path to a rail of the peer, which need not have answered in this session: the peer may
  /// know it already. @param remote foreign. @return null: there is none.
  [[nodiscard]] Path* find(Link& link, uint32_t remote) const;
  /// The path of large data from a peer, by the policy.
  [[nodiscard]] Path& choose_for_large(const Link& link) const;
  /// The rails over which a transfer of `bytes` from a peer with several is granted, by the policy.
  /// @return empty: none may be used now.
  [[nodiscard]] rail::RailSet stripe_rails(const Link& link, uint64_t bytes) const;
  /// Whether another path to the peer is likelier to work, by RailState::rank().
  [[nodiscard]] static bool is_left(const Path& path);
  /// Bytes granted to peers, by rail, and how fast they bring them.
  [[nodiscard]] rail::RailLoads& granted() { return granted_; }

  /// Hot. Counters and events of rails.
  [[nodiscard]] RailNews& news() { return news_; }
  [[nodiscard]] const RailNews& news() const { return news_; }

 private:
  [[nodiscard]] bool say_rails(Link& link);
  void search(Link& link, Rail& rail, uint64_t now);
  void ask(Link& link, Rail& rail, uint32_t dest_id);
  void probe(Path& path, uint64_t now);
  static void say(const Link& link, const Rail& rail, Kind kind);
  [[nodiscard]] Link* known(uint32_t local_key, uint32_t remote_key) const;
  [[nodiscard]] static bool is_early(const Link* link);
  void take_rails(Link& link, const RailsBody& body);
  [[nodiscard]] bool take_path(Link& link, Rail& rail, uint32_t source, uint32_t remote,
                               bool is_answer);
  [[nodiscard]] bool leaves(Link& link, const Rail& rail, uint32_t remote);
  [[nodiscard]] static bool has_asked(const Link& link, const Rail& rail);
  void cut_off(Link& link, const char* why) const;

  [[nodiscard]] rail::RailView view_of(const Link& link, bool is_large) const;
  [[nodiscard]] Path* choose_by_policy(Link& link) const;
  [[nodiscard]] static Path* choose_any(const Link& link);
  static void set_rails(Link& link);

  PortObjects port_;
  RailNews news_;
  rail::RailPolicy policy_ = rail::RailPolicy::kWeighted;
  rail::RailLoads granted_;
  bool is_calm_ = true;
  std::vector<uint32_t> met_;                      // indices of links with several rails
  std::array<pmd::IovaRun, kRailsMax> answers_{};  // memory for answers to probes; nothing reads it
};

}  // namespace rio::msg
