// Waits that sleep. rio_msg_stats::overslept counts lost wake-ups: the library checks for news at
// least once a second, and counts the news that no wake-up had announced.
//
// RIO_SLEEPS: how many round trips.
#include <poll.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include "tests/support/env_number.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kNumber = 1;
constexpr uint32_t kBoundMs = 1000;  // longest sleep that the library allows a thread

class Sleep : public testing::Test {
 protected:
  Sleep() { setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1); }

  TempDir folder_;
};

[[nodiscard]] uint32_t round_trips() {
  return static_cast<uint32_t>(env_number("RIO_SLEEPS", 3000));
}

/// Messages that come back, one at a time: each side sleeps for each of them.
int trips(api::Context& own, rio_msg_address peer, bool first, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (first && send_all(own, peer, std::to_string(i)) != 0) {
      return 10;
    }
    api::Message message;
    if (const int rc = receive_next(own, &message); rc != 1) {
      std::fprintf(stderr, "%u: %s\n", i, rio_strerror(rc));
      return 11;
    }
    if (text_of(message.bytes()) != std::to_string(i)) {
      return 12;
    }
    if (!first && send_all(own, peer, std::to_string(i)) != 0) {
      return 13;
    }
  }
  return 0;
}

int one_side(uint32_t id, bool threads, uint32_t count) {
  api::Port port = open_port("shm:sleep,id=" + std::to_string(id), 0, threads, true);
  api::Context context = open_context(port, kNumber);
  const int rc = trips(context, rio_msg_address_of(3 - id, kNumber), id == 1, count);
  if (rc != 0 || port.flush(kLongMs) != 0) {
    return rc != 0 ? rc : 14;
  }
  return port.stats().overslept == 0 ? 0 : 15;
}

TEST_F(Sleep, RoundTripsOfTwoProcessesThatSleepForEach) {
  Child second([] { return one_side(2, false, round_trips()); });
  EXPECT_EQ(one_side(1, false, round_trips()), 0);
  EXPECT_EQ(second.exit_code(), 0);
}

TEST_F(Sleep, RoundTripsOfTwoProcessesWithLocks) {
  Child second([] { return one_side(2, true, round_trips()); });
  EXPECT_EQ(one_side(1, true, round_trips()), 0);
  EXPECT_EQ(second.exit_code(), 0);
}

// Exchanges short messages, large ones that dedicated queues move, and acknowledged ones; both
// sides sleep for each.
int swap(uint32_t id, uint32_t count) {
  api::Port port = open_port("shm:sleep,id=" + std::to_string(id), 0, false, true);
  api::Tag tag = open_tag(port, kNumber);
  const rio_msg_address peer = rio_msg_address_of(3 - id, kNumber);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string out(i % 3 == 0 ? 300000 + i : i % 100, static_cast<char>('a' + i % 26));
    std::string in(out.size() + 1, ' ');
    rio_tag_request* receive = nullptr;
    rio_tag_request* send = nullptr;
    rio_tag_done done{};
    const int received = tag.receive({i, 0, peer, 0}, std::as_writable_bytes(std::span(in)),
                                     nullptr, &receive, &done);
    rio_tag_done sent{};
    const int begun = tag.send_sync(peer, i, bytes_of(out), nullptr, &send, &sent);
    if (begun < 0 || (begun == 0 && tag.wait(send, kLongMs, &sent) != 1) || sent.status != 0) {
      return 20;
    }
    if (received == 0 && tag.wait(receive, kLongMs, &done) != 1) {
      return 21;
    }
    if (done.status != 0 || in.substr(0, done.size_bytes) != out) {
      return 22;
    }
  }
  if (tag.flush(kLongMs) != 0) {
    return 23;
  }
  return port.stats().overslept == 0 ? 0 : 24;
}

TEST_F(Sleep, TaggedMessages) {
  const uint32_t count = round_trips() / 10;
  Child second([count] { return swap(2, count); });
  EXPECT_EQ(swap(1, count), 0);
  EXPECT_EQ(second.exit_code(), 0);
}

// Waits in an event loop of the program's own, by the context's descriptor.
int by_descriptor(uint32_t count) {
  api::Port port = open_port("shm:sleep,id=1", 0, false, true);
  api::Context context = open_context(port, kNumber);
  const int fd = port.fd();
  uint32_t sent = 0;
  for (uint32_t got = 0; got < count;) {
    if (sent == got &&
        context.send(rio_msg_address_of(2, kNumber), bytes_of(std::to_string(sent))) == 0) {
      ++sent;
    }
    api::Message message;
    if (context.receive(&message) == 1) {
      if (text_of(message.bytes()) != std::to_string(got)) {
        return 30;
      }
      ++got;
      continue;
    }
    uint32_t timeout_ms = 0;
    const int rc = port.arm(&timeout_ms);
    if (rc < 0) {
      return 31;
    }
    pollfd one{fd, POLLIN, 0};
    if (rc == 0 && poll(&one, 1, static_cast<int>(timeout_ms)) == 0 && timeout_ms >= kBoundMs) {
      return 32;  // the timeout ended the wait, not a wake-up
    }
  }
  return port.flush(kLongMs) == 0 ? 0 : 33;
}

TEST_F(Sleep, ByADescriptor) {
  const uint32_t count = round_trips();
  Child second([count] { return one_side(2, false, count); });
  EXPECT_EQ(by_descriptor(count), 0);
  EXPECT_EQ(second.exit_code(), 0);
}

TEST_F(Sleep, APeerThatDiesWakes) {
  Child second([] {
    api::Port port = open_port("shm:sleep,id=2", 0, false, true);
    api::Context context = open_context(port, kNumber);
    return trips(context, rio_msg_address_of(1, kNumber), false, UINT32_MAX);
  });
  api::Port port = open_port("shm:sleep,id=1", 0, false, true);
  api::Context context = open_context(port, kNumber);
  const rio_msg_address peer = rio_msg_address_of(2, kNumber);
  ASSERT_EQ(trips(context, peer, true, 10), 0);
  EXPECT_TRUE(port.peer_up(2));
  second.signal(SIGKILL);
  EXPECT_EQ(second.exit_code(), -1);
  EXPECT_RC(context.wait(kLongMs), 1);
  rio_msg_peer_event event{};
  EXPECT_EQ(port.next_peer_event(&event), 1);
  EXPECT_EQ(event.dest_id, 2u);
  EXPECT_EQ(event.error, -ECONNRESET);
  EXPECT_EQ(port.next_peer_event(&event), 0);
  EXPECT_FALSE(port.peer_up(2));
  EXPECT_EQ(context.send(peer, bytes_of("x")), -ECONNRESET);  // told once
}

TEST_F(Sleep, TimesOut) {
  api::Port port = open_port("shm:sleep", 0, false, true);
  api::Context context = open_context(port, kNumber);
  api::Tag tag = open_tag(port, kNumber + 1);
  EXPECT_EQ(context.wait(20), 0);
  EXPECT_EQ(context.wait(0), 0);
  EXPECT_EQ(tag.wait_any(20), 0);
}

TEST_F(Sleep, WhereItIsNotPossible) {
  rio_msg_options options = api::msg_options();
  options.sleeps = 1;
  api::Port port;
  EXPECT_EQ(api::Port::open("emu:loop", options, &port), -ENOTSUP);
  api::Port polls = open_port("shm:sleep", 0, false, false);
  uint32_t timeout_ms = 0;
  EXPECT_EQ(polls.fd(), -ENOTSUP);
  EXPECT_EQ(polls.arm(&timeout_ms), -ENOTSUP);
  api::Context context = open_context(polls, kNumber);
  EXPECT_EQ(context.wait(5), 0);  // by polling
}

}  // namespace
}  // namespace rio::test
