// Processes that fork: a child may close inherited objects without effect on its parent, and a
// child that lives on does not keep a killed parent's card.
#include <gtest/gtest.h>

#include "fpga/wire/relay/host.hpp"
#include "tests/unit/fpga/cardsim/guest.hpp"
#include "tests/unit/pmd/api/log_lines.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

/// The program that serves a card, for cards that need one.
enum class Server : uint8_t { kNone, kRelay, kCardsim };

struct Kind {
  const char* name;
  const char* card;  ///< a '%' stands for the test's folder
  Server server;
  uint32_t id;  ///< its destID, or one to give it
};

constexpr unsigned kSecondsOfAChild = 20;  // limit: if the child hangs, SIGALRM ends it

class Forks : public Shm, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    if (GetParam().server == Server::kNone) {
      return;
    }
    server_ = std::make_unique<Child>([&] {
      end_.close_writer();
      serve();
      return 0;
    });
    ASSERT_EQ(ready_.wait(), 1);
  }
  void TearDown() override { end_.close_writer(); }

  [[nodiscard]] std::string card() const {
    std::string name = GetParam().card;
    if (const size_t at = name.find('%'); at != std::string::npos) {
      name.replace(at, 1, dir_.at(""));
    }
    return name;
  }
  [[nodiscard]] std::unique_ptr<Member> open() const {
    return std::make_unique<Member>(card(), 0, 0, GetParam().id);
  }
  /// Sends a message from the only card to itself.
  static void expect_works(Member& member) {
    member.send(member.id(), "to myself");
    EXPECT_EQ(member.receive(), std::to_string(member.id()) + ":to myself");
    EXPECT_EQ(member.done(), pmd::Status::kOk);
  }

  Pipe ready_;
  Pipe end_;

 private:
  void serve() {
    const base::Fd end(dup(end_.reader()));
    if (GetParam().server == Server::kCardsim) {
      Served served({"listen:socket=" + dir_.at("card")}, true);
      ready_.tell();
      pollfd over{end.get(), POLLIN, 0};
      poll(&over, 1, -1);
      return;
    }
    std::unique_ptr<wire::relay::Host> host;
    std::string error;
    if (wire::relay::Host::create(
            {.name = "r"}, [](bool, const std::string&) {}, &host, &error) == 0) {
      ready_.tell();
      host->run(end);
    }
  }

  std::unique_ptr<Child> server_;
};

TEST_P(Forks, AChildMayCloseInheritedObjects) {
  std::unique_ptr<Member> parent = open();
  ASSERT_TRUE(parent->open());
  expect_works(*parent);
  Child child = Child::with_cards([&] {
    alarm(kSecondsOfAChild);
    parent.reset();
    return 0;
  });
  EXPECT_EQ(child.exit_code(), 0);
  expect_works(*parent);
}

TEST_P(Forks, AChildThatSendsReachesNoPeer) {
  std::unique_ptr<Member> parent = open();
  ASSERT_TRUE(parent->open());
  Child child = Child::with_cards([&] {
    alarm(kSecondsOfAChild);
    pmd::TxMessage message{};
    message.dest_id = parent->id();
    message.length_bytes = 8;
    message.iova = parent->endpoint().buffers()->iova(0);
    static_cast<void>(parent->endpoint().tx().burst(&message, 1));
    parent->polls(100);
    return 0;
  });
  EXPECT_EQ(child.exit_code(), 0);
  parent->polls(100);
  std::string text;
  EXPECT_FALSE(parent->poll(&text)) << text;
  expect_works(*parent);
}

TEST_P(Forks, ALivingChildDoesNotKeepACardThatItsParentCloses) {
  std::unique_ptr<Member> parent = open();
  ASSERT_TRUE(parent->open());
  Pipe stop;
  const Child child = Child::with_cards([&] {
    stop.close_writer();
    return static_cast<int>(stop.wait());
  });
  parent.reset();
  parent = open();
  ASSERT_TRUE(parent->open());
  expect_works(*parent);
  stop.close_writer();
}

TEST_P(Forks, ALivingChildDoesNotKeepACardOfAKilledParent) {
  Pipe here;
  Pipe stop;
  pid_t grandchild = -1;
  Child dead([&] {
    const std::unique_ptr<Member> member = open();
    if (!member->open()) {
      return 1;
    }
    grandchild = fork();
    if (grandchild == 0) {
      stop.close_writer();
      _exit(stop.wait());  // with all inherited objects
    }
    here.tell();
    pause();
    return 0;
  });
  ASSERT_EQ(here.wait(), 1);
  dead.signal(SIGKILL);  // not waited for: another process reaps it, and late
  const LogLines log;    // the open is repeated until the death is noticed
  EXPECT_TRUE(wait_until([&] {
    const std::unique_ptr<Member> next = open();
    if (next->open()) {
      expect_works(*next);
    }
    return next->open();
  }));
  EXPECT_EQ(dead.exit_code(), -1);
  stop.close_writer();
}

TEST_P(Forks, PartnersHearOfADeathEvenIfAChildLivesOn) {
  std::string card_of_partner = card();
  const size_t id = card_of_partner.find("id=7");
  if (id == std::string::npos) {
    GTEST_SKIP() << "a card that has no partners";
  }
  Pipe stop;
  Pipe start;
  Child dead(
      [&] {
        const std::unique_ptr<Member> member = open();
        member->send(8, "I live");
        static_cast<void>(member->done());
        if (fork() == 0) {
          stop.close_writer();
          _exit(stop.wait());
        }
        pause();
        return 0;
      },
      &start);
  Member partner(card_of_partner.replace(id, 4, "id=8"));
  start.tell();
  EXPECT_EQ(partner.receive(), "7:I live");
  EXPECT_EQ(partner.event(), "7 came 1");
  dead.signal(SIGKILL);
  EXPECT_EQ(partner.event(), "7 went 1");
  EXPECT_EQ(dead.exit_code(), -1);
  stop.close_writer();
}

INSTANTIATE_TEST_SUITE_P(
    , Forks,
    testing::Values(Kind{"emu", "emu:loop,stepping=thread", Server::kNone, 7},
                    Kind{"shm", "shm:forks,id=7", Server::kNone, 0},
                    Kind{"shm_thread", "shm:forks,id=7,stepping=thread", Server::kNone, 0},
                    Kind{"relay", "relay:r,id=7", Server::kRelay, 0},
                    Kind{"sim", "sim:%card", Server::kCardsim, 7}),
    [](const testing::TestParamInfo<Kind>& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace rio::test
