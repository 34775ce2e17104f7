/// @file
/// Two hosts with the real message library on model cards, in virtual time: their link, and streams
/// of tagged messages over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "lib/tag/tagged_context.hpp"
#include "tests/support/virtual_hosts.hpp"

namespace rio::bench {

/// A link, the bus of each host, and the time that a host takes. 1 MB/s is 1,000,000 bytes a
/// second.
struct LinkPlan {
  double link_mb_per_s = 192;  ///< of all bytes on the link, above 0
  double packet_bytes = 20;    ///< that the link carries for a packet besides its payload
  uint32_t packet_ns = 0;  ///< that the card needs for each packet besides, while its link waits
  uint32_t hop_ns = 100;   ///< from the last bit sent until the other card has the packet
  double bus_read_mb_per_s = 0;   ///< of cards that read memory; 0: in no time
  double bus_write_mb_per_s = 0;  ///< of cards that write memory; 0: in no time
  uint64_t poll_ns = 1000;        ///< between two polls of a host whose card has had no event
  uint64_t host_ns = 0;           ///< of a host for each message that it begins or ends
  uint32_t rails = 1;             ///< cards of each host, with a link each; 1 to msg::kRailsMax
  std::string policy;             ///< msg::PortConfig::rail_policy
};

/// The link of a plan, as the simulator knows it.
[[nodiscard]] sim::LinkClass link_class(const LinkPlan& plan);
/// The payload rate of a link that sends one full segment after the other, in bytes per second.
[[nodiscard]] double payload_peak(const sim::LinkClass& link);

/// The memory of one message, in whole pages.
class Pages {
 public:
  static constexpr size_t kPage = 4096;

  explicit Pages(size_t len_bytes)
      : bytes_((len_bytes + kPage - 1) / kPage * kPage),
        memory_(static_cast<uint8_t*>(pmd::own_alloc(bytes_, kPage))) {}
  [[nodiscard]] uint8_t* data() const { return memory_.get(); }
  [[nodiscard]] size_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  size_t bytes_;
  std::unique_ptr<uint8_t, Free> memory_;
};

/// Host 0 sends, host 1 receives; their cards have a link for each rail. The program ends if
/// something goes wrong. One thread.
class VirtualLink {
 public:
  /// @param bytes_most of a message. @param window messages under way, at least 1.
  VirtualLink(const LinkPlan& plan, uint64_t bytes_most, uint32_t window);
  ~VirtualLink();
  VirtualLink(const VirtualLink&) = delete;
  VirtualLink& operator=(const VirtualLink&) = delete;

  /// Begin the session, and wait until each rail has found its path. To be called first.
  void meet();
  /// Send `count` messages in each of several flows, with a window of them under way in each, from
  /// host 0, and perhaps from host 1, too. @return virtual time from the first send to the end of
  /// the last receive.
  [[nodiscard]] uint64_t stream_ns(uint64_t bytes, uint32_t count, uint32_t flows, bool both_ways);
  /// Send a message to and fro `count` times. @return virtual time of all of it.
  [[nodiscard]] uint64_t ping_pong_ns(uint64_t bytes, uint32_t count);

  [[nodiscard]] test::VirtualHosts& hosts() { return *hosts_; }

 private:
  struct End {
    std::unique_ptr<msg::MessagePort> port;
    std::unique_ptr<tag::TaggedContext> context;
    uint64_t activity = 0;
  };

  [[nodiscard]] tag::Address address(uint32_t host) const;
  [[nodiscard]] uint32_t progress(uint32_t host);
  template <class Act, class Done>
  void run(const Act& act, const Done& done);
  class Flow;
  void send(uint32_t from, uint64_t bytes, tag::SendRequest& request, uint64_t bits = 0);
  void receive(uint32_t at, const Pages& to, uint64_t bytes, tag::RecvRequest& request,
               uint64_t bits = 0);

  std::unique_ptr<test::VirtualHosts> hosts_;
  End ends_[2];
  const uint32_t window_;
  const uint32_t rails_;
  Pages from_;
  std::vector<Pages> to_[2];    // by host
  uint64_t sends_done_ = 0;     // of all hosts
  uint64_t receives_done_ = 0;  // of all hosts
};

}  // namespace rio::bench
