// Random traffic against a reference: a map of queues. A failure prints its seed. RIO_MSG_SEEDS:
// number of seeds of each kind.
#include <deque>
#include <map>
#include <random>

#include "tests/support/env_number.hpp"
#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {
namespace {

uint32_t seeds() {
  return static_cast<uint32_t>(rio::test::env_number("RIO_MSG_SEEDS", 4));
}

struct Kinds {
  const char* name;
  const char* options;  // of the cards; %: the seed
};
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Kinds& kinds, std::ostream* out) {
  *out << kinds.name;
}

class Traffic : public Net, public ::testing::WithParamInterface<Kinds> {
 protected:
  static constexpr uint32_t kContextsEach = 3;

  struct User {
    Member member;
    bool stalled = false;
    std::vector<rio::msg::Delivery> held;
  };
  using Way = std::array<uint32_t, 4>;  // destID and context, from and to

  void start(uint64_t seed) {
    random_.seed(seed);
    const uint32_t ports = 3 + pick(4);
    for (uint32_t id = 1; id <= ports; ++id) {
      std::string options = GetParam().options;
      for (size_t at = options.find('%'); at != std::string::npos; at = options.find('%')) {
        options.replace(at, 1, std::to_string(seed * 100 + id));
      }
      PortConfig config = config_of(id, options);
      config.buffers = 128u << pick(4);
      config.share = 4u << pick(6);
      config.connect_ms = config.deliver_ms = 60000;
      config.response_timeout_us = 100000;
      if (pick(2) == 0) {
        config.first_number = 0u - 1 - pick(100);
      }
      MessagePort& made = port(config);
      for (uint32_t i = 0; i < kContextsEach; ++i) {
        User user;
        user.member = member(made, static_cast<uint16_t>(21 * i + pick(20)));
        users_.push_back(std::move(user));
      }
    }
  }
  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  User& any() { return users_[pick(static_cast<uint32_t>(users_.size()))]; }

  uint32_t any_size() {
    switch (pick(4)) {
      case 0:
        return pick(kPartBytesMax + 1);
      case 1:
        return pick(300);
      default:
        return pick(kTinyBytesMax + 1);
    }
  }
  void send_some() {
    const User& from = any();
    const User& to = any();
    const Way way = {from.member.port->dest_id(), from.member.context->id(),
                     to.member.port->dest_id(), to.member.context->id()};
    const Route there = route(from.member, way[2], way[3]);
    for (uint32_t n = 1 + pick(8); n > 0; --n) {
      std::string text(any_size(), '\0');
      for (char& c : text) {
        c = static_cast<char>(random_());
      }
      int rc = -EAGAIN;
      if (text.size() > kTinyBytesMax || pick(2) == 0 ||
          !from.member.port->send_tiny(there, text.data(), static_cast<uint32_t>(text.size()))) {
        rc = try_send(from.member, there, text);
      } else {
        rc = 0;
      }
      ASSERT_TRUE(rc == 0 || rc == -EAGAIN || (rc == -ECONNREFUSED && refusals_allowed_)) << rc;
      if (rc != 0) {
        return;
      }
      sent_[way].push_back(std::move(text));
      ++under_way_;
    }
  }
  void check(const User& to, const Origin& origin, const std::string& text) {
    const Way way = {origin.link->dest_id(), origin.from, to.member.port->dest_id(),
                     to.member.context->id()};
    std::deque<std::string>& queue = sent_[way];
    ASSERT_FALSE(queue.empty()) << "this message was never sent";
    ASSERT_EQ(queue.front(), text);
    queue.pop_front();
    --under_way_;
  }
  void receive_some(User& to) {
    for (uint32_t n = pick(40); n > 0 && !to.member.inbox().empty() && !HasFailure(); --n) {
      check(to, to.member.inbox().origin(0), to.member.text());
      if (pick(8) == 0 && to.held.size() < 3) {
        to.held.push_back(to.member.context->take_oldest());
      } else {
        to.member.context->drop_oldest();
      }
    }
    if (!to.held.empty() && pick(4) == 0) {
      const uint32_t i = pick(static_cast<uint32_t>(to.held.size()));
      to.member.context->give_back(to.held[i]);
      to.held.erase(to.held.begin() + i);
    }
  }
  void step() {
    switch (pick(4)) {
      case 0:
        send_some();
        break;
      case 1:
        if (User& to = any(); !to.stalled) {
          receive_some(to);
        }
        break;
      case 2:
        ports_[pick(static_cast<uint32_t>(ports_.size()))]->progress();
        break;
      default:
        if (pick(50) == 0) {
          User& one = any();
          one.stalled = !one.stalled;
        }
    }
  }
  /// Works until all messages under way have arrived.
  void finish() {
    EXPECT_TRUE(work_until([&] {
      for (User& user : users_) {
        receive_some(user);
      }
      return under_way_ == 0 || HasFailure();
    })) << under_way_;
    for (const auto& port : ports_) {
      EXPECT_EQ(port->stats().cut_off, 0u);
    }
    uint64_t again = 0;
    for (const auto& port : ports_) {
      again += port->stats().again;
    }
    again_ += again;
  }
  void end() {
    users_.clear();
    ports_.clear();
    sent_.clear();
    under_way_ = 0;
  }

  std::mt19937_64 random_;
  std::vector<User> users_;
  std::map<Way, std::deque<std::string>> sent_;
  uint64_t under_way_ = 0;
  uint64_t again_ = 0;
  bool refusals_allowed_ = true;  // true if there are fewer buffers than the shares need
};

TEST_P(Traffic, NothingIsLostDoubledOrOutOfOrder) {
  for (uint64_t seed = 1; seed <= seeds() && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    start(seed);
    for (uint32_t i = 0; i < 20000 && !HasFailure(); ++i) {
      step();
    }
    finish();
    end();
  }
  if (std::string(GetParam().options).find("faults") != std::string::npos) {
    EXPECT_NE(again_, 0u);  // otherwise nothing was retransmitted, so nothing was tested
  }
}

INSTANTIATE_TEST_SUITE_P(All, Traffic,
                         ::testing::Values(Kinds{"fast", ""}, Kinds{"exact", ",exact=1"},
                                           Kinds{"pcie", ",pcie=%"},
                                           Kinds{"faults", ",faults=%:0.01"},
                                           Kinds{"both", ",faults=%:0.005,pcie=%"}),
                         [](const auto& kinds) { return std::string(kinds.param.name); });

}  // namespace
}  // namespace rio::msg::test
