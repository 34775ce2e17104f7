// Threads that are cancelled (pthread_cancel) in calls of the C interfaces: they end, and the port
// goes on for other threads.
#include <pthread.h>
#include <sys/eventfd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "fpga/wire/relay/host.hpp"
#include "lib/skifch/skifch.h"
#include "tests/support/sanitizer.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"
#include "tests/unit/lib/api/udp_fabric.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kForEverMs = 1'000'000'000;

/// A thread that repeats a call until it is cancelled.
class Cancelled {
 public:
  explicit Cancelled(std::function<void()> call) : call_(std::move(call)) {
    EXPECT_EQ(pthread_create(&thread_, nullptr, &run, this), 0);
    while (!begun_) {
      std::this_thread::yield();
    }
  }
  /// Cancels the thread. The test hangs if the thread does not end. @param delay before the
  /// cancellation, so that the thread is inside the call.
  void cancel(std::chrono::milliseconds delay) {
    std::this_thread::sleep_for(delay);
    EXPECT_EQ(pthread_cancel(thread_), 0);
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread_, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }

 private:
  static void* run(void* self) {
    auto& it = *static_cast<Cancelled*>(self);
    for (;;) {
      it.begun_ = true;
      it.call_();
      pthread_testcancel();
    }
  }

  std::function<void()> call_;
  std::atomic<bool> begun_ = false;
  pthread_t thread_{};
};

/// Runs calls in a thread with a cancellation pending: the first cancellation point ends it.
void run_while_cancelled(std::function<void()> calls) {
  pthread_t thread{};
  const auto run = [](void* it) -> void* {
    EXPECT_EQ(pthread_cancel(pthread_self()), 0);
    (*static_cast<std::function<void()>*>(it))();
    pthread_testcancel();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, nullptr, run, &calls), 0);
  void* result = nullptr;
  EXPECT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

/// A relay in a thread.
class Relay {
 public:
  explicit Relay(const std::string& name) : end_(eventfd(0, EFD_CLOEXEC)) {
    std::string error;
    EXPECT_EQ(wire::relay::Host::create(
                  {.name = name}, [](bool, const std::string&) {}, &host_, &error),
              0)
        << error;
    thread_ = std::thread([this] { host_->run(end_); });
  }
  ~Relay() {
    eventfd_write(end_.get(), 1);
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

 private:
  base::Fd end_;
  std::unique_ptr<wire::relay::Host> host_;
  std::thread thread_;
};

struct Kind {
  const char* name;
  const char* wire;
  bool sleeps;
};

class MsgCancel : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (kHasAddressSanitizer) {
      GTEST_SKIP() << "AddressSanitizer does not follow the unwinding of a cancelled thread";
    }
  }
  MsgCancel() {
    setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1);
    if (is_on("relay:")) {
      relay_ = std::make_unique<Relay>("cancel");
    }
  }
  ~MsgCancel() override { unsetenv("RIO_RUNTIME_DIR"); }

  api::Port open() const { return open_port(GetParam().wire, 0, true, GetParam().sleeps); }
  static bool is_on(std::string_view wire) {
    return std::string_view(GetParam().wire).starts_with(wire);
  }
  /// Cancel a thread inside the call, and another one at its beginning.
  static void cancel_in(const std::function<void()>& call) {
    for (const int delay_ms : {0, 1, 5, 50}) {
      Cancelled(call).cancel(std::chrono::milliseconds(delay_ms));
    }
  }

  /// Send a message by a thread that is not cancelled, and receive it.
  static void deliver(api::Context& from, api::Context& to, const std::string& text) {
    std::thread([&] {
      int sent = -EAGAIN;
      bool come = false;
      EXPECT_TRUE(until([&] {
        sent = sent == -EAGAIN ? from.send(to.self(), bytes_of(text)) : sent;
        api::Message next;
        come = to.receive(&next) == 1 && text_of(next.bytes()) == text;
        return come;
      }));
      EXPECT_RC(sent, 0);
    }).join();
  }
  static bool until(const std::function<bool()>& good) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLongMs);
    while (!good()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
    }
    return true;
  }

  TempDir folder_;
  std::unique_ptr<Relay> relay_;
};

TEST_P(MsgCancel, OfAContext) {
  api::Port a = open();
  api::Context waits = open_context(a, 1);
  api::Context sends = open_context(a, 2);
  cancel_in([&] { static_cast<void>(waits.wait(kForEverMs)); });
  cancel_in([&] {
    api::Message message;
    static_cast<void>(waits.receive(&message));
    static_cast<void>(rio_msg_progress(a.get()));
  });
  deliver(sends, waits, "still here");
  // This thread is inside of a send nearly all of the time.
  std::atomic<bool> stop = false;
  std::thread takes([&] {
    while (!stop) {
      api::Message next;
      static_cast<void>(waits.receive(&next));
    }
  });
  cancel_in([&] { static_cast<void>(sends.send(waits.self(), bytes_of("more"))); });
  stop = true;
  takes.join();
  deliver(sends, waits, "last");
}

TEST_P(MsgCancel, OfASendToAnAbsentPeer) {
  constexpr auto kWhile = std::chrono::milliseconds(200);
  const UdpFabric fabric(2);
  api::Port a = is_on("udp:") ? open_port(fabric.card(1), 0, true, GetParam().sleeps) : open();
  api::Context sends = open_context(a, 1);
  const rio_msg_address absent = rio_msg_address_of(a.dest_id() + 1, 0);
  run_while_cancelled([&] {
    const auto end = std::chrono::steady_clock::now() + kWhile;
    do {
      static_cast<void>(sends.send(absent, bytes_of("hello")));
      api::Message message;
      static_cast<void>(sends.receive(&message));
      static_cast<void>(rio_msg_progress(a.get()));
    } while (std::chrono::steady_clock::now() < end);
  });
  EXPECT_GE(a.progress(), 0);
}

// The other member's thread and the relay both sleep, so the send must wake both.
TEST_P(MsgCancel, OfASendToAnotherMember) {
  const UdpFabric fabric(2);
  const auto open_as = [&](uint32_t id) {
    return is_on("udp:") ? open_port(fabric.card(id), 0, true, GetParam().sleeps) : open();
  };
  api::Port a = open_as(1);
  api::Port b = open_as(2);
  api::Context sends = open_context(a, 1);
  api::Context waits = open_context(b, 1);
  deliver(sends, waits, "first");
  run_while_cancelled([&] {
    for (int turn = 0; turn < 20; ++turn) {
      std::string text = "more";
      while (sends.send(waits.self(), bytes_of(text)) == -EAGAIN) {
        static_cast<void>(rio_msg_progress(a.get()));
      }
      api::Message next;
      while (waits.receive(&next) == 0) {
        static_cast<void>(rio_msg_progress(a.get()));
      }
      const auto rest = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
      while (std::chrono::steady_clock::now() < rest) {
      }
    }
  });
  deliver(sends, waits, "last");
  // Each port must learn that the other's context is closed; otherwise its own close waits for
  // that.
  waits = {};
  sends = {};
  EXPECT_TRUE(until([&] {
    const int rc = rio_msg_flush(a.get(), 0);
    return rio_msg_flush(b.get(), 0) == 0 && rc == 0;
  }));
}

TEST_P(MsgCancel, OfTags) {
  api::Port a = open();
  api::Tag waits = open_tag(a, 1);
  api::Tag sends = open_tag(a, 2);
  cancel_in([&] { static_cast<void>(rio_tag_wait_any(waits.get(), kForEverMs)); });
  uint64_t in = 0;
  rio_tag_request* request = nullptr;
  rio_tag_done done{};
  const rio_tag_pattern pattern = {7, 0, RIO_TAG_ANY, 0};
  ASSERT_EQ(rio_tag_receive(waits.get(), &pattern, &in, sizeof(in), nullptr, &request, &done), 0);
  cancel_in([&] { static_cast<void>(rio_tag_wait(waits.get(), request, kForEverMs, &done)); });
  const uint64_t out = 42;
  rio_tag_request* sent = nullptr;
  rio_tag_done gone{};
  EXPECT_GE(rio_tag_send(sends.get(), rio_tag_self(waits.get()), 7, &out, sizeof(out), nullptr,
                         &sent, &gone),
            0);
  std::thread other([&] {
    EXPECT_TRUE(until([&] {
      EXPECT_GE(rio_tag_progress(sends.get()), 0);
      EXPECT_GE(rio_tag_progress(waits.get()), 0);
      return rio_tag_test(waits.get(), request, &done) == 1;
    }));
  });
  other.join();
  EXPECT_EQ(in, out);
}

TEST_P(MsgCancel, OfAChannel) {
  SkifCh_Options options{};
  options.threads = 1;
  options.sleeps = GetParam().sleeps ? 1 : 0;
  const auto open_channel = [&] { return api::Channel(SkifCh_Open(GetParam().wire, 1, &options)); };
  const api::Channel channel = open_channel();
  ASSERT_NE(channel, nullptr);
  cancel_in([&] { static_cast<void>(SkifCh_Wait(channel.get(), kForEverMs)); });
  cancel_in([&] {
    iovec parts[SKIFCH_CONT_SIZE];
    int count = 0;
    static_cast<void>(SkifCh_Recv(channel.get(), parts, &count));
  });
  std::thread([&] { EXPECT_EQ(SkifCh_Wait(channel.get(), 1), 0); }).join();
}

// A cancelled open leaves nothing behind: the card can be opened again.
TEST_P(MsgCancel, OfAPortThatIsOpened) {
  cancel_in([&] {
    api::Port port = open();
    const api::Context context = open_context(port, 1);
  });
  api::Port port = open();
  EXPECT_GE(port.progress(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, MsgCancel,
                         testing::Values(Kind{"shm_sleeps", "shm:cancel", true},
                                         Kind{"shm_polls", "shm:cancel", false},
                                         Kind{"udp_sleeps", "udp:cancel,bind=127.0.0.1", true},
                                         Kind{"udp_polls", "udp:cancel,bind=127.0.0.1", false},
                                         Kind{"relay_sleeps", "relay:cancel", true},
                                         Kind{"relay_polls", "relay:cancel", false}),
                         [](const auto& it) { return std::string(it.param.name); });

}  // namespace
}  // namespace rio::test
