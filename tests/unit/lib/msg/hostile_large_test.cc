// A peer that sends wrong messages about large data: its session ends, or the message is ignored,
// as decision 0015 says. Large data between other peers goes on meanwhile.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/lib/msg/large_liar.hpp"

namespace rio::msg::test {
namespace {

/// Messages that no honest peer sends: each ends the foe's session.
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
        Lie{"OnARailThatItHasNot",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.rail = 1; }); }},
        Lie{"OnRail255",
            [](LargeLiar& foe) { tell_grant(foe, [](GrantBody& body) { body.rail = 255; }); }},
        Lie{"OfAStripeByAPeerWithOneRail",
            [](LargeLiar& foe) {
              foe.port_asks();
              StripeBody body{foe.grant(), 0, kBytes};
              body.grant.stripe = 1;
              foe.says(Kind::kStripe, body);
            }},
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
                      Lie{"DoneOfALaterAttempt",
                          [](LargeLiar& foe) {
                            foe.port_asks();
                            tell_total(foe, Kind::kDone, 1, 0, 1);
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
        Lie{"RevokedWithoutARevoke",
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

/// Messages that an honest peer may send too, since they may have crossed with a message of ours:
/// they are ignored, and the session goes on.
class LargeLate : public LargeLiar, public ::testing::WithParamInterface<Lie> {};

TEST_P(LargeLate, IsIgnored) {
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

// A peer that says that it has read what it was shown has only lost it.
TEST_F(LargeLiar, DataThatItHasReadIsSent) {
  port_asks();
  tell_total(*this, Kind::kDone, 1, 0, 0);
  EXPECT_TRUE(work_until([&] { return sent_.done; }));
  EXPECT_EQ(sent_.status, 0);
  EXPECT_EQ(link().session, session_);
}

// The foe shows data that its card lets no peer read: it is asked to send them.
TEST_F(LargeLiar, DataThatCannotBeReadIsGranted) {
  RequestBody body = request(1);
  body.shown_at = ~uint64_t{0} & ~uint64_t{7};
  foe_asks(body);
  ASSERT_TRUE(work_until([&] { return !own_.inbox().empty(); }));
  own_.context->receive_large(own_.context->take_request(), buffer_.data(), kBytes, received_);
  static_cast<void>(foe_hears(Kind::kGrant));
  EXPECT_TRUE(received_.granted);
}

// No data was granted to the foe, so no receive is posted there: its bytes land nowhere.
TEST_F(LargeLiar, DataThatWasNotAskedFor) {
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

// A message of another size than its entry stops the ring. The transfer waits for CLOSED and is
// repeated, or ends when its user cancels it; no byte lands outside of the buffer.
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

// The peer owes CLOSED and never sends it: one of its mailboxes stays reserved until its session
// ends.
TEST_F(LargeLiar, APeerThatNeverSaysClosed) {
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
