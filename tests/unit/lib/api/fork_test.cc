// A process that forks while it has a port open: whatever the child does with the inherited
// objects does not disturb the parent, and peers notice the parent's death although the child
// lives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <string>

#include "tests/unit/lib/api/udp_fabric.hpp"

namespace rio::test {
namespace {

using Errors = std::map<int, uint32_t>;

/// Sends requests until it is killed, and has a child that lives on with the inherited objects.
int ask_with_a_child(const std::string& card, const Pipe& asked, Pipe& child_may_end) {
  Asker client(card);
  const bool answered = !client.ask().empty();
  if (fork() == 0) {
    asked.tell(answered ? 1 : 2);  // the child reports it, and has let go of the card by now
    child_may_end.close_writer();
    _exit(child_may_end.wait());
  }
  pause();
  return 0;
}

class Fork : public testing::TestWithParam<const char*> {
 protected:
  Fork() { setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1); }
  ~Fork() override { unsetenv("RIO_RUNTIME_DIR"); }
  [[nodiscard]] std::string card(uint32_t id) const {
    return GetParam() == std::string("udp") ? udp_.card(id) : "shm:fork,id=" + std::to_string(id);
  }

 private:
  const TempDir folder_;
  const UdpFabric udp_{2};
};

TEST_P(Fork, AChildThatClosesItsPortCostsTheParentNothing) {
  Child server([&] { return serve(card(1)); });
  Asker client(card(2));
  const std::string before = client.ask();
  ASSERT_NE(before, "");
  client.errors.clear();  // the first question may have been sent before the server came
  for (int round = 0; round < 2; ++round) {
    Child child = Child::with_cards([&] {
      static_cast<void>(rio_msg_context_close(client.context().get()));
      return rio_msg_close(client.port().get()) == 0 ? 0 : 1;
    });
    EXPECT_EQ(client.ask(), before);
    EXPECT_EQ(child.exit_code(), 0);
    EXPECT_EQ(client.ask(), before);
    EXPECT_EQ(client.errors, Errors{});
  }
}

TEST_P(Fork, AChildThatSendsReachesNoPeer) {
  Child server([&] { return serve(card(1)); });
  Asker client(card(2));
  const std::string before = client.ask();
  ASSERT_NE(before, "");
  client.errors.clear();
  Child child = Child::with_cards([&] {
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(client.context().send(rio_msg_address_of(1, 0), bytes_of("child")));
      static_cast<void>(client.port().progress());
    }
    return 0;
  });
  EXPECT_EQ(child.exit_code(), 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.ask(), before);
  }
  EXPECT_EQ(client.errors, Errors{});
}

/// A killed parent's port can be opened again, though its child lives.
TEST_P(Fork, AChildDoesNotKeepAKilledParentAlive) {
  Pipe asked;
  Pipe child_may_end;
  Pipe next_may;
  Child server([&] {
    child_may_end.close_writer();
    return serve(card(1));
  });
  Child parent([&] { return ask_with_a_child(card(2), asked, child_may_end); });
  Child next(
      [&] {
        child_may_end.close_writer();
        return Asker(card(2)).ask().empty() ? 1 : 0;
      },
      &next_may);
  EXPECT_EQ(asked.wait(), 1);
  parent.signal(SIGKILL);
  EXPECT_EQ(parent.exit_code(), -1);
  next_may.tell();
  EXPECT_EQ(next.exit_code(), 0);
}

TEST_P(Fork, PeersHearOfAKilledParentThoughAChildOfItLives) {
  Pipe child_may_end;
  Child server([&] {
    api::Port port = open_port(card(1), 0, false, true);
    api::Context context = open_context(port, 0);
    if (fork() == 0) {
      child_may_end.close_writer();
      _exit(child_may_end.wait());
    }
    child_may_end.close_writer();
    api::Message message;
    if (receive_next(context, &message) == 1) {
      static_cast<void>(send_all(context, message.source(), "parent"));
      static_cast<void>(port.flush(kLongMs));
    }
    return pause();
  });
  Asker client(card(2));
  ASSERT_NE(client.ask(), "");
  client.errors.clear();
  server.signal(SIGKILL);
  EXPECT_EQ(server.exit_code(), -1);
  EXPECT_TRUE(wait_until([&] {
    static_cast<void>(client.port().progress());
    rio_msg_peer_event event{};
    return client.port().next_peer_event(&event) == 1 && event.error == -ECONNRESET;
  }));
}

INSTANTIATE_TEST_SUITE_P(Wires, Fork, testing::Values("shm", "udp"));

}  // namespace
}  // namespace rio::test
