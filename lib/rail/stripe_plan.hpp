/// @file
/// The receiver's side of one transfer over several rails: which messages of its cut are granted on
/// which rail. See docs/decisions/0045-rail-states-and-policies.md, "Stripes"; modelled in
/// proof/stripe.pml.
///
/// A stripe is a range of messages of the cut. A rail sends the stripes that it has taken one after
/// the other, as one attempt, through one dedicated queue. So an attempt is a sequence of messages,
/// and counts below are of leading messages of that sequence.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates. Counts are of messages.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>

#include "lib/rail/rail_set.hpp"

namespace rio::rail {

/// Messages of a cut: `first` to `first + count - 1`.
struct Stripe {
  uint32_t first = 0;
  uint32_t count = 0;
  [[nodiscard]] uint32_t end() const { return first + count; }
  bool operator==(const Stripe& other) const = default;
};

/// Divides the messages of one cut over rails.
///
/// Each rail begins with a region of the cut and takes stripes from its front, so that its stripes
/// touch each other. A rail whose region is empty takes over the end of another one's.
///
/// Bound: the plan remembers kStripes stripes that do not touch, those that rails have and those
/// that came back. Eight rails have some twenty. At the bound a rail gets no stripe that would add
/// one, until an attempt has got further; but if no rail has a stripe, the next rail gets one. So
/// memory is bounded, and a transfer goes on as long as one rail works.
class StripePlan {
 public:
  static constexpr uint32_t kStripes = 64;
  /// Most messages that a sender may have outstanding on one rail: no more can arrive behind one
  /// that does not.
  static constexpr uint32_t kSentAhead = 128;
  static constexpr uint32_t kMessagesMost = (1u << 31) - 1;
  static constexpr uint32_t kRateMost = 1u << 30;

  /// Equal regions, however fast the rails are: only what a failed rail has left goes to others.
  /// @param messages in the cut, 1 to kMessagesMost. @param window most messages that a rail may
  /// have at a time, 1 to kSentAhead: as many entries as its dedicated queue holds. @param rails
  /// not empty.
  StripePlan(uint32_t messages, uint32_t window, RailSet rails);

  /// Expected rates of the rails, in one unit of any kind; 0: the rail is not expected to take
  /// part.
  using Rates = std::array<uint32_t, kRails>;
  /// Regions by rate. Windows shrink toward the end, and regions are taken over, so that all rails
  /// finish at nearly the same time. Messages that a rail has brought soon outweigh its expected
  /// rate.
  /// @param messages, window as for equal regions. @param rates each up to kRateMost, not all 0.
  StripePlan(uint32_t messages, uint32_t window, const Rates& rates);

  /// The next stripe of a rail, when half of its window has drained; those that came back go first.
  /// A rail without outstanding messages gets one while there is any, but for the bound above; with
  /// equal regions, while its own is not empty. To be called after each arrived() until it gives
  /// nothing, since a stripe that came back may be short.
  /// @param most room for entries, 0 or more. @return count 0: nothing, now or at all.
  [[nodiscard]] Stripe take(uint32_t rail, uint32_t most);

  /// Hot. `n` further messages of a rail's attempt have arrived, in any order. @param n up to
  /// out().
  void arrived(uint32_t rail, uint32_t n);

  /// A rail's attempt has failed: its leading `kept` messages stay, all others are to be taken
  /// again. Only after CLOSED of the attempt has come, or after the card has stopped the rail's
  /// queue: until then a late message may still be written where the stripe is.
  /// @param kept leading messages of the attempt that certainly arrived, as CLOSED counts them; any
  /// number, even of a peer that lies: never more than arrived(). Messages of which the plan itself
  /// is certain stay in any case, so 0 is safe if the sender's count is not known. A rail that
  /// takes no part any more, although it has taken nothing, is given back too.
  void give_back(uint32_t rail, uint32_t kept);

  /// Whether all messages have arrived, and none is outstanding.
  [[nodiscard]] bool done() const { return arrived_ == messages_; }
  /// Whether there are messages that no rail has.
  [[nodiscard]] bool has_left() const;
  /// Messages that a rail has taken in its attempt and that have not arrived.
  [[nodiscard]] uint32_t out(uint32_t rail) const {
    return rails_[rail].taken - rails_[rail].arrived;
  }
  /// Messages that have arrived, of all rails.
  [[nodiscard]] uint32_t arrived_of_all() const { return arrived_; }
  /// Stripes that the plan remembers now.
  [[nodiscard]] uint32_t stripes() const { return count_; }

 private:
  static constexpr uint8_t kReturned = kRails;
  // Messages that the expected rates count for, all rails together: what arrives outweighs them.
  static constexpr uint32_t kExpected = 16;
  // A window is one half of what a rail is expected to bring yet.
  static constexpr uint32_t kWindowPart = 2;
  // First window of a rail, whose rate may be another one than expected.
  static constexpr uint32_t kAtTheBeginning = 8;
  // Smallest window of the fastest rail.
  static constexpr uint32_t kAtTheEnd = 3;

  struct Entry {
    Stripe stripe;
    uint8_t rail;  // or kReturned
  };

  struct Rail {
    // Of its attempt.
    uint32_t taken = 0;
    uint32_t arrived = 0;
    uint32_t certain = 0;  // leading messages that are in place; their stripes are forgotten
    // Of the transfer.
    Stripe region;         // not taken yet
    uint32_t weight = 0;   // expected rate, as messages; above 0 if it is expected to take part
    uint32_t brought = 0;  // messages that arrived, in all attempts
    bool has_failed = false;
  };

  void divide(const Rates& rates);
  [[nodiscard]] uint64_t weight_of(uint32_t rail) const {
    return uint64_t{rails_[rail].weight} + rails_[rail].brought;
  }
  [[nodiscard]] uint32_t window_of(uint32_t rail) const;
  void take_over(uint32_t rail);
  [[nodiscard]] bool may_add() const;
  [[nodiscard]] uint32_t find_returned() const;
  [[nodiscard]] uint32_t last_of(uint32_t rail) const;
  [[nodiscard]] Stripe take_returned(uint32_t index, uint32_t rail, uint32_t most);
  [[nodiscard]] Stripe take_own(uint32_t rail, uint32_t most);
  void append(Stripe stripe, uint32_t rail);
  void remove(uint32_t index);
  void forget_leading(uint32_t rail, uint32_t n);
  void merge_returned();

  uint32_t messages_;
  uint32_t window_;
  bool is_equal_;
  uint32_t arrived_ = 0;
  uint32_t count_ = 0;
  std::array<Rail, kRails> rails_{};
  // Those of one rail are in the order in which it took them.
  std::array<Entry, kStripes + 1> entries_{};
};

}  // namespace rio::rail
