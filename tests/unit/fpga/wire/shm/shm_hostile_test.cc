// Attacks of a hostile partner on the wire between processes.
#include <fcntl.h>
#include <gtest/gtest.h>
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
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | 0x10;
  ASSERT_EQ(ftruncate(plain.get(), 4096), 0);
  ASSERT_EQ(fcntl(plain.get(), F_ADD_SEALS, kSeals), 0);
  EXPECT_TRUE(is_refused(plain)) << "short";
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

/// A partner that breaks the rules of the handshake is not connected.
TEST_F(HostileWire, WrongGreetingsAreRefused) {
  const auto one = join(1);
  std::unique_ptr<Directory> directory;
  std::string error;
  ASSERT_EQ(Directory::join({.fabric = "f", .id = 2}, &directory, &error), 0) << error;
  const auto refused = [&](const Greeting& greeting, size_t bytes, bool memory) {
    base::Fd socket;
    EXPECT_EQ(directory->connect(1, &socket, nullptr), Directory::Called::kConnected);
    wire::Half half;
    base::Fd fd;
    EXPECT_FALSE(wire::Half::create(&half, &fd));
    const int fds[] = {fd.get(), fd.get()};
    EXPECT_EQ(base::send_with_fds(socket, std::as_bytes(std::span(&greeting, 1)).first(bytes),
                                  std::span(fds, memory ? 2 : 0)),
              0);
    Greeting answer;
    std::vector<base::Fd> ignored;
    ssize_t got = 0;
    EXPECT_TRUE(wait_until([&] {
      got = base::receive_with_fds(socket, std::as_writable_bytes(std::span(&answer, 1)), &ignored);
      return got != -EAGAIN;
    }));
    return got <= 0;
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
  EXPECT_FALSE(refused(good, sizeof good, true)) << "a correct greeting is answered";
}

}  // namespace
}  // namespace rio::test
