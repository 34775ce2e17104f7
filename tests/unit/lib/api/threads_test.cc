// Contexts and endpoints of one port, each on a thread of its own. TSan looks for races here.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kContexts = 3;  // of a port; as many endpoints have the numbers after them
constexpr uint32_t kMessages = 1000;
constexpr uint64_t kLarge = 200000;  // bytes: by dedicated queues

struct Way {
  std::string name;
  std::string card;  // of both ports
  bool sleeps;
};

class Threads : public testing::TestWithParam<Way> {
 protected:
  Threads() {
    const Way& way = GetParam();
    setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1);
    const bool shm = way.card.starts_with("shm:");
    a_ = open_port(way.card, shm ? 0 : 1, true, way.sleeps);
    b_ = open_port(way.card, shm ? 0 : 2, true, way.sleeps);
  }

  TempDir folder_;
  api::Port a_;
  api::Port b_;
};

std::string text(uint32_t context, uint32_t number) {
  return std::to_string(context) + ":" + std::to_string(number);
}

/// Sends all messages and receives their echoes, in order. It sends so far ahead that credit runs
/// out.
void ask(api::Context& own, uint32_t context, rio_msg_address to) {
  uint32_t sent = 0;
  for (uint32_t got = 0; got < kMessages;) {
    int rc = sent < kMessages ? own.send(to, bytes_of(text(context, sent))) : -EAGAIN;
    sent += rc == 0 ? 1 : 0;
    ASSERT_TRUE(rc == 0 || rc == -EAGAIN) << rio_strerror(rc);
    api::Message message;
    const int received = own.receive(&message);
    ASSERT_GE(received, 0) << rio_strerror(received);
    if (received == 1) {
      ASSERT_EQ(text_of(message.bytes()), text(context, got));
      ++got;
    } else if (rc == -EAGAIN) {
      rc = own.wait(kLongMs);
      ASSERT_EQ(rc, 1) << context << ": " << sent << " sent, " << got << " received";
    }
  }
}

void echo(api::Context& own) {
  for (uint32_t i = 0; i < kMessages; ++i) {
    api::Message message;
    const int rc = receive_next(own, &message);
    ASSERT_EQ(rc, 1) << i << ": " << rio_strerror(rc);
    ASSERT_EQ(send_all(own, message.source(), text_of(message.bytes())), 0);
  }
}

/// Exchanges short and large messages, in turn; the peer echoes each.
void swap_tags(api::Tag& own, rio_msg_address peer, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    const std::string out(i % 8 == 0 ? kLarge : 32, static_cast<char>('a' + i % 26));
    std::string in(kLarge, ' ');
    rio_tag_request* receive = nullptr;
    rio_tag_request* send = nullptr;
    rio_tag_done done{};
    int rc = own.receive({i, 0, peer, 0}, std::as_writable_bytes(std::span(in)), nullptr, &receive,
                         &done);
    ASSERT_GE(rc, 0);
    const bool received = rc == 1;
    rc = own.send(peer, i, bytes_of(out), nullptr, &send, nullptr);
    ASSERT_GE(rc, 0) << rio_strerror(rc);
    if (rc == 0) {
      rio_tag_done sent{};
      ASSERT_EQ(own.wait(send, kLongMs, &sent), 1) << "send " << i;
      ASSERT_EQ(sent.status, 0) << rio_strerror(sent.status);
    }
    if (!received) {
      ASSERT_EQ(own.wait(receive, kLongMs, &done), 1) << "receive " << i;
    }
    ASSERT_EQ(done.status, 0) << rio_strerror(done.status);
    ASSERT_EQ(in.substr(0, done.size_bytes), out);
  }
}

/// Threads of a test. Each keeps its port progressing until all are done: ports progress only in
/// calls, and the last messages sent need some calls, too.
class Crew {
 public:
  explicit Crew(uint32_t count) : working_(count) {}

  template <class Work>
  void add(api::Port& port, Work&& work) {
    threads_.emplace_back([this, &port, work = std::forward<Work>(work)] {
      work();
      --working_;
      while (working_ != 0 && !testing::Test::HasFailure()) {
        port.progress();
        std::this_thread::yield();
      }
    });
  }
  void join() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

 private:
  std::atomic<uint32_t> working_;
  std::vector<std::thread> threads_;
};

TEST_P(Threads, EachContextAndEndpointOnItsOwn) {
  constexpr uint32_t kRounds = 100;
  std::vector<api::Context> asking;
  std::vector<api::Context> echoing;
  std::vector<api::Tag> left;
  std::vector<api::Tag> right;
  for (uint32_t i = 0; i < kContexts; ++i) {
    asking.push_back(open_context(a_, i));
    echoing.push_back(open_context(b_, i));
    left.push_back(open_tag(a_, kContexts + i));
    right.push_back(open_tag(b_, kContexts + i));
  }
  Crew crew(4 * kContexts);
  for (uint32_t i = 0; i < kContexts; ++i) {
    crew.add(a_, [&, i] { ask(asking[i], i, echoing[i].self()); });
    crew.add(b_, [&, i] { echo(echoing[i]); });
    crew.add(a_, [&, i] { swap_tags(left[i], right[i].self(), kRounds); });
    crew.add(b_, [&, i] { swap_tags(right[i], left[i].self(), kRounds); });
  }
  crew.join();
  EXPECT_EQ(a_.stats().cut_off, 0u);
  EXPECT_EQ(b_.stats().cut_off, 0u);
}

// The documented way to use one context from several threads: a lock of the program's own.
TEST_P(Threads, SeveralOnOneContext) {
  constexpr uint32_t kSenders = 3;
  api::Context from = open_context(a_, 0);
  api::Context to = open_context(b_, 0);
  std::mutex mutex;
  Crew crew(kSenders + 1);
  for (uint32_t i = 0; i < kSenders; ++i) {
    crew.add(a_, [&, i] {
      for (uint32_t number = 0; number < kMessages; ++number) {
        const std::lock_guard lock(mutex);
        ASSERT_EQ(send_all(from, to.self(), text(i, number)), 0);
      }
    });
  }
  crew.add(b_, [&] {
    uint32_t next[kSenders] = {};
    for (uint32_t i = 0; i < kSenders * kMessages; ++i) {
      api::Message message;
      ASSERT_EQ(receive_next(to, &message), 1) << i;
      const std::string got = text_of(message.bytes());
      const auto sender = static_cast<uint32_t>(got[0] - '0');
      ASSERT_LT(sender, kSenders);
      ASSERT_EQ(got, text(sender, next[sender]));
      ++next[sender];
    }
  });
  crew.join();
}

INSTANTIATE_TEST_SUITE_P(Ways, Threads,
                         testing::Values(Way{"Polling", "emu:threads", false},
                                         Way{"Sleeping", "shm:threads", true}),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace rio::test
