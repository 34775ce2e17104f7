/// @file
/// Ethernet addresses of cards, as Linux's rionet gives them (00:01:00:01, then the destID), and a
/// port's knowledge of its peers.
#pragma once

#include <rte_ether.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

namespace rio::pmd {

/// destIDs below this have an address.
inline constexpr uint32_t kNetDestIds = 1u << 16;
/// A number that is no destID.
inline constexpr uint32_t kNoNetDestId = UINT32_MAX;

/// The six bytes of an address as the lower ones of a word, the first lowest.
using Mac = uint64_t;
inline constexpr Mac kMacMask = (uint64_t{1} << 48) - 1;
/// An address that no frame has.
inline constexpr Mac kNoMac = UINT64_MAX;

/// Hot. Load an address. Reads eight bytes.
[[nodiscard]] inline Mac load_mac(const uint8_t* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word & kMacMask;
}

[[nodiscard]] constexpr bool is_multicast(Mac mac) {
  return (mac & 1) != 0;
}

[[nodiscard]] constexpr Mac mac_of(uint32_t dest_id) {
  constexpr Mac kPrefix = 0x01000100;
  return kPrefix | Mac{dest_id >> 8 & 0xFF} << 32 | Mac{dest_id & 0xFF} << 40;
}

/// Hot. The destID of an address. @return kNoNetDestId: not the address of a card.
[[nodiscard]] constexpr uint32_t dest_id_of(Mac mac) {
  const auto id = static_cast<uint32_t>((mac >> 32 & 0xFF) << 8 | (mac >> 40 & 0xFF));
  return mac == mac_of(id) ? id : kNoNetDestId;
}

[[nodiscard]] inline rte_ether_addr address_of(uint32_t dest_id) {
  return {{0, 1, 0, 1, static_cast<uint8_t>(dest_id >> 8), static_cast<uint8_t>(dest_id)}};
}

/// A set of destIDs. Zeroed memory is an empty set. Any thread, any process.
class DestIdSet {
 public:
  [[nodiscard]] bool has(uint32_t dest_id) const {
    return (words_[dest_id / kBits].load(std::memory_order_relaxed) & bit(dest_id)) != 0;
  }
  /// Add a destID. @return whether it was in the set.
  bool add(uint32_t dest_id) {
    const bool was = (words_[dest_id / kBits].fetch_or(bit(dest_id)) & bit(dest_id)) != 0;
    // release: a reader that sees this bit also sees the word's; pairs with for_each()
    used_[dest_id / kBits / kBits].fetch_or(bit(dest_id / kBits), std::memory_order_release);
    return was;
  }
  /// Remove a destID. The word stays in use. @return whether it was there.
  bool remove(uint32_t dest_id) {
    return (words_[dest_id / kBits].fetch_and(~bit(dest_id)) & bit(dest_id)) != 0;
  }
  void clear() {
    for (auto& word : words_) {
      word.store(0, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] bool is_empty() const {
    bool empty = true;
    for_each([&empty](uint32_t) { return empty = false; });
    return empty;
  }
  /// Visit the set as it is now, in ascending order. @param each returns false to stop.
  template <class Each>
  void for_each(Each&& each) const {
    for (uint32_t i = 0; i < used_.size(); ++i) {
      // acquire: pairs with add()
      for (uint64_t used = used_[i].load(std::memory_order_acquire); used != 0; used &= used - 1) {
        const uint32_t word = i * kBits + static_cast<uint32_t>(std::countr_zero(used));
        if (!each_of(word, each)) {
          return;
        }
      }
    }
  }

 private:
  static constexpr uint32_t kBits = 64;
  static uint64_t bit(uint32_t number) { return uint64_t{1} << number % kBits; }
  template <class Each>
  [[nodiscard]] bool each_of(uint32_t word, Each& each) const {
    for (uint64_t left = words_[word].load(std::memory_order_relaxed); left != 0;
         left &= left - 1) {
      if (!each(word * kBits + static_cast<uint32_t>(std::countr_zero(left)))) {
        return false;
      }
    }
    return true;
  }

  std::array<std::atomic<uint64_t>, kNetDestIds / kBits> words_;
  std::array<std::atomic<uint64_t>, kNetDestIds / kBits / kBits>
      used_;  // words that have ever had a bit
};

/// Payloads of doorbells. Linux's rionet defines the first two, and knows no others.
inline constexpr uint16_t kJoinDoorbell = 0x1000;
inline constexpr uint16_t kLeaveDoorbell = 0x1001;
/// Doorbell: the sender takes bundles, and also sends from as many destIDs behind its own as the
/// lower bits say; the receiver shall answer.
inline constexpr uint16_t kCallDoorbell = 0x1020;
/// Doorbell: a member's answer to a join.
inline constexpr uint16_t kAnswerDoorbell = 0x1040;
inline constexpr uint16_t kMoreIdsMask = 0x1F;

/// Tells that the port whose destID is at a distance is a mate of the ringing port: kMateDoorbell +
/// kMateMiddle + distance. A distance of 0 is about the ringing port itself: it also sends frames
/// whose source address is no card's, as bridges do.
inline constexpr uint16_t kMateDoorbell = 0x8000;
inline constexpr uint16_t kMateMiddle = 0x4000;

/// The doorbell that names a mate. @return 0: their destIDs are too far apart.
[[nodiscard]] constexpr uint16_t mate_doorbell(uint32_t port, uint32_t mate) {
  const int32_t distance = static_cast<int32_t>(mate) - static_cast<int32_t>(port);
  constexpr int32_t kMiddle = kMateMiddle;
  return distance < -kMiddle || distance >= kMiddle
             ? uint16_t{0}
             : static_cast<uint16_t>(kMateDoorbell + kMiddle + distance);
}
/// The mate that a doorbell names. @param info at least kMateDoorbell. @return beyond 65535: not a
/// destID.
[[nodiscard]] constexpr uint32_t mate_of(uint32_t port, uint16_t info) {
  return port + info - kMateDoorbell - kMateMiddle;
}

/// Pairs of a port and its mate, as ports have announced them. Mates are ports of one process that
/// stand in for each other, as the ports of a bond do. Zeroed memory is an empty set. Any
/// thread, any process.
class MateSet {
 public:
  static constexpr uint32_t kPairsMax = 256;

  /// Add a pair, unless kPairsMax are known.
  void add(uint32_t port, uint32_t mate) {
    if (has(port, mate)) {
      return;
    }
    for (uint32_t i = 0; i < kPairsMax; ++i) {
      uint64_t none = 0;
      if (pairs_[i].compare_exchange_strong(none, pair(port, mate), std::memory_order_relaxed)) {
        uint32_t used = used_.load(std::memory_order_relaxed);
        while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
        }
        return;
      }
    }
  }
  [[nodiscard]] bool has(uint32_t port, uint32_t mate) const {
    return !for_each([=](uint32_t p, uint32_t m) { return p != port || m != mate; });
  }
  /// Remove all pairs that one port has announced.
  void remove(uint32_t port) {
    for (auto& entry : pairs_) {
      uint64_t one = entry.load(std::memory_order_relaxed);
      if (one != 0 && port_of(one) == port) {
        entry.compare_exchange_strong(one, 0, std::memory_order_relaxed);
      }
    }
  }
  void clear() {
    for (auto& entry : pairs_) {
      entry.store(0, std::memory_order_relaxed);
    }
  }
  /// @param each called with a port and its mate; returns false to stop. @return whether all calls
  /// returned true.
  template <class Each>
  bool for_each(Each&& each) const {
    const uint32_t used = used_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < used; ++i) {
      const uint64_t one = pairs_[i].load(std::memory_order_relaxed);
      if (one != 0 && !each(port_of(one), static_cast<uint32_t>(one & 0xFFFF))) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr uint64_t kUsed = uint64_t{1} << 32;
  [[nodiscard]] static uint64_t pair(uint32_t port, uint32_t mate) {
    return kUsed | uint64_t{port} << 16 | mate;
  }
  [[nodiscard]] static uint32_t port_of(uint64_t pair) {
    return static_cast<uint32_t>(pair >> 16 & 0xFFFF);
  }

  std::atomic<uint32_t> used_;                          // entries that have ever been used
  std::array<std::atomic<uint64_t>, kPairsMax> pairs_;  // 0: free
};

/// The peers of a port, in memory of all processes; zeroed memory is valid. Any thread.
struct Peers {
  DestIdSet joined;  ///< peers that get broadcasts
  /// Peers that frames are sent to: they have joined, or were invited when the port was started. A
  /// peer that does not answer is removed until it joins.
  DestIdSet reachable;
  DestIdSet bundles;  ///< peers that have asked for bundles
  DestIdSet known;    ///< peers that joined at some time, and have not said that they leave
  /// Peers that took nothing for so long that their messages were given up, and that were silent
  /// since. They are called rarely, since doorbells wait for them, too.
  DestIdSet asleep;

  /// Peers that are still owed a doorbell, one set for each kind.
  DestIdSet owed_join;
  DestIdSet owed_call;
  DestIdSet owed_answer;
  DestIdSet owed_mates;
  std::atomic<uint32_t> owed;  ///< not 0: some set of owed doorbells is not empty

  /// How many destIDs behind each one send for it, as it said itself: so no peer's claim changes
  /// another's rights.
  std::array<std::atomic<uint8_t>, kNetDestIds> more;
  /// Mates that each peer has announced, and those of this port.
  MateSet mates;
  /// The destID of this port.
  std::atomic<uint32_t> own;

  /// Owe a peer a doorbell. @param set one of the four sets.
  void owe(DestIdSet& set, uint32_t dest_id) {
    set.add(dest_id);
    // release: after the set; pairs with NetTx::stage_owed()
    owed.store(1, std::memory_order_release);
  }
  /// Owe a peer the news that we are here and take bundles.
  void owe_greeting(uint32_t dest_id) {
    owe(owed_join, dest_id);
    owe(owed_call, dest_id);
  }
  /// Send nothing to a peer until it joins.
  void take_away(uint32_t dest_id) {
    reachable.remove(dest_id);
    joined.remove(dest_id);
    bundles.remove(dest_id);
  }
  /// Send nothing to a peer until it joins, and call it rarely.
  void fall_asleep(uint32_t dest_id) {
    asleep.add(dest_id);
    take_away(dest_id);
  }
  /// Whether frames of `port` may come from `source`.
  [[nodiscard]] bool sends_for(uint32_t source, uint32_t port) const {
    return source >= port && source - port <= more[port].load(std::memory_order_relaxed);
  }
  /// Whether frames from `source` may bear a source address: that of a port for which it sends or
  /// stands in, or an address of no card, if its port has announced that.
  [[nodiscard]] bool may_send(uint32_t source, Mac mac) const;
  /// Hot. The destID to which a frame for an address goes. @return kNoNetDestId: none, or a group.
  [[nodiscard]] uint32_t receiver_of(Mac mac) const {
    const uint32_t owner = dest_id_of(mac);
    return owner != kNoNetDestId && joined.has(owner) ? owner : receiver_of_absent(mac);
  }
  /// Record that `count` destIDs behind `port` send for it.
  void set_more(uint32_t port, uint32_t count) {
    more[port].store(static_cast<uint8_t>(count), std::memory_order_relaxed);
  }
  /// Forget all peers except for the known ones, which are called again after a reset.
  void forget() {
    for (DestIdSet* set : {&joined, &reachable, &bundles, &asleep, &owed_join, &owed_call,
                           &owed_answer, &owed_mates}) {
      set->clear();
    }
    mates.clear();
    for (auto& count : more) {
      count.store(0, std::memory_order_relaxed);
    }
  }

 private:
  [[nodiscard]] uint32_t receiver_of_absent(Mac mac) const;
};

}  // namespace rio::pmd
