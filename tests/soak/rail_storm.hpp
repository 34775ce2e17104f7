/// @file
/// Two hosts of two rails each in virtual time, which exchange tagged messages of all sizes while
/// the rails are cut and mended.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/tag/tagged_context.hpp"
#include "tests/soak/rail_cuts.hpp"

namespace rio::test {

struct StormPlan {
  uint64_t seed = 1;
  uint32_t messages =
      400;            ///< of each host to the other one, at least; more until all cuts are over
  uint32_t cuts = 6;  ///< how many times a rail is cut; 0: none
  uint32_t timeout_us = 1000;     ///< response time-out
  uint32_t bytes_most = 100'000;  ///< of a message; at least 1
};

/// Counts of one storm.
struct StormResult {
  bool is_over = false;        ///< false: messages were still missing at the end of the time
  uint64_t messages = 0;       ///< that arrived
  uint64_t lost = 0;           ///< messages that did not arrive
  uint64_t wrong = 0;          ///< messages with the number of another one: doubled or out of order
  uint64_t torn = 0;           ///< messages with other bytes than were sent
  uint64_t failed = 0;         ///< sends and receives with an error
  uint64_t sessions = 0;       ///< sessions that ended, or were cut off
  uint64_t silence_ns = 0;     ///< longest time in which nothing arrived at a host that waited
  uint64_t silence_at_ns = 0;  ///< when it ended
  uint64_t longest_ns = 0;     ///< longest time of a message on its way
  uint64_t moves = 0;          ///< times that a path was left
  std::string log;             ///< of the cuts, for a report
};

/// One storm. One thread; one at a time in a program.
class RailStorm {
 public:
  explicit RailStorm(const StormPlan& plan);
  ~RailStorm();
  RailStorm(const RailStorm&) = delete;
  RailStorm& operator=(const RailStorm&) = delete;

  [[nodiscard]] StormResult run();

 private:
  static constexpr uint32_t kHosts = RailCuts::kHosts;
  static constexpr uint32_t kRails = RailCuts::kRails;
  static constexpr uint32_t kWindow = 8;  // messages under way in each direction

  struct Sending {
    std::vector<uint8_t> bytes;
    tag::SendRequest request;
    bool is_free = true;
  };
  struct Taking {
    uint32_t number = 0;
    std::vector<uint8_t> bytes;
    tag::RecvRequest request;
    bool is_free = true;
  };
  struct End {
    std::unique_ptr<msg::MessagePort> port;
    std::unique_ptr<tag::TaggedContext> context;
    std::array<Sending, kWindow> sends;
    std::array<Taking, kWindow> takes;
    std::vector<uint64_t> begun_ns;  // when each message was sent
    uint32_t posted = 0;             // receives begun
    uint32_t taken = 0;              // receives done
    uint64_t next_ns = 0;            // when to begin the next message
    uint64_t last_ns = 0;            // of the last receive
    uint64_t activity = 0;
  };

  [[nodiscard]] uint32_t length(uint32_t from, uint32_t number) const;
  void fill(uint32_t from, uint32_t number, std::vector<uint8_t>* out) const;
  [[nodiscard]] bool has_all_paths() const;
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] uint64_t below(uint64_t end) { return random_() % end; }
  uint32_t turn(uint32_t host);
  uint32_t begin_receives(uint32_t host);
  uint32_t begin_sends(uint32_t host);
  void check(uint32_t host, Taking& taking);

  StormPlan plan_;
  std::mt19937_64 random_;
  std::unique_ptr<VirtualHosts> hosts_;
  std::unique_ptr<RailCuts> cuts_;
  std::array<End, kHosts> ends_;
  uint64_t end_ns_ = 0;  // of the cuts
  StormResult result_;
};

}  // namespace rio::test
