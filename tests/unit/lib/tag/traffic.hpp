/// @file
/// Random traffic between endpoints of this process, against the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "fpga/model/card.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/tag/traffic_reference.hpp"

namespace rio::test {

struct TrafficPlan {
  std::vector<std::string> cards;
  uint32_t first_id = 0;  ///< 0: the cards already have destIDs
  uint64_t seed = 0;
  uint32_t steps = 0;
  uint64_t eager_bytes = msg::Profile::kEagerUsual;
  uint64_t budget_bytes = 0;  ///< of all messages of more than a few KiB together
  uint32_t deliver_ms = msg::PortConfig{}.deliver_ms;
  bool may_fail = false;  ///< large data may end with -EIO, since the cards fail again and again
};

/// Two endpoints on each card. In each step one of them sends, receives, probes, cancels or makes
/// progress.
class Traffic {
 public:
  explicit Traffic(TrafficPlan plan)
      : plan_(std::move(plan)),
        random_(plan_.seed),
        sizes_(plan_.eager_bytes, plan_.budget_bytes),
        nodes_(plan_.cards.size()),
        sends_(2 * plan_.cards.size()),
        receives_(2 * plan_.cards.size()) {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      open(i);
    }
  }
  ~Traffic() { nodes_.clear(); }  // closes the nodes while their requests exist
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  /// @param event called before each step; it may call the functions below.
  void run(const std::function<void(uint32_t step)>& event = {}) {
    SCOPED_TRACE("seed " + std::to_string(plan_.seed));
    for (uint32_t step = 0; step < plan_.steps && !testing::Test::HasFatalFailure(); ++step) {
      if (event) {
        event(step);
      }
      act(static_cast<uint32_t>(below(ends())));
    }
    for (uint32_t end = 0; end < ends(); ++end) {
      cancel_all(end);
    }
    finish();
  }

  [[nodiscard]] uint64_t below(uint64_t limit) { return random_() % limit; }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(nodes_.size()); }
  [[nodiscard]] model::Card& card(uint32_t node) {
    pmd::Bus& bus = nodes_[node]->port->endpoint().card().bus();
    return *dynamic_cast<pmd::EmuBus&>(bus).card();
  }
  /// All endpoints work.
  void work_all() {
    for (uint32_t end = 0; end < ends(); ++end) {
      work(end);
    }
  }
  /// From now on messages to and from this node may be lost, and errors of these are expected.
  void disturbed(uint32_t node) {
    disturbed_.insert(node);
    reference_.all_lost([&](const Reference::Key& key) {
      return node_of(std::get<0>(key)) == node || std::get<1>(key) / 2 == node;
    });
  }
  /// Opens a card again, as its user does after an error reported that the card is gone.
  void reopen(uint32_t node) {
    nodes_[node].reset();
    for (uint32_t end = 2 * node; end < 2 * node + 2; ++end) {
      sends_[end].clear();
      receives_[end].clear();
    }
    open(node);
  }
  /// @return whether a message from each endpoint to each other one arrives, so disturbed pairs
  /// work again. A message may have to be sent twice, since a sender may learn only then that a
  /// session is over.
  [[nodiscard]] bool all_well() {
    for (uint32_t from = 0; from < ends(); ++from) {
      for (uint32_t to = 0; to < ends(); ++to) {
        bool arrived = from / 2 == to / 2;
        for (uint32_t tries = 0; tries < 3 && !arrived; ++tries) {
          arrived = arrives(from, to);
        }
        if (!arrived) {
          return false;
        }
      }
    }
    return true;
  }
  /// All work until the port knows that its card is gone and its requests are done.
  [[nodiscard]] bool until_told(uint32_t node) {
    return wait_until([&] {
      work_all();
      return nodes_[node]->port->error() == -ENODEV && all_told(2 * node) && all_told(2 * node + 1);
    });
  }
  /// Sends so many bytes from any endpoint to any other one.
  void send_long(uint64_t length_bytes) {
    send(static_cast<uint32_t>(below(ends())), length_bytes);
  }
  [[nodiscard]] tag::TaggedContext& endpoint(uint32_t end) {
    return *nodes_[end / 2]->endpoints[end % 2];
  }
  [[nodiscard]] uint64_t failed() const { return failed_; }

 private:
  struct Sending {
    Sending(uint64_t length_bytes, uint64_t offset) : bytes(length_bytes, offset) {}
    tag::SendRequest request;
    Reference::Key key;
    uint64_t number = 0;
    Buffer bytes;
  };
  struct Receiving {
    Receiving(uint64_t capacity, uint64_t offset) : buffer(capacity, offset) {}
    tag::RecvRequest request;
    tag::Pattern pattern;
    uint64_t order = 0;  // when it was posted; 0: it receives by a handle
    uint64_t taken = 0;  // when it was posted, or when its handle was taken
    Buffer buffer;
  };

  struct Test {
    tag::SendRequest send;
    tag::RecvRequest receive;
    uint64_t from = 0;
    uint64_t to = 0;
  };

  static constexpr uint64_t kBitsCount = 4;
  static constexpr uint64_t kBigBytes = 1u << 20;  // one receive of so many at a time

  [[nodiscard]] uint32_t ends() const { return 2 * count(); }
  [[nodiscard]] tag::Address at(uint32_t end) { return nodes_[end / 2]->at(end % 2); }
  [[nodiscard]] uint32_t node_of(tag::Address address) {
    uint32_t node = 0;
    while (nodes_[node] == nullptr || nodes_[node]->port->dest_id() != tag::dest_id_of(address)) {
      ++node;
    }
    return node;
  }

  [[nodiscard]] bool arrives(uint32_t from, uint32_t to) {
    const uint64_t bits = kBitsCount + tests_.size();  // bits that no other message has
    cancel_all(to);                                    // since one of these receives might match it
    Test& test = tests_.emplace_back();
    if (endpoint(to).receive({bits, 0, at(from)}, &test.to, sizeof(test.to), test.receive) != 0 ||
        endpoint(from).send(at(to), bits, &test.from, sizeof(test.from), test.send) < 0) {
      return false;
    }
    const auto is_idle = [&] {
      work_all();
      return test.receive.stage == tag::Stage::kIdle;
    };
    return wait_until(is_idle) && test.receive.status == 0;
  }
  [[nodiscard]] bool all_told(uint32_t end) const {
    return sends_[end].empty() && receives_[end].empty();
  }

  void open(uint32_t node) {
    const uint32_t id = plan_.first_id == 0 ? 0 : plan_.first_id + node;
    nodes_[node] = std::make_unique<TagNode>(plan_.cards[node], id, 2, 16, plan_.eager_bytes, 1024,
                                             plan_.deliver_ms);
  }

  /// Receives all messages that are missing.
  void finish() {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + 2 * kPatience;  // long enough for the cards' timeouts
    while (left() && !testing::Test::HasFatalFailure()) {
      ASSERT_LT(Clock::now(), until) << reference_.waiting() << " messages missing" << state();
      for (uint32_t end = 0; end < ends(); ++end) {
        if (!listens(end) && (reference_.owed(end) != 0 || left_by_others(end))) {
          post(end, {0, UINT64_MAX, tag::kAnySource}, reference_.longest(end));
        }
        work(end);
      }
    }
  }
  /// Lists the requests under way, for debugging.
  [[nodiscard]] std::string state() {
    std::string out;
    for (uint32_t end = 0; end < ends(); ++end) {
      out += "\nend " + std::to_string(end) + " owed " + std::to_string(reference_.owed(end));
      for (const auto& each : sends_[end]) {
        out += "\n  sends " + std::to_string(each->bytes.size()) + " bytes to " +
               std::to_string(std::get<1>(each->key)) + ", stage " +
               std::to_string(static_cast<int>(each->request.stage));
      }
      for (const auto& each : receives_[end]) {
        out += "\n  receives up to " + std::to_string(each->buffer.size()) + " bytes, stage " +
               std::to_string(static_cast<int>(each->request.stage));
      }
    }
    return out;
  }
  [[nodiscard]] bool left() const {
    return reference_.waiting() != 0 ||
           std::ranges::any_of(sends_, [](const auto& sends) { return !sends.empty(); });
  }
  /// Whether another member still sends there, though its messages may be lost.
  [[nodiscard]] bool left_by_others(uint32_t end) const {
    return std::ranges::any_of(sends_, [&](const auto& sends) {
      return std::ranges::any_of(sends,
                                 [&](const auto& each) { return std::get<1>(each->key) == end; });
    });
  }
  /// Whether the endpoint has a receive of any message. Otherwise messages of others may fill the
  /// buffers, and parts of a message wait for room.
  [[nodiscard]] bool listens(uint32_t end) const {
    return std::ranges::any_of(receives_[end], [](const auto& each) {
      return each->request.stage == tag::Stage::kWaiting;
    });
  }

  void act(uint32_t end) {
    switch (below(8)) {
      case 0:
      case 1:
        send(end, sizes_.draw(random_));
        break;
      case 2:
        post(end, {below(kBitsCount), 0, at(other(end))}, capacity(end));
        break;
      case 3:
        post(end, any_pattern(), capacity(end));
        break;
      case 4:
        probe(end);
        break;
      case 5:
        if (below(8) == 0) {
          cancel_all(end);
        }
        break;
      default:  // the other cards make no progress meanwhile
        for (uint64_t turns = below(20); turns != 0; --turns) {
          work(end);
        }
    }
  }

  [[nodiscard]] uint32_t other(uint32_t end) {
    const auto node = (end / 2 + 1 + below(nodes_.size() - 1)) % nodes_.size();
    return static_cast<uint32_t>(node * 2 + below(2));
  }
  [[nodiscard]] tag::Pattern any_pattern() {
    const uint64_t ignore = below(3) == 0 ? 0 : below(kBitsCount);
    return {below(kBitsCount), ignore, tag::kAnySource};
  }
  /// A buffer size that is mostly enough for the longest message that may come.
  [[nodiscard]] uint64_t capacity(uint32_t end) {
    const uint64_t longest = reference_.longest(end);
    const bool has_big = std::ranges::any_of(
        receives_[end], [](const auto& each) { return each->buffer.size() > kBigBytes; });
    return below(4) == 0 || (longest > kBigBytes && has_big) ? sizes_.draw_short(random_)
                                                             : std::max<uint64_t>(longest, 4200);
  }

  void send(uint32_t from, uint64_t length_bytes) {
    if (sends_[from].size() > 40) {
      return;
    }
    const uint32_t to = other(from);
    const uint64_t bits = below(kBitsCount);
    auto sending = std::make_unique<Sending>(length_bytes, Buffer::any_offset(random_));
    sending->key = {at(from), to, bits};
    sending->number = next_number_++;
    const std::vector<uint8_t> bytes = pattern(sending->number, length_bytes);
    std::ranges::copy(bytes, sending->bytes.data());
    reference_.sent(sending->key, sending->number, length_bytes);
    if (is_disturbed(from) || is_disturbed(to)) {
      reference_.lost(sending->key, sending->number);
    }
    tag::SendRequest& request = sending->request;
    const bool sync = below(10) == 0;
    tag::TaggedContext& source = endpoint(from);
    const int rc = sync ? source.send_sync(at(to), bits, sending->bytes.data(), length_bytes,
                                           request, immediate_of(sending->number))
                        : source.send(at(to), bits, sending->bytes.data(), length_bytes, request,
                                      immediate_of(sending->number));
    if (rc < 0) {
      ASSERT_TRUE(is_disturbed(to) || is_disturbed(from)) << rc;
      reference_.lost(sending->key, sending->number);
    } else if (rc == 0) {
      request.user = sending.get();
      sends_[from].push_back(std::move(sending));
    } else {
      // The library reads the bytes no more.
      std::fill_n(sending->bytes.data(), length_bytes, uint8_t{0xDD});
    }
  }

  void post(uint32_t end, const tag::Pattern& pattern, uint64_t capacity) {
    if (receives_[end].size() > 20) {
      return;
    }
    capacity = std::max(capacity, kTellingBytes);
    auto receiving = make_receiving(pattern, capacity);
    const int rc =
        endpoint(end).receive(pattern, receiving->buffer.data(), capacity, receiving->request);
    begun(end, rc, std::move(receiving));
  }
  std::unique_ptr<Receiving> make_receiving(const tag::Pattern& pattern, uint64_t capacity) {
    auto receiving = std::make_unique<Receiving>(capacity, Buffer::any_offset(random_));
    receiving->pattern = pattern;
    receiving->order = receiving->taken = next_order_++;
    receiving->request.user = receiving.get();
    return receiving;
  }
  void begun(uint32_t end, int rc, std::unique_ptr<Receiving> receiving) {
    ASSERT_GE(rc, 0);
    if (rc == 1) {
      collect(end);  // completes the receives that were matched earlier
      check(end, *receiving);
    } else {
      receives_[end].push_back(std::move(receiving));
    }
  }

  void probe(uint32_t end) {
    const tag::Pattern pattern = any_pattern();
    tag::MessageInfo seen{};
    tag::MessageInfo info{};
    const bool there = endpoint(end).probe(pattern, &seen);
    tag::Message* const message = endpoint(end).claim(pattern, &info);
    ASSERT_TRUE(message != nullptr || !there || !disturbed_.empty());
    if (message == nullptr) {
      return;
    }
    if (there && disturbed_.empty()) {
      ASSERT_EQ(std::tie(seen.source, seen.bits, seen.length_bytes),
                std::tie(info.source, info.bits, info.length_bytes));
    }
    auto receiving = make_receiving({info.bits, 0, info.source}, info.length_bytes);
    receiving->order = 0;
    const int rc = endpoint(end).receive_claimed(*message, receiving->buffer.data(),
                                                 info.length_bytes, receiving->request);
    begun(end, rc, std::move(receiving));
  }

  void cancel_all(uint32_t end) {
    for (auto& receiving : receives_[end]) {
      if (receiving->request.stage == tag::Stage::kMoving) {
        continue;  // large data may be stopped in the middle, of which its sender would be told
      }
      const int rc = endpoint(end).cancel(receiving->request);
      ASSERT_TRUE(rc == 0 || rc == -EALREADY || rc == -ENOENT) << rc;
    }
  }

  void work(uint32_t end) {
    endpoint(end).progress();
    collect(end);
  }
  void collect(uint32_t end) {
    while (tag::Request* const done = endpoint(end).next_done()) {
      if (done->user == nullptr) {
        continue;  // a request of arrives(), which checks it itself
      }
      if (done->is_receive) {
        auto* const receiving = static_cast<Receiving*>(done->user);
        if (done->status != -ECANCELED) {
          check(end, *receiving);
        }
        std::erase_if(receives_[end], [&](const auto& each) { return each.get() == receiving; });
      } else {
        auto* const sending = static_cast<Sending*>(done->user);
        check_sent(end, *sending);
        std::erase_if(sends_[end], [&](const auto& each) { return each.get() == sending; });
      }
    }
  }

  [[nodiscard]] bool is_disturbed(uint32_t end) const { return disturbed_.contains(end / 2); }

  void check_sent(uint32_t end, const Sending& sending) {
    const int status = sending.request.status;
    if (status != 0) {
      const bool expected = is_disturbed(end) || is_disturbed(std::get<1>(sending.key)) ||
                            (plan_.may_fail && status == -EIO);
      ASSERT_TRUE(expected) << "a send of " << sending.bytes.size() << " bytes ended with "
                            << status;
      reference_.lost(sending.key, sending.number);
      ++failed_;
    }
  }

  void check(uint32_t end, const Receiving& receiving) {
    const tag::RecvRequest& request = receiving.request;
    if (request.status != 0 && request.status != -EMSGSIZE) {
      // Its sender is told of the error, too, so the message need not arrive.
      ASSERT_TRUE(!disturbed_.empty() || (plan_.may_fail && request.status == -EIO))
          << request.status;
      ASSERT_TRUE(receiving.buffer.untouched(receiving.buffer.size())) << "beyond the buffer";
      return;
    }
    ASSERT_TRUE(receiving.pattern.matches(request.from, request.message_bits));
    ASSERT_EQ(
        reference_.received({request.from, end, request.message_bits, request.length_bytes,
                             request.status, request.immediate, receiving.taken, receiving.buffer}),
        "");
    for (const auto& older : receives_[end]) {
      ASSERT_FALSE(older->order < receiving.order && older->request.stage == tag::Stage::kWaiting &&
                   older->pattern.matches(request.from, request.message_bits))
          << "an older receive would have matched";
    }
  }

  TrafficPlan plan_;
  std::mt19937_64 random_;
  Sizes sizes_;
  std::vector<std::unique_ptr<TagNode>> nodes_;
  std::vector<std::vector<std::unique_ptr<Sending>>> sends_;
  std::vector<std::vector<std::unique_ptr<Receiving>>> receives_;
  Reference reference_;
  std::set<uint32_t> disturbed_;
  std::deque<Test> tests_;
  uint64_t failed_ = 0;  // number of failed sends
  uint64_t next_number_ = 0;
  uint64_t next_order_ = 1;
};

}  // namespace rio::test
