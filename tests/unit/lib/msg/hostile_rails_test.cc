// A peer that lies about its rails. It has a card on each of the port's two fabrics, and writes any
// bytes. A friendly peer with two rails talks to the port meanwhile.
#include <algorithm>
#include <functional>
#include <optional>
#include <ostream>

#include "tests/support/log_capture.hpp"
#include "tests/unit/lib/msg/large_fixture.hpp"
#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {
namespace {

constexpr uint32_t kPort = 1;
constexpr uint32_t kFriend = 2;
constexpr uint32_t kFoe = 3;
constexpr uint32_t kFoeKey = 0xFFFFFFFF;  // above any of the port: so the port asks for paths
constexpr uint32_t kRailsOfFoe = 2;

template <class Body>
std::string text_of(const Body& body) {
  return {reinterpret_cast<const char*>(&body), sizeof(body)};
}

class HostileRails : public Net {
 public:
  HostileRails() {
    EXPECT_EQ(send(friend_, there_, "before"), 0);
    EXPECT_EQ(receive(own_), "before");
    EXPECT_TRUE(work_until([&] { return found(kFriend) == 2; }));
    begin();
  }
  ~HostileRails() override {
    for (uint32_t i = 0; i < 300; ++i) {
      EXPECT_EQ(send(friend_, there_, std::to_string(i)), 0);
      EXPECT_EQ(receive(own_), std::to_string(i));
    }
    EXPECT_EQ(found(kFriend), 2u);
    EXPECT_TRUE(is_friend_asked_ || friend_.port->stats().bad == 0);
    EXPECT_EQ(friend_.port->sessions_ended(), 0u);
    // A later peer with the foe's destID, which keeps the rules, is served by both rails.
    for (std::optional<Raw>& card : foe_) {
      card.reset();
    }
    const Member good = member(port(two_cards(kFoe)), 0);
    int rc = -ECONNRESET;
    while (rc == -ECONNRESET) {
      rc = send(good, route(good, kPort, 0), "good");
    }
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(receive(own_), "good");
    EXPECT_TRUE(work_until([&] { return found(kFoe) == 2; }));
  }

  static PortConfig two_cards(uint32_t id) {
    PortConfig config = config_of(id);
    config.card = "shm:x,id=" + std::to_string(id) + "+shm:y,id=" + std::to_string(id);
    return config;
  }
  /// Begins a session, as a peer with some rails.
  void begin(uint32_t rails = kRailsOfFoe) {
    const auto say = [&](Kind kind, uint32_t known) {
      const SessionBody body = {kMagic, kFoeKey, known, 100, 1, rails};
      sends(0, Wire::message(0, 0, 0, 0, 0, kind, text_of(body)));
    };
    say(Kind::kHello, 0);
    ASSERT_TRUE(work_until([&] { return link().keys.remote == kFoeKey; }));
    say(Kind::kWelcome, link().keys.local);
    ASSERT_TRUE(work_until([&] { return link().state == LinkState::kUp; }));
    session_ = link().session;
  }
  /// @param card of the foe.
  void sends(uint32_t card, const std::vector<uint8_t>& bytes) {
    ASSERT_TRUE(work_until([&] { return foe_[card]->send(kPort, bytes); }));
    ASSERT_TRUE(work_until([&] {
      drain();
      return foe_[card]->outstanding() == 0;
    }));
    turns(2);
  }
  void says(uint32_t card, Kind kind, const std::string& text) {
    sends(card, Wire::message(link().keys.local, 0, 0, 0, 0, kind, text));
  }
  /// The list of an honest peer.
  [[nodiscard]] RailsBody rails() {
    RailsBody body{};
    body.magic = kMagic;
    body.session = link().keys.local;
    body.peer = kFoeKey;
    body.count = kRailsOfFoe;
    body.rails[0].dest_id = body.rails[1].dest_id = kFoe;
    return body;
  }
  [[nodiscard]] RailBody question(uint16_t asking) {
    return {kMagic, link().keys.local, kFoeKey, asking, RailBody::kNone};
  }
  [[nodiscard]] RailBody answer(uint16_t asking, uint16_t answering) {
    return {kMagic, link().keys.local, kFoeKey, asking, answering};
  }
  void drain() {
    for (std::optional<Raw>& card : foe_) {
      while (!card->receive().empty()) {
      }
      card->reap();
    }
  }
  /// Lets the port ask what it will, and ignores it.
  void wait(uint32_t ms) {
    const auto end = std::chrono::steady_clock::now() + milliseconds(ms);
    while (std::chrono::steady_clock::now() < end) {
      turn();
      drain();
    }
  }
  [[nodiscard]] Link& link() { return *own_.port->link(kFoe); }
  [[nodiscard]] uint32_t found(uint32_t dest_id) const {
    uint32_t count = 0;
    for (const auto& path : own_.port->link(dest_id)->paths) {
      count += path != nullptr && path->is_found ? 1 : 0;
    }
    return count;
  }
  void expect_cut_off() {
    EXPECT_TRUE(work_until([&] {
      drain();
      return link().session != session_;
    }));
    EXPECT_EQ(own_.port->stats().cut_off, 1u);
    EXPECT_EQ(link().error, -EPROTO);
  }
  void expect_ignored(uint32_t paths) {
    wait(5);
    EXPECT_EQ(link().session, session_);
    EXPECT_EQ(own_.port->stats().cut_off, 0u);
    EXPECT_GE(own_.port->stats().bad, 1u);
    EXPECT_EQ(found(kFoe), paths);
  }

 protected:
  Member own_ = member(port(two_cards(kPort)), 0);
  Member friend_ = member(port(two_cards(kFriend)), 0);
  Route there_ = route(friend_, kPort, 0);
  std::array<std::optional<Raw>, 2> foe_ = make_cards();
  uint32_t session_ = 0;
  bool is_friend_asked_ = false;  // the port asks the friend for the foe

 private:
  static std::array<std::optional<Raw>, 2> make_cards() {
    std::array<std::optional<Raw>, 2> cards;
    cards[0].emplace("shm:x,id=3", 0);
    cards[1].emplace("shm:y,id=3", 0);
    return cards;
  }
};

struct RailsLie {
  const char* name;
  std::function<void(HostileRails& foe)> tell;
};
std::ostream& operator<<(std::ostream& out, const RailsLie& lie) {
  return out << lie.name;
}
std::string name_of(const testing::TestParamInfo<RailsLie>& info) {
  return info.param.name;
}
void tell_rails(HostileRails& foe, const std::function<void(RailsBody& body)>& change) {
  RailsBody body = foe.rails();
  change(body);
  foe.says(0, Kind::kRails, text_of(body));
}

// No honest peer says these: each ends the session of the foe.
class CutOff : public HostileRails, public testing::WithParamInterface<RailsLie> {};
TEST_P(CutOff, CostsItsSessionAndNothingElse) {
  GetParam().tell(*this);
  expect_cut_off();
}
INSTANTIATE_TEST_SUITE_P(
    List, CutOff,
    testing::Values(RailsLie{"OfNoRails",
                             [](HostileRails& foe) {
                               tell_rails(foe, [](RailsBody& body) { body.count = 0; });
                             }},
                    RailsLie{"OfNineRails",
                             [](HostileRails& foe) {
                               tell_rails(foe, [](RailsBody& body) { body.count = kRailsMax + 1; });
                             }},
                    RailsLie{"OfAllRailsThatANumberHolds",
                             [](HostileRails& foe) {
                               tell_rails(foe, [](RailsBody& body) { body.count = ~0u; });
                             }},
                    RailsLie{"OfMoreRailsThanItSaid",
                             [](HostileRails& foe) {
                               tell_rails(foe,
                                          [](RailsBody& body) { body.count = kRailsOfFoe + 1; });
                             }},
                    RailsLie{"WithAnAddressThatHasNoEnd",
                             [](HostileRails& foe) {
                               tell_rails(foe, [](RailsBody& body) {
                                 std::fill_n(body.rails[1].address, RailsBody::kAddressBytes, 'a');
                               });
                             }},
                    RailsLie{"OfAnotherFormat",
                             [](HostileRails& foe) {
                               tell_rails(foe, [](RailsBody& body) { body.is_seen = 2; });
                             }}),
    name_of);

// A stranger could say these, too, or an honest peer too late: they change nothing.
class Ignored : public HostileRails, public testing::WithParamInterface<RailsLie> {};
TEST_P(Ignored, ChangesNothing) {
  GetParam().tell(*this);
  expect_ignored(0);
}
INSTANTIATE_TEST_SUITE_P(
    Message, Ignored,
    testing::Values(
        RailsLie{"ListCutShort",
                 [](HostileRails& foe) {
                   foe.says(0, Kind::kRails, text_of(foe.rails()).substr(0, 100));
                 }},
        RailsLie{
            "ListOfAnotherSession",
            [](HostileRails& foe) { tell_rails(foe, [](RailsBody& body) { ++body.session; }); }},
        RailsLie{"ListOfAnotherPeer",
                 [](HostileRails& foe) { tell_rails(foe, [](RailsBody& body) { ++body.peer; }); }},
        RailsLie{"ListByARailWithoutAPath",
                 [](HostileRails& foe) { foe.says(1, Kind::kRails, text_of(foe.rails())); }},
        RailsLie{"AnswerThatNobodyAskedFor",
                 [](HostileRails& foe) { foe.says(1, Kind::kFound, text_of(foe.answer(1, 1))); }},
        RailsLie{"AnswerToAnotherRail",
                 [](HostileRails& foe) { foe.says(1, Kind::kFound, text_of(foe.answer(0, 1))); }},
        RailsLie{"QuestionOfARailThatItHasNot",
                 [](HostileRails& foe) { foe.says(1, Kind::kFind, text_of(foe.question(2))); }},
        RailsLie{
            "QuestionOfRail65535",
            [](HostileRails& foe) { foe.says(1, Kind::kFind, text_of(foe.question(0xFFFF))); }},
        RailsLie{"QuestionThatIsAnAnswer",
                 [](HostileRails& foe) { foe.says(1, Kind::kFind, text_of(foe.answer(1, 1))); }},
        RailsLie{"QuestionWithoutABody", [](HostileRails& foe) { foe.says(1, Kind::kFind, ""); }},
        RailsLie{"QuestionWithAnotherKey",
                 [](HostileRails& foe) {
                   RailBody body = foe.question(1);
                   body.peer ^= 1;
                   foe.says(1, Kind::kFind, text_of(body));
                 }}),
    name_of);

TEST_F(HostileRails, DestIdsThatNoCardHasAreAskedInVain) {
  tell_rails(*this, [](RailsBody& body) {
    body.rails[0].dest_id = ~0u;
    body.rails[1].dest_id = 1u << 24;
  });
  wait(100);
  EXPECT_EQ(link().session, session_);
  EXPECT_EQ(found(kFoe), 0u);
}

// It would have the port ask the friend, who does not know the keys.
TEST_F(HostileRails, RailsOfOthersAreNotItsOwn) {
  tell_rails(*this,
             [](RailsBody& body) { body.rails[0].dest_id = body.rails[1].dest_id = kFriend; });
  wait(100);
  EXPECT_EQ(found(kFoe), 0u);
  EXPECT_EQ(own_.port->link(kFriend)->paths[1]->dest_id, kFriend);
  EXPECT_GE(friend_.port->stats().bad, 1u);
  is_friend_asked_ = true;
}

TEST_F(HostileRails, AnAnsweredPathIsUsedForItsOwnDestIdOnly) {
  says(1, Kind::kFind, text_of(question(1)));
  EXPECT_EQ(found(kFoe), 0u) << "the foe may not have heard the answer";
  says(1, Kind::kFound, text_of(answer(1, 1)));  // to the question that the port had, too
  EXPECT_TRUE(work_until([&] {
    drain();
    return found(kFoe) == 1;
  }));
  // Another card with the same keys does not take the path over.
  Raw other("shm:y,id=4", 0);
  ASSERT_TRUE(work_until([&] {
    return other.send(
        kPort, Wire::message(link().keys.local, 0, 0, 0, 0, Kind::kFind, text_of(question(0))));
  }));
  wait(20);
  EXPECT_EQ(link().paths[1]->dest_id, kFoe);
  EXPECT_EQ(link().paths[1]->remote, 1u);
  while (!other.receive().empty()) {
    ADD_FAILURE() << "no answer: its messages would not be taken";
  }
}

// The port has asked the foe for a transfer, and each of its stripes is the foe's to grant.
class HostileStripes : public HostileRails {
 public:
  HostileStripes() { ask(); }

  void says_next(Kind kind, uint32_t credit, const std::string& text = "") {
    sends(0, Wire::message(link().keys.local, link().next_in(), 0, 0, credit, kind, text));
  }
  /// A stripe of an honest peer, that its first rail brings.
  [[nodiscard]] StripeBody stripe() const {
    StripeBody body{};
    body.grant.transfer = 1;
    body.grant.mailbox = 1;
    body.grant.stripe = 1;
    body.grant.total = 4;
    body.whole_bytes = kBytes - edge_bytes(reinterpret_cast<uintptr_t>(data_.data()), kBytes);
    pmd::mem::Cut cut;
    EXPECT_EQ(pmd::mem::make_cut(0, kStripeBytes, pmd::mem::AlignRules{}, &cut), 0);
    pmd::mem::encode_cut(cut, body.grant.cut);
    return body;
  }
  void says_stripe(const std::function<void(StripeBody& body)>& change) {
    StripeBody body = stripe();
    change(body);
    says_next(Kind::kStripe, kControlCredits, text_of(body));
  }

 protected:
  static constexpr uint64_t kBytes = 1 << 20;
  static constexpr uint64_t kStripeBytes = 32 << 10;

  const std::vector<uint8_t> data_ = std::vector<uint8_t>(kBytes);
  SendTransfer sent_;

 private:
  void ask() {
    constexpr uint32_t kCredit = 4;
    ASSERT_EQ(own_.context->accept_large(), 0);
    const Route there = route(own_, kFoe, 0);
    int rc = -EAGAIN;
    bool opened = false;
    ASSERT_TRUE(work_until([&] {
      rc = own_.context->send_large(there, 7, data_.data(), kBytes, sent_);
      const std::vector<uint8_t> heard = foe_[0]->receive();
      if (!opened && heard.size() >= kHeaderBytes &&
          load_header(heard.data()).kind() == Kind::kOpen) {
        opened = true;
        says_next(Kind::kOpened, kCredit);
      }
      while (!foe_[1]->receive().empty()) {
      }
      return rc != -EAGAIN;
    }));
    ASSERT_EQ(rc, 0);
    ASSERT_TRUE(work_until([&] {
      drain();
      return sent_.grant.state() == SendGrant::State::kRequested;
    }));
  }
};

struct StripeLie {
  const char* name;
  void (*change)(StripeBody& body);
};
std::ostream& operator<<(std::ostream& out, const StripeLie& lie) {
  return out << lie.name;
}

std::string stripe_name(const testing::TestParamInfo<StripeLie>& info) {
  return info.param.name;
}

TEST_F(HostileStripes, OfItsFirstRailIsTaken) {
  says_stripe([](StripeBody& /*body*/) {});
  wait(5);
  EXPECT_EQ(link().session, session_);
  EXPECT_EQ(own_.port->stats().cut_off, 0u);
  EXPECT_TRUE(sent_.has_stripes());
}

class StripeOf : public HostileStripes, public testing::WithParamInterface<StripeLie> {};
TEST_P(StripeOf, CostsItsSessionAndNothingElse) {
  StripeBody body{};
  GetParam().change(body);
  const bool is_a_rail = body.grant.rail < kRailsMax;
  const rio::test::LogCapture log;
  says_stripe(GetParam().change);
  expect_cut_off();
  const std::vector<std::string>& lines = rio::test::LogCapture::lines();
  ASSERT_EQ(lines.size(), is_a_rail ? 2u : 1u);
  EXPECT_NE(lines.back().find("destID 3 broke the protocol"), std::string::npos);
  EXPECT_TRUE(!is_a_rail ||
              lines.front().find("destID 3: it granted data by its rail ") != std::string::npos)
      << lines.front();
  EXPECT_FALSE(sent_.has_stripes());
  ASSERT_TRUE(work_until([&] { return sent_.done; }));
  EXPECT_EQ(sent_.status, -EPROTO);
}
INSTANTIATE_TEST_SUITE_P(
    Rail, StripeOf,
    testing::Values(
        StripeLie{"WithoutAPath", [](StripeBody& body) { body.grant.rail = 1; }},
        StripeLie{"ThatItHasNot", [](StripeBody& body) { body.grant.rail = kRailsOfFoe; }},
        StripeLie{"ThatNoPortHas", [](StripeBody& body) { body.grant.rail = kRailsMax; }},
        StripeLie{"Number255", [](StripeBody& body) { body.grant.rail = 255; }}),
    stripe_name);

}  // namespace
}  // namespace rio::msg::test
