// Attacks of a hostile partner on the wire between processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/fpga/wire/shm/wire_fixture.hpp"

namespace rio::test {
namespace {

using namespace wire::shm;
using base::Fd;
using model::FrameType;

class HostileWire : public Wire {};

TEST_F(HostileWire, PartnersCannotWriteOurHalf) {
  const auto one = join(1);
  Evil evil(2, 1);
  base::Fd memory;
  wire::Half half;
  ASSERT_FALSE(wire::Half::create(&half, &memory));
  EXPECT_EQ(mmap(nullptr, wire::kHalfBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0),
            MAP_FAILED);
  EXPECT_NE(ftruncate(memory.get(), 0), 0);
  EXPECT_NE(fallocate(memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
}

/// Whether it is refused as unsealed memory, not as a failure of this process.
bool is_refused(const base::Fd& fd) {
  wire::Half half;
  bool sound = true;
  return !wire::Half::map(fd, &half, &sound) && !sound;
}

TEST_F(HostileWire, MemoryThatCouldVanishIsRefused) {
  base::Fd plain(memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(plain.get(), wire::kHalfBytes), 0);
  EXPECT_TRUE(is_refused(plain)) << "not sealed";
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | base::kSealFutureWrite;
  ASSERT_EQ(fcntl(plain.get(), F_ADD_SEALS, kSeals), 0);
  EXPECT_TRUE(is_refused(plain)) << "a hole";
  base::Fd small(memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(fallocate(small.get(), 0, 0, 4096), 0);
  ASSERT_EQ(fcntl(small.get(), F_ADD_SEALS, kSeals), 0);
  EXPECT_TRUE(is_refused(small)) << "short";
  base::Fd file(open(dir_.at("file").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(ftruncate(file.get(), wire::kHalfBytes), 0);
  EXPECT_TRUE(is_refused(file));
  EXPECT_TRUE(is_refused(base::Fd()));
}

TEST_F(HostileWire, ImpossibleLengthsCutThePartnerOff) {
  for (const uint32_t bytes :
       {1u, 31u, 33u, wire::kRequestRingBytes + 32, model::kFrameRingBytesMax - 32}) {
    const auto one = join(1);
    Evil evil(2, 1);
    EXPECT_TRUE(change(*one).here);
    evil.frame().type = FrameType::kMessage;
    __atomic_store_n(&evil.frame().bytes, bytes, __ATOMIC_RELEASE);
    ASSERT_EQ(one->inbound().size(), 1u);
    EXPECT_TRUE(wait_until([&] {
      return one->inbound()[0].requests->peek() == nullptr && one->inbound()[0].requests->foul();
    }));
    EXPECT_FALSE(change(*one).here);
    EXPECT_TRUE(evil.is_cut()) << bytes;
  }
}

TEST_F(HostileWire, ImpossibleHeadsCutThePartnerOff) {
  for (const uint32_t head : {32u, 0xFFFFFFFFu, 0x80000000u}) {
    const auto one = join(1);
    Evil evil(2, 1);
    EXPECT_TRUE(change(*one).here);
    evil.link().joint.mine.heads()->requests.head = head;  // nothing was sent yet
    model::Outbound* to = one->route(2);
    EXPECT_TRUE(wait_until([&] {
      (void)to->requests->passed(0);
      return to->requests->foul();
    }));
    EXPECT_FALSE(change(*one).here);
    EXPECT_TRUE(evil.is_cut()) << head;
  }
}

/// Calls member 1 from the place of member 2.
class Caller {
 public:
  Caller() {
    std::string error;
    EXPECT_EQ(Directory::join({.fabric = "f", .id = 2}, &directory_, &error), 0) << error;
  }
  /// @param memory whether a half goes with the greeting. @return whether member 1 answers.
  bool calls(const Greeting& greeting, size_t bytes = sizeof(Greeting), bool memory = true) {
    EXPECT_EQ(directory_->connect(1, &socket_, nullptr), Directory::Called::kConnected);
    wire::Half half;
    base::Fd fd;
    EXPECT_FALSE(wire::Half::create(&half, &fd));
    const base::Fd bell(eventfd(0, EFD_NONBLOCK));
    const int fds[] = {fd.get(), bell.get()};
    say(greeting, bytes, std::span(fds, memory ? 2 : 0));
    Greeting answer;
    std::vector<base::Fd> ignored;
    ssize_t got = 0;
    EXPECT_TRUE(wait_until([&] {
      got =
          base::receive_with_fds(socket_, std::as_writable_bytes(std::span(&answer, 1)), &ignored);
      return got != -EAGAIN;
    }));
    return got > 0;
  }
  void say(const Greeting& greeting, size_t bytes, std::span<const int> fds) {
    EXPECT_EQ(
        base::send_with_fds(socket_, std::as_bytes(std::span(&greeting, 1)).first(bytes), fds), 0);
  }
  void leave() { socket_.reset(); }

 private:
  std::unique_ptr<Directory> directory_;
  base::Fd socket_;
};

/// A partner that breaks the rules of the handshake is not connected.
TEST_F(HostileWire, WrongGreetingsAreRefused) {
  const auto one = join(1);
  Caller caller;
  const auto refused = [&](const Greeting& greeting, size_t bytes, bool memory) {
    return !caller.calls(greeting, bytes, memory);
  };
  const Greeting good{.nonce = 1, .first_id = 2, .ids = 1};
  EXPECT_TRUE(refused(good, 8, true)) << "short";
  EXPECT_TRUE(refused(good, sizeof good, false)) << "no memory";
  Greeting bad = good;
  bad.magic = 1;
  EXPECT_TRUE(refused(bad, sizeof bad, true));
  bad = good;
  bad.version = 99;
  EXPECT_TRUE(refused(bad, sizeof bad, true));
  bad = good;
  bad.say = Say::kReady;
  EXPECT_TRUE(refused(bad, sizeof bad, true));
  for (const uint32_t first : {0u, 1u, 3u, 0xFFFFFFFFu}) {
    bad = good;
    bad.first_id = first;
    EXPECT_TRUE(refused(bad, sizeof bad, true))
        << "destID of another member, or of none: " << first;
  }
  for (const uint32_t ids : {0u, 2u, 32u, 0xFFFFFFFFu}) {
    bad = good;
    bad.ids = ids;
    EXPECT_TRUE(refused(bad, sizeof bad, true)) << ids;
  }
  for (const uint64_t windows : {uint64_t{1}, uint64_t{9}, ~uint64_t{0}, ~uint64_t{0} - 1}) {
    bad = good;
    bad.windows = windows;
    EXPECT_TRUE(refused(bad, sizeof bad, true)) << "windows without descriptors: " << windows;
  }
  EXPECT_FALSE(refused(good, sizeof good, true)) << "a correct greeting is answered";
}

// A partner without the number that it named has called exec(), or is about to leave: then its link
// ends soon.
TEST_F(HostileWire, OtherMemoryOfAPartnerIsReportedOnlyIfItStays) {
  constexpr uint64_t kResponseNs = 1000;
  for (const bool leaves : {true, false}) {
    const auto one = join(1);
    Caller caller;
    Greeting greeting{.nonce = 1, .first_id = 2, .ids = 1};
    ASSERT_TRUE(caller.calls(greeting));
    greeting.say = Say::kReady;
    caller.say(greeting, sizeof greeting, {});
    EXPECT_TRUE(change(*one).here);
    one->check_partners(kResponseNs, kResponseNs);
    if (leaves) {
      caller.leave();
      EXPECT_FALSE(change(*one).here);
    }
    one->check_partners(2 * kResponseNs, kResponseNs);
    std::string text;
    EXPECT_EQ(one->next_trouble(&text), !leaves) << text;
    EXPECT_EQ(text.find("has replaced it") != std::string::npos, !leaves) << text;
  }
}

}  // namespace
}  // namespace rio::test
