// Maintenance, port-writes, events, interrupts. regs: maint_desc, event_cpl, RING_IRQ, ARM
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::MaintOp;
using regs::Status;
using C = regs::maint_desc::Control;

class Maintenance : public CardTest {
 protected:
  void SetUp() override {
    CardTest::SetUp();
    ring_ = std::make_unique<TestRing>(card(), RingConfig{.ring = 4});
    ring_->start();
    buffer_ = std::make_unique<Buffer>(card(), 64);
  }
  void post(MaintOp op, uint32_t offset, uint32_t length, bool local, uint32_t cookie = 1,
            uint32_t hops = 255) {
    ring_->put(regs::MaintDesc{
        C::op.put(static_cast<uint32_t>(op)) | C::local.put(local) | C::hop_count.put(hops),
        kRemoteId, length, cookie, offset, 0, buffer_->iova()});
    ring_->post();
  }
  Status finish(uint32_t bytes) {
    const auto done = ring_->take_all<regs::EntryCpl>();
    EXPECT_EQ(done.size(), 1u);
    if (done.empty()) {
      return Status::kOk;
    }
    EXPECT_EQ(done[0].bytes, bytes);
    return code_of(done[0].status);
  }
  uint32_t read_local(uint32_t offset) {
    post(MaintOp::kRead, offset, 4, true);
    EXPECT_EQ(finish(4), Status::kOk);
    return word(0);
  }
  void write_local(uint32_t offset, uint32_t value) {
    set_word(0, value);
    post(MaintOp::kWrite, offset, 4, true);
    EXPECT_EQ(finish(4), Status::kOk);
  }
  uint32_t word(uint32_t i) {
    uint32_t value = 0;
    std::memcpy(&value, buffer_->va() + 4 * i, 4);
    return value;
  }
  void set_word(uint32_t i, uint32_t value) { std::memcpy(buffer_->va() + 4 * i, &value, 4); }
  /// Reads or writes the card's CSRs, as a remote node.
  std::vector<uint8_t> remote(MaintOp op, uint32_t offset, uint32_t length,
                              std::vector<uint8_t> data = {}) {
    Packet packet;
    packet.kind = Packet::kMaintRequest;
    packet.source = kRemoteId;
    packet.dest = kOwnId;
    packet.op = static_cast<uint8_t>(op);
    packet.address = offset;
    packet.length = static_cast<uint16_t>(length);
    packet.data = std::move(data);
    EXPECT_TRUE(card().send(packet));
    const std::vector<Packet> all = sent();
    EXPECT_EQ(all.size(), 1u);
    remote_answer_ = all.empty() ? Answer::kError : all[0].answer;
    return all.empty() ? std::vector<uint8_t>{} : all[0].data;
  }
  std::unique_ptr<TestRing> ring_;
  std::unique_ptr<Buffer> buffer_;
  Answer remote_answer_ = Answer::kDone;
};
RIO_CONFORMANCE(Maintenance);

// B8, M4
TEST_P(Maintenance, StandardRegistersHaveTheirValues) {
  EXPECT_EQ(read_local(0x00), 0x721010EEu);                          // device identity
  EXPECT_EQ(read_local(0x0C) & 0xFFFF, 0x100u);                      // extended features
  EXPECT_EQ(read_local(0x100) & 0xFFFF, 0x0001u);                    // LP-serial
  EXPECT_EQ(read_local(read_local(0x100) >> 16) & 0xFFFF, 0x0007u);  // error management
  EXPECT_EQ(read_local(0x60) & 0xFFFF, kOwnId);                      // base device ID, 16 bits
  EXPECT_EQ(read_local(0x158), 2u);                                  // port OK
  EXPECT_EQ(read_local(0xFFFFF0), 0u);                               // unknown
  write_local(0x00, 0);                                              // read-only
  EXPECT_EQ(read_local(0x00), 0x721010EEu);
  write_local(0x6C, 0xCAFE1234);  // component tag
  EXPECT_EQ(read_local(0x6C), 0xCAFE1234u);
}

TEST_P(Maintenance, SeveralWordsAreReadAtOnce) {
  post(MaintOp::kRead, 0, 64, true);
  EXPECT_EQ(finish(64), Status::kOk);
  EXPECT_EQ(word(0), 0x721010EEu);
  EXPECT_EQ(word(3) & 0xFFFF, 0x100u);
  EXPECT_EQ(buffer_->touched_outside(64), 0u);
}

TEST_P(Maintenance, TheHostLockKeepsToItsRules) {
  EXPECT_EQ(read_local(0x68), 0xFFFFu);
  write_local(0x68, 5);
  EXPECT_EQ(read_local(0x68), 5u);
  remote(MaintOp::kWrite, 0x68, 4, {9, 0, 0, 0});
  EXPECT_EQ(remote_answer_, Answer::kDone);
  EXPECT_EQ(read_local(0x68), 5u) << "another host holds it";
  write_local(0x68, 5);
  EXPECT_EQ(read_local(0x68), 0xFFFFu) << "the held value releases";
  remote(MaintOp::kWrite, 0x68, 4, {9, 0, 0, 0});
  EXPECT_EQ(remote(MaintOp::kRead, 0x68, 4), (std::vector<uint8_t>{9, 0, 0, 0}));
}

// B8, M4
TEST_P(Maintenance, RemoteNodesReadAndWrite) {
  post(MaintOp::kRead, 0x6C, 8, false, 7, 3);
  std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, Packet::kMaintRequest);
  EXPECT_EQ(all[0].hops, 3u);
  EXPECT_EQ(all[0].address, 0x6Cu);
  EXPECT_EQ(all[0].length, 8u);
  respond(all[0], Answer::kDone, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(finish(8), Status::kOk);
  EXPECT_EQ(word(1), 0x08070605u);
  set_word(0, 0xA1B2C3D4);
  post(MaintOp::kWrite, 0x68, 4, false, 8);
  all = sent();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(std::equal(all[0].data.begin(), all[0].data.begin() + 4, buffer_->va()));
  respond(all[0], Answer::kDone);
  EXPECT_EQ(finish(4), Status::kOk);
}

TEST_P(Maintenance, ErrorsAndTimeOutsAreReported) {
  post(MaintOp::kRead, 0, 4, false);
  respond(sent().at(0), Answer::kError);
  EXPECT_EQ(finish(0), Status::kErrorResponse);
  post(MaintOp::kRead, 0, 4, false);
  EXPECT_EQ(sent().size(), 1u);
  card().advance_us(kResponseUs * 5 / 4);
  EXPECT_EQ(finish(0), Status::kResponseTimeout);
  const struct {
    uint32_t offset;
    uint32_t length;
  } bad[] = {{0, 0}, {0, 3}, {0, 68}, {2, 4}, {1u << 24, 4}};
  for (const auto& b : bad) {
    post(MaintOp::kRead, b.offset, b.length, true);
    EXPECT_EQ(finish(0), Status::kBadDescriptor) << b.offset << " " << b.length;
  }
  post(static_cast<MaintOp>(3), 0, 4, true);
  EXPECT_EQ(finish(0), Status::kBadDescriptor);
  remote(MaintOp::kRead, 2, 4);
  EXPECT_EQ(remote_answer_, Answer::kError);
  remote(MaintOp::kRead, 0, 128);
  EXPECT_EQ(remote_answer_, Answer::kError);
  EXPECT_EQ(buffer_->touched_outside(0), 0u);
}

TEST_P(Maintenance, PortWriteHasNoResponse) {
  set_word(0, 0x11223344);
  post(MaintOp::kPortWrite, 0, 16, false);
  const std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, Packet::kPortWrite);
  EXPECT_TRUE(std::equal(all[0].data.begin(), all[0].data.begin() + 4, buffer_->va()));
  EXPECT_EQ(finish(16), Status::kOk);
}

class Events : public CardTest {
 protected:
  void port_write(uint8_t n) {
    Packet packet;
    packet.kind = Packet::kPortWrite;
    packet.source = kRemoteId;
    packet.dest = kOwnId;
    packet.data = {n, 1, 2, 3, n, 5, 6, 7, n, 9, 10, 11, n, 13, 14, 15};
    ASSERT_TRUE(card().send(packet));
    card().run();
  }
};
RIO_CONFORMANCE(Events);

TEST_P(Events, PortWritesArrive) {
  TestRing& ring = events();
  port_write(200);
  const auto all = ring.take_all<regs::EventCpl>();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].type, 1u);
  EXPECT_EQ(all[0].source, kRemoteId);
  EXPECT_EQ(all[0].data0, 0x030201C8u);
  EXPECT_EQ(all[0].data3, 0x0F0E0DC8u);
}

TEST_P(Events, LinkChangesArrive) {
  TestRing& ring = events();
  card().set_link(false);
  card().run();
  card().set_link(true);
  card().run();
  const auto all = ring.take_all<regs::EventCpl>();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].type, 2u);
  EXPECT_EQ(all[0].info, 0u);
  EXPECT_EQ(all[1].info, 1u);
}

// M5, R10
TEST_P(Events, OverflowIsCountedAndReported) {
  TestRing& ring = events({.log2 = 3});
  for (uint8_t i = 0; i < 13; ++i) {
    port_write(i);
  }
  auto all = ring.take_all<regs::EventCpl>();
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(all[7].data0 & 0xFF, 7u);
  ring.give_back();
  port_write(50);
  all = ring.take_all<regs::EventCpl>();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].type, 4u);
  EXPECT_EQ(all[0].info, 5u);
  EXPECT_EQ(all[1].type, 1u);
  EXPECT_EQ(all[1].data0 & 0xFF, 50u);
}

class Interrupts : public CardTest {
 protected:
  void bell() { EXPECT_EQ(exchange(doorbell(1, 1)), Answer::kDone); }
};
RIO_CONFORMANCE(Interrupts);

// O3
TEST_P(Interrupts, EachArmRaisesOne) {
  TestRing ring(card(), {.ring = 2, .irq = true, .vector = 5});
  ring.start();
  EXPECT_EQ(card().interrupts(5), 0u);
  bell();
  EXPECT_EQ(card().interrupts(5), 1u);
  bell();
  EXPECT_EQ(card().interrupts(5), 0u) << "not armed again";
  EXPECT_EQ(ring.take_all<regs::DoorbellCpl>().size(), 2u);
  ring.arm();
  card().run();
  EXPECT_EQ(card().interrupts(5), 0u) << "everything is consumed";
  bell();
  EXPECT_EQ(card().interrupts(5), 1u);
}

// O3
TEST_P(Interrupts, ArmingWithWorkLeftRaisesAtOnce) {
  TestRing ring(card(), {.ring = 2, .irq = true, .vector = 0});
  ring.start();
  bell();
  bell();
  EXPECT_EQ(card().interrupts(0), 1u);
  regs::DoorbellCpl cpl;
  ASSERT_TRUE(ring.take(&cpl));
  ring.arm();  // the second completion came between draining and arming
  card().run();
  EXPECT_EQ(card().interrupts(0), 1u);
}

// O2
TEST_P(Interrupts, ArmingAgainWithNothingConsumedArms) {
  TestRing ring(card(), {.ring = 2, .irq = true, .vector = 5});
  ring.start();
  bell();
  EXPECT_EQ(card().interrupts(5), 1u);
  for (int i = 0; i < 3; ++i) {
    ring.arm();
    card().run();
    EXPECT_EQ(card().interrupts(5), 1u) << "the completion is still there";
  }
  EXPECT_EQ(ring.take_all<regs::DoorbellCpl>().size(), 1u);
  ring.arm();
  card().run();
  ring.arm();
  card().run();
  EXPECT_EQ(card().interrupts(5), 0u);
  bell();
  EXPECT_EQ(card().interrupts(5), 1u) << "two arms, one interrupt";
}

// O5
TEST_P(Interrupts, AnInterruptForACompletionThatWasPolledIsFollowedByOthers) {
  TestRing ring(card(), {.ring = 2, .irq = true, .vector = 5});
  ring.start();
  for (int i = 0; i < 3; ++i) {
    bell();
    EXPECT_EQ(ring.take_all<regs::DoorbellCpl>().size(), 1u) << "polled";
    EXPECT_EQ(card().interrupts(5), 1u) << i << ": nothing is left for it";
    ring.arm();
    card().run();
    EXPECT_EQ(card().interrupts(5), 0u);
  }
}

// O4
TEST_P(Interrupts, AStartArmsWhateverTheWordHolds) {
  TestRing ring(card(), {.ring = 2, .start = 77, .irq = true, .vector = 5});
  for (const uint32_t word : {77u, 78u, 0xFFFFFFFFu}) {
    ring.config().arm = word;
    ring.start();
    EXPECT_EQ(card().interrupts(5), 0u);
    bell();
    EXPECT_EQ(card().interrupts(5), 1u) << word;
    ring.stop();
  }
}

TEST_P(Interrupts, NoneIsRaisedUnlessEnabled) {
  TestRing ring(card(), {.ring = 2, .vector = 5});
  ring.start();
  bell();
  EXPECT_EQ(card().interrupts(5), 0u);
}

// O1, O7
TEST_P(Interrupts, TheCompletionIsThereBeforeTheInterrupt) {
  TestRing ring(card(), {.ring = 2, .irq = true, .vector = 1});
  ring.start();
  ASSERT_TRUE(card().send(doorbell(9, 1)));
  card().run();
  ASSERT_EQ(card().interrupts(1), 1u);
  regs::DoorbellCpl cpl;
  EXPECT_TRUE(ring.take(&cpl));
}

// O3
TEST_P(Interrupts, ModerationSpacesInterrupts) {
  TestRing ring(card(), {.ring = 2, .irq = true, .vector = 1, .moderation_us = 1000});
  ring.start();
  card().advance_us(2000);
  bell();
  EXPECT_EQ(card().interrupts(1), 1u);
  EXPECT_EQ(ring.take_all<regs::DoorbellCpl>().size(), 1u);
  ring.arm();
  bell();
  EXPECT_EQ(card().interrupts(1), 0u);
  card().advance_us(1500);
  EXPECT_EQ(card().interrupts(1), 1u);
}

TEST_P(Interrupts, TheIndexWraps) {
  TestRing ring(card(), {.ring = 2, .start = 0xFFFFFFFE, .irq = true, .vector = 1});
  ring.start();
  for (int i = 0; i < 5; ++i) {
    bell();
    EXPECT_EQ(card().interrupts(1), 1u) << i;
    EXPECT_EQ(ring.take_all<regs::DoorbellCpl>().size(), 1u);
    ring.arm();
    card().run();
    EXPECT_EQ(card().interrupts(1), 0u) << i;
  }
}

}  // namespace
}  // namespace rio::test
