/// @file
/// Who is there, as far as a port knows.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "pmd/net/addresses.hpp"
#include "pmd/net/mates.hpp"

namespace rio::pmd {

/// A set of destIDs, empty where its memory is zero. Any thread, any process.
class DestIdSet {
 public:
  [[nodiscard]] bool has(uint32_t dest_id) const {
    return (words_[dest_id / kBits].load(std::memory_order_relaxed) & bit(dest_id)) != 0;
  }
  /// @return whether it was there.
  bool add(uint32_t dest_id) {
    const bool was = (words_[dest_id / kBits].fetch_or(bit(dest_id)) & bit(dest_id)) != 0;
    // Behind the word: a reader that sees this one finds that one.
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
  /// In ascending order, as they are now. @param each returns false to end it.
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
  std::array<std::atomic<uint64_t>, kNetDestIds / kBits / kBits> used_;  // words that ever had one
};

/// Payloads of doorbells. The first two are Linux's rionet's, which knows no others.
inline constexpr uint16_t kJoinDoorbell = 0x1000;
inline constexpr uint16_t kLeaveDoorbell = 0x1001;
/// I take bundles, and send from as many more destIDs behind mine as the lower bits say: answer me.
inline constexpr uint16_t kCallDoorbell = 0x1020;
/// Doorbell: a member answers to a join.
inline constexpr uint16_t kAnswerDoorbell = 0x1040;
inline constexpr uint16_t kMoreIdsMask = 0x1F;

/// In memory of all processes, zero at first. Any thread.
struct Peers {
  DestIdSet joined;  ///< get broadcasts
  /// Peers that frames are sent to: they have joined, or were invited when the port was started. A
  /// peer that does not answer is taken away until it joins.
  DestIdSet reachable;
  DestIdSet bundles;  ///< have asked for bundles
  DestIdSet known;    ///< had joined at some time, and have not said that they leave
  /// Took nothing for so long that their messages were given up, and were not heard since: they are
  /// called seldom, for doorbells wait for them, too.
  DestIdSet asleep;

  /// Peers that are still to be told, by what they have to be told.
  DestIdSet owed_join;
  DestIdSet owed_call;
  DestIdSet owed_answer;
  DestIdSet owed_mates;
  std::atomic<uint32_t> owed;  ///< not 0: something is

  /// How many destIDs behind each send for it, by its own word: so no peer's claim changes what
  /// others may do.
  std::array<std::atomic<uint8_t>, kNetDestIds> more;
  /// Mates that each peer has announced, and those of this port.
  MateSet mates;
  /// destID of this port.
  std::atomic<uint32_t> own;

  /// Owe a peer a doorbell. @param set one of the four.
  void owe(DestIdSet& set, uint32_t dest_id) {
    set.add(dest_id);
    owed.store(1,
               std::memory_order_release);  // behind the set; pairs with the thread that takes it
  }
  /// That we are there, and take bundles.
  void owe_greeting(uint32_t dest_id) {
    owe(owed_join, dest_id);
    owe(owed_call, dest_id);
  }
  /// Send nothing to a peer, until it joins.
  void take_away(uint32_t dest_id) {
    reachable.remove(dest_id);
    joined.remove(dest_id);
    bundles.remove(dest_id);
  }
  /// Send nothing to a peer until it joins, and call it seldom.
  void fall_asleep(uint32_t dest_id) {
    asleep.add(dest_id);
    take_away(dest_id);
  }
  /// Whether frames of a port may come from a destID.
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
  /// Whether `port` may send with the address of `absent`: `absent` has announced it as a mate, or
  /// has not joined.
  [[nodiscard]] bool stands_in(uint32_t port, uint32_t absent) const;
  /// The only peer that has joined. @return kNoNetDestId: none has, or several have.
  [[nodiscard]] uint32_t only_one() const;
  /// @param count destIDs behind `port` send for it.
  void set_more(uint32_t port, uint32_t count) {
    more[port].store(static_cast<uint8_t>(count), std::memory_order_relaxed);
  }
  /// Forget all peers but the known ones: they are called again after a reset.
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
