/// @file
/// Two hosts of two rails each in virtual time, whose rails are cut and mended.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/virtual_hosts.hpp"

namespace rio::test {

/// The cuts of one storm. One thread.
class RailCuts {
 public:
  static constexpr uint32_t kHosts = 2;
  static constexpr uint32_t kRails = 2;

  /// @return as VirtualHosts::create().
  [[nodiscard]] static int create_hosts(std::unique_ptr<VirtualHosts>* out, std::string* error);
  /// Makes each rail a network of its own. @param hosts of create_hosts(); outlives this.
  /// @param timeout_us response time-out of the hosts' ports.
  RailCuts(VirtualHosts& hosts, uint32_t timeout_us);

  /// Plan cuts from now on. One rail is down at a time, in one direction or both, with a report of
  /// the card or without; the pause before the next cut may be too short for the rail to be up
  /// again. @param count 0: none.
  void plan(uint32_t count, std::mt19937_64& random);
  /// Switch the links that a card itself switches at this time. Call often. @param port of `host`.
  void switch_links(uint32_t host, msg::MessagePort& port);
  /// When the last rail is mended, in VirtualHosts::now_ns().
  [[nodiscard]] uint64_t end_ns() const { return end_ns_; }
  /// A line for each cut.
  [[nodiscard]] const std::string& log() const { return log_; }

  /// The destID by which a host knows its peer.
  [[nodiscard]] static uint32_t peer_id(uint32_t host) {
    return VirtualHosts::id(kRails * (1 - host));
  }
  /// Whether a host has found its peer on all rails. @param port of `host`.
  [[nodiscard]] static bool has_paths(uint32_t host, const msg::MessagePort& port);
  /// How often work has left a path of a host that has paths. @param port of `host`.
  [[nodiscard]] static uint64_t moves(uint32_t host, const msg::MessagePort& port);

 private:
  struct Switch {
    uint64_t at_ns;
    uint32_t host;
    uint32_t rail;
    bool is_on;
  };

  void cut(uint32_t rail, uint64_t from_ns, uint64_t to_ns, uint32_t direction);
  void switch_off(uint32_t rail, uint64_t from_ns, uint64_t to_ns, uint32_t host);

  VirtualHosts& hosts_;
  const uint64_t timeout_ns_;
  std::vector<Switch> switches_;  // in order of time
  uint64_t end_ns_ = 0;
  std::string log_;
};

}  // namespace rio::test
