/// @file
/// Ports of riomsg.hpp for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>

#include "lib/api/riomsg.hpp"
#include "pmd/api/riopmd.h"
#include "tests/support/wait.hpp"

namespace rio::test {

inline constexpr uint32_t kLongMs = 60000;  // no wait is longer

/// EXPECT_EQ of two results, which prints their texts.
#define EXPECT_RC(expression, expected)                                               \
  do {                                                                                \
    const int expect_rc = (expression);                                               \
    EXPECT_EQ(expect_rc, expected) << #expression << ": " << rio_strerror(expect_rc); \
  } while (false)

[[nodiscard]] inline api::Port open_port(const std::string& card, uint32_t dest_id, bool threads,
                                         bool sleeps) {
  rio_msg_options options = api::msg_options();
  options.dest_id = dest_id;
  options.threads = threads ? 1 : 0;
  options.sleeps = sleeps ? 1 : 0;
  options.buffers = 1024;
  api::Port port;
  EXPECT_RC(api::Port::open(card, options, &port), 0);
  return port;
}

[[nodiscard]] inline api::Context open_context(api::Port& port, uint32_t number) {
  api::Context context;
  EXPECT_RC(api::Context::open(port, number, &context), 0);
  return context;
}

[[nodiscard]] inline api::Tag open_tag(api::Port& port, uint32_t number) {
  api::Tag tag;
  EXPECT_RC(api::Tag::open(port, number, &tag), 0);
  return tag;
}

[[nodiscard]] inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
[[nodiscard]] inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Sends, and waits while there is no room. @return as Context::send(), or -ETIMEDOUT.
[[nodiscard]] inline int send_all(api::Context& from, rio_msg_address to, const std::string& text) {
  int rc = from.send(to, bytes_of(text));
  while (rc == -EAGAIN) {
    rc = from.wait(kLongMs);
    rc = rc == 1 ? from.send(to, bytes_of(text)) : rc == 0 ? -ETIMEDOUT : rc;
  }
  return rc;
}

/// Waits for the next message. @return 1, -ETIMEDOUT, or as Context::receive().
[[nodiscard]] inline int receive_next(api::Context& to, api::Message* out) {
  int rc = to.receive(out);
  while (rc == 0) {
    rc = to.wait(kLongMs);
    rc = rc == 1 ? to.receive(out) : rc == 0 ? -ETIMEDOUT : rc;
  }
  return rc;
}

/// Two ports of this process on one emulated wire.
class RioMsgPorts : public testing::Test {
 protected:
  /// Both ports make progress until `done()`. @return false: it did not become true in time.
  template <class Done>
  bool until(Done&& done) {
    return wait_until([&] {
      if (done()) {
        return true;
      }
      EXPECT_GE(a_.progress(), 0);
      EXPECT_GE(b_.progress(), 0);
      return false;
    });
  }

  api::Port a_ = open_port("emu:riomsg", 1, false, false);
  api::Port b_ = open_port("emu:riomsg", 2, false, false);
};

}  // namespace rio::test
