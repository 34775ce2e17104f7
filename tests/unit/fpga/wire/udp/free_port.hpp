/// @file
/// A UDP port for a server of a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "fpga/wire/udp/socket.hpp"

namespace rio::wire::udp {

/// @return a port of this host that no socket has. The kernel gives none of these ports to sockets
/// that ask for any, so that no client has it before the server does. Each process begins its
/// search elsewhere. One thread.
[[nodiscard]] inline uint16_t free_port() {
  constexpr uint32_t kFirst = 10'000;
  constexpr uint32_t kCount = 20'000;
  static uint32_t next = static_cast<uint32_t>(getpid()) * 64;
  for (uint32_t tries = 0; tries < kCount; ++tries) {
    const auto port = static_cast<uint16_t>(kFirst + next++ % kCount);
    Address at;
    std::unique_ptr<Socket> socket;
    EXPECT_EQ(Address::local("127.0.0.1", port, &at), 0);
    if (Socket::open(at, &socket) == 0) {
      return port;
    }
  }
  ADD_FAILURE() << "no free port";
  return 0;
}

}  // namespace rio::wire::udp
