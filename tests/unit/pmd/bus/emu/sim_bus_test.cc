// The driver on cards of rio-cardsim: in a thread of this process, and in a process that is killed.
#include "pmd/bus/emu/sim_bus.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/unix_socket.hpp"
#include "fpga/cardsim/listen_protocol.hpp"
#include "pmd/api/riopmd.hpp"
#include "tests/support/denied.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/fpga/cardsim/guest.hpp"
#include "tests/unit/pmd/api/log_lines.hpp"

namespace rio {
namespace {

constexpr int kLooks = 2'000'000;  // each lets the card's thread run; ten seconds or more

EndpointConfig config_of(uint32_t dest_id, uint32_t irq_rings = 0) {
  EndpointConfig config;
  config.dest_id = dest_id;
  config.message_buffers = 64;
  config.irq_rings = irq_rings;
  config.card.reset_timeout_ms = 20000;
  config.queues.stop_timeout_ms = 20000;
  return config;
}

std::unique_ptr<Endpoint> must_open(const std::string& name, const EndpointConfig& config) {
  std::unique_ptr<Endpoint> endpoint;
  EXPECT_EQ(Endpoint::open(name, config, &endpoint), 0);
  return endpoint;
}

template <class Look>
bool until(Look&& look) {
  for (int i = 0; i < kLooks; ++i) {
    if (look()) {
      return true;
    }
    sched_yield();
  }
  return false;
}

class TwoEnds : public testing::Test {
 protected:
  void open(uint32_t irq_rings = 0) {
    a_ = must_open("sim:" + dir_.at("a"), config_of(1));
    b_ = must_open("sim:" + dir_.at("b"), config_of(2, irq_rings));
    ASSERT_TRUE(a_ != nullptr && b_ != nullptr);
    ASSERT_EQ(a_->wait_link(20000), 0);
    ASSERT_EQ(b_->wait_link(20000), 0);
  }
  void send(uint32_t mbox, uint64_t iova, uint16_t len_bytes) {
    pmd::TxMessage message{};
    message.iova = iova;
    message.dest_id = 2;
    message.length_bytes = len_bytes;
    message.mbox = static_cast<uint8_t>(mbox);
    ASSERT_EQ(a_->tx().burst(&message, 1), 1);
    pmd::TxDone done{};
    ASSERT_TRUE(until([&] { return a_->tx().reap(&done, 1) == 1; }));
    EXPECT_EQ(done.status, pmd::Status::kOk);
  }

  test::TempDir dir_;
  test::Served served_{{"listen:socket=" + dir_.at("a"), "listen:socket=" + dir_.at("b")}};
  std::unique_ptr<Endpoint> a_;
  std::unique_ptr<Endpoint> b_;
};

TEST_F(TwoEnds, SharedDedicatedAndDmaQueuesWork) {
  open();
  EXPECT_EQ(a_->name(), "sim:" + dir_.at("a"));
  EXPECT_TRUE(a_->caps().is_model);
  std::memset(a_->buffers()->va(0), 0x11, 4096);
  const pmd::RxBuffer buffer{b_->buffers()->iova(0), 5};
  ASSERT_EQ(b_->shared().post(&buffer, 1), 1);
  send(0, a_->buffers()->iova(0), 4096);
  pmd::RxMessage got{};
  ASSERT_TRUE(until([&] { return b_->shared().burst(&got, 1) == 1; }));
  EXPECT_EQ(got.cookie, 5u);
  EXPECT_EQ(std::memcmp(b_->buffers()->va(0), a_->buffers()->va(0), 4096), 0);

  pmd::DedicatedRxQueue* dedicated = nullptr;
  ASSERT_EQ(b_->open_dedicated(0, 1, 3, &dedicated), 0);
  pmd::DmaMemory large;
  ASSERT_EQ(b_->alloc(3 << 20, 2 << 20, &large), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.va) % (2 << 20), 0u);
  EXPECT_EQ(large.iova % (2 << 20), 0u);
  const pmd::DedicatedEntry entry{large.iova + (1 << 20), 9, 512};
  ASSERT_EQ(dedicated->post(&entry, 1), 1);
  send(3, a_->buffers()->iova(0), 512);
  pmd::EntryDone done{};
  ASSERT_TRUE(until([&] { return dedicated->reap(&done, 1) == 1; }));
  EXPECT_EQ(done.status, pmd::Status::kOk);
  EXPECT_EQ(std::memcmp(static_cast<uint8_t*>(large.va) + (1 << 20), a_->buffers()->va(0), 512), 0);
  ASSERT_EQ(b_->close_dedicated(0), 0);

  pmd::Window window{};
  window.size_bytes = 4096;
  window.iova = b_->buffers()->iova(8);
  window.rights = pmd::WindowRights::kRead | pmd::WindowRights::kWrite;
  uint32_t number = 0;
  ASSERT_EQ(b_->queues().windows().open(window, &number), 0);
  std::memset(b_->buffers()->va(8), 0x77, 4096);
  pmd::DmaRequest request{};
  request.iova = a_->buffers()->iova(1);
  request.dest_id = 2;
  request.length_bytes = 4096;
  request.op = regs::DmaOp::kNread;
  pmd::EntryDone read{};
  ASSERT_TRUE(until([&] {  // the window opens after some steps
    EXPECT_EQ(a_->dma().post(&request, 1), 1);
    return until([&] { return a_->dma().reap(&read, 1) == 1; }) && read.status == pmd::Status::kOk;
  }));
  EXPECT_EQ(std::memcmp(a_->buffers()->va(1), b_->buffers()->va(8), 4096), 0);

  // The card no longer reaches freed memory.
  const uint64_t freed = large.iova;
  ASSERT_EQ(b_->free(large), 0);
  EXPECT_EQ(a_->close(), 0);
  EXPECT_EQ(b_->close(), 0);
  EXPECT_EQ(served_.wait(), 0);  // both have left
  EXPECT_EQ(served_.card(0).counts().refused, 0u);
  EXPECT_GE(freed, 1ull << 52);
}

TEST_F(TwoEnds, FreedMemoryIsAFault) {
  open();
  pmd::DmaMemory memory;
  ASSERT_EQ(a_->alloc(4096, 4096, &memory), 0);
  ASSERT_EQ(a_->free(memory), 0);
  const pmd::RxBuffer buffer{b_->buffers()->iova(0), 5};
  ASSERT_EQ(b_->shared().post(&buffer, 1), 1);
  pmd::TxMessage message{};
  message.iova = memory.iova;
  message.dest_id = 2;
  message.length_bytes = 64;
  ASSERT_EQ(a_->tx().burst(&message, 1), 1);
  pmd::TxDone done{};
  ASSERT_TRUE(until([&] { return a_->tx().reap(&done, 1) == 1; }));
  EXPECT_EQ(done.status, pmd::Status::kHostReadFailed);
  a_.reset();
  b_.reset();
  EXPECT_EQ(served_.wait(), 0);
  EXPECT_EQ(served_.card(0).counts().refused, 1u);
  EXPECT_EQ(served_.card(0).counts().first_refused_address, memory.iova);
}

TEST_F(TwoEnds, AnInterruptArrives) {
  const uint32_t shared = pmd::ring_bit(regs::Ring::kShared);
  open(shared);
  const pmd::RxBuffer buffer{b_->buffers()->iova(0), 0};
  ASSERT_EQ(b_->shared().post(&buffer, 1), 1);
  ASSERT_EQ(b_->irq_arm(shared), 0);
  pollfd fd{b_->irq_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 0), 0);
  send(0, a_->buffers()->iova(0), 64);
  ASSERT_EQ(poll(&fd, 1, 20000), 1);
  EXPECT_EQ(b_->irq_ack(), 0);
  pmd::RxMessage got{};
  EXPECT_TRUE(until([&] { return b_->shared().burst(&got, 1) == 1; }));
  a_.reset();
  b_.reset();
  EXPECT_EQ(served_.wait(), 0);
  EXPECT_EQ(served_.card(1).attachments().front()->counts().irqs[0], 1u);
}

TEST_F(TwoEnds, MemoryOfTheUserCannotBeRegistered) {
  open();
  test::LogLines log;
  alignas(4096) static uint8_t own[8192];
  EXPECT_EQ(a_->register_memory(own, sizeof own, nullptr), -ENOTSUP);
  EXPECT_TRUE(log.had("take it from alloc()")) << log.last();
  std::unique_ptr<Endpoint> third;
  EXPECT_EQ(Endpoint::open("sim:" + dir_.at("a"), config_of(3), &third), -EBUSY);
  EXPECT_TRUE(log.had("in use by another program")) << log.last();
}

/// A card of rio-cardsim with two functions, its wire led back to itself.
class TwoFunctions : public testing::Test {
 protected:
  std::unique_ptr<Endpoint> open_physical() {
    EndpointConfig config = config_of(1);
    config.card.vf_qps = 2;
    return must_open("sim:" + dir_.at("a"), config);
  }
  std::unique_ptr<Endpoint> open_virtual() {
    return must_open("sim:" + dir_.at("a.vf0"), config_of(0, pmd::ring_bit(regs::Ring::kShared)));
  }
  static void send(Endpoint& from, Endpoint& to, uint8_t fill) {
    std::memset(from.buffers()->va(0), fill, 256);
    const pmd::RxBuffer buffer{to.buffers()->iova(1), fill};
    ASSERT_EQ(to.shared().post(&buffer, 1), 1);
    pmd::TxMessage message{};
    message.iova = from.buffers()->iova(0);
    message.dest_id = to.dest_id();
    message.length_bytes = 256;
    ASSERT_EQ(from.tx().burst(&message, 1), 1);
    pmd::RxMessage got{};
    ASSERT_TRUE(until([&] { return to.shared().burst(&got, 1) == 1; }));
    EXPECT_EQ(got.source, from.dest_id());
    EXPECT_EQ(got.cookie, fill);
    EXPECT_EQ(std::memcmp(to.buffers()->va(1), from.buffers()->va(0), 256), 0);
  }

  test::TempDir dir_;
  test::Served served_{{"listen:socket=" + dir_.at("a") + ",qps=3,vfs=1"}, true};
};

TEST_F(TwoFunctions, TwoProgramsHaveAFunctionEach) {
  const auto physical = open_physical();
  const auto of_vf = open_virtual();
  ASSERT_TRUE(physical != nullptr && of_vf != nullptr);
  EXPECT_TRUE(of_vf->caps().is_vf);
  EXPECT_EQ(of_vf->wait_link(0), 0) << "which it does not see";
  EXPECT_EQ(of_vf->caps().queue_pairs, 2u);
  EXPECT_EQ(of_vf->dest_id(), 2u);
  send(*physical, *of_vf, 0x11);
  send(*of_vf, *physical, 0x22);
  EXPECT_EQ(of_vf->close(), 0);
  EXPECT_EQ(physical->close(), 0);
}

TEST_F(TwoFunctions, AFunctionWhoseProgramHasGoneIsThereForTheNext) {
  const auto physical = open_physical();
  ASSERT_NE(physical, nullptr);
  for (uint8_t round = 1; round <= 3; ++round) {
    const auto of_vf = open_virtual();
    ASSERT_NE(of_vf, nullptr);
    send(*of_vf, *physical, round);
    send(*physical, *of_vf, static_cast<uint8_t>(round + 100));
  }
}

TEST_F(TwoFunctions, AVirtualFunctionNeedsItsPhysicalOne) {
  std::unique_ptr<Endpoint> endpoint;
  {
    test::LogLines log;
    EXPECT_EQ(Endpoint::open("sim:" + dir_.at("a.vf0"), config_of(0), &endpoint), -ENOENT);
    EXPECT_TRUE(log.had("has no queue pairs"));
  }
  const auto physical = open_physical();
  ASSERT_NE(physical, nullptr);
  EndpointConfig second;
  second.queue_pair = 1;
  EXPECT_EQ(physical->open_queue_pair(second, &endpoint), -EBUSY);
  EXPECT_EQ(Endpoint::open("sim:" + dir_.at("a.vf0"), config_of(9), &endpoint), -EINVAL);
}

TEST(SimBus, AMissingServerIsReported) {
  test::TempDir dir;
  test::LogLines log;
  std::unique_ptr<pmd::Bus> bus;
  EXPECT_EQ(pmd::open_sim_bus({dir.at("none"), 20}, &bus), -ENOENT);
  EXPECT_TRUE(log.had("start rio-cardsim --card listen:socket=" + dir.at("none"))) << log.last();
  base::Fd left;
  ASSERT_EQ(base::listen_at(dir.at("left"), SOCK_SEQPACKET, &left), 0);
  left.reset();
  EXPECT_EQ(pmd::open_sim_bus({dir.at("left"), 0}, &bus), -ECONNREFUSED);
  EXPECT_EQ(bus, nullptr);
}

/// Opens a card at a server that answers a hello with `reply`. @return as open_sim_bus().
int open_at(const cardsim::protocol::Reply& reply, const std::vector<int>& fds) {
  test::TempDir dir;
  base::Fd listener;
  EXPECT_EQ(base::listen_at(dir.at("s"), SOCK_SEQPACKET, &listener), 0);
  std::jthread server([&] {
    pollfd ready{listener.get(), POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 20000), 1);
    base::Fd client;
    EXPECT_EQ(base::accept_from(listener, &client), 0);
    EXPECT_EQ(base::send_with_fds(client, std::as_bytes(std::span(&reply, 1)), fds), 0);
    ready = {client.get(), POLLRDHUP, 0};
    EXPECT_EQ(poll(&ready, 1, 20000), 1);
  });
  std::unique_ptr<pmd::Bus> bus;
  const int rc = pmd::open_sim_bus({dir.at("s"), 0}, &bus);
  EXPECT_EQ(bus, nullptr);
  return rc;
}

TEST(SimBus, ASenselessServerIsRefused) {
  test::LogLines log;
  cardsim::protocol::Reply good;
  good.bar_bytes = 0x20000;
  const auto bar_of = [](size_t bytes, int seals) {
    base::Fd fd(memfd_create("bar", MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    return fd;
  };
  const base::Fd bar = bar_of(0x20000, F_SEAL_SHRINK);
  EXPECT_EQ(open_at(good, {}), -EPROTO);
  EXPECT_EQ(open_at(good, {bar.get(), bar.get()}), -EPROTO);
  EXPECT_EQ(open_at(good, {bar_of(0x20000, F_SEAL_GROW).get()}), -EPROTO);    // may shrink
  EXPECT_EQ(open_at(good, {bar_of(0x10000, F_SEAL_SHRINK).get()}), -EPROTO);  // too small
  for (const uint32_t bytes : {0u, 0x10000u, 0x30000u, 0x400000u, 0x80000000u}) {
    cardsim::protocol::Reply reply = good;
    reply.bar_bytes = bytes;
    EXPECT_EQ(open_at(reply, {bar.get()}), -EPROTO) << bytes;
  }
  cardsim::protocol::Reply reply = good;
  reply.magic ^= 1;
  EXPECT_EQ(open_at(reply, {bar.get()}), -EPROTO);
  reply = good;
  reply.version = 2;
  EXPECT_EQ(open_at(reply, {bar.get()}), -EPROTO);
  reply = good;
  reply.vectors = 65;
  EXPECT_EQ(open_at(reply, {bar.get()}), -EPROTO);
  EXPECT_TRUE(log.had("is it the right socket?")) << log.last();
}

/// rio-cardsim as a process.
class Cardsim {
 public:
  explicit Cardsim(const std::string& spec) {
    pid_ = fork();
    if (pid_ == 0) {
      execl(RIO_CARDSIM, "rio-cardsim", "--card", spec.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Cardsim() { kill_it(); }
  Cardsim(const Cardsim&) = delete;
  Cardsim& operator=(const Cardsim&) = delete;
  void kill_it() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  pid_t pid_;
};

TEST(SimBus, AServerKilledUnderTrafficIsAGoneCard) {
  test::TempDir dir;
  Cardsim cardsim("listen:socket=" + dir.at("card"));
  const uint32_t shared = pmd::ring_bit(regs::Ring::kShared);
  auto endpoint = must_open("sim:" + dir.at("card") + ",wait=20000", config_of(1, shared));
  ASSERT_NE(endpoint, nullptr);
  ASSERT_EQ(endpoint->wait_link(20000), 0);
  pollfd asleep{endpoint->irq_fd(), POLLIN, 0};
  pmd::TxMessage message{};
  message.data = "inline";
  message.dest_id = 1;
  message.length_bytes = 6;
  message.flags = pmd::TxFlags::kInline;
  uint32_t received = 0;
  for (uint32_t i = 0; i < 64; ++i) {
    const pmd::RxBuffer buffer{endpoint->buffers()->iova(i), i};
    ASSERT_EQ(endpoint->shared().post(&buffer, 1), 1);
  }
  const auto turn = [&] {
    static_cast<void>(endpoint->tx().burst(&message, 1));
    pmd::TxDone done[8];
    static_cast<void>(endpoint->tx().reap(done, 8));
    pmd::RxMessage got{};
    if (endpoint->shared().burst(&got, 1) == 1) {
      ++received;
      const pmd::RxBuffer buffer{endpoint->buffers()->iova(static_cast<uint32_t>(got.cookie)),
                                 got.cookie};
      EXPECT_EQ(endpoint->shared().post(&buffer, 1), 1);
    }
  };
  ASSERT_TRUE(until([&] {
    turn();
    return received >= 100;
  }));
  cardsim.kill_it();
  test::LogLines log;
  // The card reads all ones, polls do no harm, and a sleeping thread is woken.
  EXPECT_TRUE(until([&] {
    turn();
    return endpoint->card().gone();
  }));
  EXPECT_EQ(poll(&asleep, 1, 20000), 1);
  for (int i = 0; i < 100; ++i) {
    turn();
  }
  pmd::DmaMemory memory;
  EXPECT_EQ(endpoint->alloc(4096, 4096, &memory), -ENODEV);
  EXPECT_TRUE(log.had("rio-cardsim has gone")) << log.last();
  EXPECT_EQ(endpoint->close(), -ENODEV);
}

/// Opens the card as a user without privileges. @return whether that was refused with this text.
bool is_refused_to_others(const std::string& card, const std::string& text) {
  const pid_t child = fork();
  if (child == 0) {
    test::LogLines log;
    std::unique_ptr<Endpoint> none;
    const bool refused =
        test::leave_root() && Endpoint::open(card, {}, &none) == -EACCES && log.had(text);
    std::fprintf(stderr, "%s", refused ? "" : log.last().c_str());
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

// A socket of another user's program is not reported as a missing server.
TEST(SimBus, ASocketOfAnotherUserIsReportedAsSuch) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can be another user";
  }
  const test::TempDir dir;
  test::Served served({"listen:socket=" + dir.at("card")});
  EXPECT_TRUE(is_refused_to_others("sim:" + dir.at("card"), "a folder on its path is closed"));
  ASSERT_EQ(chmod(dir.at("").c_str(), 0755), 0);
  EXPECT_TRUE(is_refused_to_others("sim:" + dir.at("card"), "the socket belongs to user 0"));
}

}  // namespace
}  // namespace rio
