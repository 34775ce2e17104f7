// Virtual functions. regs: VF, ID.CAP_FLAGS.VF
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

namespace id = regs::id;
namespace table = regs::vf;
using regs::RingState;

constexpr uint32_t kVfId = kOwnId + 1;  // of queue pair 1, which the virtual function gets

class Functions : public CardTest {
 protected:
  void SetUp() override { make({.queue_pairs = 3, .vfs = 2}); }

  FunctionUnderTest& vf(uint32_t number = 0) { return card().vf(number); }
  uint32_t qps(uint32_t number = 0) {
    return id::CapQueues::qps.get(vf(number).read32(id::cap_queues()));
  }
  /// Writes a row of the table. @return STATUS afterwards.
  uint32_t give(uint32_t number, uint32_t first, uint32_t count, bool enable = true) {
    const uint32_t gen = table::Control::gen.get(card().read32(table::status(number))) + 1;
    card().write32(table::qps(number), table::Qps::first.put(first) | table::Qps::count.put(count));
    card().write32(table::control(number),
                   table::Control::gen.put(gen) | table::Control::enable.put(enable));
    card().run();
    const uint32_t status = card().read32(table::status(number));
    EXPECT_EQ(table::Status::gen.get(status), gen);
    return status;
  }
  bool enabled(uint32_t number, uint32_t first, uint32_t count) {
    const uint32_t status = give(number, first, count);
    EXPECT_NE(table::Status::enable.get(status), table::Status::refused.get(status));
    return table::Status::enable.get(status) != 0;
  }
  void reset_vf(uint32_t number = 0) {
    const uint32_t gen = vf(number).read32(id::gen_ack()) + 1;
    vf(number).write32(id::gen_req(), gen);
    card().run();
    ASSERT_EQ(vf(number).read32(id::gen_ack()), gen);
  }
  /// Gives queue pair 1 to virtual function 0, which does its handshake.
  void give_one() {
    ASSERT_TRUE(enabled(0, 1, 1));
    reset_vf();
  }
  std::unique_ptr<TestRing> start_of_vf(regs::Ring ring) {
    auto made = std::make_unique<TestRing>(
        vf(), RingConfig{.ring = static_cast<uint32_t>(ring), .irq = true, .vector = 1});
    made->start();
    return made;
  }
  RingState state_of_vf(regs::Ring ring) {
    return static_cast<RingState>(regs::qp::RingStatus::state.get(
        vf().read32(regs::qp::ring_status(0, static_cast<uint32_t>(ring)))));
  }
};
RIO_CONFORMANCE(Functions);

// F2
TEST_P(Functions, AVirtualFunctionHasAnIdentityAndNoQueuePairsUntilItGetsThem) {
  EXPECT_EQ(id::CapQueues::vfs.get(card().read32(id::cap_queues())), 2u);
  EXPECT_EQ(id::CapFlags::vf.get(card().read32(id::cap_flags())), 0u);
  for (uint32_t number = 0; number < 2; ++number) {
    EXPECT_EQ(vf(number).read32(id::magic()), regs::kMagic);
    EXPECT_EQ(id::CapFlags::vf.get(vf(number).read32(id::cap_flags())), 1u);
    EXPECT_EQ(id::CapFlags::maint.get(vf(number).read32(id::cap_flags())), 0u);
    EXPECT_EQ(id::CapQueues::vfs.get(vf(number).read32(id::cap_queues())), 0u);
    EXPECT_EQ(vf(number).read32(id::response_us()), kResponseUs);
    EXPECT_EQ(qps(number), 0u);
    EXPECT_EQ(vf(number).read32(id::next()), 0u);
  }
}

// F2, F3
TEST_P(Functions, ItsBlocksAreItsIdentityAndItsQueuePairs) {
  ASSERT_TRUE(enabled(0, 1, 2));
  EXPECT_EQ(qps(), 2u);
  std::vector<uint32_t> types;
  for (uint32_t at = vf().read32(id::next()); at != 0 && types.size() < 8;
       at = vf().read32(at + 4)) {
    types.push_back(id::Block::type.get(vf().read32(at)));
  }
  EXPECT_EQ(types, (std::vector<uint32_t>{4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(vf().read32(regs::qp::dest_id(0)), kVfId);
  EXPECT_EQ(vf().read32(regs::qp::dest_id(1)), kVfId + 1);
  EXPECT_EQ(vf().read32(regs::qp::rings(0)) >> 4 & 1, 0u) << "maintenance stays behind";
}

// F1, F10
TEST_P(Functions, ItSendsAndReceivesInItsOwnMemory) {
  give_one();
  const auto tx = start_of_vf(regs::Ring::kTx);
  const auto shared = start_of_vf(regs::Ring::kShared);
  const Buffer out(vf(), 64);
  const Buffer in(vf(), 4096);
  out.fill(pattern(64));
  tx->put(message(0, 64, out.iova(), 7));
  tx->post();
  const std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].source, kVfId);
  EXPECT_EQ(all[0].data, pattern(64));
  answer(all[0]);
  const auto done = tx->take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].cookie, 7u);

  shared->put(regs::SharedDesc{in.iova()});
  shared->post();
  Packet arriving = segment(0, 0, pattern(256, 2));
  arriving.dest = kVfId;
  EXPECT_EQ(exchange(arriving), Answer::kDone);
  ASSERT_EQ(shared->take_all<regs::SharedCpl>().size(), 1u);
  EXPECT_EQ(in.bytes(256), pattern(256, 2));
  EXPECT_GT(vf().interrupts(1), 0u);
  EXPECT_EQ(card().interrupts(1), 0u);
  EXPECT_EQ(card().refused_accesses(), 0u);
}

// F1, F10
TEST_P(Functions, ItCannotReachTheMemoryOfAnother) {
  give_one();
  static_cast<void>(card().map(1 << 20));  // the function knows no address behind it
  const Buffer beyond(card(), 4096);
  const auto tx = start_of_vf(regs::Ring::kTx);
  tx->put(message(0, 64, beyond.iova()));
  tx->post();
  const auto done = tx->take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(code_of(done[0].status), regs::Status::kHostReadFailed);
  EXPECT_TRUE(sent().empty());
  EXPECT_GT(card().refused_accesses(), 0u);
}

// F7
TEST_P(Functions, WordsOfThePhysicalFunctionAreNotItsToWrite) {
  give_one();
  vf().write32(id::response_timeout_us(), 1);
  vf().write32(id::qp_dest_id(0), 0x999);
  vf().write32(regs::rx_map::apply(), 77);
  vf().write32(table::control(0), table::Control::gen.put(9));
  card().run();
  EXPECT_EQ(vf().read32(regs::qp::dest_id(0)), kVfId);
  EXPECT_EQ(vf().read32(id::response_us()), kResponseUs);
  EXPECT_EQ(qps(), 1u);
}

// F6
TEST_P(Functions, WordsOfAPairThatWasGivenAwayMeanNothingInThePhysicalFunction) {
  give_one();
  const auto tx = start_of_vf(regs::Ring::kTx);
  card().write32(regs::qp::ring_control(1, 0), 0x00000005);  // a stop
  card().run();
  EXPECT_EQ(state_of_vf(regs::Ring::kTx), RingState::kRunning);
}

// F8
TEST_P(Functions, ItsResetConcernsItsQueuePairsOnly) {
  give_one();
  const TestRing& of_pf = tx();
  const auto of_vf = start_of_vf(regs::Ring::kTx);
  reset_vf();
  EXPECT_EQ(state_of_vf(regs::Ring::kTx), RingState::kStopped);
  EXPECT_EQ(of_pf.status().state, RingState::kRunning);
  EXPECT_EQ(card().read32(id::gen_ack()), card().read32(id::gen_req()));
}

// F8, G4
TEST_P(Functions, AResetForgetsItsMessagesAndTheirLettersRest) {
  give_one();
  auto tx = start_of_vf(regs::Ring::kTx);
  const Buffer out(vf(), 64);
  for (int i = 0; i < 4; ++i) {
    tx->put(message(0, 64, out.iova()));
  }
  tx->post();
  EXPECT_EQ(sent().size(), 4u);
  reset_vf();
  tx = start_of_vf(regs::Ring::kTx);
  tx->put(message(0, 64, out.iova()));
  tx->post();
  EXPECT_TRUE(sent().empty()) << "all four letters rest";
  card().advance_us(4 * kResponseUs);
  EXPECT_EQ(sent().size(), 1u);
}

// F9
TEST_P(Functions, AResetOfThePhysicalFunctionTakesThePairsBack) {
  give_one();
  const auto tx = start_of_vf(regs::Ring::kTx);
  card().write32(table::control(0), 0);
  reset();
  EXPECT_EQ(qps(), 0u);
  EXPECT_EQ(vf().read32(id::gen_ack()), 0u);
  EXPECT_EQ(card().read32(table::status(0)), 0u);
  RingConfig config{.qp = 1};
  static_cast<void>(this->tx(config));  // the pair is the physical function's again
}

// F5
TEST_P(Functions, APairThatComesBackCarriesNothingOver) {
  give_one();
  const auto tx = start_of_vf(regs::Ring::kTx);
  const uint32_t status = give(0, 1, 1, false);
  EXPECT_EQ(table::Status::enable.get(status), 0u);
  EXPECT_EQ(table::Status::refused.get(status), 0u);
  EXPECT_EQ(vf().read32(id::gen_ack()), 0u);
  ASSERT_TRUE(enabled(1, 1, 1));
  reset_vf(1);
  EXPECT_EQ(regs::qp::RingStatus::state.get(vf(1).read32(regs::qp::ring_status(0, 0))), 0u);
  EXPECT_EQ(vf(1).read32(regs::qp::ring_control(0, 0)), 0u);
  EXPECT_EQ(qps(0), 0u);
}

// F4
TEST_P(Functions, ARowThatCannotBeIsRefused) {
  EXPECT_FALSE(enabled(0, 0, 1));  // pair 0 stays
  EXPECT_FALSE(enabled(0, 1, 0));
  EXPECT_FALSE(enabled(0, 2, 2));  // the card has three
  EXPECT_FALSE(enabled(0, 63, 63));
  EXPECT_TRUE(enabled(0, 1, 1));
  EXPECT_FALSE(enabled(1, 1, 2));  // the first one has it
  static_cast<void>(tx({.qp = 2}));
  EXPECT_FALSE(enabled(1, 2, 1));  // a ring of it runs
  tx_->stop();
  EXPECT_TRUE(enabled(1, 2, 1));
}

}  // namespace
}  // namespace rio::test
