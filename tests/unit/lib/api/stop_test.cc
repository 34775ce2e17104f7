// Processes that are stopped (SIGSTOP) while messages are on their way to them. A process that
// sends to stopped and to running ones still gets its messages through to the running ones. After
// SIGCONT the stopped processes receive everything that was sent to them, once and in order.
//
// RIO_STOP_MESSAGES: number of messages to each of the others meanwhile.
#include <poll.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/env_number.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kNumber = 1;  // of all contexts
constexpr uint32_t kHub = 1;     // destID
constexpr size_t kLargeBytes = 300000;

[[nodiscard]] uint32_t messages() {
  return static_cast<uint32_t>(env_number("RIO_STOP_MESSAGES", 20000));
}

/// The head of each message; its length and all other bytes follow from it.
struct Stamp {
  enum What : uint32_t { kPlain, kLarge, kTell, kEnd };
  uint32_t number;
  What what;
};

size_t size_of(const Stamp& stamp) {
  constexpr size_t kSizes[] = {8, 24, 300, 8, 64, 1500, 40, 50, 16, 4000, 128, 100};
  const size_t parts = stamp.number % 100 == 7 ? 9000 : kSizes[stamp.number % 12];
  return stamp.what == Stamp::kLarge ? kLargeBytes + stamp.number : parts;
}

void fill(std::vector<std::byte>* bytes, const Stamp& stamp) {
  bytes->resize(size_of(stamp));
  for (size_t i = 0; i < bytes->size(); ++i) {
    (*bytes)[i] = static_cast<std::byte>(stamp.number * 31 + i * 7 + (i >> 8));
  }
  std::memcpy(bytes->data(), &stamp, sizeof(stamp));
}

/// A process that expects each message once, in order, with the right bytes.
class Receiver {
 public:
  Receiver(uint32_t id, const Pipe& told) : id_(id), told_(told), buffer_(2 * kLargeBytes) {}

  int run() {
    api::Port port = open_port("shm:stop,id=" + std::to_string(id_), 0, false, true);
    api::Context context = open_context(port, kNumber);
    if (context.accept_long(buffer_.size()) != 0) {
      return 10;
    }
    told_.tell();
    while (!ended_) {
      api::Message message;
      if (const int rc = receive_next(context, &message); rc != 1) {
        std::fprintf(stderr, "%u after %u: %s\n", id_, next_, rio_strerror(rc));
        return 11;
      }
      rio_msg_request* request = nullptr;
      rio_msg_done done{};
      int rc = message.take(buffer_, nullptr, &request, &done);
      rc = rc == 0 ? context.wait_done(request, kLongMs, &done) : rc;
      if (rc != 1 || done.status != 0) {
        std::fprintf(stderr, "%u: message %u is not taken: %s\n", id_, next_,
                     rio_strerror(rc != 1 ? rc : done.status));
        return 12;
      }
      if (!look_at(std::span(buffer_).first(done.size_bytes))) {
        return 13;
      }
    }
    return 0;
  }

 private:
  [[nodiscard]] bool look_at(std::span<const std::byte> bytes) {
    Stamp stamp{};
    std::memcpy(&stamp, bytes.data(), std::min(bytes.size(), sizeof(stamp)));
    std::vector<std::byte> right;
    fill(&right, stamp);
    if (stamp.number != next_ || right.size() != bytes.size() ||
        std::memcmp(right.data(), bytes.data(), bytes.size()) != 0) {
      std::fprintf(stderr, "%u: %u instead of %u, or other bytes\n", id_, stamp.number, next_);
      return false;
    }
    ++next_;
    ended_ = stamp.what == Stamp::kEnd;
    if (stamp.what == Stamp::kTell || ended_) {
      told_.tell();
    }
    return true;
  }

  uint32_t id_;
  const Pipe& told_;
  std::vector<std::byte> buffer_;
  uint32_t next_ = 0;
  bool ended_ = false;
};

/// A process that the hub sends to.
struct Peer {
  explicit Peer(uint32_t dest_id)
      : id(dest_id), process([this] { return Receiver(id, told).run(); }) {}

  [[nodiscard]] bool has_told() {
    pollfd one{told.reader(), POLLIN, 0};
    return poll(&one, 1, 0) == 1 && told.wait() != 0;
  }

  uint32_t id;
  Pipe told;
  Child process;
  uint32_t number = 0;  // of the next message
  uint32_t left = 0;    // messages of this round
  Stamp::What last = Stamp::kPlain;
  uint32_t large_each = 0;  // 0: none
  std::vector<std::byte> out;
  bool trying = false;  // out is not sent yet
  bool under_way = false;
  int error = 0;
};

class Stop : public testing::Test {
 protected:
  Stop() { setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1); }
  ~Stop() override { unsetenv("RIO_RUNTIME_DIR"); }

  void open(uint32_t peers) {
    for (uint32_t i = 0; i < peers; ++i) {
      peers_.push_back(std::make_unique<Peer>(kHub + 1 + i));
    }
    for (const auto& peer : peers_) {
      ASSERT_TRUE(wait_until([&] { return peer->has_told(); }));
    }
    port_ = open_port("shm:stop,id=1", 0, false, false);
    context_ = open_context(port_, kNumber);
    for (const auto& peer : peers_) {
      round(*peer, 20, Stamp::kTell);
    }
    ASSERT_TRUE(work_until_told(all()));
    ASSERT_EQ(port_.flush(kLongMs), 0);
  }
  std::vector<Peer*> all() {
    std::vector<Peer*> peers;
    for (const auto& peer : peers_) {
      peers.push_back(peer.get());
    }
    return peers;
  }
  /// Stops a process: none of its threads runs until SIGCONT.
  static void stop(Peer& peer) {
    peer.process.signal(SIGSTOP);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_ALL, 0, &info, WSTOPPED), 0);
  }
  static void round(Peer& peer, uint32_t count, Stamp::What last, uint32_t large_each = 0) {
    peer.left += count;
    peer.last = last;
    peer.large_each = large_each;
  }

  void turn() {
    for (const auto& peer : peers_) {
      send_to(*peer);
    }
    api::Message none;
    EXPECT_EQ(context_.receive(&none), 0);
    for (rio_msg_done done{}; context_.next_done(&done);) {
      sent(*static_cast<Peer*>(done.user), done.status);
    }
  }
  void send_to(Peer& peer) {
    if (peer.left == 0 || peer.under_way || peer.error != 0) {
      return;
    }
    if (!peer.trying) {
      const bool large = peer.large_each != 0 && peer.left % peer.large_each == 0;
      fill(&peer.out, {peer.number, peer.left == 1 ? peer.last
                                    : large        ? Stamp::kLarge
                                                   : Stamp::kPlain});
    }
    const int rc =
        context_.send_any(rio_msg_address_of(peer.id, kNumber), peer.out, &peer, nullptr, nullptr);
    peer.trying = rc == -EAGAIN;
    peer.under_way = rc == 0;
    if (rc == 1 || (rc < 0 && rc != -EAGAIN)) {
      sent(peer, rc == 1 ? 0 : rc);
    }
  }
  static void sent(Peer& peer, int status) {
    peer.under_way = false;
    peer.error = status;
    ++peer.number;
    --peer.left;
  }
  /// Makes progress until all these peers have received everything. @return false: not in time.
  [[nodiscard]] bool work_until_told(std::vector<Peer*> peers) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    for (uint32_t turns = 0; !peers.empty(); ++turns) {
      turn();
      if (turns % 64 == 0) {
        std::erase_if(peers, [](Peer* peer) { return peer->has_told(); });
        if (std::chrono::steady_clock::now() > until) {
          std::fprintf(stderr, "destID %u has %u of its messages to come, error %d\n",
                       peers.front()->id, peers.front()->left, peers.front()->error);
          return false;
        }
      }
    }
    return true;
  }
  void go_on(Peer& stopped) {
    stopped.process.signal(SIGCONT);
    EXPECT_TRUE(work_until_told({&stopped}));
  }
  void expect_end() {
    std::printf("%llu restarts, %llu rests\n",
                static_cast<unsigned long long>(port_.stats().restarts),
                static_cast<unsigned long long>(port_.stats().rests));
    for (const auto& peer : peers_) {
      round(*peer, 100, Stamp::kEnd, 50);
    }
    EXPECT_TRUE(work_until_told(all()));
    for (const auto& peer : peers_) {
      EXPECT_EQ(peer->error, 0);
      EXPECT_EQ(peer->process.exit_code(), 0);
    }
  }

  TempDir folder_;
  std::vector<std::unique_ptr<Peer>> peers_;
  api::Port port_;
  api::Context context_;
};

TEST_F(Stop, TheOthersGetTheirs) {
  open(4);
  Peer& stopped = *peers_[0];
  stop(stopped);
  round(stopped, 300, Stamp::kTell);
  for (size_t i = 1; i < peers_.size(); ++i) {
    round(*peers_[i], messages(), Stamp::kTell);
  }
  EXPECT_TRUE(work_until_told({peers_[1].get(), peers_[2].get(), peers_[3].get()}));
  EXPECT_FALSE(stopped.has_told());
  go_on(stopped);
  expect_end();
}

TEST_F(Stop, TheOthersGetTheirsWithLargeDataToAll) {
  open(3);
  Peer& stopped = *peers_[0];
  // The transfers have begun.
  for (const auto& peer : peers_) {
    round(*peer, 2000, Stamp::kTell, 20);
  }
  for (uint32_t i = 0; i < 300 || stopped.number < 100; ++i) {
    turn();
  }
  stop(stopped);
  EXPECT_TRUE(work_until_told({peers_[1].get(), peers_[2].get()}));
  EXPECT_FALSE(stopped.has_told());
  go_on(stopped);
  expect_end();
}

TEST_F(Stop, TwoAtOnceAndOneAfterTheOther) {
  open(5);
  for (Peer* const stopped : {peers_[0].get(), peers_[1].get()}) {
    stop(*stopped);
    round(*stopped, 500, Stamp::kTell, 100);
  }
  for (size_t i = 2; i < peers_.size(); ++i) {
    round(*peers_[i], messages() / 2, Stamp::kTell, 1000);
  }
  for (uint32_t i = 0; i < 2000; ++i) {
    turn();
  }
  Peer& third = *peers_[2];
  stop(third);
  EXPECT_TRUE(work_until_told({peers_[3].get(), peers_[4].get()}));
  go_on(*peers_[1]);
  go_on(third);
  go_on(*peers_[0]);
  expect_end();
}

TEST_F(Stop, OneThatIsKilledThenIsGone) {
  open(3);
  Peer& stopped = *peers_[0];
  stop(stopped);
  round(stopped, 300, Stamp::kTell, 10);
  for (size_t i = 1; i < peers_.size(); ++i) {
    round(*peers_[i], messages() / 2, Stamp::kTell, 1000);
  }
  EXPECT_TRUE(work_until_told({peers_[1].get(), peers_[2].get()}));
  EXPECT_EQ(stopped.error, 0);
  stopped.process.signal(SIGKILL);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (stopped.error == 0 && std::chrono::steady_clock::now() < until) {
    turn();
  }
  EXPECT_EQ(stopped.error, -ECONNRESET);
  EXPECT_EQ(stopped.process.exit_code(), -1);
  peers_.erase(peers_.begin());
  expect_end();
}

}  // namespace
}  // namespace rio::test
