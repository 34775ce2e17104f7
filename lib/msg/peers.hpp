/// @file
/// The peers of a port: their links, and the lists of links that have news to send or wait for an
/// answer.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/msg/link.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. Links are never removed.
class Peers {
 public:
  /// Pseudo index in take_talkers(): Speaker has resets to send to peers without a session.
  static constexpr uint32_t kStrangers = ~0u;
  /// After this time without credit, a peer is asked for a sign of life.
  static constexpr uint64_t kAliveNs = 20'000'000;
  static constexpr uint32_t kLinksMax = 0xFFFF;  ///< leaves one 16-bit index unused
  /// Peers that contacted us first get at most half of all links, because a link is never freed.
  static constexpr uint32_t kStrangersMax = kLinksMax / 2;

  /// @param seed random.
  Peers(uint64_t seed, const PortConfig& config, Rails& rails)
      : rails_(rails), config_(config), key_seed_(seed) {}

  /// Hot. The number of links.
  [[nodiscard]] uint32_t count() const { return count_; }
  /// Hot. The link of an index. @param index below count().
  [[nodiscard]] Link& at(uint32_t index) const { return *links_[index]; }
  /// The link to a peer, by its destID on the first rail. @return null: there is none yet.
  [[nodiscard]] Link* find(uint32_t dest_id) const {
    Path* const path = find(0, dest_id);
    return path != nullptr ? &path->link : nullptr;
  }
  /// The path to a peer. @param rail number of ours. @return null: there is none.
  [[nodiscard]] Path* find(uint32_t rail, uint32_t dest_id) const;
  /// The link to a peer, created on first use. @param most how many links there may be then:
  /// kStrangersMax for a peer that contacted us first. @return null: there are too many.
  [[nodiscard]] Link* find_or_make(uint32_t dest_id, uint32_t most = kLinksMax);

  /// Make the path from a rail to a peer, in place of the one that the rail may have had. That one
  /// stays valid, since messages and transfers may be under way there.
  Path& add_path(Link& link, Rail& rail, uint32_t dest_id);

  /// Draw a new key, which the peer has to use from now on, and a new first number.
  void renew(Link& link);

  /// Add the link to the list of links with news to send.
  void want(Link& link) {
    if (!link.say.listed) {
      link.say.listed = true;
      talkers_.push_back(link.index());
    }
  }
  /// Speaker has resets for peers without a session.
  void want_strangers() { talkers_.push_back(kStrangers); }
  /// Hot. Whether any link has news to send.
  [[nodiscard]] bool has_talkers() const { return !talkers_.empty(); }
  /// Take the list of links with news to send, as indices, possibly with kStrangers. The caller
  /// clears their `say.listed`.
  [[nodiscard]] std::vector<uint32_t> take_talkers() { return std::exchange(talkers_, {}); }

  /// Add the link to the list of links that wait for an answer. @param again_ns when to ask again,
  /// by now_ns(); 0: keep the time, or after kAliveNs.
  void watch(Link& link, uint64_t again_ns);
  /// Indices of the links that wait for an answer. The caller may remove entries.
  [[nodiscard]] std::vector<uint32_t>& watched() { return watched_; }

 private:
  [[nodiscard]] static uint64_t key_of(uint32_t rail, uint32_t dest_id) {
    return uint64_t{rail} << 32 | dest_id;
  }

  uint32_t count_ = 0;
  std::vector<std::unique_ptr<Link>> links_;  // key: index
  std::vector<uint32_t> talkers_;
  std::vector<uint32_t> watched_;
  std::unordered_map<uint64_t, Path*> paths_;  // key: key_of()
  std::vector<std::unique_ptr<Path>> former_;  // paths in whose place others are
  Rails& rails_;
  const PortConfig& config_;
  uint64_t key_seed_;
};

}  // namespace rio::msg
