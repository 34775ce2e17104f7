// Half-open connections: one side has lost its state, and the other one finds out. With processes
// that are killed, and restarted at their ports.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/wait.hpp"
#include "tests/unit/fpga/wire/udp/free_port.hpp"
#include "tests/unit/fpga/wire/udp/wire_card.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::wire::udp {
namespace {

using test::Child;
using test::Pipe;
using test::wait_until;

constexpr uint32_t kForEver = 3600;  // longer than any test

[[nodiscard]] Seat patient(uint16_t port = 0) {
  Seat out = seat();
  out.port = port;
  out.patience_s = kForEver;
  return out;
}

/// Answers each message with its process ID, and reports peers that leave.
class Server {
 public:
  explicit Server(const Seat& seat) : child_([this, seat] { return serve(seat); }, &start_) {}
  /// Starts the server. The port is bound on return, so no client finds it closed in between.
  void start() {
    start_.tell();
    EXPECT_EQ(open_.wait(), 1);
  }
  /// Kills the server; the kernel frees its port.
  void kill() {
    child_.signal(SIGKILL);
    EXPECT_EQ(child_.exit_code(), -1) << "ended before it was killed";
  }
  void wait_for_a_loss() { EXPECT_EQ(lost_.wait(), 1); }

 private:
  int serve(const Seat& seat) const {
    Card card(seat);
    open_.tell();
    for (size_t answered = 0, seen = 0;;) {
      card.step();
      for (; answered < card.got.size(); ++answered) {
        static_cast<void>(card.send(card.from[answered], std::to_string(getpid())));
      }
      for (; seen < card.changes.size(); ++seen) {
        if (!card.changes[seen].here && card.changes[seen].times != 0) {
          lost_.tell();
        }
      }
      usleep(100);  // lets other processes have the CPU
    }
  }

  Pipe start_;
  Pipe open_;
  Pipe lost_;
  Child child_;
};

/// A client of the server at a port.
class Client {
 public:
  explicit Client(uint16_t port, const Seat& seat = patient()) : card(seat) {
    EXPECT_EQ(card.wire->reach("127.0.0.1:" + std::to_string(port), &server_), 0);
  }
  void step() {
    if (card.got.size() == answers_ && (!waits_ || card.changes.size() != changes_)) {
      changes_ = card.changes.size();
      waits_ = card.send(server_, "who");
    } else if (card.got.size() != answers_) {
      answers_ = card.got.size();
      waits_ = false;
    }
    card.step();
  }
  /// Asks. @return whether the server has answered within the time of wait_until().
  [[nodiscard]] bool is_answered() {
    return wait_until([this] {
      step();
      return !server().empty();
    });
  }
  /// Listens without asking until the first server has gone. @return whether it has.
  [[nodiscard]] bool hears_of_a_change() {
    return wait_until([this] {
      card.step();
      return changes() != "+";
    });
  }
  /// The answer received last.
  [[nodiscard]] std::string server() const { return card.got.empty() ? "" : card.got.back(); }
  /// How the server has come and gone, as "+-"; calls before the first server do not count.
  [[nodiscard]] std::string changes() const {
    std::string all;
    for (const model::PartnerChange& change : card.changes) {
      all += change.times == 0 ? "" : change.here ? "+" : "-";
    }
    return all;
  }

  Card card;

 private:
  uint32_t server_ = 0;
  bool waits_ = false;
  size_t answers_ = 0;
  size_t changes_ = 0;
};

void a_client_finds_the_new_server(Seat seat) {
  seat.patience_s = kForEver;
  const Seat any = seat;
  seat.port = free_port();
  Server first(seat);
  Server second(seat);
  Server third(seat);
  Client client(seat.port, any);
  first.start();
  const auto until_another = [&] {
    const std::string before = client.server();
    return wait_until([&] {
      client.step();
      return client.server() != before;
    });
  };
  ASSERT_TRUE(until_another());
  first.kill();
  second.start();
  ASSERT_TRUE(until_another());
  EXPECT_EQ(client.changes(), "+-+");
  second.kill();
  third.start();
  ASSERT_TRUE(until_another());
  EXPECT_EQ(client.changes(), "+-+-+");
  EXPECT_EQ(client.card.troubles(), "");
}

TEST(UdpRestart, AnAskingClientFindsTheNewServer) {
  a_client_finds_the_new_server(seat());
}

TEST(UdpRestart, AnAskingClientFindsTheNewServerWithAKey) {
  Seat sealed = seat();
  sealed.key = "0123456789abcdef";
  a_client_finds_the_new_server(sealed);
}

TEST(UdpRestart, AnAskingClientFindsTheNewServerOnABadPath) {
  Seat bad = seat();
  bad.faults = {7, 0.2};
  a_client_finds_the_new_server(bad);
}

TEST(UdpRestart, AHundredClientsFindTheNewServerAtOnce) {
  const uint16_t port = free_port();
  Server first(patient(port));
  Server second(patient(port));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<Client>(port));
  }
  const auto all_have_another = [&](const std::string& than) {
    return wait_until([&] {
      bool all = true;
      for (const auto& client : clients) {
        client->step();
        all = all && client->server() != than;
      }
      return all;
    });
  };
  first.start();
  ASSERT_TRUE(all_have_another(""));
  const std::string before = clients[0]->server();
  first.kill();
  second.start();
  ASSERT_TRUE(all_have_another(before));
  for (const auto& client : clients) {
    EXPECT_EQ(client->changes(), "+-+");
  }
}

TEST(UdpRestart, AWaitingClientLearnsThatTheServerHasChanged) {
  const uint16_t port = free_port();
  Server first(patient(port));
  Server second(patient(port));
  Client client(port);
  first.start();
  ASSERT_TRUE(client.is_answered());
  first.kill();
  second.start();
  ASSERT_TRUE(client.hears_of_a_change());
  EXPECT_EQ(client.changes(), "+-");
}

TEST(UdpRestart, AServerLearnsThatAClientHasChanged) {
  Seat server = patient(free_port());
  Seat client = patient(free_port());
  Server serves(server);
  const auto never_ask = [&] {
    Card is_there(client);
    for (;;) {
      is_there.step();
      usleep(100);
    }
    return 0;
  };
  Pipe second_may;
  Pipe asked;
  Child first([&] {
    Client asks(server.port, client);
    while (asks.server().empty()) {
      asks.step();
    }
    asked.tell();
    pause();
    return 0;
  });
  Child second(never_ask, &second_may);
  serves.start();
  EXPECT_EQ(asked.wait(), 1);
  first.signal(SIGKILL);
  EXPECT_EQ(first.exit_code(), -1);
  second_may.tell();
  serves.wait_for_a_loss();
}

/// The client was stopped for longer than the server's patience, and does not know it.
TEST(UdpRestart, AClientThatWasGivenUpLearnsIt) {
  Seat seat = patient(free_port());
  seat.patience_s = 1;
  Server server(seat);
  Pipe asked;
  Child client([&] {
    Client asks(seat.port);
    while (asks.server().empty()) {
      asks.step();
    }
    asked.tell();
    return wait_until([&] {
      asks.step();
      return asks.changes() == "+-+";
    })
               ? 0
               : 1;
  });
  server.start();
  EXPECT_EQ(asked.wait(), 1);
  client.signal(SIGSTOP);
  server.wait_for_a_loss();
  client.signal(SIGCONT);
  EXPECT_EQ(client.exit_code(), 0);
}

/// Its messages cannot be authenticated, so it seems as silent as a machine that is down.
TEST(UdpRestart, AServerWithAnotherKeyIsGivenUpAndTheKeyIsNamed) {
  Seat seat = patient(free_port());
  seat.key = "0123456789abcdef";
  Seat other = seat;
  other.key = "0123456789abcdeX";
  Server first(seat);
  Server second(other);
  Seat any = seat;
  any.port = 0;
  any.patience_s = 2;
  Client client(seat.port, any);
  first.start();
  ASSERT_TRUE(client.is_answered());
  first.kill();
  second.start();
  ASSERT_TRUE(client.hears_of_a_change());
  EXPECT_EQ(client.changes(), "+-");
  const std::string told = client.card.troubles();
  EXPECT_NE(told.find("RIO_UDP_KEY"), std::string::npos) << told;
}

}  // namespace
}  // namespace rio::wire::udp
