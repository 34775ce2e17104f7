// Rails that a port refuses: it is not opened, one line of the log names the card and the remedy,
// and the cards that were opened before are free again.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fpga/model/wire.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/model_bus.hpp"
#include "tests/unit/lib/msg/rails_fixture.hpp"

namespace rio::msg::test {
namespace {

class BadRails : public RailsTest {
 protected:
  static void expect_one_line(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& line : rio::test::LogCapture::lines()) {
      all += line + "\n";
    }
    EXPECT_TRUE(rio::test::LogCapture::one_line_with(parts)) << all;
  }
  /// @param parts of the one line that the log has.
  static void expect_refused(const std::string& card, int rc,
                             const std::vector<std::string>& parts) {
    PortConfig config = Net::config_of(1);
    config.card = card;
    const rio::test::LogCapture log;
    std::unique_ptr<MessagePort> none;
    EXPECT_EQ(MessagePort::open(config, &none), rc) << card;
    EXPECT_EQ(none, nullptr);
    expect_one_line(parts);
  }
  void expect_free(const std::string& card) {
    PortConfig config = Net::config_of(1);
    config.card = card;
    EXPECT_EQ(port(config).rails().count(), 1u);
  }
};

TEST_F(BadRails, TheSameCardTwice) {
  expect_refused("emu:x+emu:y+emu:x", -EINVAL,
                 {"card 3, 'emu:x', is also card 1", "name each card once"});
  expect_refused("0000:03:00.0+03:00.0", -EINVAL,
                 {"card 2, '03:00.0', is also card 1", "name each card once"});
  expect_refused("shm:x,id=5+shm:x,id=5", -EBUSY, {"destID 5"});
  expect_free("shm:x,id=5");
}

TEST_F(BadRails, MoreThanAPortHas) {
  std::string card = "shm:x,id=1";
  for (uint32_t i = 1; i <= kRailsMax; ++i) {
    card += "+shm:x,id=" + std::to_string(i + 1);
  }
  expect_refused(card, -EINVAL, {"9 cards", "at most 8"});
  expect_free("shm:x,id=1");
}

TEST_F(BadRails, ADestIdWiderThanThoseOfTheOthers) {
  expect_refused("shm:x,id=1+shm:y,id=70000", -EINVAL,
                 {"shm:y", "destID 70000", "wider than the 16 bits", "give one up to 65535"});
  expect_free("shm:x,id=1");
}

class BadBuses : public BadRails {
 protected:
  MessagePort::BusCard card(uint32_t dest_id, uint32_t shared_addr_log2) {
    model::Config config;
    config.shared_addr_log2 = shared_addr_log2;
    return {std::make_unique<rio::test::ModelBus>(config, model::make_loop_wire(), &clock_, 1000),
            dest_id};
  }

  rio::test::ManualClock clock_;
};

TEST_F(BadBuses, NoCardAndMoreThanAPortHas) {
  for (const uint32_t count : {0u, kRailsMax + 1}) {
    std::vector<MessagePort::BusCard> cards;
    for (uint32_t i = 0; i < count; ++i) {
      cards.push_back(card(i + 1, 8));
    }
    const rio::test::LogCapture log;
    std::unique_ptr<MessagePort> none;
    EXPECT_EQ(MessagePort::open(std::move(cards), config_of(1, "x"), &none), -EINVAL);
    expect_one_line({std::to_string(count) + " cards", "1 to 8"});
  }
}

TEST_F(BadBuses, ACardThatNeedsOtherBuffers) {
  for (const uint32_t log2 : {8u, 9u, 12u}) {
    std::vector<MessagePort::BusCard> cards;
    cards.push_back(card(1, 8));
    cards.push_back(card(2, log2));
    const rio::test::LogCapture log;
    std::unique_ptr<MessagePort> made;
    const int rc = MessagePort::open(std::move(cards), config_of(1, "x"), &made);
    if (log2 == 8) {
      EXPECT_EQ(rc, 0);
      continue;
    }
    EXPECT_EQ(rc, -ENOTSUP) << log2;
    expect_one_line(
        {"multiples of " + std::to_string(1u << log2), "at most", "leave the card out"});
  }
}

}  // namespace
}  // namespace rio::msg::test
