/// @file
/// A peer that sends wrong messages about large data, beside a transfer between two others that
/// goes on meanwhile.
#pragma once

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <type_traits>

#include "tests/unit/lib/msg/hostile_fixture.hpp"

namespace rio::msg::test {

inline constexpr uint64_t kBytes = 300'000;
inline constexpr uint64_t kFriendBytes = 2'000'000;
inline constexpr uint16_t kFoeCredit = 4;
inline constexpr uint32_t kGranted = 4;  // messages
inline constexpr uint64_t kBits = 7;

template <class Body>
std::string text_of(const Body& body) {
  return {reinterpret_cast<const char*>(&body), sizeof(body)};
}

/// A port that takes large data, whose friend is in the middle of a transfer.
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
    begin_friendly();  // the next transfer arrives, too
    end_friendly();
  }

  Link& link() { return *own_.port->link(kFoe); }
  void says(Kind kind, const std::string& text) { foe_says(kind, text, 0, kControlCredits); }
  template <class Body>
  requires std::is_trivially_copyable_v<Body>
  void says(Kind kind, const Body& body) { says(kind, text_of(body)); }
  void foe_asks(const RequestBody& body) { foe_says(Kind::kRequest, text_of(body)); }
  using Hostile::foe_hears;

  // The port requests a transfer to the foe, and the foe has read the request.
  void port_asks() {
    const Route there = route(own_, kFoe, 0);
    int rc = -EAGAIN;
    bool opened = false;
    ASSERT_TRUE(work_until([&] {
      rc = own_.context->send_large(there, kBits, data_.data(), kBytes, sent_);
      if (rc != -EAGAIN) {
        return true;  // the next message is the request
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
  /// A transfer that the port requested is cancelled.
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
  // The foe requests a transfer, and the port has granted it.
  void foe_is_granted() {
    foe_asks(request(1));
    ASSERT_TRUE(work_until([&] { return !own_.inbox().empty(); }));
    own_.context->receive_large(own_.context->take_request(), buffer_.data(), kBytes, received_);
    static_cast<void>(foe_hears(Kind::kGrant));
  }
  // The port has offered memory for the foe's first message.
  void port_offers() {
    const Route there = route(own_, kFoe, 0);
    ASSERT_TRUE(work_until([&] {  // the port makes no offer while a request waits
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
      own_.context->refuse_large(own_.context->take_request());  // the foe's request
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
inline void PrintTo(const Lie& lie, std::ostream* out) {
  *out << lie.name;
}
inline std::string name_of(const ::testing::TestParamInfo<Lie>& info) {
  return info.param.name;
}

// The port requests a transfer, and the foe answers with a grant that `change` has changed.
template <class Change>
void tell_grant(LargeLiar& foe, Change&& change) {
  foe.port_asks();
  GrantBody body = foe.grant();
  change(body);
  foe.says(Kind::kGrant, body);
}
inline void tell_total(LargeLiar& foe, Kind kind, uint32_t transfer, uint32_t total,
                       uint8_t attempt) {
  foe.says(kind, TotalBody{transfer, total, attempt, 0, {}});
}
inline void tell_stop(LargeLiar& foe, Kind kind, uint32_t arrived, uint8_t attempt, bool again) {
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

}  // namespace rio::msg::test
