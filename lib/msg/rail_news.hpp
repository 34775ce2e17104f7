/// @file
/// What a program may know about the rails of its port: counters of each, and events when a path
/// goes down or is back. See docs/cards.md, "Several cards as one".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/msg/config.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/rail_page.hpp"
#include "lib/msg/rail_stats.hpp"

namespace rio::msg {

/// Why a path went down.
enum class RailReason : uint8_t {
  kNone,      ///< it has not gone down
  kNoAnswer,  ///< the peer did not answer by this rail
  kLinkDown,  ///< the link of our card is down
  kCardGone,  ///< our card is gone, or was reset
  kPeerGone,  ///< the peer has left the network of this rail
};

/// The text of a reason, for logs and tables. It lives as long as the program.
[[nodiscard]] const char* to_string(RailReason reason);

/// A path went down, or is back.
struct RailEvent {
  uint32_t rail = 0;                      ///< number of our rail
  uint32_t dest_id = 0;                   ///< of the peer, on our first rail
  bool is_up = false;                     ///< it is back
  RailReason reason = RailReason::kNone;  ///< why it went down, also if it is back
  uint64_t time_ns = 0;                   ///< when that was noticed, by base::now_ns()
};

/// Observes the paths of a port with several rails. One per port; used only on the port's thread.
class RailNews {
 public:
  explicit RailNews(const PortObjects& port) : port_(port) {}
  /// Show the counts to other programs from now on, by a RailPage. A port with several rails only.
  void start();
  /// Note what has changed at the paths of a link. Called every now and then, for all links that
  /// have several paths. Logs when a rail has lost the first of its peers, and when it has all
  /// again.
  void observe(const Link& link, uint64_t now_ns);
  /// The session with a peer is over, or the peer has one rail now: forget what is noted of it.
  void forget(const Link& link);
  /// A path is about to go down. @param reason of that; without a call it is kNoAnswer.
  void because(const Path& path, RailReason reason) { record(path).pending = reason; }
  /// The messages to a peer leave a path for another.
  void moved(const Path& from) { ++rails_[rail_of(from)].moves; }

  /// Counts of one rail. @param rail below Rails::count().
  [[nodiscard]] RailStats stats(uint32_t rail) const;
  /// Write the page, if that is due. Called every now and then.
  void publish(uint64_t now_ns) {
    if (page_.is_there() && now_ns >= publish_ns_) {
      write_page(now_ns);
    }
  }
  /// Hot. A number that changes with each event.
  [[nodiscard]] uint64_t changes() const { return changes_; }

 private:
  friend class RailEvents;

  enum class Noted : uint8_t { kNothing, kUp, kDown };
  struct Record {
    Noted noted = Noted::kNothing;  ///< in this session
    RailReason pending = RailReason::kNoAnswer;
    uint32_t changes = 0;  ///< events
    RailEvent last;
  };
  struct OfRail {
    uint64_t moves = 0;
    uint64_t downs = 0;
    uint32_t down_now = 0;  ///< paths that went down and are not back
  };

  [[nodiscard]] static uint32_t rail_of(const Path& path);
  [[nodiscard]] Record& record(const Path& path);
  void write_page(uint64_t now_ns);
  void note_up(const Path& path, Record& record, uint64_t now_ns);
  void note_down(const Path& path, Record& record, uint64_t now_ns);

  PortObjects port_;
  RailPage page_;
  uint64_t publish_ns_ = 0;
  uint64_t changes_ = 0;
  std::array<OfRail, kRailsMax> rails_{};
  std::vector<std::array<Record, kRailsMax>>
      records_;  // key: index of the link, number of the rail
};

/// Reports events to a program that asks for them. Call all functions under the Guard of the port.
class RailEvents {
 public:
  /// The next event that was not returned here before. Of several events of one path that wait only
  /// the last is reported. Costs a comparison if there is none. @return false: there is none.
  [[nodiscard]] bool next(const RailNews& news, RailEvent* out);

 private:
  uint64_t changes_ = 0;                               // RailNews::changes() when all was told
  std::vector<std::array<uint32_t, kRailsMax>> told_;  // Record::changes
};

}  // namespace rio::msg
