// A peer that speaks of large data and lies: it is cut off, or not listened to, as decision 0015
// says; and large data between others goes on meanwhile.
#include <algorithm>
#include <cerrno>
#include <ostream>
#include <type_traits>

#include "tests/unit/lib/msg/hostile_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint64_t kBytes = 300'000;
constexpr uint64_t kFriendBytes = 2'000'000;
constexpr uint16_t kFoeCredit = 4;
constexpr uint32_t kGranted = 4;  // messages
constexpr uint64_t kBits = 7;

template <class Body>
std::string text_of(const Body& body) {
  return {reinterpret_cast<const char*>(&body), sizeof(body)};
}

/// The port takes large data, and its friend is in the middle of a transfer.
class LargeLiar : public Hostile {
 public:
  LargeLiar() {
    EXPECT_EQ(own_.context->accept_large(), 0);
    EXPECT_EQ(friend_.context->accept_large(), 0);
    open_context();
    session_ = link().session;
    begin_friendly();
  }
  ~LargeLiar() override {
    end_friendly();
    begin_friendly();  // and the next one goes well, too
    end_friendly();
  }

  Link& link() { return *own_.port->link(kFoe); }
  void says(Kind kind, const std::string& text) { foe_says(kind, text, 0, kControlCredits); }
  template <class Body>
  requires std::is_trivially_copyable_v<Body>
  void says(Kind kind, const Body& body) { says(kind, text_of(body)); }
  void foe_asks(const RequestBody& body) { foe_says(Kind::kRequest, text_of(body)); }
  using Hostile::foe_hears;

  // The port asks the foe for a place, and the foe has heard it.
  void port_asks() {
    const Route there = route(own_, kFoe, 0);
    int rc = -EAGAIN;
    bool opened = false;
    ASSERT_TRUE(work_until([&] {
      rc = own_.context->send_large(there, kBits, data_.data(), kBytes, sent_);
      if (rc != -EAGAIN) {
        return true;  // what comes now is the request
      }
      if (const std::vector<uint8_t> heard = foe_->receive();
          !opened && heard.size() >= kHeaderBytes &&
          load_header(heard.data()).kind() == Kind::kOpen) {
        opened = true;
        EXPECT_TRUE(
            foe_->send(kPort, Wire::message(key_, number_++, 0, 0, kFoeCredit, Kind::kOpened)));
      }
      foe_->reap();
      return false;
    }));
    ASSERT_EQ(rc, 0);
    static_cast<void>(foe_hears(Kind::kRequest));
  }
  [[nodiscard]] GrantBody grant(uint64_t missing = 0) const {
    GrantBody body{};
    body.transfer = 1;
    body.mailbox = 1;
    body.total = kGranted;
    pmd::mem::Cut cut;
    const uint64_t edge = edge_bytes(reinterpret_cast<uintptr_t>(data_.data()), kBytes);
    EXPECT_EQ(pmd::mem::make_cut(0, kBytes - edge - missing, pmd::mem::AlignRules{}, &cut), 0);
    pmd::mem::encode_cut(cut, body.cut);
    return body;
  }
  void port_is_granted() {
    port_asks();
    says(Kind::kGrant, grant());
    ASSERT_TRUE(work_until([&] { return sent_.grant.state() == SendGrant::State::kSending; }));
  }
  /// The transfer is one that was.
  void port_has_cancelled() {
    port_asks();
    own_.context->cancel(sent_);
    ASSERT_TRUE(work_until([&] { return sent_.done; }));
    ASSERT_EQ(own_.context->next_sent(), &sent_);
  }

  static RequestBody request(uint32_t transfer) {
    RequestBody body{};
    body.transfer = transfer;
    body.len_bytes = kBytes;
    body.match_bits = kBits;
    return body;
  }
  // The foe asks, and the port has granted.
  void foe_is_granted() {
    foe_asks(request(1));
    ASSERT_TRUE(work_until([&] { return !own_.inbox().empty(); }));
    own_.context->receive_large(own_.context->take_request(), buffer_.data(), kBytes, received_);
    static_cast<void>(foe_hears(Kind::kGrant));
  }
  // The port has offered a place for the foe's first message.
  void port_offers() {
    const Route there = route(own_, kFoe, 0);
    ASSERT_TRUE(work_until([&] {  // none is made while a request waits
      return own_.context->offer_large(there, kBits, 0, buffer_.data(), kBytes) == 0;
    }));
    static_cast<void>(foe_hears(Kind::kOffer));
  }
  static RequestBody accept() {
    RequestBody body = request(1);
    body.offer = 1;
    return body;
  }
  static OfferBody offer(uint32_t number = 1) {
    OfferBody body{};
    body.offer = number;
    body.len_max = kBytes;
    body.unit_bytes = 256;
    body.window = 8;
    body.mailbox = 1;
    return body;
  }

  void begin_friendly() {
    for (size_t i = 0; i < kFriendBytes; ++i) {
      friendly_[i] = static_cast<uint8_t>(i * 31 + i / 4096);
    }
    int rc = -EAGAIN;
    ASSERT_TRUE(work_until([&] {
      rc = friend_.context->send_large(there_, 1, friendly_.data(), kFriendBytes, friend_sends_);
      return rc != -EAGAIN;
    }));
    ASSERT_EQ(rc, 0);
    while (!own_.inbox().empty() && own_.inbox().origin(0).link == &link()) {
      own_.context->refuse_large(own_.context->take_request());  // what the foe had asked
    }
    ASSERT_TRUE(work_until([&] { return !own_.inbox().empty(); }));
    own_.context->receive_large(own_.context->take_request(), friendly_in_.data(), kFriendBytes,
                                friend_received_);
  }
  void end_friendly() {
    EXPECT_TRUE(work_until([&] { return friend_received_.done && friend_sends_.done; }));
    EXPECT_EQ(friend_received_.status, 0);
    EXPECT_EQ(friend_sends_.status, 0);
    EXPECT_TRUE(friendly_in_ == friendly_);
    while (own_.context->next_received() != nullptr || own_.context->next_sent() != nullptr) {
    }
  }

 protected:
  uint32_t session_ = 0;
  const std::vector<uint8_t> data_ = std::vector<uint8_t>(kBytes);
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(kBytes);
  std::vector<uint8_t> friendly_ = std::vector<uint8_t>(kFriendBytes);
  std::vector<uint8_t> friendly_in_ = std::vector<uint8_t>(kFriendBytes);
  SendTransfer friend_sends_;
  RecvTransfer friend_received_;
  SendTransfer sent_;
  RecvTransfer received_;
};

struct Lie {
  const char* name;
  void (*tell)(LargeLiar& foe);
};
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Lie& lie, std::ostream* out) {
  *out << lie.name;
}
std::string name_of(const ::testing::TestParamInfo<Lie>& info) {
  return info.param.name;
}

// What the port has asked for.
template <class Change>
void tell_grant(LargeLiar& foe, Change&& change) {
  foe.port_asks();
  GrantBody body = foe.grant();
  change(body);
  foe.says(Kind::kGrant, body);
}
void tell_total(LargeLiar& foe, Kind kind, uint32_t transfer, uint32_t total, uint8_t attempt) {
  foe.says(kind, TotalBody{transfer, total, attempt, {}});
}
void tell_stop(LargeLiar& foe, Kind kind, uint32_t arrived, uint8_t attempt, bool again) {
  const StopBody body = {1,
                         arrived,
                         attempt,
                         again ? uint8_t{0} : StopReason::kCancelled,
                         again ? uint8_t{1} : uint8_t{0},
                         0};
  foe.says(kind, body);
}
template <class Change>
void tell_offer(LargeLiar& foe, Change&& change) {
  OfferBody body = LargeLiar::offer();
  change(body);
  foe.says(Kind::kOffer, body);
}
template <class Change>
void tell_accept(LargeLiar& foe, Change&& change) {
  foe.port_offers();
  RequestBody body = LargeLiar::accept();
  change(body);
  foe.foe_asks(body);
}

/// Lies that cost the session.
class LargeLie : public LargeLiar, public ::testing::WithParamInterface<Lie> {};

TEST_P(LargeLie, CostsItsSessionAndNothingElse) {
  GetParam().tell(*this);
  EXPECT_TRUE(work_until([&] {
    foe_->reap();
    static_cast<void>(foe_->receive());
    return link().session != session_;
  }));
  EXPECT_EQ(own_.port->stats().cut_off, 1u);
  EXPECT_EQ(link().error, -EPROTO);
  if (sent_.link != nullptr && !sent_.done) {
    EXPECT_TRUE(work_until([&] {
      static_cast<void>(foe_->receive());
      foe_->reap();
      return sent_.done;
    }));
    EXPECT_EQ(sent_.status, -EPROTO);
  }
  if (received_.link != nullptr) {
    EXPECT_TRUE(work_until([&] { return received_.done; }));
    EXPECT_EQ(received_.status, -EPROTO);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Grant, LargeLie,
    ::testing::Values(
        Lie{"OfMoreThanWasAsked",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { ++body.cut[9]; }); }},
        Lie{"OfNothing",
            [](LargeLiar& foe) {
              tell_grant(foe, [](GrantBody& body) { std::fill_n(body.cut, sizeof(body.cut), 0); });
            }},
        Lie{"WithAWildCut",
            [](LargeLiar& foe) {
              tell_grant(foe,
                         [](GrantBody& body) { std::fill_n(body.cut, sizeof(body.cut), 0xFF); });
            }},
        Lie{"WithAHeadBeyondAMessage",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.cut[3] = 0x7F; }); }},
        Lie{"OfAnotherForm",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { ++body.cut[0]; }); }},
        Lie{"OnMailbox0",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.mailbox = 0; }); }},
        Lie{"OnMailbox4",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.mailbox = 4; }); }},
        Lie{"OfNoMessages",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.total = 0; }); }},
        Lie{"OfMoreMessagesThanThereAre",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.total = 1000; }); }},
        Lie{"OfALaterAttempt",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.attempt = 1; }); }},
        Lie{"OfWhatNeverWas",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.transfer = 2; }); }},
        Lie{"OfTransfer0",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.transfer = 0; }); }},
        Lie{"TooShort",
            [](LargeLiar& foe) {
              foe.port_asks();
              foe.says(Kind::kGrant, text_of(foe.grant()).substr(0, 16));
            }},
        Lie{"Twice",
            [](LargeLiar& foe) {
              foe.port_is_granted();
              foe.says(Kind::kGrant, foe.grant());
            }}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Total, LargeLie,
    ::testing::Values(Lie{"ExtendThatGoesBack",
                          [](LargeLiar& foe) {
                            foe.port_is_granted();
                            tell_total(foe, Kind::kExtend, 1, kGranted - 1, 0);
                          }},
                      Lie{"ExtendOfNothingNew",
                          [](LargeLiar& foe) {
                            foe.port_is_granted();
                            tell_total(foe, Kind::kExtend, 1, kGranted, 0);
                          }},
                      Lie{"ExtendBeyondTheEnd",
                          [](LargeLiar& foe) {
                            foe.port_is_granted();
                            tell_total(foe, Kind::kExtend, 1, 1000, 0);
                          }},
                      Lie{"ExtendOfALaterAttempt",
                          [](LargeLiar& foe) {
                            foe.port_is_granted();
                            tell_total(foe, Kind::kExtend, 1, kGranted + 1, 1);
                          }},
                      Lie{"ExtendBeforeGrant",
                          [](LargeLiar& foe) {
                            foe.port_asks();
                            tell_total(foe, Kind::kExtend, 1, kGranted, 0);
                          }},
                      Lie{"ExtendOfWhatNeverWas",
                          [](LargeLiar& foe) { tell_total(foe, Kind::kExtend, 1, kGranted, 0); }},
                      Lie{"DoneInTheMiddle",
                          [](LargeLiar& foe) {
                            foe.port_is_granted();
                            tell_total(foe, Kind::kDone, 1, 0, 0);
                          }},
                      Lie{"DoneOfWhatWasNotClosed",
                          [](LargeLiar& foe) {
                            foe.port_asks();
                            tell_total(foe, Kind::kDone, 1, 0, 0);
                          }},
                      Lie{"DoneOfWhatNeverWas",
                          [](LargeLiar& foe) { tell_total(foe, Kind::kDone, 1, 0, 0); }}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Stop, LargeLie,
    ::testing::Values(Lie{"AbortOfWhatNeverWas",
                          [](LargeLiar& foe) { tell_stop(foe, Kind::kAbort, 0, 0, false); }},
                      Lie{"AbortOfALaterAttempt",
                          [](LargeLiar& foe) {
                            foe.port_asks();
                            tell_stop(foe, Kind::kAbort, 0, 1, false);
                          }},
                      Lie{"AbortThatParksWhatWasAsked",
                          [](LargeLiar& foe) {
                            foe.port_asks();
                            tell_stop(foe, Kind::kAbort, 0, 0, true);
                          }},
                      Lie{"AbortThatCounts",
                          [](LargeLiar& foe) {
                            foe.port_asks();
                            tell_stop(foe, Kind::kAbort, 1, 0, false);
                          }},
                      Lie{"ClosedOfWhatNeverWas",
                          [](LargeLiar& foe) { tell_stop(foe, Kind::kClosed, 0, 0, false); }},
                      Lie{"ClosedWithMoreThanWasGranted",
                          [](LargeLiar& foe) {
                            foe.foe_is_granted();
                            tell_stop(foe, Kind::kClosed, 1000, 0, false);
                          }},
                      Lie{"ClosedOfALaterAttempt",
                          [](LargeLiar& foe) {
                            foe.foe_is_granted();
                            tell_stop(foe, Kind::kClosed, 0, 1, false);
                          }},
                      Lie{"ClosedOfWhatWasNotGrantedYet",
                          [](LargeLiar& foe) {
                            foe.foe_asks(LargeLiar::request(1));
                            tell_stop(foe, Kind::kClosed, 1, 0, false);
                          }},
                      Lie{"RequestOfANumberTwice",
                          [](LargeLiar& foe) {
                            foe.foe_is_granted();
                            foe.foe_asks(LargeLiar::request(1));
                          }},
                      Lie{"RequestOfALaterNumber",
                          [](LargeLiar& foe) { foe.foe_asks(LargeLiar::request(2)); }}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Offer, LargeLie,
    ::testing::Values(
        Lie{"OnMailbox0",
            [](LargeLiar& foe) { tell_offer(foe, [](OfferBody& body) { body.mailbox = 0; }); }},
        Lie{"OnMailbox4",
            [](LargeLiar& foe) { tell_offer(foe, [](OfferBody& body) { body.mailbox = 4; }); }},
        Lie{"InOddUnits",
            [](LargeLiar& foe) { tell_offer(foe, [](OfferBody& body) { body.unit_bytes = 24; }); }},
        Lie{"WithoutAWindow",
            [](LargeLiar& foe) { tell_offer(foe, [](OfferBody& body) { body.window = 0; }); }},
        Lie{"WithoutALength",
            [](LargeLiar& foe) { tell_offer(foe, [](OfferBody& body) { body.len_max = 0; }); }},
        Lie{"WithAHeadOfAPage",
            [](LargeLiar& foe) {
              tell_offer(foe, [](OfferBody& body) { body.head_bytes = 4096; });
            }},
        Lie{"OfALaterNumber",
            [](LargeLiar& foe) { tell_offer(foe, [](OfferBody& body) { body.offer = 2; }); }},
        Lie{"ForAMessageToCome",
            [](LargeLiar& foe) {
              tell_offer(foe, [](OfferBody& body) { body.message_number = 1; });
            }},
        Lie{"WhileOneIsOpen",
            [](LargeLiar& foe) {
              foe.says(Kind::kOffer, LargeLiar::offer(1));
              foe.says(Kind::kOffer, LargeLiar::offer(2));
            }},
        Lie{"RevokeOfWhatNeverWas", [](LargeLiar& foe) { foe.says(Kind::kRevoke, RevokeBody{1}); }},
        Lie{"RevokedThatNobodyRevoked",
            [](LargeLiar& foe) {
              foe.port_offers();
              foe.says(Kind::kRevoked, RevokeBody{1});
            }},
        Lie{"RevokedOfWhatNeverWas",
            [](LargeLiar& foe) { foe.says(Kind::kRevoked, RevokeBody{1}); }}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Accept, LargeLie,
    ::testing::Values(
        Lie{"OfWhatNeverWas", [](LargeLiar& foe) { foe.foe_asks(LargeLiar::accept()); }},
        Lie{"OfAnotherOffer",
            [](LargeLiar& foe) { tell_accept(foe, [](RequestBody& body) { body.offer = 2; }); }},
        Lie{"OfMoreThanWasOffered",
            [](LargeLiar& foe) { tell_accept(foe, [](RequestBody& body) { ++body.len_bytes; }); }},
        Lie{"WithOtherBits",
            [](LargeLiar& foe) { tell_accept(foe, [](RequestBody& body) { ++body.match_bits; }); }},
        Lie{"OfAnotherMessage",
            [](LargeLiar& foe) {
              tell_accept(foe, [](RequestBody& body) { ++body.message_number; });
            }},
        Lie{"WithAnEdge",
            [](LargeLiar& foe) {
              tell_accept(foe, [](RequestBody& body) { body.edge_bytes = 1; });
            }},
        Lie{"Twice",
            [](LargeLiar& foe) {
              tell_accept(foe, [](RequestBody&) {});
              RequestBody again = LargeLiar::accept();
              again.transfer = 2;
              foe.foe_asks(again);
            }}),
    name_of);

/// What may have crossed with something of ours is nothing to be cut off for.
class LargeLate : public LargeLiar, public ::testing::WithParamInterface<Lie> {};

TEST_P(LargeLate, IsNotListenedTo) {
  GetParam().tell(*this);
  turns(100);
  EXPECT_EQ(link().session, session_);
  EXPECT_EQ(own_.port->stats().cut_off, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, LargeLate,
                         ::testing::Values(Lie{"GrantOfWhatWasCancelled",
                                               [](LargeLiar& foe) {
                                                 foe.port_has_cancelled();
                                                 foe.says(Kind::kGrant, foe.grant());
                                               }},
                                           Lie{"ExtendOfWhatWasCancelled",
                                               [](LargeLiar& foe) {
                                                 foe.port_has_cancelled();
                                                 tell_total(foe, Kind::kExtend, 1, kGranted, 0);
                                               }},
                                           Lie{"DoneOfWhatWasCancelled",
                                               [](LargeLiar& foe) {
                                                 foe.port_has_cancelled();
                                                 tell_total(foe, Kind::kDone, 1, 0, 0);
                                               }},
                                           Lie{"AbortOfWhatWasCancelled",
                                               [](LargeLiar& foe) {
                                                 foe.port_has_cancelled();
                                                 tell_stop(foe, Kind::kAbort, 0, 0, false);
                                                 static_cast<void>(foe.foe_hears(Kind::kClosed));
                                               }},
                                           Lie{"ClosedTwice",
                                               [](LargeLiar& foe) {
                                                 foe.foe_is_granted();
                                                 tell_stop(foe, Kind::kClosed, 0, 0, false);
                                                 tell_stop(foe, Kind::kClosed, 0, 0, false);
                                               }},
                                           Lie{"RevokeTwice",
                                               [](LargeLiar& foe) {
                                                 foe.says(Kind::kOffer, LargeLiar::offer());
                                                 foe.says(Kind::kRevoke, RevokeBody{1});
                                                 static_cast<void>(foe.foe_hears(Kind::kRevoked));
                                                 foe.says(Kind::kRevoke, RevokeBody{1});
                                               }},
                                           Lie{"OfferForAMessageOfThePast",
                                               [](LargeLiar& foe) {
                                                 foe.port_asks();
                                                 foe.says(Kind::kOffer, LargeLiar::offer());
                                               }}),
                         name_of);

// Nothing was granted, so nothing is posted there: the bytes go nowhere.
TEST_F(LargeLiar, DataThatNobodyAskedFor) {
  const uint64_t bad = own_.port->stats().bad;
  for (uint8_t mailbox = 1; mailbox <= 3; ++mailbox) {
    ASSERT_TRUE(foe_->send(kPort, std::vector<uint8_t>(256, 0x5A), mailbox));
  }
  ASSERT_TRUE(work_until([&] { return foe_->outstanding() == 0; }));
  turns(10);
  EXPECT_LE(own_.port->stats().bad, bad + 3);
  EXPECT_EQ(own_.port->stats().cut_off, 0u);
  EXPECT_TRUE(own_.inbox().empty());
}

// A message of another size than its entry stops the ring. The transfer waits for CLOSED and goes
// on, or ends as its user says; and nothing has landed where it should not.
TEST_F(LargeLiar, DataOfAnotherSizeThanGranted) {
  std::fill(buffer_.begin(), buffer_.end(), uint8_t{0xEE});
  foe_is_granted();
  for (uint8_t mailbox = 1; mailbox <= 3; ++mailbox) {
    ASSERT_TRUE(foe_->send(kPort, std::vector<uint8_t>(8, 0x5A), mailbox));
  }
  ASSERT_TRUE(work_until([&] { return foe_->outstanding() == 0; }));
  turns(100);
  EXPECT_FALSE(received_.done);
  EXPECT_EQ(std::count(buffer_.begin(), buffer_.end(), 0xEE), static_cast<int64_t>(kBytes));
  own_.context->cancel(received_);
  static_cast<void>(foe_hears(Kind::kAbort));
  tell_stop(*this, Kind::kClosed, 0, 0, false);
  EXPECT_TRUE(work_until([&] { return received_.done; }));
  EXPECT_EQ(received_.status, -ECANCELED);
  EXPECT_EQ(own_.port->stats().cut_off, 0u);
}

// It owes CLOSED and never says it: one mailbox of its own is lost to it, until it dies.
TEST_F(LargeLiar, WhoNeverSaysClosed) {
  foe_is_granted();
  own_.context->cancel(received_);
  static_cast<void>(foe_hears(Kind::kAbort));
  turns(200);
  EXPECT_FALSE(received_.done);
  end_friendly();
  begin_friendly();
  foe_.reset();
  EXPECT_TRUE(work_until([&] { return received_.done; }));
  EXPECT_EQ(received_.status, -ECONNRESET);
  foe_ = std::make_unique<Raw>("shm:x,id=3", 0);
}

}  // namespace
}  // namespace rio::msg::test
