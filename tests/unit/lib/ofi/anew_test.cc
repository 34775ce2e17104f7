// Peers that restart with their predecessor's destID: messages to them, and the predecessor's
// leftovers.
#include <csignal>

#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kTag = 5;
constexpr uint32_t kPeer = 2;
constexpr uint64_t kCaps = FI_TAGGED | FI_MSG | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV;
constexpr uint32_t kFarewell = 100;
constexpr uint64_t kTurns = 5'000'000;  // longest wait

/// A process that stays, and a peer that restarts again and again. A fabric reports members that
/// have gone, a plain wire does not.
class OfiAnew : public OfiTest, public testing::WithParamInterface<const char*> {
 protected:
  OfiAnew() : OfiTest(GetParam()), info_(get_info(hints(kCaps))), own_(info_, 1) { start(); }
  ~OfiAnew() override {
    peer_->close();
    own_.close();
  }

  void start() {
    peer_ = std::make_unique<OfiNode>(info_, kPeer);
    to_own_ = peer_->insert(own_);
  }
  void start_anew() {
    peer_->close_endpoint();
    for (uint32_t turn = 0; turn < kFarewell; ++turn) {
      work();  // otherwise the peer would wait at its end
    }
    peer_->close();
    start();
  }
  /// Lets both make progress until `good()`.
  bool until(const std::function<bool()>& good) {
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      if (good()) {
        return true;
      }
      work();
    }
    return false;
  }
  void work() {
    fi_cq_tagged_entry none[1];
    EXPECT_LE(fi_cq_read(own_.rx(), none, 0), 0);
    EXPECT_LE(fi_cq_read(peer_->rx(), none, 0), 0);
  }
  /// Sends a byte and waits until the send is complete or has failed. @return the result of
  /// fi_tsend().
  ssize_t send(OfiNode& from, fi_addr_t to, char byte) {
    const ssize_t rc = fi_tsend(from.ep(), &byte, 1, nullptr, to, kTag, nullptr);
    if (rc != 0) {
      return rc;
    }
    fi_cq_tagged_entry entry{};
    ssize_t read = -FI_EAGAIN;
    EXPECT_TRUE(until([&] { return (read = fi_cq_read(from.tx(), &entry, 1)) != -FI_EAGAIN; }));
    if (read == 1) {
      return 0;
    }
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_readerr(from.tx(), &error, 0), 1);
    return -error.err;
  }
  /// Waits for the next byte. @return '?': an error.
  char receive(OfiNode& at, fi_addr_t from, fi_addr_t* source = nullptr) {
    char byte = '-';
    EXPECT_EQ(fi_trecv(at.ep(), &byte, 1, nullptr, from, kTag, 0, nullptr), 0);
    fi_cq_tagged_entry entry{};
    ssize_t read = -FI_EAGAIN;
    EXPECT_TRUE(
        until([&] { return (read = fi_cq_readfrom(at.rx(), &entry, 1, source)) != -FI_EAGAIN; }));
    return read == 1 ? byte : '?';
  }
  void exchange(fi_addr_t to, char byte) {
    ASSERT_EQ(send(own_, to, byte), 0);
    EXPECT_EQ(receive(*peer_, to_own_), byte);
    ASSERT_EQ(send(*peer_, to_own_, byte), 0);
    EXPECT_EQ(receive(own_, to), byte);
  }

  Info info_;
  OfiNode own_;
  std::unique_ptr<OfiNode> peer_;
  fi_addr_t to_own_ = FI_ADDR_NOTAVAIL;  // the peer's
};

// Ten rounds, as when a parent process starts one child after another.
TEST_P(OfiAnew, ARestartedPeerIsANewPeerByItsName) {
  fi_addr_t before = FI_ADDR_NOTAVAIL;
  for (char round = '0'; round <= '9'; ++round) {
    const fi_addr_t to = own_.insert(*peer_);
    exchange(to, round);
    if (before != FI_ADDR_NOTAVAIL) {
      EXPECT_EQ(send(own_, before, 'x'), -FI_ECONNRESET);
      char byte = 0;
      EXPECT_EQ(fi_trecv(own_.ep(), &byte, 1, nullptr, before, kTag, 0, nullptr), -FI_ECONNRESET);
    }
    before = to;
    start_anew();
  }
}

// The domain knows which process has a destID, whichever vector has its name.
TEST_P(OfiAnew, ASuccessorIsKnownThroughAnotherVector) {
  const fi_addr_t to = own_.insert(*peer_);
  exchange(to, '0');
  start_anew();
  fi_av_attr attr{};
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(own_.domain(), &attr, &av, nullptr), 0);
  const Held<fid_av> held(av);
  const OfiNode::Name name = peer_->name();
  ASSERT_EQ(fi_av_insert(av, name.data(), 1, nullptr, 0, nullptr), 1);
  EXPECT_EQ(send(own_, to, 'x'), -FI_ECONNRESET);
  exchange(own_.insert(*peer_), '1');
}

TEST_P(OfiAnew, ANameThatWasRemovedLeavesNothing) {
  for (char round = '0'; round <= '9'; ++round) {
    fi_addr_t to = own_.insert(*peer_);
    exchange(to, round);
    ASSERT_EQ(fi_av_remove(own_.av(), &to, 1, 0), 0);
    start_anew();
  }
}

// Nothing makes progress between the restart and the send.
TEST_P(OfiAnew, TheFirstSendAfterARestartArrives) {
  const fi_addr_t to = own_.insert(*peer_);
  for (char round = '0'; round <= '9'; ++round) {
    exchange(to, round);
    start_anew();
  }
}

// No message was lost, so there is no error.
TEST_P(OfiAnew, ASendToTheOldAddressBeginsANewSession) {
  const fi_addr_t to = own_.insert(*peer_);
  for (char round = '0'; round <= '9'; ++round) {
    exchange(to, round);
    start_anew();
    // the peer speaks first, so that all know that it is another process
    ASSERT_EQ(send(*peer_, to_own_, round), 0);
    EXPECT_EQ(receive(own_, to), round);
  }
}

// A name inserted after its successor's name belongs to a process that is gone.
TEST_P(OfiAnew, ANameOfADeadProcessIsRefused) {
  const OfiNode::Name first = peer_->name();
  fi_addr_t old = own_.insert(*peer_);
  exchange(old, '1');
  start_anew();
  const fi_addr_t to = own_.insert(*peer_);
  exchange(to, '2');
  fi_addr_t again = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(own_.av(), first.data(), 1, &again, 0, nullptr), 1);
  EXPECT_EQ(send(own_, again, 'x'), -FI_ECONNRESET);
  exchange(to, '3');
  OfiNode::Name found{};
  size_t bytes = found.size();
  EXPECT_EQ(fi_av_lookup(own_.av(), old, found.data(), &bytes), 0);
  EXPECT_EQ(found, first);
  EXPECT_EQ(fi_av_remove(own_.av(), &old, 1, 0), 0);
  EXPECT_EQ(fi_av_remove(own_.av(), &old, 1, 0), -FI_EINVAL);
  exchange(to, '4');
}

// Messages of the former process are not its successor's, whether received already or not; a
// receive from any source gets them.
TEST_P(OfiAnew, LateMessagesAreNotAttributedToTheSuccessor) {
  ASSERT_NE(own_.insert(*peer_), FI_ADDR_NOTAVAIL);
  char received = 0;
  ASSERT_EQ(fi_trecv(own_.ep(), &received, 1, nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr), 0);
  for (const char byte : {'a', 'b', 'c'}) {
    ASSERT_EQ(send(*peer_, to_own_, byte), 0);
  }
  ASSERT_TRUE(until([&] { return received == 'a'; }));
  for (uint32_t turn = 0; turn < 1000; ++turn) {
    work();
  }
  start_anew();
  const fi_addr_t to = own_.insert(*peer_);
  fi_cq_tagged_entry entry{};
  fi_addr_t source = to;
  ASSERT_EQ(fi_cq_readfrom(own_.rx(), &entry, 1, &source), 1);
  EXPECT_EQ(source, FI_ADDR_NOTAVAIL);
  ASSERT_EQ(send(*peer_, to_own_, 'n'), 0);
  EXPECT_EQ(receive(own_, to, &source), 'n');
  EXPECT_EQ(source, to);
  for (const char byte : {'b', 'c'}) {
    EXPECT_EQ(receive(own_, FI_ADDR_UNSPEC, &source), byte);
    EXPECT_EQ(source, FI_ADDR_NOTAVAIL);
  }
}

// A receive posted for the successor waits for the successor.
TEST_P(OfiAnew, AReceiveFromTheSuccessorOutlivesThePredecessor) {
  exchange(own_.insert(*peer_), '1');
  start_anew();
  const fi_addr_t to = own_.insert(*peer_);
  char byte = 0;
  ASSERT_EQ(fi_trecv(own_.ep(), &byte, 1, nullptr, to, kTag, 0, &byte), 0);
  ASSERT_EQ(send(*peer_, to_own_, '2'), 0);
  fi_cq_tagged_entry entry{};
  ssize_t read = -FI_EAGAIN;
  ASSERT_TRUE(until([&] { return (read = fi_cq_read(own_.rx(), &entry, 1)) != -FI_EAGAIN; }));
  ASSERT_EQ(read, 1);
  EXPECT_EQ(byte, '2');
}

// The successor sent before its name was inserted: that session stays.
TEST_P(OfiAnew, InsertingANameKeepsAnExistingSession) {
  exchange(own_.insert(*peer_), '1');
  start_anew();
  for (const char byte : {'a', 'b'}) {
    ASSERT_EQ(send(*peer_, to_own_, byte), 0);
  }
  for (uint32_t turn = 0; turn < 1000; ++turn) {
    work();
  }
  const fi_addr_t to = own_.insert(*peer_);
  EXPECT_EQ(receive(own_, to), 'a');
  EXPECT_EQ(receive(own_, to), 'b');
  exchange(to, '2');
}

INSTANTIATE_TEST_SUITE_P(Wires, OfiAnew, testing::Values("shm", "emu"),
                         [](const auto& it) { return std::string(it.param); });

/// Processes that echo messages, one after the other at one destID. They are forked before a card
/// is opened.
class OfiKilled : public OfiTest {
 protected:
  OfiKilled() : OfiTest("shm"), info_(get_info(hints(kCaps))) {
    for (Echo& echo : echoes_) {
      echo.child = std::make_unique<Child>([&] { return serve(echo); });
    }
    own_ = std::make_unique<OfiNode>(info_, 1);
  }
  ~OfiKilled() override { own_->close(); }

  struct Echo {
    Pipe names_own;
    Pipe names_echo;
    std::unique_ptr<Child> child;
  };

  static OfiNode::Name hear(Pipe& from) {
    OfiNode::Name name{};
    for (uint8_t& byte : name) {
      byte = static_cast<uint8_t>(from.wait());
    }
    return name;
  }
  static void say(const Pipe& to, const OfiNode::Name& name) {
    for (const uint8_t byte : name) {
      to.tell(static_cast<char>(byte));
    }
  }
  int serve(Echo& echo) const {
    const OfiNode::Name name = hear(echo.names_own);
    OfiNode node(info_, kPeer);
    fi_addr_t to = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(node.av(), name.data(), 1, &to, 0, nullptr), 1);
    say(echo.names_echo, node.name());
    std::vector<char> bytes(kLongest);
    for (;;) {  // until it is killed
      fi_cq_tagged_entry entry{};
      EXPECT_EQ(fi_trecv(node.ep(), bytes.data(), kLongest, nullptr, to, kTag, 0, nullptr), 0);
      while (fi_cq_read(node.rx(), &entry, 1) != 1) {
      }
      EXPECT_EQ(fi_tsend(node.ep(), bytes.data(), entry.len, nullptr, to, kTag, nullptr), 0);
      while (fi_cq_read(node.tx(), &entry, 1) != 1) {
      }
    }
  }
  /// Starts the next process. @return its name.
  OfiNode::Name start() {
    Echo& echo = echoes_[next_++];
    say(echo.names_own, own_->name());
    return hear(echo.names_echo);
  }
  /// Ends the process that was started last.
  void stop() { echoes_[next_ - 1].child.reset(); }
  void exchange(fi_addr_t to, size_t bytes, char value) {
    std::vector<char> out(bytes, value);
    std::vector<char> in(bytes);
    ASSERT_EQ(fi_trecv(own_->ep(), in.data(), bytes, nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr), 0);
    ASSERT_EQ(fi_tsend(own_->ep(), out.data(), bytes, nullptr, to, kTag, nullptr), 0);
    fi_cq_tagged_entry entry{};
    ssize_t sent = -FI_EAGAIN;
    ssize_t read = -FI_EAGAIN;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while ((sent == -FI_EAGAIN || read == -FI_EAGAIN) && std::chrono::steady_clock::now() < end) {
      sent = sent == -FI_EAGAIN ? fi_cq_read(own_->tx(), &entry, 1) : sent;
      read = read == -FI_EAGAIN ? fi_cq_read(own_->rx(), &entry, 1) : read;
    }
    ASSERT_EQ(sent, 1);
    ASSERT_EQ(read, 1);
    EXPECT_EQ(in, out);
  }

  static constexpr size_t kLongest = 200'000;
  static constexpr size_t kEchoes = 5;
  static constexpr uint32_t kLooks = 10'000;
  Info info_;
  std::array<Echo, kEchoes> echoes_;
  size_t next_ = 0;
  std::unique_ptr<OfiNode> own_;
};

// Messages of each size, to the address of the first process.
TEST_F(OfiKilled, TheFirstSendAfterAKillGoesToTheNextProcess) {
  const OfiNode::Name first = start();
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(own_->av(), first.data(), 1, &to, 0, nullptr), 1);
  for (const size_t bytes : {size_t{1}, size_t{3000}, size_t{10'000}, kLongest}) {
    SCOPED_TRACE(testing::Message() << bytes << " bytes");
    exchange(to, bytes, 'a');
    stop();
    start();
    for (uint32_t turn = 0; turn < kLooks; ++turn) {
      own_->expect_silent();
    }
    exchange(to, bytes, 'b');
  }
  stop();
}

}  // namespace
}  // namespace rio::test
