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
#include "tests/soak/storms.hpp"

namespace rio::test {

/// One storm. One thread; one at a time in a program.
class RailStorm final : private Storm {
 public:
  /// @param bytes_most of a message; at least 1.
  RailStorm(const StormPlan& plan, uint32_t bytes_most);
  ~RailStorm();

  [[nodiscard]] StormResult run();

 private:
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
  [[nodiscard]] bool is_over() const;
  uint32_t turn(uint32_t host);
  uint32_t begin_receives(uint32_t host);
  uint32_t begin_sends(uint32_t host);
  void check(uint32_t host, Taking& taking);

  const uint32_t bytes_most_;
  std::array<End, kHosts> ends_;
};

}  // namespace rio::test
