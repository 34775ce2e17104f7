// Random traffic against a simple reference: a queue for each sender, receiver and match bits.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <random>
#include <tuple>

#include "tests/unit/fpga/sim/temp_dir.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using tag::kAnySource;
using tag::Pattern;
using tag::RecvRequest;
using tag::SendRequest;

constexpr uint64_t kBitsCount = 4;
constexpr uint64_t kEagerBytes = msg::Profile{}.eager_bytes;
constexpr uint64_t kTellingBytes = 8;  // so many show which message it is

struct Sending {
  SendRequest request;
  std::vector<uint8_t> bytes;
};
struct Receiving {
  RecvRequest request;
  Pattern pattern;
  uint64_t order = 0;  // in which it was posted; 0: by a handle
  uint64_t taken = 0;  // in which it was posted, or the handle was had
  std::vector<uint8_t> buffer;
};
struct Sent {
  uint64_t number;
  uint64_t length_bytes;
};

class Traffic {
 public:
  Traffic(const std::vector<std::string>& cards, uint32_t first_id, uint64_t seed,
          uint64_t eager_bytes)
      : random_(seed), seed_(seed) {
    for (uint32_t i = 0; i < cards.size(); ++i) {
      nodes_.push_back(std::make_unique<TagNode>(cards[i], first_id == 0 ? 0 : first_id + i, 2, 16,
                                                 eager_bytes));
    }
    sends_.resize(ends());
    receives_.resize(ends());
  }

  ~Traffic() { nodes_.clear(); }  // while requests are there
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void run(uint32_t steps) {
    for (uint32_t step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      act(static_cast<uint32_t>(below(ends())));
    }
    for (uint32_t end = 0; end < ends(); ++end) {
      cancel_all(end);
    }
    using Clock = std::chrono::steady_clock;
    const auto until =
        Clock::now() + std::chrono::seconds(60);  // cards' time-outs may be waited for
    for (uint32_t turn = 0; left() && !testing::Test::HasFatalFailure(); ++turn) {
      ASSERT_TRUE(turn < kTurnsMax || Clock::now() < until)
          << "seed " << seed_ << ": " << waiting_ << " messages missing";
      for (uint32_t end = 0; end < ends(); ++end) {
        if (!listens(end) && owed_[end] != 0) {
          post(end, {0, UINT64_MAX, kAnySource}, 70000);
        }
        work(end);
      }
    }
  }

 private:
  [[nodiscard]] uint64_t below(uint64_t limit) { return random_() % limit; }
  [[nodiscard]] uint32_t ends() const { return static_cast<uint32_t>(nodes_.size()) * 2; }
  [[nodiscard]] tag::Endpoint& endpoint(uint32_t end) {
    return *nodes_[end / 2]->endpoints[end % 2];
  }
  [[nodiscard]] tag::Address at(uint32_t end) { return nodes_[end / 2]->at(end % 2); }
  [[nodiscard]] bool left() const {
    bool sending = waiting_ != 0;
    for (const auto& sends : sends_) {
      sending = sending || !sends.empty();
    }
    return sending;
  }

  /// What others have sent fills the buffers: parts of a message come when there is room again.
  [[nodiscard]] bool listens(uint32_t end) const {
    return std::ranges::any_of(receives_[end], [](const auto& each) {
      return each->request.stage == tag::Stage::kWaiting;
    });
  }

  void act(uint32_t end) {
    switch (below(8)) {
      case 0:
      case 1:
        send(end);
        break;
      case 2:
        post(end, {below(kBitsCount), 0, at(other(end))}, size());
        break;
      case 3:
        post(end, any_pattern(), below(2) == 0 ? 70000 : size());
        break;
      case 4:
        probe(end);
        break;
      case 5:
        if (below(8) == 0) {
          cancel_all(end);
        }
        break;
      default:  // the others are not heard meanwhile
        for (uint64_t turns = below(20); turns != 0; --turns) {
          work(end);
        }
    }
  }

  [[nodiscard]] uint32_t other(uint32_t end) {
    const auto node = (end / 2 + 1 + below(nodes_.size() - 1)) % nodes_.size();
    return static_cast<uint32_t>(node * 2 + below(2));
  }
  [[nodiscard]] Pattern any_pattern() {
    const uint64_t ignore = below(3) == 0 ? 0 : below(kBitsCount);
    return {below(kBitsCount), ignore, kAnySource};
  }
  [[nodiscard]] uint64_t size() {
    const uint64_t limits[] = {1, 65, 300, 4200, 9000, 65537};
    return below(limits[below(std::size(limits))]);
  }

  void send(uint32_t from) {
    if (sends_[from].size() > 40) {
      return;
    }
    const uint32_t to = other(from);
    const uint64_t bits = below(kBitsCount);
    const uint64_t length_bytes = size();
    const uint64_t number = next_number_++;
    auto sending = std::make_unique<Sending>();
    sending->bytes = pattern(number, length_bytes);
    queues_[{at(from), to, bits}].push_back({number, length_bytes});
    ++waiting_;
    ++owed_[to];
    SendRequest& request = sending->request;
    const int rc =
        below(10) == 0
            ? endpoint(from).send_sync(at(to), bits, sending->bytes.data(), length_bytes, request)
            : endpoint(from).send(at(to), bits, sending->bytes.data(), length_bytes, request);
    ASSERT_GE(rc, 0) << "seed " << seed_;
    if (rc == 0) {
      request.user = sending.get();
      sends_[from].push_back(std::move(sending));
    } else {
      // Nothing of it is needed any more.
      std::fill(sending->bytes.begin(), sending->bytes.end(), uint8_t{0xDD});
    }
  }

  void post(uint32_t end, const Pattern& pattern, uint64_t capacity) {
    if (receives_[end].size() > 20) {
      return;
    }
    capacity = std::max(capacity, kTellingBytes);
    auto receiving = make_receiving(pattern, capacity);
    const int rc =
        endpoint(end).receive(pattern, receiving->buffer.data(), capacity, receiving->request);
    begun(end, rc, std::move(receiving));
  }
  std::unique_ptr<Receiving> make_receiving(const Pattern& pattern, uint64_t capacity) {
    auto receiving = std::make_unique<Receiving>();
    receiving->buffer.assign(capacity + 8, 0xEE);
    receiving->pattern = pattern;
    receiving->order = receiving->taken = next_order_++;
    receiving->request.user = receiving.get();
    return receiving;
  }
  void begun(uint32_t end, int rc, std::unique_ptr<Receiving> receiving) {
    ASSERT_GE(rc, 0);
    if (rc == 1) {
      collect(end);  // those were matched earlier
      check(end, *receiving);
    } else {
      receives_[end].push_back(std::move(receiving));
    }
  }

  void probe(uint32_t end) {
    const Pattern pattern = any_pattern();
    tag::MessageInfo seen{};
    tag::MessageInfo info{};
    const bool there = endpoint(end).probe(pattern, &seen);
    tag::Message* const message = endpoint(end).claim(pattern, &info);
    ASSERT_TRUE(message != nullptr || !there);
    if (message == nullptr) {
      return;
    }
    if (there) {
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
        continue;  // large data can be stopped, and its sender would hear of it
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
      if (done->is_receive) {
        auto* const receiving = static_cast<Receiving*>(done->user);
        if (done->status != -ECANCELED) {
          check(end, *receiving);
        }
        std::erase_if(receives_[end], [&](const auto& each) { return each.get() == receiving; });
      } else {
        ASSERT_EQ(done->status, 0) << "seed " << seed_;
        auto* const sending = static_cast<Sending*>(done->user);
        std::erase_if(sends_[end], [&](const auto& each) { return each.get() == sending; });
      }
    }
  }

  void check(uint32_t end, const Receiving& receiving) {
    const RecvRequest& request = receiving.request;
    ASSERT_TRUE(request.status == 0 || request.status == -EMSGSIZE)
        << "seed " << seed_ << ": status " << request.status;
    const uint64_t capacity = receiving.buffer.size() - 8;
    ASSERT_TRUE(receiving.pattern.matches(request.from, request.message_bits)) << seed_;
    auto& queue = queues_[{request.from, end, request.message_bits}];
    // What is asked for may be done after what was sent behind it.
    const auto sent =
        std::ranges::find_if(queue, [&](const Sent& each) { return is(each, receiving); });
    ASSERT_NE(sent, queue.end()) << "seed " << seed_ << ": a message that nobody sent";
    ASSERT_EQ(request.status, sent->length_bytes > capacity ? -EMSGSIZE : 0) << "seed " << seed_;
    if (sent->length_bytes >= kTellingBytes) {
      check_order(matched_[{request.from, end, request.message_bits}], sent->number, receiving);
    }
    queue.erase(sent);
    --waiting_;
    --owed_[end];
    for (const auto& older : receives_[end]) {
      ASSERT_FALSE(older->order < receiving.order && older->request.stage == tag::Stage::kWaiting &&
                   older->pattern.matches(request.from, request.message_bits))
          << "seed " << seed_ << ": an older receive would have matched";
    }
  }

  /// Of one sender and one pattern of bits, the message that was sent first is matched first.
  void check_order(std::map<uint64_t, uint64_t>& matched, uint64_t number,
                   const Receiving& receiving) {
    const auto [at, is_new] = matched.emplace(number, receiving.taken);
    ASSERT_TRUE(is_new) << "seed " << seed_ << ": twice";
    if (at != matched.begin()) {
      ASSERT_LT(std::prev(at)->second, receiving.taken) << "seed " << seed_;
    }
    if (std::next(at) != matched.end()) {
      ASSERT_GT(std::next(at)->second, receiving.taken) << "seed " << seed_;
    }
  }

  /// Whether it is that message, and not a byte beyond is written.
  [[nodiscard]] static bool is(const Sent& sent, const Receiving& receiving) {
    std::vector<uint8_t> wanted = pattern(sent.number, sent.length_bytes);
    wanted.resize(std::min(receiving.buffer.size() - 8, sent.length_bytes));
    wanted.resize(receiving.buffer.size(), 0xEE);
    return receiving.request.length_bytes == sent.length_bytes && receiving.buffer == wanted;
  }

  std::mt19937_64 random_;
  uint64_t seed_;
  std::vector<std::unique_ptr<TagNode>> nodes_;
  std::vector<std::vector<std::unique_ptr<Sending>>> sends_;
  std::vector<std::vector<std::unique_ptr<Receiving>>> receives_;
  std::map<std::tuple<tag::Address, uint32_t, uint64_t>, std::deque<Sent>> queues_;
  // By number of the message, when its receive was posted.
  std::map<std::tuple<tag::Address, uint32_t, uint64_t>, std::map<uint64_t, uint64_t>> matched_;
  std::map<uint32_t, uint64_t> owed_;  // messages not received, by receiver
  uint64_t waiting_ = 0;
  uint64_t next_number_ = 0;
  uint64_t next_order_ = 1;
};

/// RIO_TAG_SEEDS: how many; RIO_TAG_SEED: the first.
class TagTraffic : public testing::Test {
 protected:
  static uint64_t from_environment(const char* name, uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
  }
  template <class Cards>
  void each_seed(uint32_t steps, uint32_t first_id, Cards&& cards,
                 uint64_t eager_bytes = kEagerBytes) {
    const uint64_t first = from_environment("RIO_TAG_SEED", std::random_device()());
    const uint64_t count = from_environment("RIO_TAG_SEEDS", 4);
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
      std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
      Traffic(cards(seed), first_id, seed, eager_bytes).run(steps);
    }
  }
};

TEST_F(TagTraffic, TwoCards) {
  each_seed(20000, 5, [](uint64_t seed) {
    return std::vector<std::string>(2, "emu:tag" + std::to_string(seed));
  });
}

TEST_F(TagTraffic, TwoCardsWithFaults) {
  each_seed(3000, 5, [](uint64_t seed) {
    const std::string text = std::to_string(seed);
    return std::vector<std::string>(2, "emu:tagf" + text + ",faults=" + text + ":0.0003");
  });
}

TEST_F(TagTraffic, FourCardsOnAFabric) {
  const TempDir dir;
  setenv("RIO_RUNTIME_DIR", dir.at("").c_str(), 1);
  each_seed(10000, 0, [](uint64_t seed) {
    std::vector<std::string> cards;
    for (int id = 1; id <= 4; ++id) {
      cards.push_back("shm:t" + std::to_string(seed) + ",id=" + std::to_string(id));
    }
    return cards;
  });
  unsetenv("RIO_RUNTIME_DIR");
}

}  // namespace
}  // namespace rio::test
