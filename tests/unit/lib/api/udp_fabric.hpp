/// @file
/// Members of a UDP fabric, in processes that are killed and started again, for tests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {

/// A fabric with a members file: destIDs from 1, at loopback ports that are free when it is made.
class UdpFabric {
 public:
  explicit UdpFabric(uint32_t members) {
    std::vector<int> sockets;
    std::ofstream file(path());
    for (uint32_t id = 1; id <= members; ++id) {
      sockets.push_back(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t bytes = sizeof(at);
      auto* const any = reinterpret_cast<sockaddr*>(&at);
      EXPECT_EQ(bind(sockets.back(), any, bytes), 0);
      EXPECT_EQ(getsockname(sockets.back(), any, &bytes), 0);
      file << id << " 127.0.0.1:" << ntohs(at.sin_port) << "\n";
    }
    for (const int each : sockets) {
      close(each);
    }
  }
  /// Silence never ends a session within a test's time, so any end has another cause.
  [[nodiscard]] std::string card(uint32_t id, const std::string& more = "") const {
    return "udp:test,id=" + std::to_string(id) + ",patience=3600,members=" + path() + more;
  }

 private:
  [[nodiscard]] std::string path() const { return folder_.at("members"); }
  TempDir folder_;
};

/// Answer each message with the process ID, until killed.
[[nodiscard]] inline int serve(const std::string& card, uint32_t contexts = 1) {
  api::Port port = open_port(card, 0, false, true);
  if (port.get() == nullptr) {
    return 10;
  }
  std::vector<api::Context> all(contexts);
  for (uint32_t number = 0; number < contexts; ++number) {
    all[number] = open_context(port, number);
  }
  for (;;) {
    api::Message message;
    if (receive_next(all[0], &message) == 1) {
      const std::string life = std::to_string(getpid());
      static_cast<void>(send_all(all[0], message.source(), life));
    }
  }
}

/// Asks the server at destID 1, context 0.
class Asker {
 public:
  explicit Asker(const std::string& card) : port_(open_port(card, 0, false, true)) {
    context_ = open_context(port_, 0);
  }
  /// Send repeatedly, and read answers, until one from a process other than `not_from` arrives.
  /// @return the process that answered; empty: no such answer within reason.
  std::string ask(const std::string& not_from = "") {
    std::string from;
    const bool heard = wait_until([&] {
      const int rc = context_.send(rio_msg_address_of(1, 0), bytes_of("who"));
      if (rc != 0 && rc != -EAGAIN) {
        ++errors[rc];
      }
      return hears(&from) && from != not_from;
    });
    return heard ? from : "";
  }
  /// Read one answer. @return false: none within a moment.
  bool hears(std::string* from) {
    static_cast<void>(context_.wait(10));
    api::Message message;
    if (context_.receive(&message) != 1) {
      return false;
    }
    *from = text_of(message.bytes());
    return true;
  }
  [[nodiscard]] api::Port& port() { return port_; }
  [[nodiscard]] api::Context& context() { return context_; }

  std::map<int, uint32_t> errors;  ///< of sends, how often

 private:
  api::Port port_;
  api::Context context_;
};

}  // namespace rio::test
