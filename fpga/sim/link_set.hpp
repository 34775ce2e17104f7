/// @file
/// Links with rates, delays and queues in virtual time.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fpga/sim/huge_memory.hpp"

namespace rio::sim {

/// Rate, delay and losses of the links of one class.
struct LinkClass {
  uint32_t serialisation_ns = 8;  ///< time of each packet on the link, whatever its size
  uint32_t ps_per_byte = 0;       ///< time of each byte besides: 1000 ps are 1 GB/s
  uint32_t hop_ns = 100;   ///< from a packet's last bit sent until the next device may send it on
  double loss_rate = 0.0;  ///< chance of each packet to be lost, 0 to 1
};

/// Reasons for which a link carries nothing; any number of them at once.
enum class LinkTrouble : uint8_t { kCut = 1, kSenderDown = 2, kReceiverDown = 4 };

/// Each link has one direction and sends packets in the order in which they come; a packet waits
/// until the link has sent those before it. Queues have no limit, and hold no packets: a link
/// computes when a packet arrives, and the caller keeps the packet until then. One thread.
class LinkSet {
 public:
  static constexpr size_t kClassesMax = 32;
  /// Times are below this: 2.2 years.
  static constexpr uint64_t kTimeMax = uint64_t{1} << 56;

  /// @return 0, -EINVAL with an error that names the class and the remedy.
  [[nodiscard]] static int check(std::span<const LinkClass> classes, std::string* error);

  /// @param links how many; all have class 0 at first. @param classes such as check() accepts.
  LinkSet(uint32_t links, std::span<const LinkClass> classes);

  [[nodiscard]] uint32_t size() const { return size_; }
  /// Memory for the links, in bytes.
  [[nodiscard]] size_t bytes() const { return size_t{size_} * sizeof(State); }
  [[nodiscard]] const LinkClass& class_of(uint32_t link) const {
    return classes_[links_[link].link_class];
  }
  /// @param link_class an index into the classes given at first.
  void set_class(uint32_t link, uint32_t link_class) {
    assert(link_class < classes_.size());
    links_[link].link_class = link_class & (kClassesMax - 1);
  }

  /// Hot. Send a packet. @param now_ns not before that of an earlier call for this link.
  /// @return when it arrives at the link's end.
  uint64_t send(uint32_t link, uint64_t now_ns, uint32_t len_bytes) {
    State& state = links_[link];
    const LinkClass& times = classes_[state.link_class];
    const uint64_t start_ns = std::max<uint64_t>(now_ns, state.busy_until_ns);
    const uint64_t end_ns = start_ns + packet_ns(times, len_bytes);
    assert(end_ns < kTimeMax);
    state.busy_until_ns = end_ns & (kTimeMax - 1);
    state.longest_wait_ns = static_cast<uint32_t>(
        std::clamp<uint64_t>(start_ns - now_ns, state.longest_wait_ns, UINT32_MAX));
    state.sent += static_cast<uint32_t>(state.sent != UINT32_MAX);
    return end_ns + times.hop_ns;
  }
  /// Hot. Fetch the state of a link that will be used soon.
  void prefetch(uint32_t link) const { __builtin_prefetch(&links_[link], 1); }

  /// Packets sent, up to UINT32_MAX.
  [[nodiscard]] uint32_t sent(uint32_t link) const { return links_[link].sent; }
  /// When the link will have sent all its packets.
  [[nodiscard]] uint64_t busy_until_ns(uint32_t link) const { return links_[link].busy_until_ns; }
  /// The longest time for which a packet waited, up to UINT32_MAX.
  [[nodiscard]] uint32_t longest_wait_ns(uint32_t link) const {
    return links_[link].longest_wait_ns;
  }
  /// The longest queue that a packet found, with the packet then on the link; exact if all packets
  /// have this size.
  [[nodiscard]] uint32_t longest_queue(uint32_t link, uint32_t len_bytes) const;
  /// The link on which a packet waited longest, the first if there are several. There must be one.
  [[nodiscard]] uint32_t busiest() const;

  /// Hot.
  [[nodiscard]] bool is_down(uint32_t link) const { return links_[link].troubles != 0; }
  void begin_trouble(uint32_t link, LinkTrouble trouble) {
    links_[link].troubles = (links_[link].troubles | static_cast<unsigned>(trouble)) & 7u;
  }
  void end_trouble(uint32_t link, LinkTrouble trouble) {
    links_[link].troubles = links_[link].troubles & ~static_cast<unsigned>(trouble) & 7u;
  }

 private:
  struct State {
    uint64_t busy_until_ns : 56;
    uint64_t link_class : 5;
    uint64_t troubles : 3;
    uint32_t sent;
    uint32_t longest_wait_ns;
  };
  static_assert(sizeof(State) == 16, "10^6 nodes of a torus have 6 * 10^6 links");

  /// A part of a nanosecond counts as a whole one.
  [[nodiscard]] static uint64_t packet_ns(const LinkClass& times, uint32_t len_bytes) {
    uint64_t ns = times.serialisation_ns;
    if (times.ps_per_byte != 0) {
      ns += (uint64_t{times.ps_per_byte} * len_bytes + 999) / 1000;
    }
    return ns;
  }

  std::vector<LinkClass> classes_;
  uint32_t size_;
  HugeMemory memory_;
  State* links_;  ///< in memory_
};

}  // namespace rio::sim
