// Cards that are reset by another process, or vanish, in the middle of traffic. This test forgives
// fewer losses than traffic_test.cc, which forgives all messages to or from such a card. A message
// from one endpoint to another may be lost only if it was sent before its user was told of an error
// there (by a refused send, or by a request that failed), or before the sender's own card was
// opened again. All others arrive, once and in order.
//
// RIO_TAG_SEEDS: number of seeds; RIO_SEED: the first.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>

#include "tests/support/seed.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/tag/traffic.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kNodes = 3;
constexpr uint32_t kContexts = 2;
constexpr uint32_t kEnds = kNodes * kContexts;
constexpr uint64_t kBytesMax = 40000;

/// All messages that one endpoint sent to another.
struct Channel {
  struct Sent {
    bool refused = false;
    bool failed = false;
    bool arrived = false;
    bool is_first = false;  // the first after the card was opened again
    uint32_t session = 0;   // of the link when the message was sent
  };
  std::vector<Sent> sent;  // by message number
  uint64_t told = 0;       // messages below this number may be lost
  uint64_t opened = 0;     // messages from this number on are of the sender's present card
  std::map<uint64_t, uint64_t> matched;  // message number, and when its receive was posted

  [[nodiscard]] std::string missing() const {
    std::string out;
    for (uint64_t number = told; number < sent.size(); ++number) {
      const Sent& each = sent[number];
      if (!each.arrived && !each.failed && !each.refused) {
        out += " " + std::to_string(number);
      }
    }
    return out;
  }
  /// @return lost messages with later ones behind them that went in a later session before any user
  /// was told of an error: no user could know of the loss.
  [[nodiscard]] std::string holes() const {
    std::string out;
    uint64_t first_lost = sent.size();  // the first loss since a user was told
    for (uint64_t number = 0; number < sent.size(); ++number) {
      const Sent& each = sent[number];
      if (each.refused || each.failed || each.is_first) {
        first_lost = sent.size();
      }
      if (each.refused || each.failed) {
        continue;
      }
      if (!each.arrived) {
        first_lost = std::min(first_lost, number);
      } else if (first_lost != sent.size() && each.session != sent[first_lost].session) {
        out += " " + std::to_string(first_lost) + " before " + std::to_string(number);
        first_lost = sent.size();
      }
    }
    return out;
  }
  /// Notes that the message has arrived. @return what is wrong.
  [[nodiscard]] std::string arrived(uint64_t number, uint64_t taken) {
    if (number >= sent.size() || sent[number].refused) {
      return "it was never sent";
    }
    if (std::exchange(sent[number].arrived, true)) {
      return "twice";
    }
    const auto at = matched.emplace(number, taken).first;
    const bool after = at == matched.begin() || std::prev(at)->second < taken;
    const bool before = std::next(at) == matched.end() || std::next(at)->second > taken;
    return after && before ? "" : "out of order";
  }
};

class Resets {
 public:
  Resets(std::vector<std::string> cards, uint64_t seed) : cards_(std::move(cards)), random_(seed) {
    for (uint32_t node = 0; node < kNodes; ++node) {
      open(node);
    }
  }
  ~Resets() { nodes_ = {}; }  // closes the nodes while their requests exist
  Resets(const Resets&) = delete;
  Resets& operator=(const Resets&) = delete;

  void traffic(uint64_t steps) {
    for (; steps != 0 && !testing::Test::HasFatalFailure(); --steps) {
      const auto end = static_cast<uint32_t>(below(kEnds));
      if (below(3) != 0) {
        for (uint64_t turns = below(20); turns != 0; --turns) {
          work(end);
        }
      } else {
        send(end, other(end), length());
      }
    }
  }
  [[nodiscard]] uint64_t below(uint64_t limit) { return random_() % limit; }

  /// Resets a node's card. Its user does not know yet.
  void reset(uint32_t node, bool vanishes) {
    pmd::Bus& bus = nodes_[node]->port->endpoint().card().bus();
    model::Card& card = *dynamic_cast<pmd::EmuBus&>(bus).card();
    reset_.insert(node);
    vanishes ? card.vanish() : card.lose_state();
  }
  void until_told(uint32_t node) {
    uint32_t turn = 0;
    const auto is_told = [&] {
      if (turn++ % 1000 == 0) {
        traffic(1);
      }
      work(node * kContexts);
      return nodes_[node]->port->error() != 0;
    };
    ASSERT_TRUE(wait_until(is_told));
    ASSERT_EQ(nodes_[node]->port->error(), -ENODEV);
  }
  /// Opens the node's card again, as its user does after the error.
  void reopen(uint32_t node) {
    nodes_[node].reset();
    for (uint32_t end = node * kContexts; end < (node + 1) * kContexts; ++end) {
      sends_[end].clear();
      receives_[end].clear();
      for (uint32_t to = 0; to < kEnds; ++to) {
        channel(end, to).opened = channel(end, to).told = channel(end, to).sent.size();
      }
    }
    open(node);
  }
  /// Each endpoint sends one more message to each other one, and again where any is missing, since
  /// only a sender is told that a session is over. Then no message is missing.
  void finish() {
    constexpr uint32_t kTurnsEach = 2000;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do {
      for (uint32_t from = 0; from < kEnds; ++from) {
        for (uint32_t to = 0; to < kEnds; ++to) {
          if (node_of(from) != node_of(to) && (!channel(from, to).missing().empty() || !asked_)) {
            send(from, to, 0);
          }
        }
      }
      asked_ = true;
      for (uint32_t turn = 0; turn < kTurnsEach && left(); ++turn) {
        work_all();
      }
    } while (left() && std::chrono::steady_clock::now() < until &&
             !testing::Test::HasFatalFailure());
    for (const auto& [ends, channel] : channels_) {
      EXPECT_EQ(channel.missing(), "") << "from " << ends.first << " to " << ends.second << " of "
                                       << channel.sent.size() << ", told below " << channel.told;
      EXPECT_EQ(channel.holes(), "") << "from " << ends.first << " to " << ends.second;
    }
  }

 private:
  struct Sending {
    tag::SendRequest request;
    uint32_t to = 0;
    uint64_t number = 0;
    std::vector<uint8_t> bytes;
  };
  struct Receiving {
    tag::RecvRequest request;
    uint64_t order = 0;
    std::vector<uint8_t> buffer = std::vector<uint8_t>(kBytesMax);
  };

  [[nodiscard]] static uint32_t node_of(uint32_t end) { return end / kContexts; }
  [[nodiscard]] Channel& channel(uint32_t from, uint32_t to) { return channels_[{from, to}]; }
  [[nodiscard]] tag::TaggedContext& endpoint(uint32_t end) {
    return *nodes_[node_of(end)]->endpoints[end % kContexts];
  }
  [[nodiscard]] tag::Address at(uint32_t end) {
    return tag::address(end / kContexts + 1, end % kContexts);
  }
  [[nodiscard]] uint32_t end_at(tag::Address address) {
    return (tag::dest_id_of(address) - 1) * kContexts + tag::context_of(address);
  }
  [[nodiscard]] bool was_reset(uint32_t from, uint32_t to) {
    return reset_.contains(node_of(from)) || reset_.contains(node_of(to));
  }
  [[nodiscard]] uint32_t other(uint32_t end) {
    return static_cast<uint32_t>((node_of(end) + 1 + below(kNodes - 1)) % kNodes * kContexts +
                                 below(kContexts));
  }
  [[nodiscard]] uint64_t length() {
    const uint64_t kind = below(16);
    return kind < 10 ? below(msg::kTinyBytesMax + 1) : kind < 15 ? below(9000) : below(kBytesMax);
  }

  void open(uint32_t node) {
    nodes_[node] = std::make_unique<TagNode>(cards_[node], 0, kContexts);
    for (uint32_t i = 0; i < kContexts; ++i) {
      listen(node * kContexts + i);
    }
  }

  void send(uint32_t from, uint32_t to, uint64_t length_bytes) {
    if (sends_[from].size() > 20) {
      return;
    }
    Channel& channel = this->channel(from, to);
    auto sending = std::make_unique<Sending>();
    sending->to = to;
    sending->number = channel.sent.size();
    sending->bytes = pattern(sending->number, length_bytes);
    sending->request.user = sending.get();
    channel.sent.emplace_back();
    channel.sent.back().is_first = channel.opened == sending->number;
    channel.sent.back().session = nodes_[node_of(from)]->port->link(node_of(to) + 1)->session;
    const int rc = endpoint(from).send(at(to), sending->number, sending->bytes.data(), length_bytes,
                                       sending->request);
    if (rc < 0) {
      ASSERT_TRUE(was_reset(from, to)) << rc;
      channel.sent.back().refused = true;
      channel.told = channel.sent.size();
    } else if (rc == 0) {
      sends_[from].push_back(std::move(sending));
    }
  }
  /// Keeps some receives of any message posted; they match in the order of their posts.
  void listen(uint32_t end) {
    while (receives_[end].size() < 6) {
      auto receiving = std::make_unique<Receiving>();
      receiving->order = next_order_++;
      receiving->request.user = receiving.get();
      tag::RecvRequest& request = receiving->request;
      const int rc = endpoint(end).receive({0, UINT64_MAX, tag::kAnySource},
                                           receiving->buffer.data(), kBytesMax, request);
      ASSERT_GE(rc, 0);
      if (rc == 1) {
        received(end, *receiving);
      } else {
        receives_[end].push_back(std::move(receiving));
      }
    }
  }

  void work(uint32_t end) {
    endpoint(end).progress();
    while (tag::Request* const done = endpoint(end).next_done()) {
      if (done->is_receive) {
        auto* const receiving = static_cast<Receiving*>(done->user);
        received(end, *receiving);
        std::erase_if(receives_[end], [&](const auto& each) { return each.get() == receiving; });
      } else {
        auto* const sending = static_cast<Sending*>(done->user);
        sent(end, *sending);
        std::erase_if(sends_[end], [&](const auto& each) { return each.get() == sending; });
      }
    }
    if (nodes_[node_of(end)]->port->error() == 0) {
      listen(end);
    }
  }
  void work_all() {
    for (uint32_t end = 0; end < kEnds; ++end) {
      work(end);
    }
  }
  void sent(uint32_t from, const Sending& sending) {
    if (sending.request.status == 0) {
      return;
    }
    ASSERT_TRUE(was_reset(from, sending.to)) << sending.request.status;
    Channel& channel = this->channel(from, sending.to);
    channel.sent[sending.number].failed = true;
    channel.told = std::max(channel.told, sending.number);
  }
  void received(uint32_t to, const Receiving& receiving) {
    const tag::RecvRequest& request = receiving.request;
    if (request.status != 0) {
      ASSERT_FALSE(reset_.empty()) << request.status;
      return;  // its sender is told of the error, too
    }
    const uint32_t from = end_at(request.from);
    const uint64_t number = request.message_bits;
    ASSERT_EQ(channel(from, to).arrived(number, receiving.order), "")
        << number << " from " << from << " to " << to;
    const std::vector<uint8_t> wanted = pattern(number, request.length_bytes);
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), receiving.buffer.begin()))
        << number << " from " << from << " to " << to;
  }
  [[nodiscard]] bool left() const {
    return std::ranges::any_of(sends_, [](const auto& sends) { return !sends.empty(); }) ||
           std::ranges::any_of(channels_,
                               [](const auto& each) { return !each.second.missing().empty(); });
  }

  std::vector<std::string> cards_;
  std::mt19937_64 random_;
  std::array<std::unique_ptr<TagNode>, kNodes> nodes_;
  std::array<std::vector<std::unique_ptr<Sending>>, kEnds> sends_;
  std::array<std::vector<std::unique_ptr<Receiving>>, kEnds> receives_;
  std::map<std::pair<uint32_t, uint32_t>, Channel> channels_;
  std::set<uint32_t> reset_;
  uint64_t next_order_ = 1;
  bool asked_ = false;  // set once each endpoint has sent its last message to each other one
};

class TagReset : public testing::Test {
 protected:
  TagReset() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~TagReset() override { unsetenv("RIO_RUNTIME_DIR"); }

  static std::vector<std::string> fabric(uint64_t seed) {
    std::vector<std::string> cards;
    for (uint32_t id = 1; id <= kNodes; ++id) {
      cards.push_back("shm:r" + std::to_string(seed) + ",id=" + std::to_string(id));
    }
    return cards;
  }

 private:
  const TempDir dir_;
};

TEST_F(TagReset, NothingIsLostUntold) {
  const uint64_t first = rio::test::first_seed();
  const uint64_t count = env_number("RIO_TAG_SEEDS", 8);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Resets resets(fabric(seed), seed);
    for (uint32_t round = 0; round < 4 && !HasFatalFailure(); ++round) {
      resets.traffic(resets.below(600));
      const auto node = static_cast<uint32_t>(resets.below(kNodes));
      resets.reset(node, resets.below(2) == 0);
      resets.traffic(resets.below(100));
      resets.until_told(node);
      resets.traffic(resets.below(100));
      resets.reopen(node);
    }
    resets.traffic(300);
    resets.finish();
  }
}

/// Works until a send is done. @param rc of send(). @return its status, or why it was refused;
/// -ETIMEDOUT: it is not done in time.
template <class Work>
int status_of(int rc, tag::TaggedContext& from, tag::SendRequest& request, const Work& work) {
  if (rc < 0) {
    return rc;
  }
  const auto is_done = [&] {
    work();
    return from.test(request);
  };
  return rc == 1 || wait_until(is_done) ? request.status : -ETIMEDOUT;
}

// Another endpoint of the port has already begun a new session.
TEST_F(TagReset, ALateSenderIsToldBeforeAnythingIsSent) {
  const std::vector<std::string> cards = fabric(0);
  TagNode a(cards[0], 0, kContexts);
  auto b = std::make_unique<TagNode>(cards[1], 0, 1);
  tag::SendRequest request;
  uint64_t bytes = 0;
  // Sends, and waits until the send is done. No other endpoint of the port makes progress
  // meanwhile.
  const auto send = [&](tag::TaggedContext& from) {
    const int rc = from.send(b->at(), 1, &bytes, sizeof(bytes), request);
    return status_of(rc, from, request, [&] {
      from.progress();
      b->progress();
    });
  };
  tag::TaggedContext& early = *a.endpoints[0];
  tag::TaggedContext& late = *a.endpoints[1];
  for (tag::TaggedContext* const each : {&early, &late, &early, &late}) {
    ASSERT_EQ(send(*each), 0);
  }
  b.reset();
  b = std::make_unique<TagNode>(cards[1], 0, 1);
  // The card reports that the process has gone when it looks, which no number of polls can hurry.
  ASSERT_TRUE(wait_until([&] {
    early.progress();
    return a.port->sessions_ended() != 0;
  }));
  ASSERT_EQ(send(early), -ECONNRESET);
  ASSERT_EQ(send(early), 0);
  EXPECT_EQ(late.send(b->at(), 1, &bytes, sizeof(bytes), request), -ECONNRESET);
  EXPECT_EQ(send(late), 0);
}

// No message was sent in the second session. That this session is over, too, is no reason to forget
// the error of the first.
TEST_F(TagReset, AnErrorIsToldEvenIfTheNextSessionIsOverToo) {
  const std::vector<std::string> cards = fabric(0);
  TagNode a(cards[0], 0, 1);
  auto b = std::make_unique<TagNode>(cards[1], 0, 1);
  tag::SendRequest request;
  uint64_t bytes = 0;
  const auto send = [&](TagNode& from, TagNode& to) {
    const int rc = from->send(to.at(), 1, &bytes, sizeof(bytes), request);
    return status_of(rc, *from, request, [&] {
      a->progress();
      (*b)->progress();
    });
  };
  ASSERT_EQ(send(a, *b), 0);
  for (uint64_t ended = 0; ended < 2; ended = a.port->sessions_ended()) {
    b.reset();
    b = std::make_unique<TagNode>(cards[1], 0, 1);
    ASSERT_EQ(send(*b, a), 0);  // this begins a new session
    ASSERT_GT(a.port->sessions_ended(), ended);
  }
  EXPECT_EQ(send(a, *b), -ECONNRESET);
  EXPECT_EQ(send(a, *b), 0);
}

}  // namespace
}  // namespace rio::test
