// A peer that speaks the protocol and breaks its rules, against a wire.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fpga/wire/udp/contact.hpp"
#include "fpga/wire/udp/udp_wire.hpp"
#include "tests/support/wait.hpp"

namespace rio::wire::udp {
namespace {

/// Sends whatever the test wants, from one address.
class Speaker final : private Listener {
 public:
  Speaker() {
    Address at;
    EXPECT_EQ(Address::local("127.0.0.1", 0, &at), 0);
    EXPECT_EQ(Socket::open(at, &socket_), 0);
    self.member = {1};
    self.fabric = fabric_mark("test");
    attempt = made(10);
  }
  static Attempt made(uint8_t number) {
    Attempt out;
    out.challenge = {number};
    out.session = number;
    return out;
  }
  void send(const Address& to, const Greeting& greeting, size_t bytes) {
    encode(greeting, bytes, socket_->begin(to, 2000));
    socket_->flush();
  }
  void send(const Address& to, std::span<const uint8_t> bytes) {
    const std::span<uint8_t> room = socket_->begin(to, bytes.size());
    std::copy(bytes.begin(), bytes.end(), room.begin());
    socket_->end(bytes.size());
    socket_->flush();
  }
  void receive() { static_cast<void>(socket_->receive(this)); }
  [[nodiscard]] const Address& address() const { return socket_->address(); }

  Self self;
  Attempt attempt;
  std::vector<std::vector<uint8_t>> heard;

 private:
  void encode(const Greeting& greeting, size_t bytes, std::span<uint8_t> room) {
    socket_->end(udp::encode(greeting, self.key, bytes, room));
  }
  void on_datagram(const Address& /*from*/, std::span<uint8_t> bytes) override {
    heard.emplace_back(bytes.begin(), bytes.end());
  }
  void on_refused(const Address& /*to*/) override {}
  void on_narrow(const Address& /*to*/, uint32_t /*mtu*/) override {}

  std::unique_ptr<Socket> socket_;
};

class UdpHostile : public testing::Test {
 protected:
  UdpHostile() {
    Seat seat;
    seat.fabric = "test";
    seat.bind = "127.0.0.1";
    std::string error;
    EXPECT_EQ(UdpWire::join(seat, &wire_, &error), 0) << error;
    EXPECT_EQ(Address::parse(wire_->address(), false, &victim_), 0);
  }
  void step() {
    wire_->pump(0);
    model::PartnerChange change{};
    while (wire_->next_change(&change)) {
      changes_.push_back(change.here);
    }
    peer_.receive();
  }
  /// Lets the wire process everything sent to it, which loopback has already delivered.
  void settle() {
    constexpr int kSteps = 100;
    for (int i = 0; i < kSteps; ++i) {
      step();
    }
  }
  [[nodiscard]] bool until(const std::function<bool()>& done) {
    return test::wait_until([&] {
      step();
      return done();
    });
  }
  /// Waits for the next greeting of a kind.
  [[nodiscard]] Greeting heard(uint8_t kind) {
    Greeting out;
    EXPECT_TRUE(until([&] {
      for (std::vector<uint8_t>& bytes : peer_.heard) {
        if (decode(bytes, peer_.self.key, &out) == 0 && out.kind == kind) {
          bytes.clear();
          return true;
        }
      }
      return false;
    }));
    return out;
  }
  /// Makes a datagram of a connection.
  [[nodiscard]] std::vector<uint8_t> datagram(const Attempt& attempt,
                                              std::span<const uint8_t> frames = {},
                                              uint32_t unit = 0) const {
    Datagram out;
    out.session = attempt.they->session;
    out.number = ++number_;
    out.heard[0].window = out.heard[1].window = 16;
    out.parts[0] = {unit, frames};
    std::vector<uint8_t> bytes(kHeaderBytes + frames.size());
    EXPECT_EQ(encode(out, bytes), bytes.size());
    return bytes;
  }
  void say_hello(Attempt* attempt) {
    Greeting hello = attempt->say(kKindHello, peer_.self, 0);
    peer_.send(victim_, hello, kDatagramMin);
    const Greeting accept = heard(kKindAccept);
    attempt->hear(accept, accept.datagram_bytes);
  }
  void connect() {
    say_hello(&peer_.attempt);
    EXPECT_TRUE(changes_.empty());  // no peer has proved its address
    peer_.send(victim_, datagram(peer_.attempt));
    ASSERT_TRUE(until([&] { return !changes_.empty(); }));
  }

  std::unique_ptr<UdpWire> wire_;
  Address victim_;
  Speaker peer_;
  std::vector<bool> changes_;
  mutable uint64_t number_ = 0;
};

TEST_F(UdpHostile, APeerThatHasNotHeardTheAnswerIsNotConnected) {
  say_hello(&peer_.attempt);
  Attempt guessed = peer_.attempt;
  guessed.they->session ^= 1;
  peer_.send(victim_, datagram(guessed));
  settle();
  EXPECT_TRUE(changes_.empty());
}

TEST_F(UdpHostile, OtherAddressesCannotSpeakForAPeer) {
  connect();
  Speaker other;
  other.send(victim_, datagram(peer_.attempt));
  Greeting farewell = peer_.attempt.say(kKindFarewell, peer_.self, 0);
  other.send(victim_, farewell, 0);
  settle();
  EXPECT_EQ(changes_, std::vector<bool>{true});
}

TEST_F(UdpHostile, AFarewellWithoutTheChallengeIsIgnored) {
  connect();
  Greeting farewell = peer_.attempt.say(kKindFarewell, peer_.self, 0);
  farewell.echo[0] ^= 1;
  peer_.send(victim_, farewell, 0);
  settle();
  EXPECT_EQ(changes_, std::vector<bool>{true});
  farewell.echo[0] ^= 1;
  peer_.send(victim_, farewell, 0);
  ASSERT_TRUE(until([&] { return changes_.size() == 2; }));
  EXPECT_EQ(changes_, (std::vector<bool>{true, false}));
}

/// The peer falls silent; then come the wire's questions and the peer's answers.
TEST_F(UdpHostile, OnlyTheAnswerToItsOwnQuestionEndsAConnection) {
  connect();
  Greeting lie = peer_.attempt.say(kKindFarewell, peer_.self, 0);
  lie.reason = Reason::kUnknown;
  lie.echo = {};
  peer_.send(victim_, lie, 0);  // an answer without a question
  settle();
  const Greeting question = heard(kKindAsk);
  EXPECT_EQ(question.to_session, peer_.attempt.session);
  EXPECT_EQ(question.echo, peer_.attempt.challenge);
  EXPECT_NE(question.challenge, peer_.attempt.they->challenge);
  peer_.send(victim_, lie, 0);  // an answer from a peer that does not know the question
  lie.echo = peer_.attempt.they->challenge;
  peer_.send(victim_, lie, 0);
  lie.echo = question.challenge;
  lie.to_session ^= 1;
  peer_.send(victim_, lie, 0);
  lie.to_session ^= 1;
  Speaker other;
  other.send(victim_, lie, 0);
  settle();
  EXPECT_EQ(changes_, std::vector<bool>{true});
  peer_.send(victim_, datagram(peer_.attempt));  // the peer is alive
  peer_.heard.clear();
  const Greeting next = heard(kKindAsk);
  EXPECT_NE(next.challenge, question.challenge);
  peer_.send(victim_, lie, 0);  // an answer to an old question
  settle();
  EXPECT_EQ(changes_, std::vector<bool>{true});
  lie.echo = next.challenge;
  peer_.send(victim_, lie, 0);  // the right answer
  ASSERT_TRUE(until([&] { return changes_.size() == 2; }));
  EXPECT_FALSE(changes_[1]);
}

TEST_F(UdpHostile, AQuestionIsAnsweredByTheConnectionOrAShortFarewell) {
  connect();
  Greeting question = peer_.attempt.say(kKindAsk, peer_.self, 0);
  question.challenge = {77};
  settle();
  peer_.heard.clear();
  peer_.send(victim_, question, 0);
  ASSERT_TRUE(until([&] { return !peer_.heard.empty(); }));
  Datagram known;
  EXPECT_EQ(decode(peer_.heard[0], &known), 0);
  EXPECT_EQ(known.session, peer_.attempt.session);
  std::vector<Greeting> unknown(4, question);
  unknown[0].to_session ^= 1;
  unknown[1].to_session = 0;
  unknown[2].echo[0] ^= 1;
  unknown[3].session ^= 1;
  for (const Greeting& each : unknown) {
    peer_.heard.clear();
    peer_.send(victim_, each, 0);
    ASSERT_TRUE(until([&] { return !peer_.heard.empty(); }));
    EXPECT_LE(peer_.heard[0].size(), kGreetingBytes);
    Greeting no;
    ASSERT_EQ(decode(peer_.heard[0], Key(), &no), 0);
    EXPECT_EQ(no.kind, kKindFarewell);
    EXPECT_EQ(no.reason, Reason::kUnknown);
    EXPECT_EQ(no.to_session, each.session);
    EXPECT_EQ(no.echo, question.challenge);
  }
  Speaker other;  // has overheard a question to another member
  other.send(victim_, question, 0);
  settle();
  other.receive();
  ASSERT_EQ(other.heard.size(), 1u);
  Greeting no;
  ASSERT_EQ(decode(other.heard[0], Key(), &no), 0);
  EXPECT_EQ(no.reason, Reason::kUnknown);
  EXPECT_EQ(changes_, std::vector<bool>{true});
}

TEST_F(UdpHostile, OnlyQuestionsAreAnswered) {
  peer_.attempt.they.emplace();
  peer_.attempt.they->session = 5;
  peer_.send(victim_, datagram(peer_.attempt));  // of a connection that no member has
  peer_.send(victim_, peer_.attempt.say(kKindFarewell, peer_.self, 0), 0);
  peer_.send(victim_, peer_.attempt.say(kKindAccept, peer_.self, 0), 0);
  settle();
  EXPECT_TRUE(peer_.heard.empty());
}

TEST_F(UdpHostile, AnOldHelloDoesNoHarmAndANewProcessReplacesThePeer) {
  connect();
  Attempt again = Speaker::made(20);
  peer_.self.member = {2};
  say_hello(&again);
  settle();
  EXPECT_EQ(changes_, std::vector<bool>{true});
  peer_.send(victim_, datagram(again));
  ASSERT_TRUE(until([&] { return changes_.size() == 3; }));
  EXPECT_EQ(changes_, (std::vector<bool>{true, false, true}));
}

TEST_F(UdpHostile, AnAnswerIsNoLongerThanTheQuestion) {
  for (const size_t bytes : {kGreetingBytes, size_t{200}, size_t{kDatagramMin}}) {
    peer_.heard.clear();
    peer_.send(victim_, peer_.attempt.say(kKindHello, peer_.self, 0), bytes);
    ASSERT_TRUE(until([&] { return !peer_.heard.empty(); }));
    EXPECT_LE(peer_.heard[0].size(), bytes);
  }
}

TEST_F(UdpHostile, FramesThatNoCardSendsEndTheConnection) {
  connect();
  model::Frame frame;
  frame.clear();
  frame.bytes = sizeof(frame);
  frame.type = model::FrameType::kMessage;
  frame.source = 1;  // it has claimed one destID only
  std::vector<uint8_t> bytes(sizeof(frame));
  std::memcpy(bytes.data(), static_cast<const void*>(&frame), sizeof(frame));
  peer_.send(victim_, datagram(peer_.attempt, bytes));
  ASSERT_TRUE(until([&] { return changes_.size() == 2; }));
  EXPECT_FALSE(changes_[1]);
  std::string text;
  ASSERT_TRUE(wire_->next_trouble(&text));
  EXPECT_NE(text.find(peer_.address().text()), std::string::npos) << text;
  EXPECT_EQ(heard(kKindFarewell).reason, Reason::kLeaving);
}

TEST_F(UdpHostile, AcknowledgingUnsentUnitsEndsTheConnection) {
  connect();
  std::vector<uint8_t> lie = datagram(peer_.attempt);
  lie[16] = 77;  // requests heard
  peer_.send(victim_, lie);
  ASSERT_TRUE(until([&] { return changes_.size() == 2; }));
}

TEST_F(UdpHostile, ManyCallersTakeNoMembersPlace) {
  connect();
  for (int i = 0; i < 600; ++i) {
    Speaker other;
    other.self.member = {3};
    other.send(victim_, other.attempt.say(kKindHello, other.self, 0), kGreetingBytes);
    settle();
  }
  peer_.heard.clear();
  std::vector<uint8_t> question = datagram(peer_.attempt);
  question[kKindAt] = kKindAsks;
  peer_.send(victim_, question);
  EXPECT_TRUE(until([&] { return !peer_.heard.empty(); }));
  EXPECT_EQ(changes_, std::vector<bool>{true});
}

}  // namespace
}  // namespace rio::wire::udp
