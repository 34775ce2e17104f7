// Half-open connections over UDP: a process that is killed and started again at its port does not
// know the sessions that peers had with its predecessor.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>

#include "tests/unit/lib/api/udp_fabric.hpp"

namespace rio::test {
namespace {

using Errors = std::map<int, uint32_t>;

/// A server that starts on request, since processes are forked before cards are opened.
class Server {
 public:
  explicit Server(const std::string& card) : child_([card] { return serve(card); }, &start_) {}
  void start() { start_.tell(); }
  /// Kill it, as the kernel does: the port is free afterwards.
  void kill() {
    child_.signal(SIGKILL);
    EXPECT_EQ(child_.exit_code(), -1) << "ended before it was killed";
  }

 private:
  Pipe start_;
  Child child_;
};

TEST(UdpRestart, AClientThatGoesOnAskingHearsOneResetAndThenTheNewServer) {
  const UdpFabric fabric(2);
  Server first(fabric.card(1));
  Server second(fabric.card(1));
  Server third(fabric.card(1));
  Asker client(fabric.card(2));
  first.start();
  const std::string before = client.ask();
  ASSERT_NE(before, "");
  EXPECT_EQ(client.errors, Errors{});
  first.kill();
  second.start();
  const std::string after = client.ask(before);
  ASSERT_NE(after, "");
  EXPECT_EQ(client.errors, (Errors{{-ECONNRESET, 1}}));
  second.kill();
  third.start();
  ASSERT_NE(client.ask(after), "");
  EXPECT_EQ(client.errors, (Errors{{-ECONNRESET, 2}}));
}

/// No context answers; the card answers for the connection.
TEST(UdpRestart, ANewProcessWithoutTheContextEndsTheSessionAndRefuses) {
  const UdpFabric fabric(2);
  Server first(fabric.card(1));
  Pipe start;
  Child second(
      [&] {
        api::Port port = open_port(fabric.card(1), 0, false, false);
        for (;;) {
          static_cast<void>(port.progress());
          usleep(100);
        }
        return 0;
      },
      &start);
  Asker client(fabric.card(2));
  first.start();
  ASSERT_NE(client.ask(), "");
  client.errors.clear();
  first.kill();
  start.tell();
  ASSERT_TRUE(wait_until([&] {
    const int rc = client.context().send(rio_msg_address_of(1, 0), bytes_of("who"));
    client.errors[rc] += 1;
    static_cast<void>(client.context().wait(1));
    return rc == -ECONNREFUSED;
  }));
  EXPECT_EQ(client.errors[-ECONNRESET], 1u);
}

}  // namespace
}  // namespace rio::test
