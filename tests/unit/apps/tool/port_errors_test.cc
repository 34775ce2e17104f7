// Error registers: bits from the specification as literals, and cards with an invalid chain of
// blocks.
#include "apps/tool/port_errors.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>

#include "pmd/api/riopmd.hpp"

namespace rio::tool {
namespace {

/// A card's CSRs; all others read 0.
struct FakeCsrs {
  std::map<uint32_t, uint32_t> words;
  uint32_t reads = 0;
  int error = 0;
  ReadCsr reader() {
    return [this](uint32_t offset, uint32_t* word) {
      ++reads;
      *word = words.contains(offset) ? words[offset] : 0;
      return error;
    };
  }
};

/// LP-Serial at 0x100, error management at 0x300.
FakeCsrs usual() {
  return {.words = {{0x0C, 0x0100}, {0x100, 0x03000001}, {0x300, 0x00000007}, {0x158, 0x2}}};
}

TEST(PortErrors, NothingWrong) {
  FakeCsrs csrs = usual();
  std::vector<CardError> found;
  EXPECT_EQ(read_error_registers(csrs.reader(), &found), 0);
  EXPECT_TRUE(found.empty());
}

TEST(PortErrors, BitsAreThoseOfTheSpecification) {
  const struct {
    uint32_t offset;
    uint32_t bits;
    const char* where;
    const char* what;
  } cases[] = {
      {0x308, 0x80000000, "logical layer", "error response to a read or write"},
      {0x308, 0x40000000, "logical layer", "error response to a message"},
      {0x308, 0x01000000, "logical layer", "packet response time-out"},
      {0x340, 0x00040000, "port 0", "packet with bad CRC"},
      {0x340, 0x00000001, "port 0", "link time-out"},
      {0x158, 0x00010002, "port 0", "output is stopped by an error"},
      {0x158, 0x00000102, "port 0", "input is stopped by an error"},
      {0x158, 0x00000001, "port 0", "port is not initialised: no link"},
  };
  for (const auto& one : cases) {
    FakeCsrs csrs = usual();
    csrs.words[one.offset] = one.bits;
    std::vector<CardError> found;
    EXPECT_EQ(read_error_registers(csrs.reader(), &found), 0);
    ASSERT_EQ(found.size(), 1u) << one.what;
    EXPECT_EQ(found[0].where, one.where);
    EXPECT_EQ(found[0].what, one.what);
  }
}

TEST(PortErrors, SecondRegisterMap) {
  FakeCsrs csrs{.words = {{0x0C, 0x0200}, {0x200, 0x00000011}, {0x248, 0x4}}};
  std::vector<CardError> found;
  EXPECT_EQ(read_error_registers(csrs.reader(), &found), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "0x000248: 0x00000004");
}

TEST(PortErrors, ChainThatLoopsOrIsBroken) {
  for (const uint32_t next : {0x01000001u, 0x01020001u, 0xFFFF0001u}) {
    FakeCsrs csrs = usual();
    csrs.words[0x100] = next;
    std::vector<CardError> found;
    EXPECT_EQ(read_error_registers(csrs.reader(), &found), -EPROTO);
    EXPECT_TRUE(found.empty());
    EXPECT_LT(csrs.reads, 1000u);
  }
}

TEST(PortErrors, ReadThatFails) {
  FakeCsrs csrs = usual();
  csrs.error = -ETIMEDOUT;
  std::vector<CardError> found;
  EXPECT_EQ(read_error_registers(csrs.reader(), &found), -ETIMEDOUT);
}

TEST(PortErrors, OfTheEmulatedCardAndItsEvents) {
  std::unique_ptr<Endpoint> endpoint;
  EndpointConfig config;
  config.dest_id = 0x12;
  ASSERT_EQ(Endpoint::open("emu:loop", config, &endpoint), 0);
  ASSERT_EQ(endpoint->wait_link(10000), 0);
  std::vector<CardError> found;
  ASSERT_EQ(read_error_registers(csr_reader(endpoint->maint()), &found), 0);
  EXPECT_TRUE(found.empty());
  const uint32_t crc[] = {0x00040000};
  ASSERT_EQ(endpoint->maint().write_local(0x340, crc, 1000), 0);
  ASSERT_EQ(read_error_registers(csr_reader(endpoint->maint()), &found), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "packet with bad CRC");

  pmd::CardEvent event{};
  while (endpoint->events().burst(&event, 1) == 1) {  // of the link
  }
  const uint32_t words[] = {0x11, 0x22, 0x33, 0x44};
  ASSERT_EQ(endpoint->maint().port_write(0x12, 0, words, 1000), 0);
  uint32_t turns = 0;
  while (endpoint->events().burst(&event, 1) == 0 && ++turns < 1000000) {
  }
  EXPECT_EQ(event_json(event)["data"][3], 0x44);
  EXPECT_EQ(event_json(event)["tag"], 0x11);
  EXPECT_EQ(event_json(event)["port"], 0x33);
  EXPECT_EQ(event_text(event),
            "port-write of the device with tag 0x11, port 51; "
            "port: link response with an ackID that is not outstanding; "
            "port: unexpected acknowledgement; "
            "logical layer: error of the implementation's own");
}

TEST(PortErrors, EventsInWords) {
  using regs::EventType;
  EXPECT_EQ(event_text({EventType::kLink, 0, 1, {}}), "link went up");
  EXPECT_EQ(event_text({EventType::kLink, 0, 0, {}}), "link went down");
  EXPECT_EQ(event_text({EventType::kPortWrite, 0, 16, {2, 0x00040000, 0xABCDEF05, 0x02000000}}),
            "port-write of the device with tag 0x2, port 5; port: packet with bad CRC; "
            "logical layer: message request time-out: segments stayed away");
  EXPECT_EQ(event_text({EventType::kPortWrite, 0, 16, {9, 0, 1, 0}}),
            "port-write of the device with tag 0x9, port 1");
  EXPECT_EQ(event_text({EventType::kRingError, 0, 2, {7, 8, 0, 0}}),
            "ring dedicated0 stopped: tail at entry 7");
  EXPECT_EQ(event_text({EventType::kRingError, 0, 2, {7, 99, 0, 0}}),
            "ring unknown stopped: tail at entry 7");
  EXPECT_EQ(event_text({EventType::kOverflow, 0, 5, {}}), "5 events were lost for want of room");
}

TEST(PortErrors, RingThatTheCardStopped) {
  std::unique_ptr<Endpoint> endpoint;
  ASSERT_EQ(Endpoint::open("emu:loop", {}, &endpoint), 0);
  std::vector<CardError> found;
  ASSERT_EQ(read_card_errors(endpoint->card(), &found), 0);
  EXPECT_TRUE(found.empty());
  // A tail more than a ring ahead.
  ASSERT_EQ(endpoint->card().reg_write(regs::qp::tail(0, 0), 0x10000), 0);
  uint32_t turns = 0;
  while (found.empty() && ++turns < 1000000) {
    (void)endpoint->events().burst(nullptr, 0);
    pmd::TxDone done{};
    (void)endpoint->tx().reap(&done, 1);
    ASSERT_EQ(read_card_errors(endpoint->card(), &found), 0);
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].where, "queue pair 0, ring tx");
  EXPECT_EQ(found[0].what.substr(0, 13), "stopped: tail");
}

TEST(PortSample, RatesGoOverAWrap) {
  PortSample before;
  PortSample now;
  now.at = before.at + std::chrono::seconds(2);
  before.counts = {{"a", 0xFFFFFFFE}, {"b", 10}};
  now.counts = {{"a", 6}, {"c", 10}};
  EXPECT_DOUBLE_EQ(per_second(before, now, now.counts[0]), 4.0);
  EXPECT_DOUBLE_EQ(per_second(before, now, now.counts[1]), 0.0);
}

TEST(PortSample, CountsTrafficAndRings) {
  std::unique_ptr<Endpoint> endpoint;
  EndpointConfig config;
  config.dest_id = 0x12;
  ASSERT_EQ(Endpoint::open("emu:loop", config, &endpoint), 0);
  ASSERT_EQ(endpoint->wait_link(10000), 0);
  const pmd::TxMessage doorbell{.info = 1,
                                .cookie = 0,
                                .dest_id = 0x12,
                                .length_bytes = 0,
                                .mbox = 0,
                                .flags = pmd::TxFlags::kDoorbell};
  ASSERT_EQ(endpoint->tx().burst(&doorbell, 1), 1);
  pmd::TxDone done{};
  uint32_t turns = 0;
  while (endpoint->tx().reap(&done, 1) == 0 && ++turns < 1000000) {
  }
  PortSample sample;
  ASSERT_EQ(take_sample(endpoint->card(), &sample), 0);
  std::map<std::string, uint32_t> counts;
  for (const Count& count : sample.counts) {
    counts[count.name] = count.value;
  }
  EXPECT_EQ(counts["qp0.tx.posted"], 1u);
  EXPECT_EQ(counts.size(), 8u + 6u);
}

}  // namespace
}  // namespace rio::tool
