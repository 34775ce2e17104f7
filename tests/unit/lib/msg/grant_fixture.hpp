/// @file
/// What the tests of grants share.
#pragma once

#include <gtest/gtest.h>

#include "lib/msg/grant.hpp"

namespace rio::msg::test {

using SendState = SendGrant::State;
using RecvState = RecvGrant::State;

inline constexpr StopCause kFailed{7, false};
inline constexpr StopCause kAgain{0, true};

/// An attempt begins: a window is posted and told of. @return the total.
inline uint32_t grant(RecvGrant& receiver, uint32_t messages, uint32_t window) {
  receiver.start(messages, window);
  receiver.posted(receiver.may_post());
  return receiver.tell();
}

/// The sender is granted all of its attempt.
inline void grant_all(SendGrant& sender, uint32_t messages) {
  ASSERT_EQ(sender.on_grant(sender.attempt(), 1, messages, messages), 0);
}

/// So many were sent and have arrived.
inline void send(SendGrant& sender, uint32_t messages) {
  sender.posted(messages);
  sender.completed(messages);
}

}  // namespace rio::msg::test
