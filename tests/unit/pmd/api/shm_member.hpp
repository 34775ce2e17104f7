/// @file
/// Members of a fabric of processes, for tests: cards that send and receive text, and processes.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "pmd/api/riopmd.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"

namespace rio::test {

/// An open card with buffers posted.
class Member {
 public:
  static constexpr uint32_t kBuffers = 64;

  explicit Member(const std::string& name, uint32_t response_timeout_us = 0, uint32_t irq_rings = 0,
                  uint32_t dest_id = 0) {
    EndpointConfig config;
    config.dest_id = dest_id;
    config.irq_rings = irq_rings;
    config.message_buffers = 2 * kBuffers;
    if (response_timeout_us != 0) {
      config.card.response_timeout_us = response_timeout_us;
      config.card.receive_timeout_us = 2 * response_timeout_us;
    }
    if (Endpoint::open(name, config, &endpoint_) != 0) {
      return;
    }
    uint32_t index[kBuffers];
    EXPECT_EQ(endpoint_->buffers()->get(index, kBuffers), kBuffers);
    for (const uint32_t i : index) {
      give(i);
    }
    EXPECT_EQ(endpoint_->buffers()->get(&out_, 1), 1u);
  }

  [[nodiscard]] bool open() const { return endpoint_ != nullptr; }
  [[nodiscard]] Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] uint32_t id() const { return endpoint_ == nullptr ? 0 : endpoint_->dest_id(); }

  static constexpr uint16_t kCopiesMax = 8;
  /// Sends a text; call done() before the next. @param copies number of equal messages, up to
  /// kCopiesMax.
  void send(uint32_t dest, const std::string& text, size_t least_bytes = 0, uint16_t copies = 1) {
    std::strncpy(reinterpret_cast<char*>(endpoint_->buffers()->va(out_)), text.c_str(), 256);
    pmd::TxMessage message{};
    message.iova = endpoint_->buffers()->iova(out_);
    message.dest_id = dest;
    message.length_bytes = static_cast<uint16_t>(std::max(text.size() + 1, least_bytes));
    pmd::TxMessage messages[kCopiesMax];
    std::fill_n(messages, copies, message);
    EXPECT_EQ(endpoint_->tx().burst(messages, copies), copies);
  }
  /// Overwrites the text that was sent.
  void scribble() { std::memset(endpoint_->buffers()->va(out_), 'x', 4096); }
  /// Waits for the fate of the message.
  [[nodiscard]] pmd::Status done() {
    pmd::TxDone done{};
    EXPECT_TRUE(wait_until([&] { return endpoint_->tx().reap(&done, 1) == 1; }));
    return done.status;
  }
  /// Lets the card work, and receives nothing.
  void polls(int times) {
    for (const pmd::PollHook step = endpoint_->card().bus().poll_hook(0); times > 0; --times) {
      step();
    }
  }
  /// Receives a text as "SOURCE:TEXT"; "": none came.
  [[nodiscard]] std::string receive() {
    std::string text;
    return wait_until([&] { return poll(&text); }) ? text : "";
  }
  [[nodiscard]] bool poll(std::string* text) {
    pmd::RxMessage message{};
    if (endpoint_->shared().burst(&message, 1) == 0) {
      return false;
    }
    const auto index = static_cast<uint32_t>(message.cookie);
    const char* bytes = reinterpret_cast<const char*>(endpoint_->buffers()->va(index));
    if (message.status != pmd::Status::kOk) {  // its sender died during the transfer
      give(index);
      return false;
    }
    *text = std::to_string(message.source) + ":" + std::string(bytes, strnlen(bytes, 256));
    give(index);
    return true;
  }
  /// Sleeps until one of the rings has news. @return false: it took too long.
  [[nodiscard]] bool sleep(uint32_t rings) {
    EXPECT_EQ(endpoint_->irq_arm(rings), 0);
    pollfd one{endpoint_->irq_fd(), POLLIN, 0};
    const bool woken = ::poll(&one, 1, 30'000) == 1;
    EXPECT_EQ(endpoint_->irq_ack(), 0);
    return woken;
  }
  /// The next event of a partner: "DESTID came 1", "DESTID went 1".
  [[nodiscard]] std::string event() {
    pmd::CardEvent event{};
    const bool got = wait_until([&] {
      return endpoint_->events().burst(&event, 1) == 1 && event.type == regs::EventType::kPartner;
    });
    return !got ? ""
                : std::to_string(event.source) + (event.info == 1 ? " came " : " went ") +
                      std::to_string(event.data[0]);
  }

 private:
  void give(uint32_t index) {
    const pmd::RxBuffer buffer{endpoint_->buffers()->iova(index), index};
    EXPECT_EQ(endpoint_->shared().post(&buffer, 1), 1);
  }

  std::unique_ptr<Endpoint> endpoint_;
  uint32_t out_ = 0;
};

/// A pipe between forked processes.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(fds_), 0); }
  ~Pipe() {
    close(fds_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void tell(char what = 1) const { EXPECT_EQ(write(fds_[1], &what, 1), 1); }
  /// Waits for a byte. @return 0: all processes that could send one are gone.
  char wait() {
    char what = 0;
    return read(fds_[0], &what, 1) == 1 ? what : '\0';
  }
  [[nodiscard]] int reader() const { return fds_[0]; }
  void close_writer() {
    if (fds_[1] >= 0) {
      close(std::exchange(fds_[1], -1));
    }
  }

 private:
  int fds_[2] = {-1, -1};
};

/// A process that runs a function, and exits with its result. Fork it before a card is opened: a
/// lock that a thread of the card holds at that moment, such as the allocator's, is never freed in
/// the child.
class Child {
 public:
  /// @param start the child waits for it; null: it runs at once.
  explicit Child(const std::function<int()>& run, Pipe* start = nullptr) {
    EXPECT_EQ(count_threads(), kThreadsAtStart) << "fork it before a card is opened";
    launch([&] { return start == nullptr || start->wait() != 0 ? run() : -1; });
  }
  /// Forks a child that has its parent's cards. @param run must not allocate.
  [[nodiscard]] static Child with_cards(const std::function<int()>& run) {
    Child child;
    child.launch(run);
    return child;
  }
  ~Child() {
    if (pid_ > 0) {
      signal(SIGKILL);
      (void)exit_code();
    }
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }

  void signal(int number) const { EXPECT_EQ(kill(pid_, number), 0); }
  /// Waits for the end. @return -1: it was killed.
  int exit_code() {
    int status = 0;
    if (waitpid(std::exchange(pid_, -1), &status, 0) < 0 || !WIFEXITED(status)) {
      return -1;
    }
    return WEXITSTATUS(status);
  }

 private:
  Child() = default;
  void launch(const std::function<int()>& run) {
    pid_ = fork();
    if (pid_ == 0) {
      _exit(run());
    }
  }
  static ptrdiff_t count_threads() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  }
  static inline const ptrdiff_t kThreadsAtStart = count_threads();  // a sanitizer may have one

  pid_t pid_ = -1;
};

/// A test with a fabric of its own.
class Shm : public testing::Test {
 protected:
  Shm() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~Shm() override { unsetenv("RIO_RUNTIME_DIR"); }

  TempDir dir_;
};

}  // namespace rio::test
