// A card that writes any bytes to an endpoint: its session ends, and no other peer is harmed.
#include <cstdlib>
#include <functional>

#include "lib/msg/control.hpp"
#include "lib/msg/crowd.hpp"
#include "lib/msg/patience.hpp"
#include "tests/unit/lib/msg/net.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using msg::Kind;
using msg::test::Wire;
using tag::RecvRequest;
using tag::SendRequest;

constexpr uint32_t kOwn = 1;
constexpr uint32_t kFoe = 3;
constexpr uint32_t kFoeCredit = 4;  // credit that the foe gives to the endpoint
constexpr tag::Address kFoeAddress = tag::address(kFoe, 0);

template <class Body>
std::string text_of(const Body& body, size_t zeros = 0) {
  return std::string(reinterpret_cast<const char*>(&body), sizeof(body)) + std::string(zeros, '\0');
}

/// An endpoint, a friendly peer, and a hostile one that has a session and has opened the context.
class TagHostile : public testing::Test {
 protected:
  TagHostile() {
    setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1);
    own_ = std::make_unique<TagNode>("shm:h,id=1", 0);
    friend_ = std::make_unique<TagNode>("shm:h,id=2", 0);
    foe_ = std::make_unique<msg::test::Raw>("shm:h,id=3", 0);
    EXPECT_TRUE(foe_->send(kOwn, Wire::session(Kind::kHello, 0, 77, 0, 5)));
    EXPECT_TRUE(until([&] { return link().keys.remote == 77; }));
    key_ = link().keys.local;
    EXPECT_TRUE(foe_->send(kOwn, Wire::session(Kind::kWelcome, 0, 77, key_, 5)));
    EXPECT_TRUE(until([&] { return link().state == msg::LinkState::kUp; }));
    number_ = link().keys.first_in;
    session_ = link().session;
    says(Kind::kOpen);
    EXPECT_TRUE(until([&] { return link().in[0].open; }));
  }
  ~TagHostile() override { unsetenv("RIO_RUNTIME_DIR"); }

  msg::Link& link() { return *own_->port->link(kFoe); }
  /// Lets all work, while the foe reads its messages. @return whether good() became true.
  bool until(const std::function<bool()>& good) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!good()) {
      own_->progress();
      friend_->progress();
      foe_->reap();
      const std::vector<uint8_t> heard = foe_->receive();
      if (heard.size() >= msg::kHeaderBytes) {
        heard_ = msg::load_header(heard.data()).kind();
        kinds_ |= uint64_t{1} << static_cast<uint32_t>(heard_);
        mailbox_ = heard_ == Kind::kLast ? foe_->mailbox() : mailbox_;
      }
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
    }
    return true;
  }
  bool heard(Kind kind) { return (kinds_ >> static_cast<uint32_t>(kind) & 1) != 0; }

  /// Sends the next message of the foe's session, which the endpoint has not read yet.
  void says(Kind kind, const std::string& text = "", uint32_t credit = 0) {
    ASSERT_TRUE(foe_->send(kOwn, Wire::message(key_, number_++, 0, 0, credit, kind, text)));
  }
  void says_first(uint64_t total_bytes, uint32_t bytes = tag::kFirstBytesMax) {
    says(Kind::kFirst, text_of(tag::FirstHeader{7, total_bytes, 0}, bytes));
  }
  static msg::RequestBody request(uint32_t transfer) {
    msg::RequestBody body{};
    body.transfer = transfer;
    body.len_bytes = 50000;
    return body;
  }
  /// The endpoint requests a large send, and the foe has read the request.
  void endpoint_asks() {
    ASSERT_EQ((*own_)->send(kFoeAddress, 7, large_.data(), large_.size(), sending_), 0);
    ASSERT_TRUE(until([&] { return heard(Kind::kOpen); }));
    says(Kind::kOpened, "", kFoeCredit);
    ASSERT_TRUE(until([&] { return heard(Kind::kRequest); }));
  }
  msg::GrantBody grant() const {
    msg::GrantBody body{};
    body.transfer = 1;
    body.mailbox = 1;
    body.total = 1;
    pmd::mem::Cut cut;
    EXPECT_EQ(pmd::mem::make_cut(0, large_.size() - msg::edge_bytes(address(), large_.size()),
                                 rules_, &cut),
              0);
    pmd::mem::encode_cut(cut, body.cut);
    return body;
  }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uintptr_t>(large_.data()); }

  /// The foe's session has ended, and no other peer has lost anything.
  void expect_cut_off() {
    EXPECT_TRUE(until([&] { return link().session != session_; }));
    EXPECT_EQ(own_->port->stats().cut_off, 1u);
    EXPECT_TRUE(until([&] { return heard(Kind::kReset); }));
    expect_friend_unharmed();
  }
  void expect_friend_unharmed() {
    for (const uint64_t size : {0u, 8u, 300u, 4000u, 9000u, 100000u}) {
      exchange(*friend_, *own_, size);
      exchange(*own_, *friend_, size);
    }
  }
  void exchange(TagNode& from, TagNode& to, uint64_t size) {
    const std::vector<uint8_t> bytes = pattern(size + 1, size);
    std::vector<uint8_t> buffer(size);
    SendRequest send;
    RecvRequest receive;
    ASSERT_EQ(to->receive({1, 0, from.at()}, buffer.data(), size, receive), 0);
    const int sent = from->send(to.at(), 1, bytes.data(), size, send);
    ASSERT_GE(sent, 0);
    ASSERT_TRUE(until([&] { return to->test(receive); })) << size;
    ASSERT_EQ(receive.status, 0);
    ASSERT_TRUE(buffer == bytes) << size;
    ASSERT_TRUE(sent == 1 || until([&] { return from->test(send); })) << size;
  }

  TempDir dir_;
  const std::vector<uint8_t> large_ = pattern(3, 200000);
  SendRequest sending_;
  std::unique_ptr<TagNode> own_;
  std::unique_ptr<TagNode> friend_;
  std::unique_ptr<msg::test::Raw> foe_;
  pmd::mem::AlignRules rules_;
  uint32_t key_ = 0;
  uint32_t number_ = 0;
  uint32_t session_ = 0;
  Kind heard_ = Kind::kData;
  uint64_t kinds_ = 0;
  uint32_t mailbox_ = ~0u;  // of the last kLast
};

TEST_F(TagHostile, AMessageWithoutMatchBits) {
  RecvRequest receive;
  ASSERT_EQ((*own_)->receive({0, UINT64_MAX, kFoeAddress}, nullptr, 0, receive), 0);
  says(Kind::kData, "1234567");
  expect_cut_off();
  EXPECT_TRUE((*own_)->test(receive));
  EXPECT_EQ(receive.status, -EPROTO);
}

TEST_F(TagHostile, AMessageWithoutItsImmediateData) {
  says(Kind::kDataImmediate, "fifteen bytes..");
  expect_cut_off();
}

TEST_F(TagHostile, ImmediateDataOfAMessageThatHasNone) {
  says(Kind::kFirst, text_of(tag::FirstHeader{7, 10000, 1}, tag::kFirstBytesMax));
  expect_cut_off();
}

TEST_F(TagHostile, KindsThatDoNotExist) {
  says(static_cast<Kind>(6), "sixteen bytes...");
  expect_cut_off();
}

TEST_F(TagHostile, APartOfNothing) {
  says(Kind::kMore, std::string(tag::kMoreBytesMax, 'x'));
  expect_cut_off();
}

TEST_F(TagHostile, AFirstPartWithoutAHeader) {
  says(Kind::kFirst, "fifteen bytes..");
  expect_cut_off();
}

TEST_F(TagHostile, AFirstPartThatIsNotFull) {
  says_first(10000, 100);
  expect_cut_off();
}

TEST_F(TagHostile, AFirstPartThatIsTheWholeMessage) {
  says_first(tag::kFirstBytesMax);
  expect_cut_off();
}

TEST_F(TagHostile, ALengthAboveTheMaximum) {
  says_first(tag::kLengthMax + 1);
  expect_cut_off();
}

TEST_F(TagHostile, AMessageInTheMiddleOfAnother) {
  says_first(10000);
  says(Kind::kData, "12345678");
  expect_cut_off();
}

TEST_F(TagHostile, ARequestInTheMiddleOfAMessage) {
  says_first(10000);
  says(Kind::kRequest, text_of(request(1)));
  expect_cut_off();
}

// A probe has claimed the message, and its remaining parts will never arrive.
TEST_F(TagHostile, AClaimInPartEndsWithItsSession) {
  constexpr uint64_t kBytes = 9000;
  says_first(kBytes);
  tag::Message* claimed = nullptr;
  ASSERT_TRUE(until([&] {
    tag::MessageInfo info{};
    claimed = (*own_)->claim({7, 0, kFoeAddress}, &info);
    return claimed != nullptr;
  }));
  ASSERT_TRUE(foe_->send(kOwn, Wire::session(Kind::kHello, 0, 78, 0, 5)));  // the foe restarts
  ASSERT_TRUE(until([&] { return link().session != session_; }));
  std::vector<uint8_t> buffer(kBytes);
  RecvRequest receive;
  ASSERT_EQ((*own_)->receive_claimed(*claimed, buffer.data(), kBytes, receive), 1);
  EXPECT_EQ(receive.status, -ECONNRESET);
  expect_friend_unharmed();
}

TEST_F(TagHostile, ALastPartThatIsTooLong) {
  RecvRequest receive;
  std::vector<uint8_t> buffer(10000, 0xEE);
  ASSERT_EQ((*own_)->receive({7, 0, kFoeAddress}, buffer.data(), 4070, receive), 0);
  says_first(tag::kFirstBytesMax + 6);
  says(Kind::kLast, std::string(64, 'x'));
  expect_cut_off();
  EXPECT_TRUE((*own_)->test(receive));
  EXPECT_EQ(receive.status, -EPROTO);
  EXPECT_EQ(buffer[4070], 0xEE);
}

class TagParts : public TagHostile {
 protected:
  void SetUp() override {
    TagHostile::SetUp();
    endpoint_asks();  // and has got credit for four parts
  }
  void TearDown() override {
    msg::is_crowd_told = false;
    msg::Patience::of_this_thread() = own_patience_;
    TagHostile::TearDown();
  }
  /// Send a message of a full part and a short one. @return whether both take one mailbox.
  bool is_mailbox_shared() {
    kinds_ = 0;
    SendRequest parts;
    EXPECT_EQ((*own_)->send(kFoeAddress, 8, large_.data(), tag::kDataBytesMax + 1, parts), 1);
    EXPECT_TRUE(until([&] { return heard(Kind::kLast); }));
    return mailbox_ == 0;
  }
  static void be_alone() {
    static constexpr msg::Scheduler kAlone = {[] { return uint64_t{1}; }, [] { return 0u; }, [] {}};
    msg::Patience::of_this_thread() = msg::Patience(kAlone);
  }

 private:
  const msg::Patience own_patience_ = msg::Patience::of_this_thread();
};

// Where threads share a CPU: else it would not join the run of the others, and would let the ring
// pass over those that wait.
TEST_F(TagParts, AShortLastPartTakesTheMailboxOfTheOthersOnASharedCpu) {
  static constexpr msg::Scheduler kShared = {[] { return uint64_t{1}; },
                                             [] {
                                               static uint32_t switches = 0;
                                               return ++switches;
                                             },
                                             [] {}};
  be_alone();
  EXPECT_FALSE(is_mailbox_shared());
  msg::Patience patience(kShared);
  patience.yield();
  msg::Patience::of_this_thread() = patience;
  EXPECT_TRUE(is_mailbox_shared());
}

TEST_F(TagParts, AShortLastPartTakesTheMailboxOfTheOthersInACrowd) {
  be_alone();
  msg::is_crowd_told = true;
  EXPECT_TRUE(is_mailbox_shared());
  msg::is_crowd_told = false;
  EXPECT_FALSE(is_mailbox_shared());
}

TEST_F(TagHostile, MoreRequestsThanAllowed) {
  for (uint32_t i = 1; i <= msg::kRecordWindow; ++i) {
    says(Kind::kRequest, text_of(request(i)));
    ASSERT_TRUE(until([&] { return link().large.requests_seen == i; }));
  }
  EXPECT_EQ(own_->port->stats().cut_off, 0u);
  says(Kind::kRequest, text_of(request(msg::kRecordWindow + 1)));
  expect_cut_off();
}

TEST_F(TagHostile, MoreControlMessagesThanAllowed) {
  // The first message is held back, so that the port reads all others at once, before it gives more
  // credit.
  const uint32_t first = number_++;
  for (uint32_t i = 2; i <= msg::kControlCredits + 1; ++i) {
    says(Kind::kRequest, text_of(request(i)));
  }
  ASSERT_TRUE(until([&] { return own_->port->stats().early == msg::kControlCredits; }));
  number_ = first;
  says(Kind::kRequest, text_of(request(1)));
  expect_cut_off();
}

TEST_F(TagHostile, TotalsThatGoBack) {
  says(Kind::kControl, "", 0);
  expect_cut_off();
}

TEST_F(TagHostile, RecordsOfATransferThatWasNeverOpened) {
  says(Kind::kRecords, "", 1000);
  expect_cut_off();
}

TEST_F(TagHostile, AGrantWithoutARequest) {
  says(Kind::kGrant, text_of(grant()), msg::kControlCredits);
  expect_cut_off();
}

/// Lies about a request of the foe's own.
class TagHostileRequest : public TagHostile,
                          public testing::WithParamInterface<void (*)(msg::RequestBody&)> {};

TEST_P(TagHostileRequest, IsCutOff) {
  msg::RequestBody body = request(1);
  GetParam()(body);
  says(Kind::kRequest, text_of(body));
  expect_cut_off();
}

using RequestBody = msg::RequestBody;
INSTANTIATE_TEST_SUITE_P(All, TagHostileRequest,
                         testing::Values([](RequestBody& body) { body.transfer = 2; },
                                         [](RequestBody& body) { body.len_bytes = 0; },
                                         [](RequestBody& body) {
                                           body.len_bytes = msg::kTransferMax + 1;
                                         },
                                         [](RequestBody& body) { body.edge_bytes = 8; },
                                         [](RequestBody& body) { body.edge[0] = 1; },
                                         [](RequestBody& body) { body.flags = 4; },
                                         [](RequestBody& body) { body.immediate = 1; },
                                         [](RequestBody& body) { body.offer = 1; },
                                         [](RequestBody& body) { body.page_offset = 4096; }));

/// Lies about a request of the endpoint's.
class TagHostileGrant : public TagHostile,
                        public testing::WithParamInterface<void (*)(msg::GrantBody&)> {};

TEST_P(TagHostileGrant, IsCutOff) {
  endpoint_asks();
  msg::GrantBody body = grant();
  GetParam()(body);
  says(Kind::kGrant, text_of(body), msg::kControlCredits);
  expect_cut_off();
  EXPECT_TRUE(until([&] { return (*own_)->test(sending_); }));
  EXPECT_EQ(sending_.status, -EPROTO);
}

using GrantBody = msg::GrantBody;
INSTANTIATE_TEST_SUITE_P(All, TagHostileGrant,
                         testing::Values([](GrantBody& body) { body.transfer = 2; },
                                         [](GrantBody& body) { body.mailbox = 4; },
                                         [](GrantBody& body) { body.total = 0; },
                                         [](GrantBody& body) { body.total = 1000; },
                                         [](GrantBody& body) { body.attempt = 1; },
                                         [](GrantBody& body) {
                                           body.cut[11] = 0x7F;
                                         },  // far more than the endpoint requested
                                         [](GrantBody& body) { body.stripe = 1; }));

TEST_F(TagHostile, AnExtendWithoutAGrant) {
  endpoint_asks();
  const msg::TotalBody body = {1, 5, 0, 0, {}};
  says(Kind::kExtend, text_of(body), msg::kControlCredits);
  expect_cut_off();
}

TEST_F(TagHostile, AClosedOfATransferThatHasNotBegun) {
  says(Kind::kRequest, text_of(request(1)));
  const msg::StopBody body = {1, 5, 0, 1, 0, 0};  // it claims five messages, and none was granted
  says(Kind::kClosed, text_of(body), msg::kControlCredits);
  expect_cut_off();
}

TEST_F(TagHostile, APeerThatNeverAnswersHarmsNoOther) {
  endpoint_asks();
  says(Kind::kRequest, text_of(request(1)), kFoeCredit);
  RecvRequest receive;
  std::vector<uint8_t> buffer(50000);
  ASSERT_EQ((*own_)->receive({0, UINT64_MAX, kFoeAddress}, buffer.data(), 50000, receive), 0);
  ASSERT_TRUE(until([&] { return heard(Kind::kGrant); }));
  expect_friend_unharmed();
  EXPECT_EQ(own_->port->stats().cut_off, 0u);
  foe_.reset();  // the foe dies
  foe_ = std::make_unique<msg::test::Raw>("shm:h,id=4", 0);
  EXPECT_TRUE(until([&] { return (*own_)->test(receive); }));
  EXPECT_TRUE(until([&] { return (*own_)->test(sending_); }));
  EXPECT_EQ(receive.status, -ECONNRESET);
  EXPECT_EQ(sending_.status, -ECONNRESET);
}

}  // namespace
}  // namespace rio::test
