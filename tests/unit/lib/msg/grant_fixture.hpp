/// @file
/// Steps that the tests of SendGrant and RecvGrant share.
#pragma once

#include <gtest/gtest.h>

#include "lib/msg/grant.hpp"

namespace rio::msg::test {

using SendState = SendGrant::State;
using RecvState = RecvGrant::State;

inline constexpr StopCause kFailed{7, false};
inline constexpr StopCause kAgain{0, true};

/// Begins an attempt: posts a window, and reads the grant of it. @return the granted total.
inline uint32_t grant(RecvGrant& receiver, uint32_t messages, uint32_t window) {
  receiver.start(messages, window);
  receiver.posted(receiver.may_post());
  return receiver.tell();
}

/// Grants the sender all messages of its attempt.
inline void grant_all(SendGrant& sender, uint32_t messages) {
  ASSERT_EQ(sender.on_grant(sender.attempt(), 1, messages, messages), 0);
}

/// Sends so many messages, all of which arrive.
inline void send(SendGrant& sender, uint32_t messages) {
  sender.posted(messages);
  sender.completed(messages);
}

}  // namespace rio::msg::test
