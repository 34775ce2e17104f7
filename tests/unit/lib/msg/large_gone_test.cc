// The card of one side is reset by another process, or vanishes, in the middle of a transfer. The
// transfer ends with -ENODEV, and its memory is the user's again. The other side learns of it when
// the card is opened again.
#include <algorithm>
#include <tuple>
#include <utility>

#include "fpga/model/card.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/msg/large_fixture.hpp"

namespace rio::msg::test {
namespace {

constexpr uint64_t kLongBytes = 3'000'000;
constexpr uint64_t kShortBytes = 150'000;  // is posted, and read, at once

enum class Loser : uint8_t { kSender, kReceiver };
enum class Loss : uint8_t { kReset, kVanished };
enum class OnWire : uint8_t {
  kOfProcess,
  kOfProcesses,
  kRead,  ///< of processes, and the receiver's card reads the data instead of being sent it
};

class LargeGone : public ::testing::TestWithParam<std::tuple<OnWire, Loser, Loss>> {
 protected:
  LargeGone() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~LargeGone() override { unsetenv("RIO_RUNTIME_DIR"); }

  static std::unique_ptr<Node> open(uint32_t dest_id) {
    const bool shared = std::get<OnWire>(GetParam()) != OnWire::kOfProcess;
    return std::make_unique<Node>(
        shared ? "shm:gone,id=" + std::to_string(dest_id) : std::string("emu:LargeGone"), dest_id);
  }
  static void lose(const Node& node) {
    pmd::Bus& bus = node.port->endpoint().card().bus();
    model::Card& card = *dynamic_cast<pmd::EmuBus&>(bus).card();
    if (std::get<Loss>(GetParam()) == Loss::kVanished) {
      card.vanish();
    } else {
      card.lose_state();
    }
  }
  /// The value that the other process writes to the dedicated rings of the card that it has reset.
  static constexpr uint32_t kTheirs = regs::qp::RingControl::gen.put(5);
  /// Calls each() for each dedicated ring of a card that was reset. @param turns of the transfer:
  /// in the first ones the port still opens its ring, before it sees the loss, so nothing is
  /// checked.
  template <class Each>
  static void each_control(const Node& node, uint32_t turns, Each&& each) {
    if (std::get<Loss>(GetParam()) == Loss::kReset && turns >= 8) {
      pmd::Mmio bar = node.port->endpoint().card().bus().bar();
      for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
        each(bar, regs::qp::ring_control(0, static_cast<uint32_t>(regs::Ring::kDedicated0) + i));
      }
    }
  }
  static bool has_all(const Area& area, uint8_t byte) {
    return std::all_of(area.at(), area.at() + area.size(),
                       [&](uint8_t each) { return each == byte; });
  }

 private:
  rio::test::TempDir dir_;
};

TEST_P(LargeGone, TransfersUnderWayEnd) {
  const bool sends = std::get<Loser>(GetParam()) == Loser::kSender;
  const bool is_read = std::get<OnWire>(GetParam()) == OnWire::kRead;
  uint32_t in_the_middle = 0;
  constexpr std::pair<uint32_t, uint64_t> kCases[] = {
      {0, kShortBytes}, {1, kShortBytes}, {2, kShortBytes}, {3, kShortBytes},
      {4, kShortBytes}, {2, kLongBytes},  {8, kLongBytes},  {32, kLongBytes}};
  for (const auto& [turns, bytes] : kCases) {
    SCOPED_TRACE(std::to_string(turns) + " turns, " + std::to_string(bytes) + " bytes");
    SendTransfer sent;
    SendTransfer next;
    RecvTransfer received;
    std::unique_ptr<Node> a = open(5);
    std::unique_ptr<Node> b = open(6);
    const Area from(bytes, 3, 0x11);
    const Area to(bytes, 9, 0x22);
    fill(from.at(), bytes, 1);
    const std::vector<uint8_t> wanted(from.at(), from.at() + bytes);
    ASSERT_TRUE(std::get<OnWire>(GetParam()) == OnWire::kOfProcesses
                    ? begin_granted(*a, *b, from, sent, to, received)
                    : begin(*a, *b, from, sent, to, received));
    for (uint32_t i = 0; i < turns; ++i) {
      a->port->progress();
      b->port->progress();
    }
    a->port->progress();  // b has not seen the newest messages yet

    std::unique_ptr<Node>& loser = sends ? a : b;
    Transfer& lost = sends ? static_cast<Transfer&>(sent) : received;
    Transfer& other = sends ? static_cast<Transfer&>(received) : sent;
    const bool was_done = lost.done;
    in_the_middle += was_done ? 0 : 1;
    lose(*loser);
    each_control(*loser, turns, [](pmd::Mmio& bar, uint32_t at) { bar.write32(at, kTheirs); });
    ASSERT_TRUE(work({loser.get()}, [&] { return lost.done && loser->port->error() != 0; }));
    EXPECT_EQ(loser->port->error(), -ENODEV);
    const bool may_be_told = is_read && sends;  // DONE was there already
    EXPECT_TRUE(lost.status == (was_done ? 0 : -ENODEV) || (may_be_told && lost.status == 0));
    constexpr uint8_t kMine = 0x33;
    std::memset((sends ? from : to).at(), kMine, bytes);
    for (uint32_t i = 0; i < 1000; ++i) {
      a->port->progress();
      b->port->progress();
    }

    each_control(*loser, turns, [](pmd::Mmio& bar, uint32_t at) {
      EXPECT_EQ(bar.read32(at), kTheirs) << "it wrote to a ring that another process owns now";
    });
    loser.reset();
    loser = open(sends ? 5 : 6);
    const Area small(5000, 0, 0x44);
    ASSERT_EQ(send(*loser, sends ? *b : *a, small, next), 0);
    ASSERT_TRUE(work({a.get(), b.get()}, [&] { return other.done; }));
    if (sends && received.status == 0) {
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), to.at())) << "it read the user's memory";
    }
    if (!sends) {
      EXPECT_TRUE(has_all(to, kMine)) << "it landed in the user's memory";
    }
    EXPECT_TRUE(to.guarded(bytes));
  }
  EXPECT_GT(in_the_middle, is_read ? 1u : 3u);
}

INSTANTIATE_TEST_SUITE_P(All, LargeGone,
                         ::testing::Combine(::testing::Values(OnWire::kOfProcess,
                                                              OnWire::kOfProcesses, OnWire::kRead),
                                            ::testing::Values(Loser::kSender, Loser::kReceiver),
                                            ::testing::Values(Loss::kReset, Loss::kVanished)));

}  // namespace
}  // namespace rio::msg::test
