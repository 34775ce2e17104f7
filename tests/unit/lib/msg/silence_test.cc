// A peer that does not answer, in one process: its port makes no progress for a while. Other peers
// do not suffer, and in the end the silent one receives everything that was sent to it.
#include <algorithm>

#include "tests/unit/lib/msg/large_fixture.hpp"
#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {
namespace {

constexpr uint32_t kSilent = 2;
constexpr uint32_t kToSilent = 24;

/// Text that names its number, and is sometimes longer than one or two segments.
std::string text_of(uint32_t number) {
  return std::to_string(number) + std::string(number % 3 * 300, '.');
}

/// The parameter: how many waiting messages the card passes over.
class Silence : public Net, public ::testing::WithParamInterface<uint32_t> {
 protected:
  [[nodiscard]] static bool passes() { return GetParam() != 0; }
  /// A card that passes over messages does without restarts of the ring.
  void expect_restarts(uint64_t without_passing) const {
    EXPECT_EQ(own_.port->stats().restarts, passes() ? 0 : without_passing);
  }
  /// Where the ring is not restarted, a peer rests only if it is silent for long enough.
  void expect_rests(uint64_t without_passing) const {
    EXPECT_LE(own_.port->stats().rests, without_passing);
    EXPECT_TRUE(passes() || own_.port->stats().rests == without_passing);
  }
  /// The timeout is longer than a thread inside of a card may be kept from its CPU, since its card
  /// is silent meanwhile.
  [[nodiscard]] PortConfig config_of(uint32_t id, const std::string& options = "") const {
    PortConfig config = Net::config_of(id, options + ",pass_over=" + std::to_string(GetParam()));
    config.response_timeout_us = 30'000;
    config.deliver_ms = deliver_ms_;
    return config;
  }
  /// Opens a port, a peer that will be silent, and others, and has them all meet.
  void open(uint32_t others, const std::string& options = "") {
    own_ = member(port(config_of(1, options)), 0);
    silent_ = member(port(config_of(kSilent, options)), 0);
    for (uint32_t id = 3; id < 3 + others; ++id) {
      others_.push_back(member(port(config_of(id, options)), 0));
    }
    meet(silent_);
    for (const Member& other : others_) {
      meet(other);
    }
    numbers_.assign(others, 0);
  }
  void meet(const Member& other) {
    ASSERT_EQ(send(own_, to(other), "hello"), 0);
    ASSERT_EQ(receive(other), "hello");
    // Flush both: the wire's thread steps cards with outstanding messages, so an unflushed peer
    // would not be silent.
    ASSERT_TRUE(work_until([&] { return own_.port->flush(0) == 0 && other.port->flush(0) == 0; }));
  }
  static Route to(const Member& from, const Member& other) {
    return route(from, other.port->dest_id(), 0);
  }
  [[nodiscard]] Route to(const Member& other) const { return to(own_, other); }

  /// Lets all ports but the silent ones work until the condition holds.
  template <class Done>
  [[nodiscard]] bool work_without(const std::vector<const Member*>& silent, const Done& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      for (const auto& port : ports_) {
        const bool works = std::none_of(silent.begin(), silent.end(),
                                        [&](const Member* m) { return m->port == port.get(); });
        if (works) {
          port->progress();
        }
      }
      if (std::chrono::steady_clock::now() > until) {
        return false;
      }
    }
    return true;
  }
  /// Sends until a message is not accepted, at most `count`. @return the number sent.
  uint32_t send_to_silent(const Member& silent, uint32_t first, uint32_t count) {
    uint32_t sent = 0;
    while (sent < count && try_send(own_, to(silent), text_of(first + sent)) == 0) {
      ++sent;
    }
    return sent;
  }
  /// Sends so many messages to each of the others while peers are silent, and receives them all.
  void others_get(const std::vector<const Member*>& silent, uint32_t count) {
    std::vector<uint32_t> sent(others_.size());
    std::vector<uint32_t> received(others_.size());
    const bool ended = work_without(silent, [&] {
      bool all = true;
      for (size_t i = 0; i < others_.size(); ++i) {
        const Route there = to(others_[i]);
        while (sent[i] < count && try_send(own_, there, text_of(numbers_[i] + sent[i])) == 0) {
          ++sent[i];
        }
        for (; !others_[i].inbox().empty(); ++received[i]) {
          EXPECT_EQ(others_[i].take(), text_of(numbers_[i] + received[i]));
        }
        all = all && received[i] == count;
      }
      return all || HasFailure();
    });
    EXPECT_TRUE(ended) << sent[0] << " sent, " << received[0] << " received, of " << count;
    for (uint32_t& number : numbers_) {
      number += count;
    }
  }
  void expect_all(const Member& to, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) {
      ASSERT_EQ(receive(to), text_of(i));
    }
    turns(2000);
    EXPECT_TRUE(to.inbox().empty());
  }
  /// Sessions are unchanged, but for `ended` of them, and every peer can be reached.
  void expect_well(uint32_t ended = 0) {
    EXPECT_EQ(own_.port->sessions_ended(), ended);
    EXPECT_EQ(own_.port->error(), 0);
    EXPECT_EQ(send(own_, to(silent_), "well"), 0);
    EXPECT_EQ(receive(silent_), "well");
    others_get({}, 1000);
  }

  uint32_t deliver_ms_ = 60'000;
  Member own_;
  Member silent_;
  std::vector<Member> others_;
  std::vector<uint32_t> numbers_;
};

[[nodiscard]] std::string name_of(const ::testing::TestParamInfo<uint32_t>& info) {
  return info.param == 0 ? "head_blocks" : "passes";
}
INSTANTIATE_TEST_SUITE_P(Card, Silence, ::testing::Values(0, 256), name_of);

TEST_P(Silence, OneMessageToASilentPeerStopsNoOtherPeer) {
  open(2);
  ASSERT_EQ(send_to_silent(silent_, 0, 1), 1u);
  others_get({&silent_}, 20'000);
  expect_restarts(1u);
  expect_rests(1u);
  expect_all(silent_, 0, 1);
  expect_well();
}

TEST_P(Silence, AWholeShareArrivesOnceAndInOrder) {
  open(2);
  const uint32_t sent = send_to_silent(silent_, 0, kToSilent);
  ASSERT_GE(sent, 4u);
  others_get({&silent_}, 20'000);
  EXPECT_TRUE(passes() || try_send(own_, to(silent_), "more") == -EAGAIN);
  expect_all(silent_, 0, sent);
  expect_well();
}

// No other peer waits behind the silent one, so a restart of the ring would help none.
TEST_P(Silence, NoRestartWhenNoOtherPeerWaits) {
  open(1);
  const uint32_t sent = send_to_silent(silent_, 0, 2);  // letters are left for other peers, too
  ASSERT_NE(sent, 0u);
  const auto until =
      std::chrono::steady_clock::now() + milliseconds(100);  // as long as many timeouts
  ASSERT_TRUE(work_without({&silent_}, [&] { return std::chrono::steady_clock::now() > until; }));
  EXPECT_EQ(own_.port->stats().restarts, 0u);
  expect_all(silent_, 0, sent);
  EXPECT_EQ(own_.port->stats().rests, 0u);
  expect_well();
}

TEST_P(Silence, OneMessageBehindTheLettersOfASilentPeerGetsThere) {
  open(1);
  ASSERT_GE(send_to_silent(silent_, 0, kToSilent),
            8u);  // more messages of two segments than there are letters
  others_get({&silent_}, 1);
  expect_restarts(1u);
}

TEST_P(Silence, SeveralAtOnce) {
  open(4);
  const Member second = std::move(others_[3]);
  const Member third = std::move(others_[2]);
  others_.resize(2);
  numbers_.resize(2);
  const std::vector<const Member*> silent = {&silent_, &second, &third};
  uint32_t sent[3] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    sent[i] = send_to_silent(*silent[i], 0, kToSilent);
    ASSERT_NE(sent[i], 0u);
  }
  others_get(silent, 20'000);
  expect_rests(3u);
  EXPECT_LE(own_.port->stats().restarts, passes() ? 0u : 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    expect_all(*silent[i], 0, sent[i]);
  }
  expect_well();
}

// The ring is stopped once for each silence, however long that lasts.
TEST_P(Silence, AgainAndAgain) {
  open(2);
  uint32_t first = 0;
  for (uint32_t round = 1; round <= 4; ++round) {
    uint32_t sent = 0;
    ASSERT_TRUE(work_until([&] { return (sent = send_to_silent(silent_, first, 3)) != 0; }));
    others_get({&silent_}, 3000);
    expect_restarts(round);
    expect_rests(round);
    expect_all(silent_, first, sent);
    first += sent;
  }
  expect_well();
}

TEST_P(Silence, HellosToASilentPeerStopNoOtherPeer) {
  open(1);
  const Member stranger = member(port(99), 0);
  const Route there = to(stranger);
  EXPECT_EQ(try_send(own_, there, "hello"), -EAGAIN);
  others_get({&stranger}, 20'000);
  const auto until =
      std::chrono::steady_clock::now() + milliseconds(200);  // a hello goes out each 2 ms
  ASSERT_TRUE(work_without({&stranger}, [&] { return std::chrono::steady_clock::now() > until; }));
  others_get({&stranger}, 5000);
  expect_restarts(1u);
  ASSERT_EQ(send(own_, there, "hello"), 0);
  EXPECT_EQ(receive(stranger), "hello");
  expect_well();
}

TEST_P(Silence, APeerThatIsSilentForTooLongLosesItsSession) {
  PortConfig config = config_of(1);
  config.connect_ms = config.deliver_ms = 500;
  own_ = member(port(config), 0);
  silent_ = member(port(kSilent), 0);
  others_.push_back(member(port(3), 0));
  numbers_.assign(1, 0);
  meet(silent_);
  meet(others_[0]);
  ASSERT_EQ(try_send(own_, to(silent_), "lost, or not"), 0);
  others_get({&silent_}, 5000);
  int rc = -EAGAIN;
  EXPECT_TRUE(work_without({&silent_}, [&] {
    rc = try_send(own_, to(silent_), "more");
    return rc != -EAGAIN && (!passes() || rc != 0);  // it is sent until the peer rests
  }));
  EXPECT_EQ(rc, -ETIMEDOUT);
  // A new session with it is given up after connect_ms, as with any other peer.
  EXPECT_TRUE(work_without(
      {&silent_}, [&] { return (rc = try_send(own_, to(silent_), "hello?")) != -EAGAIN; }));
  EXPECT_EQ(rc, -EHOSTUNREACH);
  others_get({&silent_}, 5000);
  expect_restarts(1u);
  // It makes progress again, and a new session begins.
  ASSERT_EQ(send(own_, to(silent_), "again"), 0);
  EXPECT_EQ(receive(silent_), "lost, or not");
  std::string text = receive(silent_);
  while (passes() && text == "more") {
    text = receive(silent_);
  }
  EXPECT_EQ(text, "again");
}

TEST_P(Silence, APeerThatOnlySaysHelloLosesItsSession) {
  deliver_ms_ = 500;
  open(1);
  Raw stranger("shm:x,id=99", 0);
  const uint32_t known = own_.port->link_count();
  ASSERT_TRUE(stranger.send(1, Wire::session(Kind::kHello, 0, 77, 0, 100)));
  ASSERT_TRUE(work_until([&] {
    stranger.reap();
    return own_.port->link_count() != known && own_.port->link(99)->keys.remote == 77;
  }));
  ASSERT_TRUE(
      stranger.send(1, Wire::session(Kind::kWelcome, 0, 77, own_.port->link(99)->keys.local, 100)));
  ASSERT_TRUE(work_until([&] { return own_.port->link(99)->state == LinkState::kUp; }));
  others_get({}, 5000);  // only the welcome is in doubt
  int rc = -EAGAIN;
  EXPECT_TRUE(work_until(
      [&] { return (rc = try_send(own_, route(own_, 99, 0), "to a resting peer")) != -EAGAIN; }));
  EXPECT_EQ(rc, -ETIMEDOUT);
  expect_well(1);
}

TEST_P(Silence, APeerThatGoesAwayIsNotWaitedFor) {
  open(2);
  ASSERT_NE(send_to_silent(silent_, 0, kToSilent), 0u);
  others_get({&silent_}, 5000);
  expect_rests(1u);
  silent_.context.reset();
  close(*silent_.port);
  silent_ = {};
  Route there;
  ASSERT_EQ(own_.port->route(kSilent, 0, 0, Kind::kData, &there), 0);
  int rc = -EAGAIN;
  EXPECT_TRUE(work_until([&] { return (rc = try_send(own_, there, "more")) != -EAGAIN; }));
  EXPECT_EQ(rc, -ECONNRESET);
  silent_ = member(port(kSilent), 0);
  ASSERT_EQ(send(own_, there, "born again"), 0);
  EXPECT_EQ(receive(silent_), "born again");
  others_get({}, 1000);
}

/// Large data, to a silent peer or to others.
class SilenceLarge : public Silence {
 protected:
  static constexpr uint64_t kBytes = 8u << 20;

  struct Moved {
    explicit Moved(uint32_t seed) { test::fill(from.at(), kBytes, seed); }

    SendTransfer sent;
    RecvTransfer received;
    Area from{kBytes, 0, 0x11};
    Area to{kBytes, 0, 0x22};
  };

  void open_large(uint32_t others, uint32_t deliver_ms = 60'000) {
    deliver_ms_ = deliver_ms;
    open(others);
    static_cast<void>(own_.port->rails().at(0).shown.give_up());  // its data is sent, not read
    ASSERT_EQ(own_.context->accept_large(), 0);
    ASSERT_EQ(silent_.context->accept_large(), 0);
    for (const Member& other : others_) {
      ASSERT_EQ(other.context->accept_large(), 0);
    }
  }
  /// Begins a transfer and has it matched: the first messages may be on their way.
  void begin(const Member& other, Moved& moved) {
    int rc = -EAGAIN;
    ASSERT_TRUE(work_until([&] {
      rc = own_.context->send_large(to(other), 0, moved.from.at(), kBytes, moved.sent);
      return rc != -EAGAIN;
    }));
    ASSERT_EQ(rc, 0);
    ASSERT_TRUE(work_until([&] { return !other.inbox().empty(); }));
    other.context->receive_large(other.context->take_request(), moved.to.at(), kBytes,
                                 moved.received);
  }
  static void expect_moved(const Moved& moved) {
    EXPECT_TRUE(moved.sent.done && moved.received.done);
    EXPECT_EQ(moved.sent.status, 0);
    EXPECT_EQ(moved.received.status, 0);
    EXPECT_EQ(std::memcmp(moved.from.at(), moved.to.at(), kBytes), 0);
    EXPECT_TRUE(moved.to.guarded(kBytes));
  }
  /// Collects finished transfers before they are destroyed.
  void collect() {
    while (own_.context->next_sent() != nullptr) {
    }
    while (silent_.context->next_received() != nullptr) {
    }
    for (const Member& other : others_) {
      while (other.context->next_received() != nullptr) {
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Card, SilenceLarge, ::testing::Values(0, 256), name_of);

TEST_P(SilenceLarge, TransfersToOthersNeedNoOtherAttempt) {
  open_large(1);
  Moved moved(1);
  begin(others_[0], moved);
  // More messages than letters: those posted behind them stay in the ring.
  const uint32_t quiet = send_to_silent(silent_, 0, kToSilent);
  ASSERT_GE(quiet, 8u);
  EXPECT_TRUE(work_without({&silent_}, [&] { return moved.sent.done && moved.received.done; }));
  collect();
  expect_moved(moved);
  EXPECT_EQ(moved.sent.grant.attempt(), 0u);
  expect_restarts(1u);
  expect_all(silent_, 0, quiet);
  expect_well();
}

TEST_P(SilenceLarge, TheRingIsStoppedWithBothPeersInIt) {
  open_large(2);
  Moved quiet(2);
  Moved first(3);
  Moved second(4);
  begin(silent_, quiet);
  ASSERT_TRUE(work_until([&] { return quiet.sent.grant.out() != 0; }));
  begin(others_[0], first);
  begin(others_[1], second);
  EXPECT_TRUE(work_without({&silent_}, [&] { return first.sent.done && second.sent.done; }));
  EXPECT_TRUE(
      work_without({&silent_}, [&] { return first.received.done && second.received.done; }));
  EXPECT_TRUE(work_until([&] { return quiet.sent.done && quiet.received.done; }));
  collect();
  for (const Moved* moved : {&first, &second, &quiet}) {
    expect_moved(*moved);
  }
  expect_well();
}

// The session ends also if only its large data is in doubt.
TEST_P(SilenceLarge, ATransferToAPeerThatIsSilentForTooLongEnds) {
  open_large(1, 1000);
  Moved quiet(5);
  begin(silent_, quiet);
  ASSERT_TRUE(work_until([&] { return quiet.sent.grant.out() != 0; }));
  others_get({&silent_}, 5000);
  EXPECT_TRUE(work_without({&silent_}, [&] { return quiet.sent.done; }));
  EXPECT_EQ(quiet.sent.status, -ETIMEDOUT);
  EXPECT_TRUE(work_until([&] { return quiet.received.done; }));
  EXPECT_EQ(quiet.received.status, -ECONNRESET);
  EXPECT_TRUE(quiet.to.guarded(kBytes));
  collect();
}

}  // namespace
}  // namespace rio::msg::test
