// Transfers of several ports at once, against a simple reference: each request's match bits say
// which bytes follow.
#include <algorithm>
#include <deque>
#include <random>

#include <unistd.h>

#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

/// A transfer, both its ends.
struct Both {
  Both(uint32_t match_bits, Node& source, Node& sink, uint64_t bytes, uint64_t at)
      : number(match_bits), from(source), to(sink), out(bytes, at, 0x11), in(bytes, at * 3, 0x22) {
    fill(out.at(), bytes, number);
  }
  uint32_t number;
  Node& from;
  Node& to;
  Area out;
  Area in;
  SendTransfer sent;
  RecvTransfer received;
  bool begun = false;
};

class Many {
 public:
  Many(uint32_t nodes, const std::string& options) {
    const std::string fabric = "shm:large-" + std::to_string(getpid()) + "-" +
                               ::testing::UnitTest::GetInstance()->current_test_info()->name();
    for (uint32_t i = 0; i < nodes; ++i) {
      std::string card = fabric;
      card.append(",id=").append(std::to_string(i + 1)).append(options);
      nodes_.push_back(std::make_unique<Node>(card, 0));
      all_.push_back(nodes_.back().get());
    }
  }
  Node& node(size_t i) { return *nodes_[i]; }
  void add(size_t from, size_t to, uint64_t bytes, uint64_t at) {
    both_.emplace_back(static_cast<uint32_t>(both_.size()), node(from), node(to), bytes, at);
  }

  /// Runs all transfers. @param reverse take those of one peer in the reverse order.
  void run(bool reverse) {
    std::vector<Request*> waiting;
    const bool ended = work(all_, [&] {
      begin();
      take(&waiting, reverse);
      return std::all_of(both_.begin(), both_.end(), [](const Both& both) {
        return both.begun && both.sent.done && both.received.done;
      });
    });
    EXPECT_TRUE(ended);
    for (const Both& both : both_) {
      ASSERT_EQ(both.sent.status, 0) << both.number;
      ASSERT_EQ(both.received.status, 0) << both.number;
      ASSERT_EQ(std::memcmp(both.out.at(), both.in.at(), both.out.size()), 0) << both.number;
      ASSERT_TRUE(both.in.guarded(both.in.size())) << both.number;
    }
    for (const auto& node : nodes_) {
      EXPECT_EQ(node->port->stats().cut_off, 0u);
    }
  }

 private:
  void begin() {
    for (Both& both : both_) {
      if (both.begun) {
        continue;
      }
      const int rc = both.from.context->send_large(both.from.to(both.to), both.number,
                                                   both.out.at(), both.out.size(), both.sent);
      both.begun = rc == 0;
      ASSERT_TRUE(rc == 0 || rc == -EAGAIN) << rc;
    }
  }
  void take(std::vector<Request*>* waiting, bool reverse) {
    for (const auto& node : nodes_) {
      while (node->has_request()) {
        Request* const request = node->context->take_request();
        waiting->push_back(request);
        // No request is accepted before all have arrived, so the port must make room for more.
        if (reverse && !node->context->requests_left(request->origin)) {
          ASSERT_TRUE(node->context->lend_requests(request->origin));
        }
      }
    }
    const bool all_here =
        std::all_of(both_.begin(), both_.end(), [](const Both& b) { return b.begun; });
    if (reverse && (!all_here || ++turns_ < 1000)) {
      return;  // not all have arrived yet
    }
    if (reverse) {
      std::reverse(waiting->begin(), waiting->end());
    }
    for (Request* const request : *waiting) {
      Both& both = both_[request->body.match_bits];
      both.to.context->receive_large(request, both.in.at(), both.in.size(), both.received);
    }
    waiting->clear();
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> all_;
  std::deque<Both> both_;
  uint32_t turns_ = 0;
};

TEST(LargeMany, MoreTransfersThanQueues) {
  Many many(2, "");
  for (uint32_t i = 0; i < 40; ++i) {
    many.add(0, 1, 1 + i * 7919, i * 13);
  }
  many.run(false);
}

TEST(LargeMany, InTheReverseOrder) {
  Many many(2, "");
  for (uint32_t i = 0; i < 40; ++i) {
    many.add(0, 1, 1 + i * 7919, i * 13);
  }
  many.run(true);
}

TEST(LargeMany, AllToOneAndOneToAllAtOnce) {
  Many many(6, "");
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 1; i < 6; ++i) {
      many.add(i, 0, 200000 + i * 999, i);
      many.add(0, i, 300000 + i * 777, i * 511);
    }
  }
  many.run(false);
}

TEST(LargeMany, EachToEach) {
  Many many(4, "");
  std::mt19937 random(7);
  for (uint32_t from = 0; from < 4; ++from) {
    for (uint32_t to = 0; to < 4; ++to) {
      for (uint32_t i = 0; i < 4 && from != to; ++i) {
        many.add(from, to, 1 + random() % (1u << (6 + random() % 15)), random() % 4096);
      }
    }
  }
  many.run(true);
}

TEST(LargeMany, SegmentBySegment) {
  Many many(3, ",exact=1");
  for (uint32_t i = 0; i < 12; ++i) {
    many.add(i % 2, 2, 1 + i * 3001, i * 17);
  }
  many.run(false);
}

}  // namespace
}  // namespace rio::msg::test
