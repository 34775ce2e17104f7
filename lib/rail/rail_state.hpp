/// @file
/// The state of one path, our rail to one peer: whether new work may use it, whether work in doubt
/// leaves it, and when it is probed. See docs/decisions/0045-rail-states-and-policies.md; modelled
/// in proof/rail.pml.
///
/// An object may also stand for a rail as a whole: it then gets the reports of link and card only,
/// and its probe is a look at the card's link. A path is usable if both objects say so.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates. Times are of one clock
/// that does not go back, in nanoseconds, above 0.
#pragma once

#include <cassert>
#include <cstdint>

namespace rio::rail {

/// Counts of one path since it was made.
struct RailCounts {
  uint64_t moves = 0;    ///< times that work in doubt had to leave: the state was left by kUp
  uint64_t downs = 0;    ///< times that it went down from kUp or kSuspect
  uint64_t returns = 0;  ///< times that it became kUp again
};

/// The state of one path.
class RailState {
 public:
  enum class State : uint8_t {
    kUp,       ///< carries work
    kSuspect,  ///< something is in doubt, and a probe is to tell
    kDown,     ///< does not answer, or its link or card is not there; probed at growing intervals
    kProbing,  ///< answers again; must go on to do so for hold_ns() until it is kUp
  };

  /// Shortest and longest hold: how long probes must be answered before the path is used again.
  static constexpr uint64_t kHoldLeastNs = 250'000'000;
  static constexpr uint64_t kHoldMostNs = 4'000'000'000;
  /// A path that stays up for so many times its hold is calm: the hold was worth it.
  static constexpr uint64_t kCalmHolds = 4;
  /// Longest interval of probes in kDown, unless the response time-out is longer.
  static constexpr uint64_t kProbeMostNs = 500'000'000;
  /// Longest interval of probes in kProbing. Shorter than the outages that a hold must notice.
  static constexpr uint64_t kHoldProbeMostNs = 25'000'000;
  /// Answers in a row that a hold needs at least, however seldom the caller looks.
  static constexpr uint32_t kAnswersLeast = 8;

  /// @param response_timeout_ns how long the card waits for an answer before a message or probe is
  /// in doubt; at least 1. @param is_known true: the path is known to work and begins as kUp;
  /// false: it begins as kDown, is probed at once, and the first answer makes it kUp without a
  /// hold.
  explicit RailState(uint64_t response_timeout_ns, bool is_known = true);

  /// Hot. Whether new work may use the path.
  [[nodiscard]] bool is_up() const { return state_ == State::kUp; }
  /// Whether new work may use the path if no path to the peer is up: it may work, and nothing
  /// better is there.
  [[nodiscard]] bool is_last_resort() const {
    return state_ == State::kSuspect || state_ == State::kProbing;
  }
  /// How likely the path works, of several: the higher the likelier. kProbing is above kSuspect,
  /// since its last probe was answered.
  static constexpr uint32_t kRankMost = 3;
  [[nodiscard]] uint32_t rank() const {
    return state_ == State::kUp        ? kRankMost
           : state_ == State::kProbing ? 2
           : state_ == State::kSuspect ? 1
                                       : 0;
  }
  /// Whether work that is in doubt or was refused goes to another usable path, if there is one.
  [[nodiscard]] bool moves_work() const { return state_ != State::kUp; }
  [[nodiscard]] State state() const { return state_; }

  /// Hot. The card has delivered a message. It may have been sent long ago, so it proves nothing,
  /// but a path in kDown is probed at once.
  void delivered(uint64_t now_ns) {
    if (state_ == State::kDown) [[unlikely]] {
      probe_by(now_ns);
    }
  }
  /// The card got no answer to a message in the response time-out. No effect if the message was
  /// sent before a probe that was answered since: that doubt is old. The first doubt makes the path
  /// kSuspect, a doubt soon after its return kDown.
  void in_doubt(uint64_t now_ns);
  /// The card refused a message because its link is down.
  void refused(uint64_t now_ns);
  /// The card reports that its link is down, or up. Repeated reports have no effect.
  void link_down(uint64_t now_ns);
  void link_up(uint64_t now_ns);
  /// The card was reset, lost or unbound: its work and its probe are gone, and it is not probed
  /// until card_back(). Repeated reports have no effect.
  void card_gone(uint64_t now_ns);
  /// The card was opened again.
  void card_back(uint64_t now_ns);

  /// Whether to send a probe now: something that the peer's card answers by itself, such as a read
  /// of eight bytes. The response is an answer, also if it is an error. probe_sent() is next.
  [[nodiscard]] bool probe_due(uint64_t now_ns) const { return now_ns >= next_probe_ns(); }
  /// When the next probe is due. @return kNever: none is, before something else happens.
  [[nodiscard]] uint64_t next_probe_ns() const { return is_probe_out_ ? kNever : next_probe_ns_; }
  static constexpr uint64_t kNever = UINT64_MAX;
  /// The card has taken a probe. The caller reports each by one of the three calls below, unless
  /// card_gone() comes first; a report without a probe has no effect.
  void probe_sent(uint64_t now_ns);
  /// The probe was answered.
  void probe_answered(uint64_t now_ns);
  /// The probe was not answered in the response time-out, or was refused by the link.
  void probe_unanswered(uint64_t now_ns);
  /// The card returned the probe unsent.
  void probe_unsent() { is_probe_out_ = false; }
  /// No path to the peer is up: a path in kDown is probed now, and again after each response
  /// time-out while this is called. Call it for all paths of the peer.
  void want(uint64_t now_ns);

  /// How long probes must be answered before the path is kUp again. 0: it has never failed.
  [[nodiscard]] uint64_t hold_ns() const { return hold_ns_; }
  [[nodiscard]] const RailCounts& counts() const { return counts_; }

 private:
  [[nodiscard]] bool is_old(uint64_t now_ns) const;
  [[nodiscard]] bool came_back_lately(uint64_t now_ns) const;
  [[nodiscard]] uint64_t longest_interval_ns() const;
  [[nodiscard]] uint64_t letter_rest_ns() const;
  [[nodiscard]] uint64_t hold_interval_ns() const;
  [[nodiscard]] uint64_t next_hold_ns() const;
  void probe_by(uint64_t by_ns);
  void back_off(uint64_t now_ns);
  void leave_up(uint64_t now_ns);
  void go_down(uint64_t now_ns);
  void come_up(uint64_t now_ns);

  uint64_t timeout_ns_;
  uint64_t next_probe_ns_;
  uint64_t since_ns_ = 0;  // when the state began
  uint64_t up_ns_ = 0;     // when the path last became kUp
  uint64_t left_ns_ = 0;   // when the path last left kUp
  uint64_t doubt_ns_ = 0;  // of the last doubt
  uint64_t probe_ns_ = 0;  // when the last probe was sent
  uint64_t proof_ns_ = 0;  // when the last answered probe was sent; 0: there was none
  uint64_t interval_ns_;   // of probes in kDown
  uint64_t hold_ns_ = 0;
  RailCounts counts_;
  uint32_t answers_ = 0;  // in kProbing
  State state_;
  bool is_probe_out_ = false;
  bool is_link_down_ = false;
  bool is_gone_ = false;
};

}  // namespace rio::rail
