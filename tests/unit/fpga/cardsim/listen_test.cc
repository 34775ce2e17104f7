// Cards for programs of this machine: hostile clients here, the driver in
// tests/unit/pmd/bus/emu/sim_bus_test.cc.
#include "fpga/cardsim/client_memory.hpp"
#include "fpga/cardsim/listen_protocol.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/unix_socket.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/fpga/cardsim/guest.hpp"

namespace rio::cardsim {
namespace {

using protocol::Reply;
using protocol::Request;
using protocol::Verb;

base::Fd memfd_of(size_t len_bytes, int seals, unsigned flags = MFD_ALLOW_SEALING) {
  base::Fd fd(memfd_create("test", flags));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(len_bytes)), 0);
  if (seals != 0) {
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

TEST(ClientMemory, AcceptsOnlyWhatCannotShrink) {
  ClientMemory memory;
  const base::Fd good = memfd_of(0x4000, F_SEAL_SHRINK);
  EXPECT_EQ(memory.map(0x1000, 0, 0x4000, memfd_of(0x4000, 0)), -EPERM);
  EXPECT_EQ(memory.map(0x1000, 0, 0x4000, memfd_of(0x4000, F_SEAL_GROW)), -EPERM);
  EXPECT_EQ(memory.map(0x1000, 0, 0x4000, memfd_of(0x4000, F_SEAL_SHRINK | F_SEAL_WRITE)), -EPERM);
  test::TempDir dir;
  const base::Fd file(open(dir.at("file").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(ftruncate(file.get(), 0x4000), 0);
  EXPECT_LT(memory.map(0x1000, 0, 0x4000, file), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const base::Fd one(ends[0]);
  const base::Fd other(ends[1]);
  EXPECT_EQ(memory.map(0x1000, 0, 0x1000, one), -ENOTSUP);
  EXPECT_EQ(memory.map(0x1000, 0, 0, good), -EINVAL);
  EXPECT_EQ(memory.map(0x1001, 0, 0x1000, good), -EINVAL);
  EXPECT_EQ(memory.map(0x1000, 0x800, 0x1000, good), -EINVAL);
  EXPECT_EQ(memory.map(0x1000, 0, 0x1001, good), -EINVAL);
  EXPECT_EQ(memory.map(0x1000, 0, 0x5000, good), -EINVAL);
  EXPECT_EQ(memory.map(0x1000, 0x4000, 0x1000, good), -EINVAL);
  EXPECT_EQ(memory.map(0x1000, ~0xFFFull, 0x1000, good), -EINVAL);
  EXPECT_EQ(memory.map(0x1000, 0x1000, ~0xFFFull, good), -EINVAL);
  EXPECT_EQ(memory.map(~0xFFFull, 0, 0x2000, good), -EINVAL);
  model::HostWindow window;
  EXPECT_FALSE(memory.find(0x1000, &window));
  EXPECT_EQ(memory.map(~0xFFFull, 0, 0x1000, good), 0);  // the very last page is a page
  EXPECT_TRUE(memory.find(UINT64_MAX, &window));
}

TEST(ClientMemory, WindowsAreMappedAndUnmapped) {
  ClientMemory memory;
  const base::Fd fd = memfd_of(0x4000, F_SEAL_SHRINK);
  ASSERT_EQ(memory.map(0x10000, 0x1000, 0x2000, fd), 0);
  for (const uint64_t iova : {0xF000, 0x10000, 0x11000}) {
    EXPECT_EQ(memory.map(iova, 0, 0x2000, fd), -EEXIST) << iova;
  }
  EXPECT_EQ(memory.map(0xE000, 0, 0x4000, fd), -EEXIST);
  model::HostWindow window;
  ASSERT_TRUE(memory.find(0x11FFF, &window));
  EXPECT_EQ(window.iova, 0x10000u);
  const char text[] = "seen by both";
  ASSERT_EQ(pwrite(fd.get(), text, sizeof text, 0x1000), static_cast<ssize_t>(sizeof text));
  EXPECT_STREQ(reinterpret_cast<char*>(window.at(0x10000)), text);
  EXPECT_FALSE(memory.find(0xFFFF, &window));
  EXPECT_FALSE(memory.find(0x12000, &window));
  const uint32_t before = memory.generation();
  EXPECT_EQ(memory.unmap(0x11000), -ENOENT);
  EXPECT_EQ(memory.generation(), before);
  EXPECT_EQ(memory.unmap(0x10000), 0);
  EXPECT_NE(memory.generation(), before);
  EXPECT_FALSE(memory.find(0x10000, &window));
  EXPECT_EQ(memory.unmap(0x10000), -ENOENT);
  for (uint64_t i = 0; i < ClientMemory::kWindowsMax; ++i) {
    ASSERT_EQ(memory.map(0x1000 * i, 0, 0x1000, fd), 0);
  }
  EXPECT_EQ(memory.map(0x1000 * ClientMemory::kWindowsMax, 0, 0x1000, fd), -ENOSPC);
  memory.clear();
  EXPECT_FALSE(memory.find(0, &window));
}

class Hostile : public testing::Test {
 protected:
  Hostile() : served_({"listen:socket=" + dir_.at("card")}, true) {}

  base::Fd connect() {
    base::Fd fd;
    EXPECT_EQ(base::connect_to(dir_.at("card"), SOCK_SEQPACKET, &fd), 0);
    return fd;
  }
  static bool say(const base::Fd& fd, const void* bytes, size_t len, std::vector<int> fds = {}) {
    return base::send_with_fds(fd, {static_cast<const std::byte*>(bytes), len}, fds) == 0;
  }
  /// Waits for a message of the server. @return bytes; 0: it has hung up.
  static ssize_t hear(const base::Fd& fd, Reply* reply, std::vector<base::Fd>* fds) {
    pollfd answer{fd.get(), POLLIN, 0};
    EXPECT_EQ(poll(&answer, 1, 20000), 1);
    const ssize_t got =
        base::receive_with_fds(fd, std::as_writable_bytes(std::span(reply, 1)), fds);
    return got == -ECONNRESET ? 0 : got;
  }
  static int status_of(const base::Fd& fd, Request request, std::vector<int> fds = {}) {
    EXPECT_TRUE(say(fd, &request, sizeof request, std::move(fds)));
    Reply reply;
    std::vector<base::Fd> got;
    EXPECT_EQ(hear(fd, &reply, &got), static_cast<ssize_t>(sizeof reply));
    return reply.status;
  }
  /// Connects a client that says hello. @param bar gets the BAR.
  base::Fd welcome(base::Fd* bar = nullptr) {
    base::Fd fd = connect();
    const Request hello;
    EXPECT_TRUE(say(fd, &hello, sizeof hello));
    Reply reply;
    std::vector<base::Fd> fds;
    EXPECT_EQ(hear(fd, &reply, &fds), static_cast<ssize_t>(sizeof reply));
    EXPECT_EQ(reply.status, 0);
    EXPECT_EQ(reply.bar_bytes, 0x20000u);
    EXPECT_EQ(fds.size(), 1u + reply.vectors);
    if (bar != nullptr && !fds.empty()) {
      *bar = std::move(fds.front());
    }
    return fd;
  }
  static void expect_hung_up(const base::Fd& fd) {
    Reply reply;
    std::vector<base::Fd> fds;
    EXPECT_EQ(hear(fd, &reply, &fds), 0);
  }

  test::TempDir dir_;
  test::Served served_;
};

TEST_F(Hostile, MalformedRequestsEndTheConnection) {
  const base::Fd memory = memfd_of(0x1000, F_SEAL_SHRINK);
  const Request hello;
  char bytes[64] = {};
  std::memcpy(bytes, &hello, sizeof hello);
  struct {
    size_t len;
    size_t at;  // a byte to spoil
    bool with_fd;
  } const wrong[] = {{1, 63, false}, {31, 63, false}, {33, 63, false}, {64, 63, false},
                     {32, 0, false}, {32, 4, false},  {32, 6, false},  {32, 63, true}};
  for (const auto& one : wrong) {
    const base::Fd fd = connect();
    char spoilt[64];
    std::memcpy(spoilt, bytes, sizeof bytes);
    spoilt[one.at] ^= 0x40;
    ASSERT_TRUE(
        say(fd, spoilt, one.len, one.with_fd ? std::vector{memory.get()} : std::vector<int>{}));
    expect_hung_up(fd);
  }
  // Send each of them after a correct greeting, and hello twice.
  for (const auto& one : wrong) {
    const base::Fd fd = welcome();
    char spoilt[64];
    std::memcpy(spoilt, bytes, sizeof bytes);
    spoilt[one.at] ^= 0x40;
    ASSERT_TRUE(say(fd, spoilt, one.len));
    expect_hung_up(fd);
  }
  base::Fd fd = welcome();
  Request map;
  map.verb = Verb::kMap;
  map.len_bytes = 0x1000;
  ASSERT_TRUE(say(fd, &map, sizeof map));  // without memory
  expect_hung_up(fd);
  fd = welcome();
  ASSERT_TRUE(say(fd, &map, sizeof map, {memory.get(), memory.get()}));
  expect_hung_up(fd);
  fd = welcome();
  Request unmap;
  unmap.verb = Verb::kUnmap;
  ASSERT_TRUE(say(fd, &unmap, sizeof unmap, {memory.get()}));
  expect_hung_up(fd);
  fd = welcome();  // the server still works
  EXPECT_EQ(status_of(fd, map, {memory.get()}), 0);
  EXPECT_EQ(status_of(fd, map, {memory.get()}), -EEXIST);
  EXPECT_EQ(status_of(fd, unmap), 0);
  EXPECT_EQ(status_of(fd, unmap), -ENOENT);
}

TEST_F(Hostile, ThereIsOneClientAtATime) {
  base::Fd bar;
  base::Fd first = welcome(&bar);
  const base::Fd second = connect();
  Reply reply;
  std::vector<base::Fd> fds;
  ASSERT_EQ(hear(second, &reply, &fds), static_cast<ssize_t>(sizeof reply));
  EXPECT_EQ(reply.status, -EBUSY);
  EXPECT_TRUE(fds.empty());
  // The next client does not get the BAR of one that has left.
  first.reset();
  base::Fd fresh;
  const base::Fd third = welcome(&fresh);  // connects at once
  struct stat one {};
  struct stat two {};
  ASSERT_EQ(fstat(bar.get(), &one), 0);
  ASSERT_EQ(fstat(fresh.get(), &two), 0);
  EXPECT_NE(one.st_ino, two.st_ino);
  EXPECT_EQ(served_.end(), 0);
  EXPECT_EQ(served_.card().attachments().front()->counts().peers, 2u);
}

// Rings in memory that the client then unmaps, and punches holes into, under a running card.
TEST_F(Hostile, MemoryMayGoAtAnyTime) {
  base::Fd bar_fd;
  const base::Fd fd = welcome(&bar_fd);
  auto* const bar = static_cast<uint8_t*>(
      mmap(nullptr, 0x20000, PROT_READ | PROT_WRITE, MAP_SHARED, bar_fd.get(), 0));
  ASSERT_NE(bar, MAP_FAILED);
  const auto word = [bar](uint32_t at) { return reinterpret_cast<uint32_t*>(bar + at); };
  const auto wait_for = [&word](uint32_t at, auto&& done) {
    for (int i = 0; i < 20000 && !done(__atomic_load_n(word(at), __ATOMIC_ACQUIRE)); ++i) {
      usleep(1000);
    }
    return done(*word(at));
  };
  EXPECT_EQ(*word(regs::id::magic()), regs::kMagic);
  EXPECT_EQ(ftruncate(bar_fd.get(), 0), -1);
  const base::Fd memory = memfd_of(0x10000, F_SEAL_SHRINK);
  Request map;
  map.verb = Verb::kMap;
  map.iova = 0x100000;
  map.len_bytes = 0x10000;
  ASSERT_EQ(status_of(fd, map, {memory.get()}), 0);
  namespace qp = regs::qp;
  for (uint32_t ring : {0u, 1u}) {
    *word(qp::ring_base_lo(0, ring)) = 0x100000 + 0x4000 * ring;
    *word(qp::ring_cbase_lo(0, ring)) = 0x102000 + 0x4000 * ring;
    *word(qp::ring_size(0, ring)) = 4 | 4 << 8;
    __atomic_store_n(word(qp::ring_control(0, ring)), 1 | 1u << 16, __ATOMIC_RELEASE);
    EXPECT_TRUE(wait_for(qp::ring_status(0, ring), [](uint32_t v) {
      return qp::RingStatus::state.get(v) == static_cast<uint32_t>(regs::RingState::kRunning);
    }));
  }
  __atomic_store_n(word(qp::tail(0, 0)), 16, __ATOMIC_RELEASE);  // sixteen descriptors of zeros
  ASSERT_EQ(fallocate(memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 0x10000), 0);
  Request unmap;
  unmap.verb = Verb::kUnmap;
  unmap.iova = 0x100000;
  ASSERT_EQ(status_of(fd, unmap), 0);
  EXPECT_TRUE(wait_for(qp::ring_status(0, 1), [](uint32_t v) {
    return qp::RingStatus::error.get(v) == static_cast<uint32_t>(regs::RingError::kHostRead);
  }));
  munmap(bar, 0x20000);
}

TEST(Listen, EndsWithItsClient) {
  test::TempDir dir;
  test::Served served({"listen:socket=" + dir.at("card")});
  {
    base::Fd idle;  // a client that says nothing is not a peer
    ASSERT_EQ(base::connect_to(dir.at("card"), SOCK_SEQPACKET, &idle), 0);
  }
  base::Fd fd;
  Reply reply;
  std::vector<base::Fd> fds;
  for (int i = 0; i < 1000 && fds.empty(); ++i) {
    ASSERT_EQ(base::connect_to(dir.at("card"), SOCK_SEQPACKET, &fd), 0);
    const Request hello;
    static_cast<void>(base::send_with_fds(fd, std::as_bytes(std::span(&hello, 1)), {}));
    pollfd answer{fd.get(), POLLIN, 0};
    ASSERT_EQ(poll(&answer, 1, 20000), 1);
    static_cast<void>(
        base::receive_with_fds(fd, std::as_writable_bytes(std::span(&reply, 1)), &fds));
  }
  EXPECT_FALSE(fds.empty());
  fd.reset();
  EXPECT_EQ(served.wait(), 0);
  EXPECT_EQ(served.card().attachments().front()->counts().peers, 1u);
}

}  // namespace
}  // namespace rio::cardsim
