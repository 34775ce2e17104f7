// Random messages of any size between contexts of several cards, against a reference: a map of
// queues. A failure prints its seed. RIO_MSG_SEEDS: number of seeds of each kind.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <deque>
#include <map>
#include <ostream>
#include <random>

#include "tests/support/env_number.hpp"
#include "tests/unit/lib/tag/long_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kUnderWayMax = 24 * kMiB;

uint32_t seeds() {
  return static_cast<uint32_t>(rio::test::env_number("RIO_MSG_SEEDS", 2));
}

struct LongKinds {
  const char* name;
  const char* options;  // of the cards; %: the seed
  uint32_t steps = 8000;
};
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const LongKinds& kinds, std::ostream* out) {
  *out << kinds.name;
}

class LongTraffic : public LongNet, public ::testing::WithParamInterface<LongKinds> {
 protected:
  using Way = std::array<uint32_t, 4>;  // destID and context, from and to

  /// A message on its way. Its bytes stay until both sides are done with it.
  struct Sent {
    Bytes bytes;
  };
  /// A receive under way.
  struct Taken {
    std::shared_ptr<Sent> sent;
    Bytes buffer;
  };
  struct Held {
    Unexpected* arrival;
    std::shared_ptr<Sent> sent;
  };

  void start(uint64_t seed) {
    random_.seed(seed);
    const uint32_t ports = static_cast<uint32_t>(2 + pick(3));
    for (uint32_t id = 1; id <= ports; ++id) {
      std::string options = GetParam().options;
      for (size_t at = options.find('%'); at != std::string::npos; at = options.find('%')) {
        options.replace(at, 1, std::to_string(seed * 100 + id));
      }
      PortConfig config = config_of(id, options);
      config.share = 4u << pick(5);
      config.connect_ms = config.deliver_ms = 60000;
      config.response_timeout_us = 20000;  // each fault costs some of these timeouts
      MessagePort& made = port(config);
      for (uint16_t i = 0; i < 2; ++i) {
        static_cast<void>(talker(made, static_cast<uint16_t>(30 * i + pick(30))));
      }
    }
    held_.resize(talkers_.size());
  }
  uint64_t pick(uint64_t below) { return random_() % below; }
  uint32_t any() { return static_cast<uint32_t>(pick(talkers_.size())); }

  /// A random size: each order of magnitude is as likely, and so are sizes next to a border.
  uint64_t any_size() {
    constexpr std::array<uint64_t, 6> kBorders = {
        0, 240, kPartBytesMax, tag::kFirstBytesMax + tag::kMoreBytesMax, 16384, kMiB};
    if (pick(3) == 0) {
      const uint64_t border = kBorders[pick(kBorders.size())];
      return border + pick(3) - (border == 0 ? 0 : 1);
    }
    return static_cast<uint64_t>(std::exp2(static_cast<double>(pick(22001)) / 1000)) - 1;
  }

  void send_one() {
    Talker& from = *talkers_[any()];
    const Talker& to = *talkers_[any()];
    auto sent = std::make_shared<Sent>();
    sent->bytes = pattern(++number_, any_size());
    if (bytes_under_way_ + sent->bytes.size() > kUnderWayMax) {
      return;
    }
    SendRequest* request = nullptr;
    const int rc =
        from.send(to.address(), sent->bytes.data(), sent->bytes.size(), sent.get(), &request);
    ASSERT_GE(rc, 0);
    auto& queue = sent_[{from.dest_id(), from.id(), to.dest_id(), to.id()}];
    queue.push_back(sent);
    if (rc == 0) {
      at_sender_[sent.get()] = sent;
    }
    bytes_under_way_ += sent->bytes.size();
    ++under_way_;
    if (rc == 0 && pick(30) == 0) {
      const int cancelled = from.messages->cancel(*request);
      ASSERT_TRUE(cancelled == 0 || cancelled == -EALREADY);
      if (request->stage == tag::Stage::kDone) {  // the message was not even requested
        queue.pop_back();
        over(sent);
      }
    }
  }

  std::shared_ptr<Sent> expected(uint32_t to, tag::Address from, uint64_t length_bytes) {
    const Talker& at = *talkers_[to];
    auto& queue = sent_[{tag::dest_id_of(from), tag::context_of(from), at.dest_id(), at.id()}];
    if (queue.empty()) {
      ADD_FAILURE() << "this message was never sent";
      return nullptr;
    }
    std::shared_ptr<Sent> sent = queue.front();
    queue.pop_front();
    EXPECT_EQ(sent->bytes.size(), length_bytes);
    return sent;
  }
  void over(const std::shared_ptr<Sent>& sent) {
    bytes_under_way_ -= sent->bytes.size();
    --under_way_;
  }

  void receive_one(uint32_t to) {
    const Talker& at = *talkers_[to];
    if (!at.messages->look()) {
      return;
    }
    Unexpected* const arrival = at.messages->shown();
    if (arrival != nullptr) {
      const auto sent = expected(to, arrival->source, arrival->length_bytes);
      ASSERT_FALSE(HasFailure());
      held_[to].push_back({arrival, sent});
      return;
    }
    const iovec& bytes = at.context().inbox().at(0);
    const Origin origin = at.context().inbox().origin(0);
    const auto sent =
        expected(to, tag::address(origin.link->dest_id(), origin.from), bytes.iov_len);
    ASSERT_FALSE(HasFailure());
    ASSERT_TRUE(bytes.iov_len == 0 ||
                std::memcmp(bytes.iov_base, sent->bytes.data(), bytes.iov_len) == 0);
    at.context().drop_oldest();
    over(sent);
  }
  /// Receives mostly at once; some messages wait for a while, and are received in any order.
  void take_one(uint32_t to) {
    if (held_[to].empty()) {
      return;
    }
    const size_t which = pick(held_[to].size());
    const Held held = held_[to][which];
    held_[to].erase(held_[to].begin() + static_cast<ptrdiff_t>(which));
    const uint64_t length = held.sent->bytes.size();
    if (pick(12) == 0) {
      talkers_[to]->messages->refuse(*held.arrival);
      over(held.sent);
      return;
    }
    auto* const taken = new Taken{held.sent, Bytes(pick(8) == 0 ? pick(length + 1) : length)};
    taken_.emplace_back(taken);
    int status = 0;
    RecvRequest* received = nullptr;
    const int rc = talkers_[to]->receive(*held.arrival, taken->buffer.data(), taken->buffer.size(),
                                         taken, &status, &received);
    ASSERT_GE(rc, 0);
    if (rc == 1) {
      check(taken, status);
    } else if (pick(30) == 0) {
      ASSERT_EQ(talkers_[to]->messages->cancel(*received), 0);
    }
  }
  void check(Taken* taken, int status) {
    const Sent& sent = *taken->sent;
    over(taken->sent);
    if (status == 0 || status == -EMSGSIZE) {
      ASSERT_EQ(status == 0, taken->buffer.size() == sent.bytes.size());
      ASSERT_TRUE(std::equal(taken->buffer.begin(), taken->buffer.end(), sent.bytes.begin()));
    } else {
      ASSERT_EQ(status, -ECANCELED);
    }
    std::erase_if(taken_, [&](const auto& each) { return each.get() == taken; });
  }
  void check_done(uint32_t of) {
    LongMessages& messages = *talkers_[of]->messages;
    talkers_[of]->attend();
    while (tag::Request* const done = messages.next_done()) {
      const int status = done->status;
      void* const user = done->user;
      const bool is_receive = done->is_receive;
      talkers_[of]->free(*done);
      if (is_receive) {
        check(static_cast<Taken*>(user), status);
      } else {
        at_sender_.erase(static_cast<Sent*>(user));
        ASSERT_TRUE(status == 0 || status == -ECANCELED || status == -ECONNREFUSED) << status;
      }
    }
  }
  void step() {
    switch (pick(5)) {
      case 0:
        send_one();
        break;
      case 1:
        receive_one(any());
        break;
      case 2:
        take_one(any());
        break;
      case 3:
        check_done(any());
        break;
      default:
        ports_[pick(ports_.size())]->progress();
    }
  }
  void finish() {
    const auto step_all = [&] {
      turn();
      for (uint32_t i = 0; i < talkers_.size() && !HasFailure(); ++i) {
        receive_one(i);
        take_one(i);
        check_done(i);
      }
    };
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    const auto quiet = [&] {
      return std::none_of(talkers_.begin(), talkers_.end(),
                          [](const auto& t) { return t->messages->busy(); });
    };
    while ((under_way_ != 0 || !quiet()) && !HasFailure()) {
      step_all();
      ASSERT_LT(std::chrono::steady_clock::now(), until) << under_way_;
    }
    for (const auto& port : ports_) {
      EXPECT_EQ(port->stats().cut_off, 0u);
    }
  }
  void end() {
    talkers_.clear();
    held_.clear();
    ports_.clear();
    sent_.clear();
    at_sender_.clear();
    bytes_under_way_ = under_way_ = 0;
  }

  std::mt19937_64 random_;
  uint64_t number_ = 0;
  uint64_t bytes_under_way_ = 0;
  uint64_t under_way_ = 0;
  std::map<Way, std::deque<std::shared_ptr<Sent>>> sent_;
  std::map<const Sent*, std::shared_ptr<Sent>> at_sender_;  // that the library reads
  std::vector<std::vector<Held>> held_;
  std::vector<std::unique_ptr<Taken>> taken_;
};

TEST_P(LongTraffic, NothingIsLostDoubledOrOutOfOrder) {
  for (uint64_t seed = 1; seed <= seeds() && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    start(seed);
    for (uint32_t i = 0; i < GetParam().steps && !HasFailure(); ++i) {
      step();
    }
    finish();
    end();
  }
}

INSTANTIATE_TEST_SUITE_P(All, LongTraffic,
                         ::testing::Values(LongKinds{"fast", ""}, LongKinds{"exact", ",exact=1"},
                                           LongKinds{"pcie", ",pcie=%"},
                                           LongKinds{"faults", ",faults=%:0.0005", 1500},
                                           LongKinds{"both", ",faults=%:0.0003,pcie=%", 1500}),
                         [](const auto& kinds) { return std::string(kinds.param.name); });

}  // namespace
}  // namespace rio::msg::test
