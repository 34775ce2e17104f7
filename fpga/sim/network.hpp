/// @file
/// A network in virtual time: packets go from node to node over links that queue them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "fpga/sim/event_calendar.hpp"
#include "fpga/sim/fault.hpp"
#include "fpga/sim/link_set.hpp"
#include "fpga/sim/packet.hpp"
#include "fpga/sim/topology.hpp"

namespace rio::sim {

struct NetworkSettings {
  /// One class for all links, or one for each of NetworkTopology::link_classes(). If the class of
  /// links from endpoints of a topology file has no loss rate, it gets the file's.
  std::vector<LinkClass> classes{LinkClass{}};
  uint64_t seed = 1;  ///< of the packets that are lost; the seed of a topology file is added
};

/// Totals since the network was made.
struct NetworkCounters {
  uint64_t sent = 0;       ///< packets given to send()
  uint64_t delivered = 0;  ///< packets that reached their destination
  uint64_t hops = 0;       ///< of all packets
  uint64_t lost = 0;       ///< packets lost on a link by chance, or by lose_packet()
  uint64_t dropped = 0;    ///< packets that met a device or a link that was down
  uint64_t timers = 0;     ///< timers given back to their nodes
};

/// The part of a network that does not depend on the program on its nodes: they send, set timers,
/// look at links. Network adds the loop. A packet is stored and forwarded: n idle links take n
/// times serialisation and hop delay. One thread.
class NetworkBase {
 public:
  NetworkBase(const NetworkBase&) = delete;
  NetworkBase& operator=(const NetworkBase&) = delete;

  [[nodiscard]] const NetworkTopology& topology() const { return topology_; }
  [[nodiscard]] const LinkSet& links() const { return links_; }
  [[nodiscard]] const NetworkCounters& counters() const { return counters_; }
  /// Virtual time: that of the event which is being handled.
  [[nodiscard]] uint64_t now() const { return calendar_.now(); }
  /// Packets under way, timers, and faults to come.
  [[nodiscard]] uint64_t events() const { return calendar_.size(); }
  /// Memory for events and links, in bytes.
  [[nodiscard]] size_t bytes() const;

  /// Hot. Send a packet from its source now. A packet to the source itself arrives now, after the
  /// events that were there before.
  void send(const Packet& packet);
  /// Hot. @param time_ns at least now(). A node that is down at that time does not get its timer.
  void set_timer(uint64_t time_ns, const NodeTimer& timer);

  /// Let a fault happen. A packet is dropped if it would enter a link or arrive at its end while
  /// the link is cut, or one of the link's devices is down. @param fault at now() or later. Of
  /// events of one time, those scheduled first happen first.
  void schedule(const NetworkFault& fault);
  /// Lose the packet that enters a link after `nth` others, at the link's end. @param link one that
  /// exists.
  void lose_packet(uint32_t link, uint32_t nth);
  [[nodiscard]] bool is_up(uint32_t device) const {
    return (down_[device / 64] >> (device % 64) & 1) == 0;
  }

 protected:
  static constexpr uint8_t kTimerKind = kPacketKindMax + 1;
  static constexpr uint8_t kFaultKind = kPacketKindMax + 2;

  /// A packet on a link; or a timer (source: node, destination: word); or a fault (destination:
  /// target, info: kind).
  struct Event {
    uint32_t source;
    uint32_t destination;
    uint32_t tag;
    uint16_t info;
    uint16_t len_bytes;
    uint32_t link : 28;  ///< kNoLink: it is at its destination
    uint32_t kind : 4;
  };
  static_assert(sizeof(Event) == 20);

  [[nodiscard]] static int check(const NetworkTopology& topology, const NetworkSettings& settings,
                                 std::string* error);
  NetworkBase(NetworkTopology topology, const NetworkSettings& settings);
  ~NetworkBase() = default;

  /// Hot. Put a packet onto a link, unless that is down or loses it.
  void enter(uint32_t link, Event event) {
    if (links_.is_down(link)) [[unlikely]] {
      ++counters_.dropped;
      return;
    }
    const uint64_t arrival_ns = links_.send(link, calendar_.now(), event.len_bytes);
    ++counters_.hops;
    if (may_lose_ && is_lost_slow(link)) [[unlikely]] {
      ++counters_.lost;
      return;
    }
    event.link = link & kNoLink;
    calendar_.push(arrival_ns, event);
  }
  /// Whether a packet that would be at the end of its link now has met a fault.
  [[nodiscard]] bool is_cut_off_slow(const Event& event) const {
    return event.link == kNoLink ? !is_up(event.destination) : links_.is_down(event.link);
  }
  void apply_slow(const Event& fault);

  EventCalendar<Event> calendar_;
  NetworkCounters counters_;
  LinkSet links_;
  bool may_lose_ = false;
  bool has_faults_ = false;  ///< a fault has happened

 private:
  [[nodiscard]] bool is_lost_slow(uint32_t link);
  void set_device(uint32_t device, bool up);

  NetworkTopology topology_;
  base::Random random_;
  std::set<std::pair<uint32_t, uint32_t>> to_lose_;  ///< link, and how many packets go before
  std::vector<uint64_t> down_;                       ///< a bit a device
};

/// A network with the program that runs on its nodes. The handler has two functions, which may call
/// send() and set_timer():
///   void deliver(NetworkBase& network, const Packet& packet);  // at packet.destination
///   void expire(NetworkBase& network, const NodeTimer& timer);     // at timer.node
/// and may have a third:
///   void prefetch(uint32_t node);  // a packet will be delivered at this node soon
template <class Handler>
class Network final : public NetworkBase {
 public:
  /// @param handler outlives the network. @param error the error with its remedy; set on failure
  /// only. @return 0, -EINVAL.
  [[nodiscard]] static int create(NetworkTopology topology, const NetworkSettings& settings,
                                  Handler& handler, std::unique_ptr<Network>* out,
                                  std::string* error) {
    const int rc = check(topology, settings, error);
    if (rc == 0) {
      out->reset(new Network(std::move(topology), settings, handler));
    }
    return rc;
  }

  /// Handle all events up to a time, including those that arise meanwhile. @return how many.
  uint64_t run(uint64_t until_ns) {
    const auto run_on = [&](const auto& shape) {
      uint64_t handled = 0;
      for (size_t count; (count = run_burst(shape, until_ns)) != 0;) {
        handled += count;
      }
      return handled;
    };
    return std::visit(run_on, topology().shape());
  }
  /// Handle the first events up to a time, some or all of those that happen at the earliest time.
  /// @return how many; 0: there are none.
  uint64_t run_next(uint64_t until_ns) {
    return std::visit([&](const auto& shape) { return run_burst(shape, until_ns); },
                      topology().shape());
  }

 private:
  /// Events that are taken together, so that the state of their links can be prefetched.
  static constexpr size_t kBurst = 16;

  Network(NetworkTopology topology, const NetworkSettings& settings, Handler& handler)
      : NetworkBase(std::move(topology), settings), handler_(handler) {}

  template <class Shape>
  size_t run_burst(const Shape& shape, uint64_t until_ns) {
    std::array<Event, kBurst> burst;
    std::array<uint32_t, kBurst> next;
    const size_t count = calendar_.pop(until_ns, burst);
    const std::span<const Event> events(burst.data(), count);
    find_links(shape, events, next.data());
    for (size_t i = 0; i < count; ++i) {
      handle(events[i], next[i]);
    }
    return count;
  }

  /// Routes do not change, so each packet's next link can be computed before its turn.
  template <class Shape>
  void find_links(const Shape& shape, std::span<const Event> events, uint32_t* next) {
    for (const Event& event : events) {
      *next = kNoLink;
      if (event.kind <= kPacketKindMax && event.link != kNoLink) {
        *next = shape.next_link(shape.to(event.link), event.destination);
        if (*next != kNoLink) {
          links_.prefetch(*next);
        } else if constexpr (requires { handler_.prefetch(event.destination); }) {
          handler_.prefetch(event.destination);
        }
      }
      ++next;
    }
  }

  void handle(const Event& event, uint32_t next) {
    if (event.kind > kPacketKindMax) {
      handle_other(event);
    } else if (has_faults_ && is_cut_off_slow(event)) {
      ++counters_.dropped;
    } else if (next != kNoLink) {
      enter(next, event);
    } else {
      ++counters_.delivered;
      handler_.deliver(*this, Packet{event.source, event.destination, event.tag, event.info,
                                     event.len_bytes, static_cast<uint8_t>(event.kind)});
    }
  }

  void handle_other(const Event& event) {
    if (event.kind == kFaultKind) {
      apply_slow(event);
    } else if (is_up(event.source)) {
      ++counters_.timers;
      handler_.expire(*this, NodeTimer{event.source, event.tag, event.destination, event.info});
    }
  }

  Handler& handler_;
};

}  // namespace rio::sim
