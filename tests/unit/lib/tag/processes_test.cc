// Random traffic of all sizes between processes. Each receiver computes from the seed what the
// others send to it, and compares.
//
// RIO_TAG_SEEDS: number of seeds of each kind; RIO_SEED: the first.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <list>

#include "tests/support/seed.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/tag/traffic_reference.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kMembers = 3;
constexpr uint32_t kEach = 80;  // messages from each member to each other one
constexpr uint64_t kBudgetBytes = 1u << 20;
// A run takes 3 s on free cores. Members poll, so on busy cores they wait for each other's turns.
constexpr auto kWithin = std::chrono::seconds(400);

struct Plan {
  uint64_t seed;
  std::string options;  // of the cards
  bool may_fail;        // large data may end with -EIO, on both sides
};

struct Planned {
  uint64_t bits;
  uint64_t length_bytes;
  uint64_t number;
  bool sync;
};

/// The messages of one member to another, in order. Every third pair has a message of 16 MiB.
std::vector<Planned> planned(const Plan& plan, uint32_t from, uint32_t to) {
  std::mt19937_64 random(plan.seed * 64 + from * 8 + to);
  Sizes sizes(msg::Profile::kEagerUsual, kBudgetBytes);
  const uint64_t longest =
      plan.may_fail ? 1u << 20 : kLongestBytes;  // with faults, 16 MiB takes long
  std::vector<Planned> all;
  for (uint32_t i = 0; i < kEach; ++i) {
    const bool is_long = i == kEach / 2 && (from + to) % 3 == plan.seed % 3;
    const uint64_t size = is_long ? longest - 1 + random() % 3 : sizes.draw(random);
    all.push_back({random() % 4, size, (from * 8 + to) * uint64_t{kEach} + i, random() % 10 == 0});
  }
  return all;
}

/// One process. Its functions return what is wrong, or an empty text.
class Talker {
 public:
  Talker(const Plan& plan, uint32_t id)
      : plan_(plan),
        id_(id),
        random_(plan.seed + id),
        node_("shm:p,id=" + std::to_string(id) + plan.options, 0) {
    for (uint32_t peer = 1; peer <= kMembers; ++peer) {
      if (peer != id) {
        out_.push_back({peer, planned(plan, id, peer), 0});
        for (const Planned& each : planned(plan, peer, id)) {
          reference_.sent({tag::address(peer, 0), 0, each.bits}, each.number, each.length_bytes);
          ++missing_;
        }
      }
    }
  }
  ~Talker() { node_.endpoints.clear(); }  // closes the endpoints while their requests exist
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;

  /// @param told written to once it is open, and again once all messages have come and gone, or it
  /// has failed. @param go gives a byte for each member when all are open. @param stop_fd readable
  /// when the others have received everything, too.
  int run(const Pipe& told, Pipe& go, int stop_fd) {
    told.tell();
    static_cast<void>(go.wait());
    const auto until = std::chrono::steady_clock::now() + kWithin;
    std::string wrong = testing::Test::HasFailure() ? "the card cannot be opened" : "";
    bool is_told = false;
    for (uint32_t turn = 0; wrong.empty(); ++turn) {
      wrong = one_turn();
      if (is_told) {
        wrong.clear();  // a member that has seen `stop` may be gone already
      }
      if (wrong.empty() && missing_ == 0 && all_sent() && !is_told) {
        told.tell();
        is_told = true;
      }
      if (turn % 256 == 0) {
        pollfd one{stop_fd, POLLIN, 0};
        if (poll(&one, 1, 0) == 1) {
          return 0;
        }
        wrong = wrong.empty() && std::chrono::steady_clock::now() > until ? state() : wrong;
      }
    }
    std::fprintf(stderr, "destID %u, seed %llu: %s\n", id_,
                 static_cast<unsigned long long>(plan_.seed), wrong.c_str());
    if (!is_told) {
      told.tell();  // nothing more will come
    }
    return 1;
  }

 private:
  struct Peer {
    uint32_t id;
    std::vector<Planned> all;
    size_t next;
  };
  struct Sending {
    Sending(uint64_t length_bytes, uint64_t offset) : bytes(length_bytes, offset) {}
    tag::SendRequest request;
    Buffer bytes;
  };
  struct Receiving {
    Receiving(uint64_t capacity, uint64_t offset) : buffer(capacity, offset) {}
    tag::RecvRequest request;
    tag::Pattern pattern;
    uint64_t order = 0;
    Buffer buffer;
  };

  [[nodiscard]] bool all_sent() const {
    return sends_.empty() &&
           std::ranges::all_of(out_, [](const Peer& peer) { return peer.next == peer.all.size(); });
  }
  [[nodiscard]] std::string state() const {
    return std::to_string(missing_) + " messages missing, " + std::to_string(sends_.size()) +
           " sends under way";
  }

  std::string one_turn() {
    std::string wrong;
    switch (random_() % 8) {
      case 0:
        wrong = send(out_[random_() % out_.size()]);
        break;
      case 1:
        wrong = post();
        break;
      default:
        node_.progress();
        wrong = collect();
    }
    return wrong;
  }

  std::string send(Peer& peer) {
    if (peer.next == peer.all.size() || sends_.size() > 20) {
      return "";
    }
    const Planned& next = peer.all[peer.next++];
    Sending& sending = sends_.emplace_back(next.length_bytes, Buffer::any_offset(random_));
    std::ranges::copy(pattern(next.number, next.length_bytes), sending.bytes.data());
    const tag::Address to = tag::address(peer.id, 0);
    const auto* const data = sending.bytes.data();
    const int rc = next.sync ? node_->send_sync(to, next.bits, data, next.length_bytes,
                                                sending.request, immediate_of(next.number))
                             : node_->send(to, next.bits, data, next.length_bytes, sending.request,
                                           immediate_of(next.number));
    if (rc == 1) {
      sends_.pop_back();
    }
    return rc < 0 ? "send: " + std::to_string(rc) : "";
  }

  std::string post() {
    // A receive that takes any message, so that none waits for ever.
    const bool listens = std::ranges::any_of(receives_, [](const Receiving& each) {
      return each.pattern.ignore == UINT64_MAX && each.request.stage == tag::Stage::kWaiting;
    });
    if (missing_ == 0 || (listens && receives_.size() >= 8)) {
      return "";
    }
    tag::Pattern pattern = {0, UINT64_MAX, tag::kAnySource};
    if (listens) {
      pattern.bits = random_() % 4;
      pattern.ignore = random_() % 3;
      pattern.source =
          random_() % 2 == 0 ? tag::kAnySource : tag::address(out_[random_() % out_.size()].id, 0);
    }
    const bool is_short = random_() % 8 == 0;
    const uint64_t capacity = std::max(is_short ? 100 : reference_.longest(0), kTellingBytes);
    Receiving& receiving = receives_.emplace_back(capacity, Buffer::any_offset(random_));
    receiving.pattern = pattern;
    receiving.order = next_order_++;
    const int rc = node_->receive(pattern, receiving.buffer.data(), capacity, receiving.request);
    if (rc < 0) {
      return "receive: " + std::to_string(rc);
    }
    return rc == 1 ? done(receiving) : "";
  }

  std::string collect() {
    std::string wrong;
    while (tag::Request* const request = wrong.empty() ? node_->next_done() : nullptr) {
      if (request->is_receive) {
        const auto is_it = [&](const Receiving& each) { return &each.request == request; };
        wrong = done(*std::ranges::find_if(receives_, is_it));
      } else {
        const bool good = request->status == 0 || (plan_.may_fail && request->status == -EIO);
        wrong = good ? "" : "a send ended with " + std::to_string(request->status);
        sends_.remove_if([&](const Sending& each) { return &each.request == request; });
      }
    }
    return wrong;
  }

  /// Checks a completed receive, which is freed afterwards. @return what is wrong.
  std::string done(const Receiving& receiving) {
    const tag::RecvRequest& request = receiving.request;
    std::string wrong;
    --missing_;
    if (plan_.may_fail && request.status == -EIO) {
      wrong = receiving.buffer.untouched(receiving.buffer.size()) ? "" : "beyond the buffer";
    } else if (request.status != 0 && request.status != -EMSGSIZE) {
      wrong = "a receive ended with " + std::to_string(request.status);
    } else if (!receiving.pattern.matches(request.from, request.message_bits)) {
      wrong = "it does not match";
    } else {
      wrong = reference_.received({request.from, 0, request.message_bits, request.length_bytes,
                                   request.status, request.immediate, receiving.order,
                                   receiving.buffer});
    }
    receives_.remove_if([&](const Receiving& each) { return &each == &receiving; });
    return wrong;
  }

  Plan plan_;
  uint32_t id_;
  std::mt19937_64 random_;
  std::vector<Peer> out_;
  std::list<Sending> sends_;
  std::list<Receiving> receives_;
  Reference reference_;
  uint64_t missing_ = 0;
  uint64_t next_order_ = 1;
  TagNode node_;
};

class TagProcesses : public testing::Test {
 protected:
  template <class Options>
  static void each_seed(uint64_t otherwise, bool may_fail, Options&& options) {
    const uint64_t first = rio::test::first_seed();
    const uint64_t count = env_number("RIO_TAG_SEEDS", otherwise);
    for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
      std::fflush(stdout);
      run({seed, options(std::to_string(seed | 1u)), may_fail});
    }
  }

 private:
  static void all_tell(Pipe& told) {
    for (uint32_t i = 0; i < kMembers && !HasFailure(); ++i) {
      pollfd one{told.reader(), POLLIN, 0};
      const auto wait_ms = std::chrono::milliseconds(kWithin + kWithin / 4).count();
      EXPECT_EQ(poll(&one, 1, static_cast<int>(wait_ms)), 1);
      EXPECT_TRUE(HasFailure() || told.wait() != 0);
    }
  }
  static void run(const Plan& plan) {
    const TempDir dir;
    setenv("RIO_RUNTIME_DIR", dir.at("").c_str(), 1);
    Pipe told;
    Pipe go;
    Pipe stop;
    std::vector<Child> members;
    for (uint32_t id = 1; id <= kMembers; ++id) {
      members.emplace_back([&, id] { return Talker(plan, id).run(told, go, stop.reader()); });
    }
    all_tell(told);
    for (uint32_t i = 0; i < kMembers; ++i) {
      go.tell();
    }
    all_tell(told);
    stop.tell();
    for (Child& member : members) {
      EXPECT_EQ(member.exit_code(), 0) << "seed " << plan.seed;
    }
    unsetenv("RIO_RUNTIME_DIR");
  }
};

TEST_F(TagProcesses, Plain) {
  each_seed(1, false, [](const std::string& /*seed*/) { return ""; });
}
TEST_F(TagProcesses, OnABusThatDelays) {
  each_seed(1, false, [](const std::string& seed) { return ",pcie=" + seed; });
}
TEST_F(TagProcesses, WithFaults) {
  each_seed(1, true, [](const std::string& seed) { return ",faults=" + seed + ":0.0002"; });
}

}  // namespace
}  // namespace rio::test
