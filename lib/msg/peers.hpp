/// @file
/// The peers of a port: their links, and the lists of links that have something to say or wait for
/// an answer.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/msg/link.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. Links are never taken away.
class Peers {
 public:
  /// In the list of take_talkers(): not a link, but peers without a session that are to be told so.
  static constexpr uint32_t kStrangers = ~0u;
  /// A peer that gives no credit for so long is asked for a sign.
  static constexpr uint64_t kAliveNs = 20'000'000;

  /// @param seed random. @param first_number as PortConfig's.
  Peers(uint64_t seed, uint32_t first_number) : key_seed_(seed), first_number_(first_number) {}

  /// Hot.
  [[nodiscard]] uint32_t count() const { return count_; }
  /// Hot. @param index below count().
  [[nodiscard]] Link& at(uint32_t index) const { return *links_[index]; }
  /// @return null: there is no link to it yet.
  [[nodiscard]] Link* find(uint32_t dest_id) const;
  /// @return null: there are too many.
  [[nodiscard]] Link* find_or_make(uint32_t dest_id);
  /// For a peer that no context here has asked for: such peers get no more than half of all links,
  /// since a link is never freed. @return null: there are too many.
  [[nodiscard]] Link* find_or_make_for_stranger(uint32_t dest_id);

  /// Draw a new key, which the peer has to name from now on, and a new first number.
  void renew(Link& link);

  /// The link has something to say.
  void want(Link& link) {
    if (!link.say.listed) {
      link.say.listed = true;
      talkers_.push_back(link.index());
    }
  }
  /// Peers without a session are to be told so.
  void want_strangers() { talkers_.push_back(kStrangers); }
  /// Hot.
  [[nodiscard]] bool has_talkers() const { return !talkers_.empty(); }
  /// Indices of all links that have something to say, and kStrangers; the list is empty afterwards,
  /// and their `say.listed` is for the caller to clear.
  [[nodiscard]] std::vector<uint32_t> take_talkers() { return std::exchange(talkers_, {}); }

  /// The link waits for an answer. @param again_ns when to ask once more, by now_ns(); 0: as is, or
  /// after kAliveNs.
  void watch(Link& link, uint64_t again_ns);
  /// Indices of the links that wait. May be changed by the one that goes through it.
  [[nodiscard]] std::vector<uint32_t>& watched() { return watched_; }
  [[nodiscard]] const std::vector<uint32_t>& watched() const { return watched_; }

 private:
  static constexpr uint32_t kLinksMax = 0xFFFF;             // so that one index is that of no link
  static constexpr uint32_t kStrangersMax = kLinksMax / 2;  // of them

  uint32_t count_ = 0;
  std::vector<std::unique_ptr<Link>> links_;  // by index
  std::vector<uint32_t> talkers_;
  std::vector<uint32_t> watched_;
  std::unordered_map<uint32_t, uint32_t> index_of_;  // by destID
  uint64_t key_seed_;
  uint32_t first_number_;
};

}  // namespace rio::msg
