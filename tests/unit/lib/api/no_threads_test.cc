// A process that may start no thread: opening a port fails for each kind of card, the error names
// the cause, and signal masks stay as they were.
#include <gtest/gtest.h>
#include <pthread.h>

#include <bitset>
#include <csignal>
#include <filesystem>

#include "fpga/wire/relay/host.hpp"
#include "lib/api/riomsg.h"
#include "pmd/api/riopmd.h"
#include "tests/support/denied.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/unit/fpga/cardsim/guest.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr int kCannotDeny = 77;

/// Serve a card to other processes, until the parent is gone or closes its end.
using Serve = void (*)(const TempDir& dir, const Pipe& ready, const base::Fd& end);

struct Case {
  const char* name;
  const char* card;  ///< a '%' stands for the test's folder
  Serve serve;       ///< null: the card needs no server
};

void serve_relay(const TempDir& /*dir*/, const Pipe& ready, const base::Fd& end) {
  std::unique_ptr<wire::relay::Host> host;
  std::string error;
  if (wire::relay::Host::create(
          {.name = "r"}, [](bool, const std::string&) {}, &host, &error) == 0) {
    ready.tell();
    host->run(end);
  }
}

void serve_cardsim(const TempDir& dir, const Pipe& ready, const base::Fd& end) {
  Served served({"listen:socket=" + dir.at("card")});
  ready.tell();
  pollfd parent{end.get(), POLLIN, 0};
  poll(&parent, 1, -1);
}

[[nodiscard]] std::bitset<65> blocked() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::bitset<65> all;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    all[number] = sigismember(&mask, number) == 1;
  }
  return all;
}

[[nodiscard]] int open_messages(const std::string& card) {
  rio_msg_port* port = nullptr;
  return rio_msg_open(card.c_str(), nullptr, &port);
}

[[nodiscard]] int open_card(const std::string& card) {
  rio_card* opened = nullptr;
  return rio_open(card.c_str(), nullptr, &opened);
}

/// Runs in a child. @return 0: as expected.
[[nodiscard]] int open_without_threads(const std::string& card, int (*open)(const std::string&)) {
  if (!deny_threads()) {
    return kCannotDeny;
  }
  const std::bitset<65> before = blocked();
  const LogCapture log;
  const int rc = open(card);
  const bool told = LogCapture::one_line_with({"no thread can be started", "ulimit -u"});
  return (rc == -EAGAIN ? 0 : 1) + (told ? 0 : 2) + (blocked() == before ? 0 : 4);
}

class NoThreads : public testing::TestWithParam<Case> {
 protected:
  NoThreads() {
    setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1);
    std::filesystem::permissions(dir_.at(""), std::filesystem::perms::all);
  }
  ~NoThreads() override { unsetenv("RIO_RUNTIME_DIR"); }

  void expect_told(int (*open)(const std::string&)) {
    Pipe ready;
    Pipe end;
    std::unique_ptr<Child> server;
    if (GetParam().serve != nullptr) {
      server = std::make_unique<Child>([&] {
        end.close_writer();
        if (leave_root()) {
          GetParam().serve(dir_, ready, base::Fd(dup(end.reader())));
        }
        return 0;
      });
      ready.close_writer();
      ASSERT_EQ(ready.wait(), 1);
    }
    std::string card = GetParam().card;
    if (const size_t at = card.find('%'); at != std::string::npos) {
      card.replace(at, 1, dir_.at(""));
    }
    Child child([&] { return open_without_threads(card, open); });
    const int rc = child.exit_code();
    end.close_writer();
    if (rc == kCannotDeny) {
      GTEST_SKIP() << "this root may not become another user, and RLIMIT_NPROC does not bind it";
    }
    EXPECT_EQ(rc, 0) << "1: not -EAGAIN; 2: not told; 4: signals have changed";
  }

  TempDir dir_;
};

TEST_P(NoThreads, OpeningACardSaysWhy) {
  expect_told(&open_card);
}

TEST_P(NoThreads, OpeningAPortSaysWhy) {
  expect_told(&open_messages);
}

INSTANTIATE_TEST_SUITE_P(
    , NoThreads,
    testing::Values(Case{"emu", "emu:loop,stepping=thread", nullptr},
                    Case{"shm", "shm:nothreads", nullptr},
                    Case{"shm_thread", "shm:nothreads,stepping=thread", nullptr},
                    Case{"udp", "udp:nothreads,bind=127.0.0.1", nullptr},
                    Case{"relay", "relay:r", &serve_relay},
                    Case{"sim", "sim:%card", &serve_cardsim}),
    [](const testing::TestParamInfo<Case>& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace rio::test
