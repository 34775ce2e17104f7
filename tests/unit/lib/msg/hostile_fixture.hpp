/// @file
/// A port, a friendly peer of it, and a hostile one (the foe): a card that writes any bytes.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {

inline constexpr uint32_t kPort = 1;
inline constexpr uint32_t kFriend = 2;
inline constexpr uint32_t kFoe = 3;
inline constexpr uint32_t kFoeKey = 0xBAD00001;

/// A port with contexts 0 and 1, a friend that talks to it, and a foe with a session.
class Hostile : public Net {
 protected:
  Hostile() {
    foe_ = std::make_unique<Raw>("shm:x,id=3", 0);
    EXPECT_EQ(send(friend_, there_, "before"), 0);
    EXPECT_EQ(receive(own_), "before");
    begin();
  }
  ~Hostile() override {
    if (foe_ != nullptr) {
      expect_friend_unharmed();
      expect_later_session();
    }
  }

  void foe_sends(const std::vector<uint8_t>& bytes) {
    ASSERT_TRUE(work_until([&] { return foe_->send(kPort, bytes); }));
    ASSERT_TRUE(work_until([&] { return foe_->outstanding() == 0; }));
    turns(2);
  }
  /// A numbered message of the foe's session.
  void foe_says(Kind kind, const std::string& text = "", uint32_t to = 0, uint32_t credit = 0) {
    foe_sends(Wire::message(key_, number_++, to, 0, credit, kind, text));
  }
  /// Waits for the next message of that kind from the port to the foe. @return its session body.
  SessionBody foe_hears(Kind kind, HeaderWords* header = nullptr) {
    SessionBody body{};
    EXPECT_TRUE(work_until([&] {
      const std::vector<uint8_t> bytes = foe_->receive();
      foe_->reap();
      if (bytes.size() < kHeaderBytes || load_header(bytes.data()).kind() != kind) {
        return false;
      }
      if (header != nullptr) {
        *header = load_header(bytes.data());
      }
      if (bytes.size() >= kHeaderBytes + sizeof(body)) {
        std::memcpy(&body, bytes.data() + kHeaderBytes, sizeof(body));
      }
      return true;
    })) << static_cast<uint32_t>(kind);
    return body;
  }
  void begin(uint32_t foe_key = kFoeKey) {
    foe_sends(Wire::session(Kind::kHello, 0, foe_key, 0, 100));
    const SessionBody welcome = foe_hears(Kind::kWelcome);
    EXPECT_EQ(welcome.peer, foe_key);
    key_ = welcome.session;
    number_ = welcome.first;
  }
  uint16_t open_context() {
    foe_says(Kind::kOpen);
    HeaderWords opened{};
    static_cast<void>(foe_hears(Kind::kOpened, &opened));
    return opened.credit();
  }
  [[nodiscard]] uint64_t cut_off() const { return own_.port->stats().cut_off; }
  void expect_cut_off() {
    EXPECT_TRUE(work_until([&] {
      foe_->reap();
      return cut_off() == 1;
    }));
    EXPECT_EQ(foe_hears(Kind::kReset).session, key_);
    EXPECT_TRUE(own_.inbox().empty());
  }
  void expect_dropped(uint64_t bad = 1) {
    EXPECT_EQ(own_.port->stats().bad, bad);
    EXPECT_EQ(cut_off(), 0u);
    EXPECT_TRUE(own_.inbox().empty());
  }
  /// All buffers are back in the pool, and the friend's messages still arrive.
  void expect_friend_unharmed() {
    while (!own_.inbox().empty()) {
      if (kind_of(own_.inbox().at(0)) == Kind::kRequest) {
        own_.context->refuse_large(own_.context->take_request());
      } else {
        own_.context->drop_oldest();
      }
    }
    for (uint32_t i = 0; i < 300; ++i) {
      ASSERT_EQ(send(friend_, there_, std::to_string(i)), 0);
      ASSERT_EQ(receive(own_), std::to_string(i));
    }
  }
  /// A later, well-behaved peer with the foe's destID is served.
  void expect_later_session() {
    foe_.reset();
    const Member good = member(port(kFoe), 0);
    int rc = -ECONNRESET;
    while (rc == -ECONNRESET) {
      rc = send(good, route(good, kPort, 0), "good");
    }
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(receive(own_), "good");
    rc = -EPROTO;
    while (rc == -EPROTO || rc == -ECONNRESET) {  // errors that report the end of the foe's session
      rc = send(own_, route(own_, kFoe, 0), "welcome");
    }
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(receive(good), "welcome");
  }

  Member own_ = member(port(kPort), 0);
  Member friend_ = member(port(kFriend), 0);
  Route there_ = route(friend_, kPort, 0);
  std::unique_ptr<Raw> foe_;
  uint32_t key_ = 0;
  uint32_t number_ = 0;
};

}  // namespace rio::msg::test
